//! Money back: of one order, of all of a product, and again what failed.
//!
//! Records what is owed; the gateway is asked by the settling worker, whose message is owed by the same transaction.

use domain::payments::Gateway;
use domain::roles::Action;
use domain::{Error, Reason};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use store::Client;
use store::acts::{NewAct, Subject};
use store::catalog::{Product, find_availability};
use store::orders::Order;
use store::payments::{
    Refund, RefundRequest, find_attempt, find_refund, list_failed, list_refundable, request_refund, retry_refund,
    withdraw,
};
use uuid::Uuid;

use crate::acts::act;
use crate::cli::{RefundAct, RefundAllArgs, RefundArgs, RetryArgs};
use crate::confirm::Confirm;
use crate::failure::Failure;
use crate::history::{self, list};
use crate::output::{Output, minor, say};
use crate::products::require;

/// Orders that may fail before a run ends early: so many are no accident.
const FAILURES_MAX: usize = 20;

/// When the outbox is relayed.
const SOON: &str = "the gateway is asked within a minute: see `tirada payments`";

/// `tirada refund`
pub(crate) async fn refund(client: &mut Client, act: RefundAct, confirm: Confirm) -> Result<Output, Failure> {
    match act {
        RefundAct::Order(args) => one(client, args, confirm).await,
        RefundAct::All(args) => all(client, args, confirm).await,
        RefundAct::Retry(RetryArgs { refund: Some(id), .. }) => retry(client, id).await,
        RefundAct::Retry(RetryArgs { product: Some(id), .. }) => retry_all(client, id, confirm).await,
        RefundAct::Retry(_) => Err(Failure::usage("name a refund or a product")),
    }
}

async fn one(client: &mut Client, args: RefundArgs, confirm: Confirm) -> Result<Output, Failure> {
    let RefundArgs { order: id, numbers, reason } = args;
    let order = history::require(client, id).await?;
    let numbers: Option<Vec<i32>> = numbers.map(|numbers| numbers.0.into_iter().flatten().collect());
    let what = numbers.as_ref().map_or_else(|| "all that is left".into(), |some| list(some, order.padding));
    confirm.ask(&format!("This gives the money of order {id} back and its numbers to stock: {what}."))?;
    if order.total_minor == Some(0) {
        return take_back(client, &order, numbers.as_deref(), &reason).await;
    }
    let request = RefundRequest {
        tenant_id: order.tenant_id,
        order_id: id,
        numbers: numbers.as_deref(),
        note: &reason,
        refund_id: Uuid::now_v7(),
    };
    let made = request_refund(client, &request, &refunding(&request)).await;
    let made = made.map_err(|error| explain(error, &order))?;
    let by_hand = is_by_hand(client, &made).await?;
    let amount = minor(made.amount_minor, &order.currency);
    let numbers = list(&made.numbers, order.padding);
    let text = format!("refund {}: {amount} for {numbers} of order {id}\n{}", made.id, next(by_hand));
    Ok(Output::new(text, in_json(&made, by_hand)))
}

/// A refund, for the audit log.
fn refunding(request: &RefundRequest<'_>) -> NewAct {
    let (order, detail) = ((Subject::Order, request.order_id), json!({ "numbers": request.numbers }));
    act(request.tenant_id, Action::RefundOrder, order, Some(&detail), Some(request.note))
}

/// Numbers of an order that cost nothing.
async fn take_back(
    client: &mut Client,
    order: &Order,
    numbers: Option<&[i32]>,
    reason: &str,
) -> Result<Output, Failure> {
    let detail = json!({ "numbers": numbers });
    let act = act(order.tenant_id, Action::RefundOrder, (Subject::Order, order.id), Some(&detail), Some(reason));
    let taken = withdraw(client, numbers, &act).await.map_err(|error| explain(error, order))?;
    let text = format!("order {} cost nothing; back in stock: {} ({reason})", order.id, list(&taken, order.padding));
    Ok(Output::new(text, json!({"order": order.id, "amount_minor": 0, "numbers": taken, "reason": reason})))
}

fn explain(error: Error, order: &Order) -> Failure {
    let id = order.id;
    match error {
        Error::Rejected(Reason::WrongState) => Failure::refused(format!(
            "order {id} is {} and has no payment that could go back; nothing was changed",
            order.state.word()
        )),
        Error::Rejected(Reason::ReservingHalted) => {
            Failure::refused(format!("reserving is halted for product {}; nothing was changed", order.product_id))
        }
        Error::Rejected(Reason::NumbersTaken) => Failure::refused(format!(
            "only numbers that order {id} still has can be refunded, of {}; nothing was changed",
            list(&order.numbers, order.padding)
        )),
        other => other.into(),
    }
}

async fn retry(client: &mut Client, id: Uuid) -> Result<Output, Failure> {
    let failed = find_refund(client, id).await?.ok_or_else(|| Failure::refused(format!("there is no refund {id}")))?;
    let again = retry_refund(client, failed.tenant_id, failed.order_id, id).await.map_err(|error| {
        let state = failed.state.word();
        let text = format!("refund {id} is {state} and cannot be tried again: only a failed one that nothing replaced");
        Failure::explained(error, Reason::WrongState, text)
    })?;
    let by_hand = is_by_hand(client, &again).await?;
    let text = format!("refund {} in place of {id}\n{}", again.id, next(by_hand));
    Ok(Output::new(text, in_json(&again, by_hand)))
}

/// Every failed refund of a product, once each. One that fails again is for the next run.
async fn retry_all(client: &mut Client, id: Uuid, confirm: Confirm) -> Result<Output, Failure> {
    let product = require(client, id).await?;
    let (tenant_id, name) = (product.described.tenant_id, &product.described.name);
    confirm.ask(&format!("This tries every failed refund of {name:?} again."))?;
    let mut run = Run::default();
    let mut after = None;
    while run.failed.len() < FAILURES_MAX {
        let page = list_failed(client, tenant_id, id, after).await?;
        after = page.last().map(|(refund, _)| *refund);
        if after.is_none() {
            break;
        }
        for (refund_id, order_id) in page {
            let again = retry_refund(client, tenant_id, order_id, refund_id).await;
            count(client, order_id, again, &mut run).await?;
            if run.failed.len() >= FAILURES_MAX {
                break;
            }
        }
        say(format_args!("{} refunds so far", run.orders));
    }
    Ok(report(&product, &run, "tried again"))
}

/// Nobody moves cash but staff.
async fn is_by_hand(client: &Client, refund: &Refund) -> Result<bool, Failure> {
    let attempt = find_attempt(client, refund.tenant_id, refund.attempt_id).await?;
    Ok(attempt.is_some_and(|attempt| attempt.gateway == Gateway::Manual))
}

fn next(by_hand: bool) -> &'static str {
    if by_hand { "staff booked the payment, so staff hand the money back; it is booked within a minute" } else { SOON }
}

fn in_json(refund: &Refund, by_hand: bool) -> Value {
    json!({
        "refund": refund.id, "order": refund.order_id, "amount_minor": refund.amount_minor,
        "numbers": refund.numbers, "state": refund.state, "by_hand": by_hand,
    })
}

#[derive(Debug, Default)]
struct Run {
    orders: u32,
    amount_minor: i64,
    numbers: usize,
    by_hand: u32,
    /// Had nothing left to give back when their turn came.
    skipped: u32,
    failed: Vec<Uuid>,
}

async fn all(client: &mut Client, args: RefundAllArgs, confirm: Confirm) -> Result<Output, Failure> {
    let RefundAllArgs { product: id, reason } = args;
    let product = require(client, id).await?;
    let paid = find_availability(client, product.key).await?.counters.paid;
    let name = &product.described.name;
    confirm.ask(&format!("This gives back the money of every paid order of {name:?}: {paid} numbers are paid."))?;
    let mut run = Run::default();
    let mut after = None;
    while run.failed.len() < FAILURES_MAX {
        let page = list_refundable(client, product.described.tenant_id, id, after).await?;
        after = page.last().copied();
        if after.is_none() {
            break;
        }
        for order_id in page {
            add(client, &product, order_id, &reason, &mut run).await?;
            if run.failed.len() >= FAILURES_MAX {
                break;
            }
        }
        say(format_args!("{} orders so far", run.orders));
    }
    Ok(report(&product, &run, &reason))
}

/// One order of a run. What does not work is for the next run: others must not wait for it.
async fn add(
    client: &mut Client,
    product: &Product,
    order_id: Uuid,
    reason: &str,
    run: &mut Run,
) -> Result<(), Failure> {
    let tenant_id = product.described.tenant_id;
    let refund_id = refund_id(order_id, reason);
    let request = RefundRequest { tenant_id, order_id, numbers: None, note: reason, refund_id };
    let made = request_refund(client, &request, &refunding(&request)).await;
    count(client, order_id, made, run).await
}

async fn count(client: &Client, order_id: Uuid, made: domain::Result<Refund>, run: &mut Run) -> Result<(), Failure> {
    match made {
        Ok(made) => {
            run.orders += 1;
            run.amount_minor += made.amount_minor;
            run.numbers += made.numbers.len();
            run.by_hand += u32::from(is_by_hand(client, &made).await?);
        }
        Err(Error::Rejected(reason)) if reason != Reason::Busy => run.skipped += 1,
        Err(error) => {
            say(format_args!("order {order_id}: {}", error.chain()));
            run.failed.push(order_id);
        }
    }
    Ok(())
}

/// The same for an order each time that the same is asked for, so that a refund of many is made once.
fn refund_id(order_id: Uuid, reason: &str) -> Uuid {
    let digest: [u8; 32] = Sha256::digest(format!("{order_id}/all/{reason}")).into();
    let mut bytes = [0; 16];
    bytes.copy_from_slice(&digest[..16]);
    uuid::Builder::from_custom_bytes(bytes).into_uuid()
}

fn report(product: &Product, run: &Run, reason: &str) -> Output {
    let Run { orders, amount_minor, numbers, by_hand, skipped, failed } = run;
    let id = product.described.id;
    let amount = minor(*amount_minor, &product.described.price.currency);
    let mut text = format!("product {id}: {orders} orders, {numbers} numbers, {amount} go back ({reason})");
    if *orders > 0 {
        text.push_str(&format!("\n{SOON}"));
    }
    if *by_hand > 0 {
        text.push_str(&format!("\n{by_hand} of them were booked by staff, who hand the money back"));
    }
    if *skipped > 0 {
        text.push_str(&format!("\n{skipped} orders had nothing left to give back"));
    }
    for order_id in failed {
        text.push_str(&format!("\norder {order_id} could not be refunded: run this again"));
    }
    let json = json!({
        "product": id, "orders": orders, "numbers": numbers, "amount_minor": amount_minor,
        "currency": product.described.price.currency, "by_hand": by_hand, "skipped": skipped, "failed": failed,
        "reason": reason,
    });
    Output::new(text, json).wrong_if(!failed.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refund_of_many_has_one_id_per_order_and_reason() {
        let of = |order, reason| refund_id(Uuid::from_u128(order), reason);
        assert_eq!(of(1, "cancelled"), of(1, "cancelled"));
        assert!(of(1, "cancelled") != of(2, "cancelled") && of(1, "cancelled") != of(1, "moved"));
        assert_eq!(of(1, "cancelled").get_version_num(), 8);
    }
}
