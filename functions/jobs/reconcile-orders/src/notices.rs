//! Notices that buyers are owed: the queue gets them from here, because whoever owes them has no time to send.

use std::sync::Arc;

use domain::Result;
use domain::limits::{NOTICE_PASSES_MAX, NOTICES_PER_PASS_MAX};
use domain::messages::Queue;
use edge::Deadline;
use edge::queue::{MessageQueue, Outgoing};
use store::{Database, notices};

use crate::{Report, millis};

/// Ends what is too old, and sends a message for every notice that is due. What the queue does not take is due again
/// later.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn owe(
    database: &Database,
    queue: &Arc<dyn MessageQueue>,
    deadline: Deadline,
    report: &mut Report,
) -> Result<()> {
    for _ in 0..NOTICE_PASSES_MAX {
        if deadline.has_passed() {
            return Ok(());
        }
        let client = database.client().await?;
        report.notices_late += notices::drop_late(&client).await?;
        let due = notices::claim_due(&client).await?;
        drop(client);
        let messages: Vec<Outgoing> = due.iter().map(Outgoing::from).collect();
        let sent = if messages.is_empty() { Vec::new() } else { queue.send(Queue::SendNotice, &messages).await };
        let taken = sent.iter().filter(|result| result.is_ok()).count();
        report.notices += taken as u64;
        if let Some(Err(error)) = sent.iter().find(|result| result.is_err()) {
            tracing::warn!(notices.kept = due.len() - taken, error.message = %error, "notices not published");
        }
        let was_all = i64::try_from(due.len()).unwrap_or(i64::MAX) < NOTICES_PER_PASS_MAX;
        if was_all || taken == 0 {
            return Ok(());
        }
    }
    Ok(())
}

/// Measures what is owed.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn measure(database: &Database, report: &mut Report) -> Result<()> {
    let measures = notices::measure(&*database.client().await?).await?;
    report.notices_age_ms = millis(measures.oldest);
    report.notices_failing = u64::try_from(measures.failing).unwrap_or(0);
    Ok(())
}
