//! Writes exports: reads rows by key, a page at a time, and uploads them in parts.
//!
//! A message says only which export; its row says what is left. A CSV file goes on after its last part whoever died
//! meanwhile. A workbook is an archive whose parts cannot be told apart, so it is written in one go, bounded so that
//! one invocation is enough; only its upload goes part by part.

mod bucket;
mod csv;
mod upload;
mod workbook;

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::Result;
use domain::exports::{Failure, Format};
use domain::limits::{EXPORT_PART_BYTES, EXPORT_TIME};
use domain::messages::{ExportMessage, Queue};
use edge::Deadline;
use edge::metrics::{self, Dimension, Metric, Unit};
use edge::queue::MessageQueue;
use edge::sqs::{Outcome, Record, run_batch};
use store::Database;
use store::exports::{Claim, Claimed, claim, fail, put_down, put_down_failed};
use uuid::Uuid;

pub use bucket::Bucket;

/// What one execution environment keeps between batches.
pub struct State {
    database: Database,
    bucket: Bucket,
    queue: Arc<dyn MessageQueue>,
    part_bytes: usize,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, bucket: Bucket, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, bucket, queue, part_bytes: EXPORT_PART_BYTES }
    }

    /// With parts of another size, for buckets that take small ones.
    #[must_use]
    pub fn with_part_bytes(self, part_bytes: usize) -> Self {
        Self { part_bytes, ..self }
    }
}

/// How work on an export ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    /// The file is there.
    Ready,
    /// Time is over, and something was done: somebody goes on.
    PutDown,
    /// Somebody else has it now.
    Lost,
    /// There will be no file.
    Failed(Failure),
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
    run_batch(&*state.queue, Queue::WriteExports, event, deadline, |records, deadline| serve(state, records, deadline))
        .await
}

/// One after the other: each takes all the memory that there is.
async fn serve(state: &State, records: Vec<Record<ExportMessage>>, deadline: Deadline) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(records.len());
    for record in records {
        if deadline.left() < EXPORT_TIME {
            outcomes.push(Outcome::RETRY);
            continue;
        }
        let message = record.message;
        outcomes.push(write(state, &message, deadline).await.unwrap_or_else(|error| {
            count("unfinished");
            tracing::warn!(store.id = %message.tenant_id, export.id = %message.export_id, error.message = error.chain(), "an export was not written");
            Outcome::RETRY
        }));
    }
    outcomes
}

async fn write(state: &State, message: &ExportMessage, deadline: Deadline) -> Result<Outcome> {
    let found = claim(&*state.database.client().await?, message, Uuid::now_v7()).await?;
    let mut claimed = match found {
        Claim::Yours(claimed) => *claimed,
        Claim::Nothing => return Ok(Outcome::Done),
        Claim::GaveUp => {
            failed(message, Failure::GaveUp);
            return Ok(Outcome::Done);
        }
    };
    let end = match claimed.format {
        Format::Csv => csv::write(state, &mut claimed, deadline).await,
        Format::Xlsx => workbook::write(state, &mut claimed, deadline).await,
    };
    match end {
        Ok(End::Ready) => count("ready"),
        Ok(End::Lost) => count("lost"),
        Ok(End::PutDown) => {
            count("put-down");
            put_down(&*state.database.client().await?, &claimed).await?;
        }
        Ok(End::Failed(failure)) => {
            if give_up(state, &claimed, failure).await? {
                failed(message, failure);
            } else {
                count("lost");
            }
        }
        Err(error) => {
            // The claim would end by itself, only later.
            if let Ok(client) = state.database.client().await {
                let _ = put_down_failed(&client, &claimed).await;
            }
            return Err(error);
        }
    }
    Ok(Outcome::Done)
}

/// False when somebody else has the export, and with it the upload.
async fn give_up(state: &State, claimed: &Claimed, failure: Failure) -> Result<bool> {
    let is_ours = fail(&*state.database.client().await?, claimed, failure).await?;
    if let Some(upload_id) = claimed.upload_id.as_ref().filter(|_| is_ours) {
        state.bucket.abort(&claimed.key(), upload_id).await;
    }
    Ok(is_ours)
}

fn failed(message: &ExportMessage, failure: Failure) {
    count(failure.word());
    // A person asked for too much, or a worker gave up: only the second is ours.
    if failure != Failure::TooManyRows {
        metrics::emit(&[metric("exports_failed", 1.0)], &[]);
    }
    tracing::warn!(store.id = %message.tenant_id, export.id = %message.export_id, export.failure = failure.word(), "an export has failed");
}

fn count(outcome: &str) {
    metrics::count("exports_written", &[(Dimension::Outcome, outcome)]);
}

const fn metric(name: &'static str, value: f64) -> Metric {
    Metric { name, value, unit: Unit::Count }
}
