//! Login codes that no queue took, or whose sender died.

use std::sync::Arc;

use domain::Result;
use domain::messages::Queue;
use edge::queue::{MessageQueue, Outgoing};
use store::{Database, login};

use crate::Report;

/// Sends a message for every code that should have left by now. What the queue does not take is due again later.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn owe(database: &Database, queue: &Arc<dyn MessageQueue>, report: &mut Report) -> Result<()> {
    let unsent = login::claim_unsent(&*database.client().await?).await?;
    if unsent.is_empty() {
        return Ok(());
    }
    let messages: Vec<Outgoing> = unsent.iter().map(Outgoing::from).collect();
    for (message, result) in unsent.iter().zip(queue.send(Queue::SendLoginCode, &messages).await) {
        match result {
            Ok(()) => report.login_codes += 1,
            Err(error) => {
                tracing::warn!(store.id = %message.tenant_id, error.message = %error, "a login code was not published");
            }
        }
    }
    Ok(())
}
