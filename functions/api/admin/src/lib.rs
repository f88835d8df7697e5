//! What staff do to their store: products, numbers, switches, orders, sales, files of them; and the record of it.
//!
//! Every change goes through a store function that writes the audit log in the same transaction. Asks no gateway and
//! sends no message: what a queue must hear of stands in the outbox, and the relay tells it within a minute.

mod audit;
mod create;
mod edit;
mod exports;
mod numbers;
mod order_acts;
mod orders;
mod product;
mod products;
mod sales;
mod search;
mod settings;
mod switches;
mod unfit;
mod uploads;

use access::Access;
use axum::Router;
use axum::extract::FromRef;
use edge::auth::TokenKeys;
use edge::storage::Bucket;
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    access: Access,
    exports: Bucket,
    uploads: Bucket,
}

impl State {
    /// The state of a fresh environment; files of exports are in one bucket, uploads go to the other.
    #[must_use]
    pub fn new(database: Database, keys: TokenKeys, exports: Bucket, uploads: Bucket) -> Self {
        Self { access: Access::new(database.clone(), keys), database, exports, uploads }
    }
}

impl FromRef<State> for Access {
    fn from_ref(state: &State) -> Self {
        state.access.clone()
    }
}

/// The routes with their documentation.
pub fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new()
        .routes(routes!(settings::inspect, settings::edit))
        .routes(routes!(products::list, create::create))
        .routes(routes!(products::inspect, edit::edit))
        .routes(routes!(switches::product_intake))
        .routes(routes!(switches::reserving))
        .routes(routes!(switches::store_intake))
        .routes(routes!(switches::close))
        .routes(routes!(numbers::block))
        .routes(routes!(numbers::unblock))
        .routes(routes!(search::search))
        .routes(routes!(orders::inspect))
        .routes(routes!(order_acts::release))
        .routes(routes!(order_acts::extend))
        .routes(routes!(order_acts::refund))
        .routes(routes!(sales::sell))
        .routes(routes!(sales::book))
        .routes(routes!(exports::request))
        .routes(routes!(exports::list))
        .routes(routes!(exports::read))
        .routes(routes!(uploads::begin))
        .routes(routes!(uploads::read))
        .routes(routes!(audit::list))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}
