//! `order-status`: buyers look at their orders.
//!
//! Apart from `orders`, so that polling cannot starve intake. Reads only; a buyer sees their own orders and nothing
//! else. Knows nothing of queues and of how numbers are reserved.

mod find;
mod list;
mod patience;
mod polls;
mod resource;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use edge::auth::TokenKeys;
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use polls::Polls;

/// Only for its buyer, who asks again whether it changed.
const PRIVATE: &str = "private, no-cache";

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    keys: TokenKeys,
    polls: Arc<Polls>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, keys: TokenKeys) -> Self {
        Self { database, keys, polls: Arc::default() }
    }
}

impl FromRef<State> for TokenKeys {
    fn from_ref(state: &State) -> Self {
        state.keys.clone()
    }
}

/// The routes with their documentation.
pub fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(find::read_order)).routes(routes!(list::list_orders))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}

#[cfg(test)]
mod tests;
