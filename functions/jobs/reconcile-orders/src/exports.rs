//! Exports that nobody has begun, or whose writer died or put them down.

use std::sync::Arc;

use domain::Result;
use domain::messages::Queue;
use edge::queue::{MessageQueue, Outgoing};
use store::{Database, exports};

use crate::Report;

/// Sends a message for every export that is due. What the queue does not take is due again later.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn owe(database: &Database, queue: &Arc<dyn MessageQueue>, report: &mut Report) -> Result<()> {
    let due = exports::claim_due(&*database.client().await?).await?;
    if due.is_empty() {
        return Ok(());
    }
    let messages: Vec<Outgoing> = due.iter().map(Outgoing::from).collect();
    for (message, result) in due.iter().zip(queue.send(Queue::WriteExports, &messages).await) {
        match result {
            Ok(()) => report.exports += 1,
            Err(error) => {
                tracing::warn!(store.id = %message.tenant_id, error.message = %error, "an export was not published");
            }
        }
    }
    Ok(())
}
