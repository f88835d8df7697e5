//! The outbox relay: claim, commit, send, delete what was sent. No lock is held while it sends.

use std::sync::Arc;

use domain::Result;
use domain::messages::Queue;
use edge::Deadline;
use edge::queue::{MessageQueue, Outgoing};
use store::Database;
use store::outbox::{self, Owed};

use crate::Report;

/// Publishes due rows until none is left or the deadline comes.
///
/// # Errors
/// Busy or fault from the database. What was claimed and not deleted is due again after its backoff.
pub(crate) async fn run(
    database: &Database,
    queue: &Arc<dyn MessageQueue>,
    deadline: Deadline,
    report: &mut Report,
) -> Result<()> {
    while !deadline.has_passed() {
        let client = database.client().await?;
        let needless = outbox::delete_needless(&client).await?;
        let claimed = outbox::claim(&client).await?;
        drop(client);
        report.needless += needless;
        if claimed.is_empty() {
            if needless == 0 {
                return Ok(());
            }
            continue;
        }
        fail::fail_point!("relay.claimed");
        let sent = send(queue, &claimed).await;
        fail::fail_point!("relay.sent");
        report.published += sent.len() as u64;
        report.unpublished += (claimed.len() - sent.len()) as u64;
        outbox::delete(&*database.client().await?, &sent).await?;
        if sent.is_empty() {
            // The queue takes nothing: the next run tries again.
            return Ok(());
        }
    }
    Ok(())
}

/// Sends rows to their queues; returns those that were taken.
async fn send(queue: &Arc<dyn MessageQueue>, claimed: &[Owed]) -> Vec<Owed> {
    let mut sent = Vec::with_capacity(claimed.len());
    for target in Queue::OF_ORDERS {
        let rows: Vec<&Owed> = claimed.iter().filter(|owed| owed.queue == target).collect();
        if rows.is_empty() {
            continue;
        }
        let messages: Vec<Outgoing> = rows.iter().map(|owed| Outgoing::from(&owed.message)).collect();
        let results = queue.send(target, &messages).await;
        for (owed, result) in rows.into_iter().zip(results) {
            match result {
                Ok(()) => sent.push(*owed),
                Err(error) => {
                    tracing::warn!(order.id = %owed.message.order_id, error.message = %error, "not published")
                }
            }
        }
    }
    sent
}
