//! Money that nobody told us about: attempts, refunds and events whose turn to be looked at has come.

use std::sync::Arc;

use domain::Result;
use domain::limits::{LOOK_PASSES_MAX, LOOKS_PER_PASS_MAX};
use domain::messages::{EventMessage, Queue};
use edge::queue::{MessageQueue, Outgoing};
use store::{Database, payments};

use crate::{Report, millis};

/// Owes a message for every order that wants a look, and sends the events that nobody has processed. What the queue
/// does not take is due again after its backoff.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn owe(database: &Database, queue: &Arc<dyn MessageQueue>, report: &mut Report) -> Result<()> {
    for _ in 0..LOOK_PASSES_MAX {
        // Of each kind of look a pass owes only so many: only one that found none at all was the last.
        let owed = payments::owe_looks(&*database.client().await?).await?;
        report.looks += owed;
        if owed == 0 {
            break;
        }
    }
    for _ in 0..LOOK_PASSES_MAX {
        if send_events(database, queue, report).await? < LOOKS_PER_PASS_MAX {
            break;
        }
    }
    Ok(())
}

/// Sends events that are due, so many at most; returns how many were.
async fn send_events(database: &Database, queue: &Arc<dyn MessageQueue>, report: &mut Report) -> Result<i64> {
    let events = payments::claim_unprocessed(&*database.client().await?).await?;
    let message = |event: &payments::Event| EventMessage::new(event.tenant_id, event.gateway, &event.event_id);
    let messages: Vec<Outgoing> = events.iter().map(|event| Outgoing::from(&message(event))).collect();
    let sent = if messages.is_empty() { Vec::new() } else { queue.send(Queue::SettlePayment, &messages).await };
    for (event, result) in events.iter().zip(sent) {
        match result {
            Ok(()) => report.events += 1,
            Err(error) => tracing::warn!(store.id = %event.tenant_id, error.message = %error, "event not published"),
        }
    }
    Ok(i64::try_from(events.len()).unwrap_or(i64::MAX))
}

/// Measures what waits for gateways.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn measure(database: &Database, report: &mut Report) -> Result<()> {
    let measures = payments::measure(&*database.client().await?).await?;
    report.unanswered_age_ms = millis(measures.unanswered);
    report.inbox_age_ms = millis(measures.inbox);
    report.refund_age_ms = millis(measures.refunding);
    report.refunds_created = u64::try_from(measures.refunds_created).unwrap_or(0);
    report.refunds_pending = u64::try_from(measures.refunds_pending).unwrap_or(0);
    report.refunds_failed = u64::try_from(measures.refunds_failed).unwrap_or(0);
    Ok(())
}
