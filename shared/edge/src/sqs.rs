//! From an SQS event to a worker and back: which messages are done, which come again, which are beyond help.
//!
//! A worker is a function from records to outcomes, in order. This module reads the bodies, keeps one bad record or a
//! panic from its neighbours, delays what should be tried again, and reports only what was not done: a message that is
//! not reported is deleted.

use std::collections::HashSet;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent, SqsMessage};
use domain::limits::{DEADLINE_MARGIN, RETRY_BACKOFF_MAX, RETRY_BACKOFF_MIN, STATEMENT_TIMEOUT};
use domain::messages::{Message, OrderMessage, Queue};
use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};

use crate::deadline::Deadline;
use crate::panics::{caught, caught_sync};
use crate::queue::{Delay, MessageQueue};

/// How long past its deadline a worker may still finish what it had started, before its batch is given up.
const GRACE: Duration = STATEMENT_TIMEOUT;
/// How long delaying messages may take. What is not delayed waits for the queue's whole visibility timeout.
const DELAYING: Duration = Duration::from_secs(2);
const _: () = assert!(
    GRACE.as_millis() + DELAYING.as_millis() < DEADLINE_MARGIN.as_millis(),
    "a worker must be able to answer before Lambda ends it"
);

/// A message that could be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record<M = OrderMessage> {
    /// SQS's id of the message. A message sent twice has two.
    pub message_id: String,
    /// How often it has been received, this time included.
    pub receive_count: u32,
    /// The fair-queueing group it was sent under.
    pub group: Option<String>,
    /// What it says.
    pub message: M,
}

/// What became of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// Finished, one way or another: the message is deleted.
    Done,
    /// To be tried again: after this time, or after a backoff that grows with the receive count.
    Retry {
        /// Between `RETRY_BACKOFF_MIN` and `RETRY_BACKOFF_MAX`; longer and shorter times are cut.
        after: Option<Duration>,
    },
    /// Beyond help: it comes again unchanged until the queue gives it to the DLQ.
    Failed,
}

impl Outcome {
    /// To be tried again after the usual backoff.
    pub const RETRY: Self = Self::Retry { after: None };
}

/// Works on one event. `work` gets the records that could be read and answers one [`Outcome`] for each, in order; it
/// should start nothing new after the deadline and answer [`Outcome::RETRY`] for what is left. When it panics, or does
/// not return in time, all its records are tried again: it must not matter whether they had been done.
///
/// # Errors
/// A record that was not done has no message id, so that it cannot be reported alone: the whole batch must come again.
pub async fn run_batch<M, W, F>(
    queues: &dyn MessageQueue,
    queue: Queue,
    event: SqsEvent,
    deadline: Deadline,
    work: W,
) -> Result<SqsBatchResponse, lambda_runtime::Error>
where
    M: Message,
    W: FnOnce(Vec<Record<M>>, Deadline) -> F,
    F: Future<Output = Vec<Outcome>>,
{
    let read: Vec<Result<Record<M>, Outcome>> = event.records.iter().map(read).collect();
    let records: Vec<Record<M>> = read.iter().filter_map(|read| read.as_ref().ok().cloned()).collect();
    let mut worked = worked(queue, records, deadline, work).await.into_iter();
    let outcomes: Vec<Outcome> = read
        .into_iter()
        .map(|read| read.map_or_else(|unread| unread, |_| worked.next().unwrap_or(Outcome::RETRY)))
        .collect();
    delay(queues, queue, &event.records, &outcomes).await;
    report(queue, &event.records, &outcomes)
}

/// Reads a record, or says what becomes of it unread. A panic is tried again: unlike a bad body it may be ours.
fn read<M: Message>(record: &SqsMessage) -> Result<Record<M>, Outcome> {
    let id = record.message_id.as_deref().unwrap_or_default();
    let parsed = caught_sync(|| {
        fail::fail_point!("sqs.record");
        M::parse(record.body.as_deref().unwrap_or_default())
    });
    match parsed {
        Ok(Ok(message)) => Ok(Record {
            message_id: id.to_owned(),
            receive_count: receive_count(record),
            group: record.attributes.get("MessageGroupId").cloned(),
            message,
        }),
        Ok(Err(error)) => {
            tracing::error!(message.id = id, error.message = %error, "message cannot be read");
            Err(Outcome::Failed)
        }
        Err(_) => Err(Outcome::RETRY),
    }
}

fn receive_count(record: &SqsMessage) -> u32 {
    record.attributes.get("ApproximateReceiveCount").and_then(|count| count.parse().ok()).unwrap_or(1)
}

/// The worker's outcomes, or none of them if it panicked or was too slow.
async fn worked<M, W, F>(queue: Queue, records: Vec<Record<M>>, deadline: Deadline, work: W) -> Vec<Outcome>
where
    W: FnOnce(Vec<Record<M>>, Deadline) -> F,
    F: Future<Output = Vec<Outcome>>,
{
    if records.is_empty() {
        return Vec::new();
    }
    let count = records.len();
    let work = caught(async { work(records, deadline).await });
    match tokio::time::timeout_at(deadline.instant() + GRACE, work).await {
        Ok(Ok(outcomes)) => {
            if outcomes.len() != count {
                tracing::error!(queue.name = queue.name(), "a worker answered for another number of records");
                return Vec::new();
            }
            outcomes
        }
        Ok(Err(_)) => Vec::new(),
        Err(_) => {
            tracing::error!(queue.name = queue.name(), "a worker did not stop at its deadline");
            Vec::new()
        }
    }
}

/// Makes the records that are to be tried again invisible for their backoff. Best effort: a record that could not be
/// delayed comes again all the same, only later.
async fn delay(queues: &dyn MessageQueue, queue: Queue, records: &[SqsMessage], outcomes: &[Outcome]) {
    let mut rng = rng();
    let delays: Vec<Delay> = records
        .iter()
        .zip(outcomes)
        .filter_map(|(record, outcome)| {
            let Outcome::Retry { after } = outcome else { return None };
            let time = after.map_or_else(|| backoff(receive_count(record), &mut rng), within_bounds);
            Some(Delay { receipt_handle: record.receipt_handle.clone()?, time })
        })
        .collect();
    if delays.is_empty() {
        return;
    }
    let failed = match tokio::time::timeout(DELAYING, queues.delay(queue, &delays)).await {
        Ok(results) => results.into_iter().filter_map(Result::err).map(|error| error.chain()).collect(),
        Err(_) => vec!["out of time".to_owned()],
    };
    if let Some(first) = failed.first() {
        let name = queue.name();
        tracing::warn!(queue.name = name, delay.failed = failed.len(), error.message = first, "messages not delayed");
    }
}

fn within_bounds(time: Duration) -> Duration {
    time.clamp(RETRY_BACKOFF_MIN, RETRY_BACKOFF_MAX)
}

/// Between half of a time that doubles with every receive and all of it, so that records that failed together do not
/// come back together.
fn backoff(receive_count: u32, rng: &mut StdRng) -> Duration {
    let doubled = RETRY_BACKOFF_MIN.saturating_mul(2_u32.saturating_pow(receive_count.clamp(1, 16)));
    within_bounds(within_bounds(doubled).mul_f64(rng.random_range(0.5..=1.0)))
}

fn rng() -> StdRng {
    // Without randomness from the system the jitter is the same every time, which is still a backoff.
    StdRng::try_from_rng(&mut SysRng).unwrap_or_else(|_| StdRng::seed_from_u64(0))
}

/// The ids of everything that was not done.
fn report(
    queue: Queue,
    records: &[SqsMessage],
    outcomes: &[Outcome],
) -> Result<SqsBatchResponse, lambda_runtime::Error> {
    let mut response = SqsBatchResponse::default();
    let mut reported = HashSet::new();
    for (record, _) in records.iter().zip(outcomes).filter(|(_, outcome)| **outcome != Outcome::Done) {
        let id = record.message_id.as_deref().filter(|id| !id.is_empty());
        let id = id.ok_or("a message that was not done has no id to report")?;
        if reported.insert(id) {
            response.add_failure(id);
        }
    }
    let count = |wanted: fn(&Outcome) -> bool| outcomes.iter().filter(|outcome| wanted(outcome)).count();
    tracing::info!(
        queue.name = queue.name(),
        batch.records = records.len(),
        batch.done = count(|outcome| *outcome == Outcome::Done),
        batch.retried = count(|outcome| matches!(outcome, Outcome::Retry { .. })),
        batch.failed = count(|outcome| *outcome == Outcome::Failed),
        "batch finished"
    );
    Ok(response)
}

#[cfg(test)]
mod tests;
