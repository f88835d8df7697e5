//! The buyer behind a request, and the session that it wants to go on with.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use domain::Reason;

use crate::auth::{Buyer, TokenKeys, bearer_token};
use crate::login_keys::{LoginKeys, Refresh};
use crate::problem::Problem;

/// The buyer whose token the request bears; 401 without one. The router's state must hold the [`TokenKeys`].
#[derive(Debug, Clone, Copy)]
pub struct BuyerAuth(pub Buyer);

impl<S: Send + Sync> FromRequestParts<S> for BuyerAuth
where
    TokenKeys: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        TokenKeys::from_ref(state).verify_buyer(authorization(parts)).map(Self).map_err(Problem::new)
    }
}

/// The refresh token that the request bears; 401 without one of ours. The router's state must hold the [`LoginKeys`].
#[derive(Debug, Clone, Copy)]
pub struct SessionAuth(pub Refresh);

impl<S: Send + Sync> FromRequestParts<S> for SessionAuth
where
    LoginKeys: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let token = authorization(parts).and_then(bearer_token);
        let refresh = token.and_then(|token| LoginKeys::from_ref(state).read_refresh(token));
        refresh.map(Self).ok_or_else(|| Problem::new(Reason::Unauthorized))
    }
}

/// The header's value, if there is exactly one and it is text.
pub(super) fn authorization(parts: &Parts) -> Option<&str> {
    let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (headers.next()?, headers.next());
    second.is_none().then(|| first.to_str().ok())?
}
