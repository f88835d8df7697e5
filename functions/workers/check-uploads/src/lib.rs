//! Looks at what was uploaded, before anybody else can: an image of the kind that was named is published, all else is
//! deleted.
//!
//! The bucket tells of every object that is made, several times perhaps, and late; what it does not tell, the
//! reconciler does. What was decided stays decided: later bytes under the same key are deleted unread.

mod bucket;

use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::Result;
use domain::limits::{UPLOAD_BYTES_MAX, UPLOAD_TIME};
use domain::messages::{CheckMessage, Queue};
use domain::uploads::{Refusal, State as UploadState, from_quarantine_key, public_key, quarantine_key, refusal};
use edge::Deadline;
use edge::metrics::{self, Dimension};
use edge::queue::MessageQueue;
use edge::sqs::{Outcome, Record, run_batch};
use store::Database;
use store::uploads::{Upload, accept, expire, find, reject};
use uuid::Uuid;

use bucket::Found;

pub use bucket::Bucket;

/// What one execution environment keeps between batches.
pub struct State {
    database: Database,
    bucket: Bucket,
    queue: Arc<dyn MessageQueue>,
}

impl State {
    /// The state of a fresh environment.
    #[must_use]
    pub fn new(database: Database, bucket: Bucket, queue: Arc<dyn MessageQueue>) -> Self {
        Self { database, bucket, queue }
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
    run_batch(&*state.queue, Queue::CheckUploads, event, deadline, |records, deadline| serve(state, records, deadline))
        .await
}

/// One after the other: each may take all the bytes of an upload.
async fn serve(state: &State, records: Vec<Record<CheckMessage>>, deadline: Deadline) -> Vec<Outcome> {
    let mut outcomes = Vec::with_capacity(records.len());
    for record in records {
        let uploads: Vec<(Uuid, Uuid)> = match record.message {
            // An object that is none of ours is left to the bucket's own rules.
            CheckMessage::Made(keys) => keys.iter().filter_map(|key| from_quarantine_key(key)).collect(),
            CheckMessage::Upload(message) => vec![(message.tenant_id, message.upload_id)],
        };
        let mut outcome = Outcome::Done;
        for (tenant_id, id) in uploads {
            if deadline.left() < UPLOAD_TIME {
                outcome = Outcome::RETRY;
                break;
            }
            match look(state, tenant_id, id).await {
                Ok(true) => {}
                Ok(false) => outcome = Outcome::RETRY,
                Err(error) => {
                    tracing::warn!(store.id = %tenant_id, upload.id = %id, error.message = error.chain(), "an upload was not looked at");
                    outcome = Outcome::RETRY;
                }
            }
        }
        outcomes.push(outcome);
    }
    outcomes
}

/// Looks at one upload. False when it must be looked at again.
async fn look(state: &State, tenant_id: Uuid, id: Uuid) -> Result<bool> {
    let key = quarantine_key(tenant_id, id);
    let found = find(&*state.database.client().await?, tenant_id, id).await?;
    let Some(upload) = found.filter(|upload| upload.state == UploadState::Waiting) else {
        state.bucket.delete(&key).await?;
        return Ok(true);
    };
    match state.bucket.read(&key, UPLOAD_BYTES_MAX).await? {
        Found::Nothing => {
            if upload.is_over && expire(&*state.database.client().await?, &upload).await? {
                count("expired");
            }
            return Ok(true);
        }
        Found::TooMuch => refuse(state, &upload, Refusal::WrongSize).await?,
        Found::Bytes { bytes, etag } => match refusal(upload.image, &bytes) {
            Some(refusal) => refuse(state, &upload, refusal).await?,
            None => {
                let to = public_key(tenant_id, id, upload.image);
                if !state.bucket.publish(&key, &etag, &to, upload.image.media_type()).await? {
                    return Ok(false);
                }
                let bytes = i64::try_from(bytes.len()).unwrap_or(i64::MAX);
                if accept(&*state.database.client().await?, &upload, bytes).await? {
                    count("accepted");
                }
            }
        },
    }
    state.bucket.delete(&key).await?;
    Ok(true)
}

async fn refuse(state: &State, upload: &Upload, refusal: Refusal) -> Result<()> {
    if reject(&*state.database.client().await?, upload, refusal).await? {
        count(refusal.word());
        tracing::info!(store.id = %upload.tenant_id, upload.id = %upload.id, upload.refusal = refusal.word(), "an upload was rejected");
    }
    Ok(())
}

fn count(outcome: &str) {
    metrics::count("uploads_checked", &[(Dimension::Outcome, outcome)]);
}
