//! Settles what gateways say: fetches the state of a payment, writes it down, and takes the next step.
//!
//! A message names an order, or an event of a gateway. Either is only a reason to look: what counts is what the gateway
//! answers now. An answer that does not come is no failure of the message: the next look is written down.

mod event;
mod order;

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use cashier::Cashier;
use domain::limits::SETTLED_AT_ONCE;
use domain::messages::{Queue, SettleMessage};
use edge::Deadline;
use edge::queue::MessageQueue;
use edge::sqs::{Outcome, Record, run_batch};
use futures::StreamExt;
use futures::stream;
use store::Database;

/// What one execution environment keeps between batches.
pub struct State {
    database: Database,
    cashier: Cashier,
    queue: Arc<dyn MessageQueue>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, cashier: Cashier, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, cashier, queue }
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
    run_batch(&*state.queue, Queue::SettlePayment, event, deadline, |records, deadline| serve(state, records, deadline))
        .await
}

/// Some at once: most of the time is spent waiting for gateways, and the connection is borrowed only between.
async fn serve(state: &State, records: Vec<Record<SettleMessage>>, deadline: Deadline) -> Vec<Outcome> {
    let work = records.into_iter().map(|record| async move {
        if deadline.has_passed() {
            return Outcome::RETRY;
        }
        settle(state, &record.message, deadline).await
    });
    stream::iter(work).buffered(SETTLED_AT_ONCE).collect().await
}

async fn settle(state: &State, message: &SettleMessage, deadline: Deadline) -> Outcome {
    let settled = match message {
        SettleMessage::Order(message) => order::settle(state, message.tenant_id, message.order_id, &[], deadline).await,
        SettleMessage::Event(message) => event::settle(state, message, deadline).await,
    };
    settled.unwrap_or_else(|error| {
        tracing::warn!(error.message = error.chain(), "not settled");
        Outcome::RETRY
    })
}
