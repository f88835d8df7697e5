//! How staff get in, and who they are: one-time links by mail, one-time passwords, sessions, invitations.
//!
//! The only one who mails links, and who opens the secrets of one-time passwords. Routes without a token take no idempotency
//! key, and no answer may be stored: they hold tokens and secrets.

mod ask;
mod enrol;
mod members;
mod post;
mod refresh;
mod renew;
mod sessions;
mod sign_in;
mod tokens;

use std::sync::Arc;

use access::Access;
use axum::Router;
use axum::extract::FromRef;
use edge::auth::{SigningKeys, TokenKeys};
use edge::http::OriginSecret;
use edge::login_keys::LoginKeys;
use edge::sealing::SealingKeys;
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

pub use post::Post;
pub use senders::mail::Sender;

/// What this function knows and others do not.
#[derive(Debug, Clone)]
pub struct Keys {
    /// What tokens are checked with.
    pub public: TokenKeys,
    /// What signs access tokens.
    pub signing: SigningKeys,
    /// What derives refresh tokens, and names the pots of mails.
    pub login: LoginKeys,
    /// What opens the secrets of one-time passwords.
    pub sealing: SealingKeys,
    /// What proves that a request comes through the CDN.
    pub origin: OriginSecret,
}

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    access: Access,
    keys: Keys,
    post: Arc<Post>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, keys: Keys, post: Post) -> Self {
        let access = Access::new(database.clone(), keys.public.clone());
        Self { database, access, keys, post: Arc::new(post) }
    }
}

impl FromRef<State> for Access {
    fn from_ref(state: &State) -> Self {
        state.access.clone()
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
        .routes(routes!(enrol::enrol))
        .routes(routes!(sign_in::sign_in, sessions::list, refresh::end))
        .routes(routes!(refresh::refresh))
        .routes(routes!(renew::renew))
        .routes(routes!(sessions::end))
        .routes(routes!(members::list, members::invite))
        .routes(routes!(members::change, members::remove))
        .routes(routes!(members::recover))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}
