//! One event: which attempt it is about is asked of the gateway, because the event itself is only a hint.

use cashier::Asked;
use domain::Result;
use domain::messages::EventMessage;
use edge::Deadline;
use edge::metrics::{self, Dimension};
use edge::sqs::Outcome;
use store::payments::{Attempt, Event, find_attempt, find_attempt_of_payment, find_event, mark_processed};
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
    let Some((event, received_at)) = found else { return Ok(Outcome::Done) };
    let Some(payment_id) = event.payment_id.as_deref() else { return done(state, &event).await };
    let known = {
        let client = state.database.client().await?;
        find_attempt_of_payment(&client, event.tenant_id, event.gateway, payment_id).await?
    };
    // Whoever has asked about this payment since the event came knows what it is about.
    let is_known = known.as_ref().is_some_and(|attempt| attempt.looked_at.is_some_and(|at| at >= received_at));
    let attempt = match known {
        Some(attempt) => attempt,
        None => match state.cashier.reference(event.tenant_id, event.gateway, payment_id).await? {
            Some(Some(attempt_id)) => match find_own(state, &event, attempt_id).await? {
                Some(attempt) => attempt,
                None => return done(state, &event).await,
            },
            Some(None) => return done(state, &event).await,
            None => return Ok(Outcome::Done),
        },
    };
    if is_known {
        metrics::count("webhooks", &[(Dimension::Outcome, "known-already")]);
    } else {
        match state.cashier.hear(&attempt, payment_id).await? {
            Asked::Answered(_) => {}
            Asked::Unanswered => return Ok(Outcome::Done),
            // The event is about nothing that we could look at.
            Asked::NotThere => return done(state, &event).await,
        }
    }
    let outcome = order::settle(state, attempt.tenant_id, attempt.order_id, &[attempt.id], deadline).await?;
    done(state, &event).await.map(|_| outcome)
}

/// The attempt that a payment names. One of this store's account that names another store's order is nobody's.
async fn find_own(state: &State, event: &Event, attempt_id: Uuid) -> Result<Option<Attempt>> {
    let attempt = find_attempt(&*state.database.client().await?, event.tenant_id, attempt_id).await?;
    let own = attempt.filter(|attempt| attempt.gateway == event.gateway);
    if own.is_none() {
        tracing::warn!(store.id = %event.tenant_id, "a payment names an attempt that is not this store's");
    }
    Ok(own)
}

async fn done(state: &State, event: &Event) -> Result<Outcome> {
    mark_processed(&*state.database.client().await?, event).await?;
    Ok(Outcome::Done)
}
