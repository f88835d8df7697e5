//! The buyer behind a request.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::header::AUTHORIZATION;
use axum::http::request::Parts;
use domain::Reason;

use crate::auth::{Buyer, TokenKeys};
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
        let mut headers = parts.headers.get_all(AUTHORIZATION).iter();
        let (first, second) = (headers.next(), headers.next());
        if second.is_some() {
            return Err(Problem::new(Reason::Unauthorized));
        }
        let text = first.and_then(|value| value.to_str().ok());
        TokenKeys::from_ref(state).verify_buyer(text).map(Self).map_err(Problem::new)
    }
}
