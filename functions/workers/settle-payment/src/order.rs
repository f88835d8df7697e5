//! One order: every attempt that may still be paid is asked about once, every ended one whose turn has come, every
//! refund that is not over, until nothing moves.

use std::collections::HashSet;

use cashier::Asked;
use domain::Result;
use domain::payments::{AttemptState, Step, next_step};
use edge::Deadline;
use edge::sqs::Outcome;
use store::numbers::release_due;
use store::payments::{Payable, find_payable};
use uuid::Uuid;

use crate::State;

/// Rounds over an order. Each is caused by an attempt that has moved on: authorised, then captured, for the longest.
const ROUNDS_MAX: usize = 4;

/// Settles a store's order. Attempts in `heard` were fetched a moment ago.
///
/// # Errors
/// Busy or fault from the database.
pub(crate) async fn settle(
    state: &State,
    tenant_id: Uuid,
    order_id: Uuid,
    heard: &[Uuid],
    deadline: Deadline,
) -> Result<Outcome> {
    let mut fetched: HashSet<Uuid> = heard.iter().copied().collect();
    let mut refunded = HashSet::new();
    for _ in 0..ROUNDS_MAX {
        let found = find_payable(&*state.database.client().await?, tenant_id, order_id).await?;
        let Some(payable) = found else { return Ok(Outcome::Failed) };
        let Some(mut moved) = steps(state, &payable, &mut fetched, deadline).await? else {
            return Ok(Outcome::RETRY);
        };
        for refund in payable.refunds.iter().filter(|refund| refunded.insert(refund.id)) {
            if deadline.has_passed() {
                return Ok(Outcome::RETRY);
            }
            if let Some(attempt) = payable.attempts.iter().find(|attempt| attempt.id == refund.attempt_id) {
                state.cashier.refund(refund, attempt).await?;
                moved = true;
            }
        }
        if !moved {
            release(state, &payable, order_id).await?;
            break;
        }
    }
    Ok(Outcome::Done)
}

/// Takes the next step of every attempt that wants one; whether one has moved. None when the time is over.
async fn steps(
    state: &State,
    payable: &Payable,
    fetched: &mut HashSet<Uuid>,
    deadline: Deadline,
) -> Result<Option<bool>> {
    let mut moved = false;
    for attempt in &payable.attempts {
        let step = next_step(payable.order, attempt.view());
        if step == Step::Wait || (step == Step::Fetch && !fetched.insert(attempt.id)) {
            continue;
        }
        // Of one that has ended, what is known is enough, unless its turn to be looked at has come. What follows from a
        // capture may have waited, for a halted product for one.
        let is_known = !attempt.state.is_open() && !attempt.is_look_owed;
        if is_known && attempt.state != AttemptState::Captured {
            continue;
        }
        if deadline.has_passed() {
            return Ok(None);
        }
        let asked = if is_known {
            state.cashier.decide(attempt).await?
        } else {
            state.cashier.take(step, attempt, &payable.description).await?
        };
        if let Asked::Answered(now) = asked {
            moved |= now.state != attempt.state || now.used != attempt.used;
        }
    }
    Ok(Some(moved))
}

/// An order that waited only for its payment to be closed gives its numbers back now.
async fn release(state: &State, payable: &Payable, order_id: Uuid) -> Result<()> {
    let is_leaving = payable.order.hold_over || payable.order.cancel_requested;
    if is_leaving && payable.order.state == domain::orders::State::Reserved {
        let mut client = state.database.client().await?;
        release_due(&mut client, payable.tenant_id, payable.product_id, &[order_id]).await?;
    }
    Ok(())
}
