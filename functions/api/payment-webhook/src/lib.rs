//! What gateways tell us: checked, written down once, handed on. Nothing else happens here.

mod receive;
mod stores;

use std::sync::Arc;

use axum::Router;
use cashier::Cashier;
use edge::queue::MessageQueue;
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use stores::Stores;

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    cashier: Cashier,
    queue: Arc<dyn MessageQueue>,
    stores: Arc<Stores>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, cashier: Cashier, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, cashier, queue, stores: Arc::default() }
    }
}

/// The routes with their documentation.
pub fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(receive::receive))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}
