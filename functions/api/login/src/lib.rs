//! Logging in: a code to the phone, a session for the code, new tokens for the session.
//!
//! The only one who signs buyers' tokens. Nothing is kept under idempotency keys, and no answer may be stored: they
//! hold tokens. What everybody may know is the set of public keys.

mod ask;
mod exchange;
mod jwks;
mod refresh;
mod tokens;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use edge::auth::{SigningKeys, TokenKeys};
use edge::http::OriginSecret;
use edge::login_keys::LoginKeys;
use edge::queue::MessageQueue;
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the login knows and others do not.
#[derive(Debug, Clone)]
pub struct Keys {
    /// What tokens are checked with; published.
    pub public: TokenKeys,
    /// What signs access tokens.
    pub signing: SigningKeys,
    /// What derives codes, refresh tokens and device tokens.
    pub login: LoginKeys,
    /// What proves that a request comes through the CDN.
    pub origin: OriginSecret,
}

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    keys: Keys,
    queue: Arc<dyn MessageQueue>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, keys: Keys, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, keys, queue }
    }
}

impl FromRef<State> for LoginKeys {
    fn from_ref(state: &State) -> Self {
        state.keys.login.clone()
    }
}

impl FromRef<State> for OriginSecret {
    fn from_ref(state: &State) -> Self {
        state.keys.origin.clone()
    }
}

/// The routes with their documentation.
pub fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(ask::ask))
        .routes(routes!(exchange::exchange))
        .routes(routes!(refresh::refresh))
        .routes(routes!(refresh::end))
        .routes(routes!(jwks::read_keys))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}
