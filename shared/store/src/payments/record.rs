//! A gateway's answer written down, and what follows from it.

use std::time::Duration;

use domain::payments::{
    AttemptState, DisputeState, Gateway, LateMoney, Observed, ObservedDispute, ObservedRefund, RefundCause, RefundState,
};
use domain::{Error, Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use super::attempts::Attempt;
use super::disputes::Dispute;
use super::money::{Money, Stray};
use super::policy::{self, Policy, policy_from};
use super::refunds::Refund;
use super::settle::{Settled, settle};
use crate::catalog::Product;
use crate::errors::from_postgres;
use crate::findings::{self, NewFinding};
use crate::numbers::{Failure, repair};
use crate::products;
use crate::rows::column;
use crate::types::UUID;

/// Age from which an open dispute that an answer does not list has ended.
const DISPUTE_SETTLES_IN: Duration = Duration::from_secs(3_600);

/// Transactions that one answer may need: each settles one thing.
const THINGS_MAX: usize = 6;

/// What a gateway answered about an attempt.
#[derive(Debug, Clone, Copy)]
pub enum Answer<'a> {
    /// How the payment is, or was when a request under the same key came first.
    Observed(&'a Observed),
    /// How the payment is, as asked at this moment or later.
    Looked(&'a Observed, OffsetDateTime),
    /// It will definitely not be paid, and does not exist there or has ended.
    Declined(&'a str),
    /// The gateway does not know it. Its key must never be sent again.
    Unknown,
    /// Nothing new: decide again from the rows.
    Nothing,
}

impl<'a> Answer<'a> {
    /// The payment, if it was described.
    #[must_use]
    pub const fn observed(self) -> Option<&'a Observed> {
        match self {
            Self::Observed(observed) | Self::Looked(observed, _) => Some(observed),
            Self::Declined(_) | Self::Unknown | Self::Nothing => None,
        }
    }
}

/// What a gateway answered about a refund.
#[derive(Debug, Clone, Copy)]
pub enum RefundAnswer<'a> {
    /// How the refund is.
    Observed(&'a ObservedRefund),
    /// It was definitely not made.
    Refused(&'a str),
}

/// Writes down what was heard of a store's attempt and everything that follows; returns the attempt as it is now.
///
/// A state applies only if its rank grows, an amount only if it does, so that old answers change nothing.
///
/// # Errors
/// Not-found for an unknown attempt, or busy or fault from the database. Then nothing is known to have changed, and
/// the same answer may be brought again.
pub async fn record(client: &mut Client, tenant_id: Uuid, attempt_id: Uuid, answer: Answer<'_>) -> Result<Attempt> {
    let attempt = super::find_attempt(client, tenant_id, attempt_id).await?.ok_or(Reason::NotFound)?;
    drive(client, tenant_id, attempt.order_id, |money| hear(money, attempt_id, answer)).await?;
    super::find_attempt(client, tenant_id, attempt_id).await?.ok_or_else(|| Reason::NotFound.into())
}

/// Writes down what was heard of a refund of a store's order and everything that follows.
///
/// # Errors
/// As [`record`].
pub async fn record_refund(
    client: &mut Client,
    tenant_id: Uuid,
    order_id: Uuid,
    refund_id: Uuid,
    answer: RefundAnswer<'_>,
) -> Result<()> {
    drive(client, tenant_id, order_id, |money| hear_refund(money, refund_id, answer)).await
}

/// Transactions until nothing follows any more; the answer is heard in each, which changes nothing the second time.
async fn drive(
    client: &mut Client,
    tenant_id: Uuid,
    order_id: Uuid,
    hear: impl Fn(&mut Money) -> Result<()>,
) -> Result<()> {
    let (product, policy) = policy_of(client, tenant_id, order_id).await?;
    for _ in 0..THINGS_MAX {
        let settled = match once(client, &product, &policy, order_id, &hear).await {
            Err(failure @ (Failure::Disagreement(_) | Failure::Miscounted(_))) => {
                repair(client, &product, &failure).await?;
                once(client, &product, &policy, order_id, &hear).await
            }
            other => other,
        };
        if settled.map_err(Failure::into_error)? != Settled::OneThing {
            return Ok(());
        }
    }
    Err(Error::fault("what follows from a payment does not end"))
}

async fn once(
    client: &mut Client,
    product: &Product,
    policy: &Policy,
    order_id: Uuid,
    hear: &impl Fn(&mut Money) -> Result<()>,
) -> std::result::Result<Settled, Failure> {
    let tx: Transaction<'_> = client.transaction().await?;
    let mut money = Money::lock(&tx, product.described.tenant_id, order_id).await?.ok_or(Reason::NotFound)?;
    hear(&mut money)?;
    let settled = settle(&tx, product, policy, &mut money).await?;
    money.check()?;
    money.write(&tx).await?;
    report_strays(&tx, product, &money).await?;
    fail::fail_point!("payment.before_commit");
    tx.commit().await?;
    fail::fail_point!("payment.after_commit");
    Ok(settled)
}

async fn policy_of(client: &Client, tenant_id: Uuid, order_id: Uuid) -> Result<(Product, Policy)> {
    let sql = format!(
        "select p.id, p.closes_at <= now() as closed, {} from orders o join products p on p.id = o.product_id
        where o.id = $1 and o.tenant_id = $2",
        policy::COLUMNS
    );
    let row = client.query_typed_opt(&sql, &[(&order_id, UUID), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
    let row = row.ok_or(Reason::NotFound)?;
    let mut policy = policy_from(&row)?;
    if column(&row, "closed")? {
        // After the sale numbers may have been drawn: nobody gets one that he had lost.
        policy.late_money = LateMoney::Refund;
    }
    Ok((products::find(client, tenant_id, column(&row, "id")?).await?, policy))
}

fn hear(money: &mut Money, attempt_id: Uuid, answer: Answer<'_>) -> Result<()> {
    match answer {
        Answer::Nothing => Ok(()),
        Answer::Declined(code) => {
            let attempt = money.attempt_mut(attempt_id)?;
            attempt.decline_code.get_or_insert_with(|| code.to_owned());
            grow(attempt, AttemptState::Declined);
            Ok(())
        }
        Answer::Unknown => {
            grow(money.attempt_mut(attempt_id)?, AttemptState::Abandoned);
            Ok(())
        }
        Answer::Observed(observed) | Answer::Looked(observed, _) => {
            if is_another(money.attempt(attempt_id)?, observed) {
                hear_another(money, attempt_id, observed);
                return Ok(());
            }
            let attempt = money.attempt_mut(attempt_id)?;
            hear_payment(attempt, observed)?;
            if let Answer::Looked(_, asked_at) = answer {
                attempt.looked_at = attempt.looked_at.max(Some(asked_at));
            }
            for refund in &observed.refunds {
                hear_listed_refund(money, attempt_id, refund)?;
            }
            for dispute in &observed.disputes {
                hear_dispute(money, attempt_id, dispute);
            }
            close_unlisted(money, attempt_id, observed)?;
            Ok(())
        }
    }
}

/// Looks are counted per state: each new one is looked at soon again.
fn grow(attempt: &mut Attempt, state: AttemptState) {
    if state.rank() > attempt.state.rank() {
        attempt.state = state;
        attempt.looks = 0;
    }
}

/// Whether the gateway has made two payments of one attempt and this is not the one that counts: the first that took
/// money does, before that the last one heard of. One payment may have two ids of different kinds, a session's and an
/// intent's.
fn is_another(attempt: &Attempt, observed: &Observed) -> bool {
    let Some(known) = attempt.payment_id.as_deref() else { return false };
    attempt.captured_minor > 0 && known != observed.payment_id && kind(known) == kind(&observed.payment_id)
}

/// What a gateway's id begins with, where ids of different things begin differently.
fn kind(payment_id: &str) -> Option<&str> {
    payment_id.split_once('_').map(|(kind, _)| kind)
}

/// Of a payment that does not count only its money matters.
fn hear_another(money: &mut Money, attempt_id: Uuid, observed: &Observed) {
    tracing::error!(attempt.id = %attempt_id, "the gateway has two payments of one attempt");
    if observed.captured_minor > observed.refunded_minor {
        money.strays.push(Stray {
            attempt_id,
            payment_id: observed.payment_id.clone(),
            captured_minor: observed.captured_minor,
        });
    }
}

/// Our references lead to an attempt's own payment only: a person must give this money back at the gateway.
async fn report_strays(tx: &Transaction<'_>, product: &Product, money: &Money) -> Result<()> {
    for Stray { attempt_id, payment_id, captured_minor } in &money.strays {
        let detail = format!(
            "order {}: payment {payment_id} took {captured_minor} a second time for attempt {attempt_id}; give it back \
             in the gateway's dashboard, then close this",
            money.order.id
        );
        let finding =
            NewFinding { product_key: product.key, chunk: None, invariant: "I6", detail: &detail, resolved: false };
        findings::record(tx.client(), &finding).await?;
    }
    Ok(())
}

fn hear_payment(attempt: &mut Attempt, observed: &Observed) -> Result<()> {
    if observed.attempt_id.is_some_and(|id| id != attempt.id) {
        return Err(Error::fault("the gateway's payment names another attempt"));
    }
    let is_alias = |known: &String| kind(known) != kind(&observed.payment_id);
    if !attempt.payment_id.as_ref().is_some_and(is_alias) {
        attempt.payment_id = Some(observed.payment_id.clone());
    }
    if attempt.decline_code.is_none() {
        attempt.decline_code.clone_from(&observed.decline_code);
    }
    // Whoever has paid, or cannot any more, needs none; and what was erased stays so.
    if attempt.instructions.is_none() && observed.state.is_open() {
        attempt.instructions.clone_from(&observed.instructions);
    }
    // One that was refused and then closed was refused.
    let state = match observed.state {
        AttemptState::Cancelled if attempt.decline_code.is_some() => AttemptState::Declined,
        other => other,
    };
    grow(attempt, state);
    attempt.captured_minor = attempt.captured_minor.max(observed.captured_minor);
    attempt.refunded_minor = attempt.refunded_minor.max(observed.refunded_minor).min(attempt.captured_minor);
    if observed.currency != attempt.currency && observed.captured_minor > 0 {
        // Settling compares the attempt with the order: money in another currency must not pay for it.
        attempt.currency.clone_from(&observed.currency);
    }
    Ok(())
}

/// Which of our refunds a listed one is; none when it was made elsewhere, or a second time.
fn find_ours(money: &Money, attempt_id: Uuid, heard: &ObservedRefund) -> Option<Uuid> {
    let mut of_attempt = money.refunds.iter().filter(|refund| refund.attempt_id == attempt_id);
    let by_id = of_attempt.clone().find(|r| r.gateway_refund_id.as_deref() == Some(&heard.gateway_refund_id));
    let keeps_references =
        money.attempts.iter().any(|attempt| attempt.id == attempt_id && attempt.gateway != Gateway::MercadoPago);
    let unheard = |refund: &&Refund| refund.gateway_refund_id.is_none() && refund.state == RefundState::Created;
    let ours = by_id.or_else(|| {
        if keeps_references {
            of_attempt.find(|refund| heard.refund_id == Some(refund.id) && refund.gateway_refund_id.is_none())
        } else {
            // A gateway that keeps no reference of ours: one of that amount which has been asked for.
            of_attempt.find(|refund| unheard(refund) && refund.asked > 0 && refund.amount_minor == heard.amount_minor)
        }
    });
    ours.map(|refund| refund.id)
}

/// A refund that the gateway lists: one of ours, or one made in its dashboard.
fn hear_listed_refund(money: &mut Money, attempt_id: Uuid, heard: &ObservedRefund) -> Result<()> {
    if let Some(id) = find_ours(money, attempt_id, heard) {
        return hear_refund(money, id, RefundAnswer::Observed(heard));
    }
    let position = money.attempts.iter().position(|attempt| attempt.id == attempt_id);
    let Some(position) = position.filter(|_| heard.state != RefundState::Failed) else { return Ok(()) };
    let attempt = money.attempts[position].clone();
    let amount = heard.amount_minor.min(attempt.captured_minor - money.going_back(attempt.id));
    if amount < heard.amount_minor {
        tracing::error!(attempt.id = %attempt.id, "the gateway gave back more than we know to have been taken");
    }
    if amount <= 0 {
        return Ok(());
    }
    // Which numbers it stands for is settled once the order is known to be paid with this attempt.
    let mut refund = Refund::new(&attempt, amount, Vec::new(), RefundCause::Elsewhere);
    refund.gateway_refund_id = Some(heard.gateway_refund_id.clone());
    refund.state = heard.state;
    money.add_refund(refund);
    Ok(())
}

fn hear_refund(money: &mut Money, refund_id: Uuid, answer: RefundAnswer<'_>) -> Result<()> {
    if let RefundAnswer::Observed(heard) = answer
        && let Some(other) = money
            .refunds
            .iter()
            .find(|other| other.id != refund_id && other.gateway_refund_id.as_deref() == Some(&heard.gateway_refund_id))
    {
        let other = other.id;
        return change_places(money, refund_id, other);
    }
    let refund = money.refund_mut(refund_id)?;
    if let RefundAnswer::Observed(heard) = answer
        && refund.gateway_refund_id.as_ref().is_some_and(|known| *known != heard.gateway_refund_id)
    {
        // An answer to it came before, so that this is another one, and says nothing about the first.
        let attempt_id = refund.attempt_id;
        return hear_listed_refund(money, attempt_id, heard);
    }
    let state = match answer {
        RefundAnswer::Observed(heard) => {
            refund.gateway_refund_id.get_or_insert_with(|| heard.gateway_refund_id.clone());
            heard.state
        }
        // Only what nobody has accepted can be refused: another request may have been heard of first.
        RefundAnswer::Refused(_) if refund.state != RefundState::Created => return Ok(()),
        RefundAnswer::Refused(code) => {
            refund.failure.get_or_insert_with(|| code.to_owned());
            RefundState::Failed
        }
    };
    if state.rank() > refund.state.rank() {
        refund.state = state;
    }
    Ok(())
}

/// The gateway's answer to one refund had been taken for another's, of the same amount. The other keeps it, and with it
/// the key under which it was made; this one goes on under the other's key, which nobody has answered for.
fn change_places(money: &mut Money, refund_id: Uuid, other_id: Uuid) -> Result<()> {
    let other = money.refund_mut(other_id)?;
    let (other_key, other_number) = (other.key_of, other.key_number);
    let refund = money.refund_mut(refund_id)?;
    if refund.state != RefundState::Created {
        return Ok(());
    }
    let (key_of, key_number) = (refund.key_of, refund.key_number);
    (refund.key_of, refund.key_number) = (other_key, other_number);
    let other = money.refund_mut(other_id)?;
    (other.key_of, other.key_number) = (key_of, key_number);
    Ok(())
}

/// A mediation at Mercado Pago shows only while it lasts. One that is gone took nothing by itself: what was given back
/// is listed as a refund, what was charged back as another dispute. A young one may be missing from an answer that was
/// given before it began.
fn close_unlisted(money: &mut Money, attempt_id: Uuid, observed: &Observed) -> Result<()> {
    if money.attempt(attempt_id)?.gateway != Gateway::MercadoPago {
        return Ok(());
    }
    let is_listed = |dispute: &Dispute| {
        observed.disputes.iter().any(|listed| listed.gateway_dispute_id == dispute.gateway_dispute_id)
    };
    for dispute in money.disputes.iter_mut().filter(|dispute| dispute.attempt_id == attempt_id) {
        if dispute.state == DisputeState::Open && dispute.age > DISPUTE_SETTLES_IN && !is_listed(dispute) {
            dispute.state = DisputeState::Won;
        }
    }
    Ok(())
}

fn hear_dispute(money: &mut Money, attempt_id: Uuid, heard: &ObservedDispute) {
    let known = money
        .disputes
        .iter_mut()
        .find(|dispute| dispute.attempt_id == attempt_id && dispute.gateway_dispute_id == heard.gateway_dispute_id);
    match known {
        Some(dispute) => {
            if heard.state.rank() > dispute.state.rank() {
                dispute.state = heard.state;
            }
            dispute.amount_minor = dispute.amount_minor.max(heard.amount_minor);
        }
        None => money.disputes.push(Dispute {
            id: Uuid::now_v7(),
            attempt_id,
            gateway_dispute_id: heard.gateway_dispute_id.clone(),
            amount_minor: heard.amount_minor,
            state: heard.state,
            age: Duration::ZERO,
            numbers: Vec::new(),
        }),
    }
}
