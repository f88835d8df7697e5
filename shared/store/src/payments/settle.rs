//! What the recorded money makes of an order, written down. Decided from the rows under the order's lock, one thing at
//! a time, until nothing is left: whoever comes again finds the same or nothing.

use std::time::Duration;

use domain::Result;
use domain::catalog::Reserving;
use domain::limits::{
    CLOSED_LOOKS_MAX, CREATE_UNANSWERED_FOR, LOOK_AFTER, LOOK_AFTER_CAPTURE, LOOK_AFTER_CLOSED, LOOK_BACKOFF_MAX,
};
use domain::messages::Queue;
use domain::orders::State;
use domain::payments::{
    AttemptState, Capture, DisputeState, LateMoney, OrderMoney, Outcome, RefundCause, RefundState, Use, outcome,
};
use tokio_postgres::Transaction;
use uuid::Uuid;

use super::attempts::Attempt;
use super::money::Money;
use super::moves;
use super::policy::Policy;
use crate::catalog::Product;
use crate::findings::{NewFinding, record};
use crate::numbers::Failure;
use crate::{outbox, switches};

/// Whether everything that follows from the rows has been written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Settled {
    /// Yes.
    Completely,
    /// One thing was; what follows wants a transaction of its own.
    OneThing,
    /// The product's numbers must not change now: the order is parked.
    Parked,
}

/// Decides and changes, in memory and in whatever moves numbers. At most one move of numbers, see [`moves`].
pub(super) async fn settle(
    tx: &Transaction<'_>,
    product: &Product,
    policy: &Policy,
    money: &mut Money,
) -> std::result::Result<Settled, Failure> {
    money.count_handed_back();
    name_numbers(money)?;
    name_disputed(money, policy);
    money.forgive();
    money.return_excess();
    let returned = numbers_to_give_up(money);
    if !returned.is_empty() {
        if is_parked(tx, product, money).await? {
            return Ok(Settled::Parked);
        }
        moves::give_up(tx, product, money, &returned).await?;
        complete(money)?;
        return Ok(Settled::OneThing);
    }
    loop {
        complete(money)?;
        let captures: Vec<Capture> = money.attempts.iter().map(|attempt| capture_of(attempt, money)).collect();
        let order = OrderMoney {
            state: money.order.state,
            cancel_requested: money.order.cancel_requested,
            can_retake: money.order.state == State::Expired && policy.late_money != LateMoney::Refund,
        };
        match outcome(order, &captures) {
            Outcome::Nothing => return Ok(Settled::Completely),
            Outcome::BackToReserved => money.step(State::Reserved, "settle-payment")?,
            Outcome::Returned(position, cause) => return_all(tx, product, money, position, cause).await?,
            moving => {
                if is_parked(tx, product, money).await? {
                    return Ok(Settled::Parked);
                }
                move_numbers(tx, product, policy, money, moving).await?;
                return Ok(Settled::OneThing);
            }
        }
    }
}

async fn move_numbers(
    tx: &Transaction<'_>,
    product: &Product,
    policy: &Policy,
    money: &mut Money,
    moving: Outcome,
) -> std::result::Result<(), Failure> {
    match moving {
        Outcome::Paid(position) => {
            let owned = money.order.owned();
            moves::pay(tx, product, &owned).await?;
            use_as(money, position, Use::Payment)?;
            money.step(State::Paid, "settle-payment")?;
        }
        Outcome::PaidAndRefunded(position) => {
            let owned = money.order.owned();
            moves::pay(tx, product, &owned).await?;
            use_as(money, position, Use::Payment)?;
            money.step(State::Paid, "settle-payment")?;
            money.return_rest(position, RefundCause::Cancelled, owned);
            money.step(State::Refunding, "cancelled")?;
        }
        Outcome::Retaken(position) => {
            if moves::retake(tx, product, policy.late_money, money).await? {
                use_as(money, position, Use::Payment)?;
                money.step(State::Paid, "late-payment")?;
            } else {
                return_all(tx, product, money, position, RefundCause::Late).await?;
            }
        }
        Outcome::Nothing | Outcome::BackToReserved | Outcome::Returned(..) => {}
    }
    Ok(())
}

/// All of an attempt's money goes back. An order that has ended without a payment shows that by its state.
async fn return_all(
    tx: &Transaction<'_>,
    product: &Product,
    money: &mut Money,
    position: usize,
    cause: RefundCause,
) -> Result<()> {
    use_as(money, position, Use::Return)?;
    money.return_rest(position, cause, Vec::new());
    // Another payment, of the right amount, may still come.
    if cause != RefundCause::WrongAmount && matches!(money.order.state, State::Expired | State::Cancelled) {
        // Its numbers went back to stock before; from here on what an order owns is what it has not given up.
        let gone = money.order.owned();
        money.give_up(&gone);
        money.step(State::Refunding, "late-payment")?;
    }
    if cause == RefundCause::WrongAmount {
        let detail = format!("order {}: a payment of another amount or currency goes back", money.order.id);
        // On its way back already: a refund that fails has an alarm of its own.
        let finding =
            NewFinding { product_key: product.key, chunk: None, invariant: "I4", detail: &detail, resolved: true };
        record(tx.client(), &finding).await?;
    }
    Ok(())
}

fn use_as(money: &mut Money, position: usize, used: Use) -> Result<()> {
    let id = money.attempts[position].id;
    money.attempt_mut(id)?.used = Some(used);
    Ok(())
}

/// An attempt as the rules see it.
fn capture_of(attempt: &Attempt, money: &Money) -> Capture {
    Capture {
        state: attempt.state,
        is_exact: attempt.captured_minor == money.order.total_minor
            && attempt.amount_minor == money.order.total_minor
            && attempt.currency == money.order.currency,
        used: attempt.used,
    }
}

/// Names the numbers that refunds made elsewhere stand for: all that are left when all the money goes back, else the
/// highest ones that they paid for. Only once the order is paid with that money: the refund may be heard of first.
fn name_numbers(money: &mut Money) -> Result<()> {
    let unnamed: Vec<Uuid> = money
        .refunds
        .iter()
        .filter(|refund| refund.cause == RefundCause::Elsewhere && refund.numbers.is_empty())
        .filter(|refund| refund.state.is_accepted())
        .filter(|refund| {
            money.attempts.iter().any(|attempt| attempt.id == refund.attempt_id && attempt.used == Some(Use::Payment))
        })
        .map(|refund| refund.id)
        .collect();
    for (position, id) in unnamed.iter().enumerate() {
        let is_last = position + 1 == unnamed.len();
        let Some(refund) = money.refunds.iter().find(|refund| refund.id == *id) else { continue };
        let captured = money.attempts.iter().find(|a| a.id == refund.attempt_id).map_or(0, |a| a.captured_minor);
        let all = is_last && money.going_back(refund.attempt_id) >= captured;
        // A number stands for one part of the money only.
        let mut left = money.staying();
        left.sort_unstable();
        let paid_for = usize::try_from(refund.amount_minor / money.order.unit_price_minor.max(1)).unwrap_or(usize::MAX);
        let keep = if all { 0 } else { left.len().saturating_sub(paid_for) };
        let named = left.split_off(keep);
        if !named.is_empty() {
            money.refund_mut(*id)?.numbers = named;
        }
    }
    Ok(())
}

/// Numbers that accepted refunds and lost disputes have given up and that are still taken in the order's name.
fn numbers_to_give_up(money: &Money) -> Vec<i32> {
    if !matches!(money.order.state, State::Paid | State::Refunding) {
        return Vec::new();
    }
    let owned = money.order.owned();
    let mut gone: Vec<i32> = money
        .refunds
        .iter()
        .filter(|refund| refund.state.is_accepted())
        .flat_map(|refund| refund.numbers.iter().copied())
        .filter(|number| owned.contains(number))
        .collect();
    gone.extend(
        money.disputes.iter().flat_map(|dispute| dispute.numbers.iter().copied()).filter(|n| owned.contains(n)),
    );
    gone.sort_unstable();
    gone.dedup();
    gone
}

/// Names the numbers that lost disputes take away: the highest ones, as many as the lost money had paid for.
fn name_disputed(money: &mut Money, policy: &Policy) {
    if policy.keeps_disputed || money.order.unit_price_minor <= 0 {
        return;
    }
    let pays = |money: &Money, id| money.attempts.iter().any(|a| a.id == id && a.used == Some(Use::Payment));
    for position in 0..money.disputes.len() {
        let dispute = &money.disputes[position];
        let is_new = dispute.state == DisputeState::Lost && dispute.numbers.is_empty();
        if !is_new || !pays(money, dispute.attempt_id) {
            continue;
        }
        let mut left = money.staying();
        left.sort_unstable();
        let paid_for = usize::try_from(dispute.amount_minor / money.order.unit_price_minor).unwrap_or(usize::MAX);
        let keep = left.len().saturating_sub(paid_for);
        money.disputes[position].numbers = left.split_off(keep);
    }
}

/// A paid order whose numbers all go back is refunding; one whose money is all back is refunded, until a refund that
/// had succeeded fails: then the buyer is owed again.
pub(super) fn complete(money: &mut Money) -> Result<()> {
    if money.order.state == State::Paid {
        let leaving = |number: &i32| {
            money.order.given_up.contains(number)
                || money.refunds.iter().any(|r| r.state != RefundState::Failed && r.numbers.contains(number))
        };
        if !money.order.numbers.is_empty() && money.order.numbers.iter().all(leaving) {
            money.step(State::Refunding, "refund")?;
        }
    }
    if matches!(money.order.state, State::Refunding | State::Refunded) {
        let captured: i64 = money.attempts.iter().map(|attempt| attempt.captured_minor).sum();
        let back: i64 =
            money.refunds.iter().filter(|r| r.state == RefundState::Succeeded).map(|r| r.amount_minor).sum();
        let lost: i64 = money.disputes.iter().filter(|d| d.state == DisputeState::Lost).map(|d| d.amount_minor).sum();
        let was_paid = captured > 0 || money.order.total_minor == 0;
        let is_over = was_paid && back + lost >= captured && money.order.owned().is_empty();
        match money.order.state {
            State::Refunding if is_over => money.step(State::Refunded, "settle-payment")?,
            State::Refunded if !is_over => money.step(State::Refunding, "settle-payment")?,
            _ => {}
        }
    }
    Ok(())
}

/// Parks the order when its product's numbers must not change.
async fn is_parked(tx: &Transaction<'_>, product: &Product, money: &Money) -> Result<bool> {
    if switches::reserving(tx, product.key).await? != Reserving::Halted {
        return Ok(false);
    }
    outbox::park(tx, Queue::SettlePayment, &[money.order.id]).await?;
    Ok(true)
}

/// When an attempt wants to be looked at again, should nobody tell us about it. Open ones soon, with growing
/// distance; captured ones for refunds and disputes that nobody told us about; ended ones a few times, because money
/// can still arrive.
pub(super) fn next_look(attempt: &Attempt) -> Option<Duration> {
    let grown = |first: Duration, most: Duration| {
        let exponent = u32::try_from(attempt.looks.clamp(0, 12)).unwrap_or(0);
        first.saturating_mul(1 << exponent).min(most)
    };
    match attempt.state {
        AttemptState::Created => Some(grown(CREATE_UNANSWERED_FOR, LOOK_BACKOFF_MAX)),
        AttemptState::Open | AttemptState::Processing | AttemptState::Authorised => {
            Some(grown(LOOK_AFTER, LOOK_BACKOFF_MAX))
        }
        AttemptState::Captured => Some(grown(LOOK_AFTER_CAPTURE, LOOK_AFTER_CAPTURE * 64)),
        AttemptState::Declined | AttemptState::Cancelled | AttemptState::Abandoned => {
            (attempt.looks < CLOSED_LOOKS_MAX).then(|| grown(LOOK_AFTER_CLOSED, LOOK_AFTER_CLOSED * 64))
        }
    }
}
