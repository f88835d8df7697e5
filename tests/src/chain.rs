//! The chain behind intake, in this process: the real handlers of workers and jobs, fed by [`Queues`].

use std::sync::Arc;
use std::time::Duration;

use domain::messages::{OrderMessage, Queue};
use edge::Deadline;
use edge::queue::MessageQueue;
use store::Database;
use store::catalog::Product;
use uuid::Uuid;

use cashier::Cashier;

use crate::TestDatabase;
use crate::queue::{Queues, Settings, drain};

/// What one invocation may take.
const BUDGET: Duration = Duration::from_secs(60);

/// Workers and jobs over one database.
pub struct Chain {
    /// The queues.
    pub queues: Arc<Queues>,
    database: Database,
    cashier: Option<Cashier>,
    workers: usize,
    batch_max: usize,
}

impl Chain {
    /// So many workers at once, each with a connection of its own, each served so many messages at a time.
    #[must_use]
    pub fn new(database: &TestDatabase, workers: usize, batch_max: usize, seed: u64) -> Self {
        let queues = Arc::new(Queues::new(Settings::default(), seed));
        Self { queues, database: database.app(workers), cashier: None, workers, batch_max }
    }

    /// With somebody who asks gateways, so that the settling worker can run.
    #[must_use]
    pub fn with_cashier(mut self, cashier: Cashier) -> Self {
        self.cashier = Some(cashier);
        self
    }

    /// Sends the reservation worker a message about an order.
    pub fn put(&self, product: &Product, order_id: Uuid) {
        self.queues.put(Queue::ReserveNumbers, &message(product, order_id));
    }

    /// Sends the settling worker a message about an order.
    pub fn put_settle(&self, product: &Product, order_id: Uuid) {
        self.queues.put(Queue::SettlePayment, &message(product, order_id));
    }

    /// Sends the release worker a message about an order.
    pub fn put_release(&self, product: &Product, order_id: Uuid) {
        self.queues.put(Queue::ReleaseNumbers, &message(product, order_id));
    }

    /// Runs both workers until their queues are empty.
    pub async fn run(&self) {
        self.reserve().await;
        self.release().await;
    }

    /// Runs the reservation worker until its queue is empty.
    pub async fn reserve(&self) {
        let queue = Arc::clone(&self.queues) as Arc<dyn MessageQueue>;
        let state = Arc::new(reserve_numbers::State::new(self.database.clone(), queue));
        let handle = move |event| {
            let state = Arc::clone(&state);
            async move { reserve_numbers::handle(&state, event, Deadline::after(BUDGET)).await }
        };
        drain(&self.queues, Queue::ReserveNumbers, self.workers, self.batch_max, handle).await;
    }

    /// Runs the release worker until its queue is empty.
    pub async fn release(&self) {
        let queue = Arc::clone(&self.queues) as Arc<dyn MessageQueue>;
        let state = Arc::new(release_numbers::State::new(self.database.clone(), queue));
        let handle = move |event| {
            let state = Arc::clone(&state);
            async move { release_numbers::handle(&state, event, Deadline::after(BUDGET)).await }
        };
        drain(&self.queues, Queue::ReleaseNumbers, self.workers, self.batch_max, handle).await;
    }

    /// Runs the settling worker until its queue is empty.
    pub async fn settle(&self) {
        let queue = Arc::clone(&self.queues) as Arc<dyn MessageQueue>;
        let cashier = self.cashier.clone().expect("a cashier");
        let state = Arc::new(settle_payment::State::new(self.database.clone(), cashier, queue));
        let handle = move |event| {
            let state = Arc::clone(&state);
            async move { settle_payment::handle(&state, event, Deadline::after(BUDGET)).await }
        };
        drain(&self.queues, Queue::SettlePayment, self.workers, self.batch_max, handle).await;
    }

    /// Runs the reconciler once.
    pub async fn reconcile(&self) -> reconcile_orders::Report {
        let queue = Arc::clone(&self.queues) as Arc<dyn MessageQueue>;
        reconcile_orders::run(&self.database, &queue, Deadline::after(BUDGET)).await
    }

    /// Runs the expiry sweep once.
    pub async fn expire(&self) -> expire_reservations::Report {
        expire_reservations::run(&self.database, Deadline::after(BUDGET)).await.unwrap()
    }
}

/// The message about an order.
#[must_use]
pub fn message(product: &Product, order_id: Uuid) -> OrderMessage {
    OrderMessage::new(order_id, product.described.id, product.described.tenant_id)
}
