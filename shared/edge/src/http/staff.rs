//! The token of staff that a request bears, and the session that it wants to go on with.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use domain::Reason;

use super::buyer::authorization;
use crate::auth::{StaffClaim, TokenKeys, bearer_token};
use crate::login_keys::{LoginKeys, Refresh};
use crate::problem::Problem;

/// What the token of a request of staff says; 401 without one. Whether its session lives, and what its owner may do, is
/// for the database to say. The router's state must hold the [`TokenKeys`].
#[derive(Debug, Clone, Copy)]
pub struct StaffToken(pub StaffClaim);

impl<S: Send + Sync> FromRequestParts<S> for StaffToken
where
    TokenKeys: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        TokenKeys::from_ref(state).verify_staff(authorization(parts)).map(Self).map_err(Problem::new)
    }
}

/// The refresh token of staff that the request bears; 401 without one of ours. The router's state must hold the
/// [`LoginKeys`].
#[derive(Debug, Clone, Copy)]
pub struct StaffSessionAuth(pub Refresh);

impl<S: Send + Sync> FromRequestParts<S> for StaffSessionAuth
where
    LoginKeys: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let token = authorization(parts).and_then(bearer_token);
        let refresh = token.and_then(|token| LoginKeys::from_ref(state).read_staff_refresh(token));
        refresh.map(Self).ok_or_else(|| Problem::new(Reason::Unauthorized))
    }
}
