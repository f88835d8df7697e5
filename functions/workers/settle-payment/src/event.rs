//! One event: which attempt it is about is asked of the gateway, because the event itself is only a hint.

use cashier::Asked;
use domain::Result;
use domain::messages::EventMessage;
use edge::Deadline;
use edge::sqs::Outcome;
use store::payments::{Event, find_attempt, find_attempt_of_payment, find_event, mark_processed};
use uuid::Uuid;

use crate::{State, order};

/// Settles an event; what cannot be asked now stays unprocessed and is owed again.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn settle(state: &State, message: &EventMessage, deadline: Deadline) -> Result<Outcome> {
    let found = {
        let client = state.database.client().await?;
        find_event(&client, message.tenant_id, message.gateway, &message.event_id).await?
    };
    let Some(event) = found else { return Ok(Outcome::Done) };
    let Some(payment_id) = event.payment_id.as_deref() else { return done(state, &event).await };
    let known = {
        let client = state.database.client().await?;
        find_attempt_of_payment(&client, event.tenant_id, event.gateway, payment_id).await?
    };
    let reference = match known {
        Some(attempt) => Some(attempt.id),
        None => match state.cashier.reference(event.tenant_id, event.gateway, payment_id).await? {
            Some(reference) => reference,
            None => return Ok(Outcome::Done),
        },
    };
    let Some(attempt_id) = reference else { return done(state, &event).await };
    match hear(state, &event, attempt_id, payment_id).await? {
        Some(order_id) => {
            let outcome = order::settle(state, order_id, &[attempt_id], deadline).await?;
            done(state, &event).await.map(|_| outcome)
        }
        None => Ok(Outcome::Done),
    }
}

/// Asks about the payment and writes it down; none when there was no answer.
async fn hear(state: &State, event: &Event, attempt_id: Uuid, payment_id: &str) -> Result<Option<Uuid>> {
    let attempt = find_attempt(&*state.database.client().await?, attempt_id).await?;
    // A payment of this store's account that names another store's order is nobody's.
    let Some(attempt) = attempt.filter(|a| a.tenant_id == event.tenant_id && a.gateway == event.gateway) else {
        tracing::warn!(store.id = %event.tenant_id, "a payment names an attempt that is not this store's");
        done(state, event).await?;
        return Ok(None);
    };
    match state.cashier.hear(&attempt, payment_id).await? {
        Asked::Answered(_) => Ok(Some(attempt.order_id)),
        Asked::Unanswered => Ok(None),
        // The event is about nothing that we could look at.
        Asked::NotThere => {
            done(state, event).await?;
            Ok(None)
        }
    }
}

async fn done(state: &State, event: &Event) -> Result<Outcome> {
    mark_processed(&*state.database.client().await?, event).await?;
    Ok(Outcome::Done)
}
