//! The heart: turns queued orders into reserved or rejected ones, at a pace that the database sustains.

mod groups;

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::limits::HEALTH_CACHE;
use domain::messages::Queue;
use edge::Deadline;
use edge::metrics::{self, Dimension, Metric, Unit};
use edge::queue::MessageQueue;
use edge::sqs::{Outcome, Record, run_batch};
use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};
use store::Database;
use store::numbers::{Served, reserve};
use uuid::Uuid;

use groups::{Group, in_turns};

/// Products whose last measurement one environment remembers.
const PRODUCTS_MAX: usize = 1_000;

/// What one execution environment keeps between batches.
pub struct State {
    database: Database,
    queue: Arc<dyn MessageQueue>,
    measured: Mutex<HashMap<Uuid, Instant>>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, queue, measured: Mutex::default() }
    }

    /// Whether a product's queue is due for a measurement by this environment: once a second.
    fn should_measure(&self, product_id: Uuid) -> bool {
        let mut measured = self.measured.lock().unwrap_or_else(PoisonError::into_inner);
        if measured.get(&product_id).is_some_and(|at| at.elapsed() < HEALTH_CACHE) {
            return false;
        }
        if measured.len() >= PRODUCTS_MAX {
            measured.clear();
        }
        measured.insert(product_id, Instant::now());
        true
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
    run_batch(&*state.queue, Queue::ReserveNumbers, event, deadline, |records, deadline| {
        serve(state, records, deadline)
    })
    .await
}

async fn serve(state: &State, records: Vec<Record>, deadline: Deadline) -> Vec<Outcome> {
    let started = Instant::now();
    // Numbers are drawn from the system's randomness: a raffle's quick picks must not be predictable.
    let Ok(mut rng) = StdRng::try_from_rng(&mut SysRng) else { return vec![Outcome::RETRY; records.len()] };
    // By store and product too: a message that names an order with others must not answer for the right one.
    let mut outcomes: HashMap<(Uuid, Uuid, Uuid), Outcome> = HashMap::new();
    for group in in_turns(records.iter().map(|record| record.message)) {
        if deadline.has_passed() {
            break;
        }
        let served = serve_group(state, &group, &mut rng).await;
        outcomes.extend(served.into_iter().map(|(id, outcome)| ((group.tenant_id, group.product_id, id), outcome)));
    }
    measure(records.len(), started);
    let of = |Record { message, .. }: &Record| {
        outcomes.get(&(message.tenant_id, message.product_id, message.order_id)).copied()
    };
    records.iter().map(|record| of(record).unwrap_or(Outcome::RETRY)).collect()
}

/// One transaction. A group that fails or panics is tried again as a whole; the next group is not its business.
async fn serve_group(state: &State, group: &Group, rng: &mut StdRng) -> Vec<(Uuid, Outcome)> {
    let work = edge::panics::caught(async {
        let mut client = state.database.client().await?;
        let served = reserve(&mut client, group.tenant_id, group.product_id, &group.orders, rng).await?;
        if state.should_measure(group.product_id) {
            // Only informs; the group is decided all the same.
            if let Err(error) = store::health::measure_queue(&client, group.product_id).await {
                tracing::warn!(product.id = %group.product_id, error.message = error.chain(), "queue not measured");
            }
        }
        Ok::<_, domain::Error>(served)
    });
    match work.await {
        Ok(Ok(group)) => {
            measure_group(&group);
            group.served.into_iter().map(|(id, served)| (id, outcome(served))).collect()
        }
        Ok(Err(error)) => {
            tracing::warn!(product.id = %group.product_id, orders = group.orders.len(), error.message = error.chain(), "group not served");
            Vec::new()
        }
        Err(_) => Vec::new(),
    }
}

fn outcome(served: Served) -> Outcome {
    match served {
        Served::Done => Outcome::Done,
        Served::Again => Outcome::RETRY,
        Served::Unknown => Outcome::Failed,
    }
}

fn measure(records: usize, started: Instant) {
    let count = f64::from(u32::try_from(records).unwrap_or(u32::MAX));
    metrics::emit(
        &[
            Metric { name: "reserve_batch_orders", value: count, unit: Unit::Count },
            Metric {
                name: "reserve_batch_ms",
                value: started.elapsed().as_secs_f64() * 1_000.0,
                unit: Unit::Milliseconds,
            },
        ],
        &[],
    );
}

/// One line per outcome: how many orders, how many numbers, and the longest wait.
fn measure_group(group: &store::numbers::Group) {
    let mut outcomes: BTreeMap<&str, (u32, u32, Duration)> = BTreeMap::new();
    for decided in &group.decided {
        let (orders, numbers, wait) = outcomes.entry(decided.outcome).or_default();
        *orders += 1;
        *numbers += u32::try_from(decided.numbers).unwrap_or(u32::MAX);
        *wait = decided.queued.max(*wait);
    }
    for (outcome, (orders, numbers, wait)) in outcomes {
        let dimensions = [
            (Dimension::Store, group.store.as_str()),
            (Dimension::Campaign, &group.campaign),
            (Dimension::Outcome, outcome),
        ];
        let metric = |name, value, unit| Metric { name, value, unit };
        metrics::emit(
            &[
                metric("orders_decided", f64::from(orders), Unit::Count),
                metric("numbers_decided", f64::from(numbers), Unit::Count),
                metric("queued_max_ms", wait.as_secs_f64() * 1_000.0, Unit::Milliseconds),
            ],
            &dimensions,
        );
    }
}
