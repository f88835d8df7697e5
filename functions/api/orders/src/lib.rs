//! Intake: records orders and cancellations, and hands them to the queues.
//!
//! Never touches a chunk or anything else that a worker locks for long, so that the peak waits in the queue and
//! not in the database.

mod cancel;
mod health;
mod place;
mod published;

use std::sync::Arc;

use axum::Router;
use axum::extract::FromRef;
use domain::messages::Queue;
use edge::auth::TokenKeys;
use edge::queue::{MessageQueue, Outgoing};
use store::Database;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use health::HealthCache;
use published::Published;

/// What the handlers share within one execution environment.
#[derive(Clone)]
pub struct State {
    database: Database,
    keys: TokenKeys,
    queue: Arc<dyn MessageQueue>,
    published: Arc<Published>,
    health: Arc<HealthCache>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, keys: TokenKeys, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, keys, queue, published: Arc::default(), health: Arc::default() }
    }

    /// Sends one message and remembers its outbox row for the next insert to delete. A failed send is left to the
    /// relay: the order is recorded all the same.
    async fn publish(&self, queue: Queue, outbox_id: Uuid, message: domain::messages::OrderMessage) {
        fail::fail_point!("publish.before_send");
        let sent = self.queue.send(queue, &[Outgoing::from(&message)]).await;
        fail::fail_point!("publish.after_send");
        match sent.into_iter().next() {
            Some(Ok(())) => self.published.remember(outbox_id),
            Some(Err(error)) => {
                tracing::warn!(order.id = %message.order_id, %error, "not published, left to the relay")
            }
            None => tracing::error!(order.id = %message.order_id, "the queue did not answer for the message"),
        }
    }
}

impl FromRef<State> for TokenKeys {
    fn from_ref(state: &State) -> Self {
        state.keys.clone()
    }
}

/// The routes with their documentation.
pub fn routes() -> OpenApiRouter<State> {
    OpenApiRouter::new().routes(routes!(place::place)).routes(routes!(cancel::cancel))
}

/// The routes, ready to be served.
pub fn router(state: State) -> Router {
    routes().with_state(state).split_for_parts().0
}
