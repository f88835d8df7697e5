//! Paying: records an attempt, asks the gateway, and tells the buyer what to do.
//!
//! Apart from intake, because a gateway answers in seconds and intake must not wait behind it.

mod pay;

use axum::Router;
use axum::extract::FromRef;
use cashier::Cashier;
use edge::auth::TokenKeys;
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    keys: TokenKeys,
    cashier: Cashier,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, keys: TokenKeys, cashier: Cashier) -> Self {
        Self { database, keys, cashier }
    }
}

impl FromRef<State> for TokenKeys {
    fn from_ref(state: &State) -> Self {
        state.keys.clone()
    }
}

/// The routes with their documentation.
pub fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(pay::pay))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}
