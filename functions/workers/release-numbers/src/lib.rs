//! Gives numbers back whose buyers have cancelled. Apart from intake, so that buyers never wait for a chunk's lock.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::limits::ORDERS_PER_TRANSACTION_MAX;
use domain::messages::Queue;
use edge::Deadline;
use edge::queue::MessageQueue;
use edge::sqs::{Outcome, Record, run_batch};
use store::Database;
use store::numbers::{Served, release};
use uuid::Uuid;

/// What one execution environment keeps between batches.
pub struct State {
    database: Database,
    queue: Arc<dyn MessageQueue>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, queue }
    }
}

/// Handles one batch.
///
/// # Errors
/// Only when the batch cannot be reported record by record.
pub async fn handle(
    state: &State,
    event: SqsEvent,
    deadline: Deadline,
) -> Result<SqsBatchResponse, lambda_runtime::Error> {
    run_batch(&*state.queue, Queue::ReleaseNumbers, event, deadline, |records, deadline| {
        serve(state, records, deadline)
    })
    .await
}

async fn serve(state: &State, records: Vec<Record>, deadline: Deadline) -> Vec<Outcome> {
    let mut products: BTreeMap<(Uuid, Uuid), Vec<Uuid>> = BTreeMap::new();
    for Record { message, .. } in &records {
        let orders = products.entry((message.tenant_id, message.product_id)).or_default();
        if !orders.contains(&message.order_id) {
            orders.push(message.order_id);
        }
    }
    // By store and product too: a message that names an order with others must not answer for the right one.
    let mut outcomes: HashMap<(Uuid, Uuid, Uuid), Outcome> = HashMap::new();
    for ((tenant_id, product_id), orders) in &products {
        for some in orders.chunks(ORDERS_PER_TRANSACTION_MAX) {
            if !deadline.has_passed() {
                let served = serve_group(state, *tenant_id, *product_id, some).await;
                outcomes.extend(served.into_iter().map(|(id, outcome)| ((*tenant_id, *product_id, id), outcome)));
            }
        }
    }
    let of = |Record { message, .. }: &Record| {
        outcomes.get(&(message.tenant_id, message.product_id, message.order_id)).copied()
    };
    records.iter().map(|record| of(record).unwrap_or(Outcome::RETRY)).collect()
}

async fn serve_group(state: &State, tenant_id: Uuid, product_id: Uuid, orders: &[Uuid]) -> Vec<(Uuid, Outcome)> {
    let work = async {
        let mut client = state.database.client().await?;
        release(&mut client, tenant_id, product_id, orders).await
    };
    match work.await {
        Ok(served) => served.into_iter().map(|(id, served)| (id, outcome(served))).collect(),
        Err(error) => {
            tracing::warn!(product.id = %product_id, orders = orders.len(), error.message = error.chain(), "group not released");
            Vec::new()
        }
    }
}

fn outcome(served: Served) -> Outcome {
    match served {
        Served::Done => Outcome::Done,
        Served::Again => Outcome::RETRY,
        Served::Unknown => Outcome::Failed,
    }
}
