//! Uploads of which the bucket has told nothing.

use std::sync::Arc;

use domain::Result;
use domain::messages::Queue;
use edge::queue::{MessageQueue, Outgoing};
use store::{Database, uploads};

use crate::Report;

/// Sends a message for every upload whose time is over. What the queue does not take is due again later.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn owe(database: &Database, queue: &Arc<dyn MessageQueue>, report: &mut Report) -> Result<()> {
    let due = uploads::claim_due(&*database.client().await?).await?;
    if due.is_empty() {
        return Ok(());
    }
    let messages: Vec<Outgoing> = due.iter().map(Outgoing::from).collect();
    for (message, result) in due.iter().zip(queue.send(Queue::CheckUploads, &messages).await) {
        match result {
            Ok(()) => report.uploads += 1,
            Err(error) => {
                tracing::warn!(store.id = %message.tenant_id, error.message = %error, "a look at an upload was not published");
            }
        }
    }
    Ok(())
}
