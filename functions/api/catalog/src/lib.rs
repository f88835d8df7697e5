//! `catalog`: what the public may know about stores, products and their numbers.
//!
//! Reads only, cacheable, without a token. A cached counter informs; it never reserves. Knows nothing of orders.

mod availability;
mod clock;
mod numbers;
mod products;
mod snapshot;
mod stores;

use std::sync::Arc;

use axum::Router;
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use snapshot::Snapshots;

/// For what changes with every order: a CDN answers bursts, and nobody sees anything older than seconds.
const LIVE: &str = "public, max-age=1, stale-while-revalidate=5";

/// For what staff changes now and then.
const SETTLED: &str = "public, max-age=30";

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    snapshots: Arc<Snapshots>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database) -> Self {
        Self { database, snapshots: Arc::default() }
    }
}

/// The routes with their documentation.
pub fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(clock::read_time))
        .routes(routes!(stores::read_store))
        .routes(routes!(stores::list_products))
        .routes(routes!(products::read_product))
        .routes(routes!(availability::read_availability))
        .routes(routes!(availability::read_chunk))
        .routes(routes!(numbers::read_number))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}

#[cfg(test)]
mod tests;
