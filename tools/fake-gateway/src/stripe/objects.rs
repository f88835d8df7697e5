//! What payments look like in Stripe's answers and events.

use serde_json::{Value, json};
use time::OffsetDateTime;

use crate::books::Change;
use crate::payments::{Kind, Payment, PaymentState};
use crate::refunds::{DisputeState, RefundState};

/// The version that events are written in.
const API_VERSION: &str = "2025-09-30.clover";

pub(super) const fn intent_status(payment: &Payment) -> &'static str {
    match payment.state {
        PaymentState::Open | PaymentState::Declined => "requires_payment_method",
        PaymentState::Authorised => "requires_capture",
        PaymentState::Captured => "succeeded",
        PaymentState::Cancelled | PaymentState::Expired => "canceled",
    }
}

/// "The PaymentIntent object".
pub(super) fn intent(payment: &Payment, expand: &[&str]) -> Value {
    let Some(id) = payment.intent_id() else { return Value::Null };
    let is_over = matches!(payment.state, PaymentState::Cancelled | PaymentState::Expired);
    let is_authorised = payment.state == PaymentState::Authorised;
    let below = |path: &str| expand.iter().any(|one| *one == path || one.starts_with(&format!("{path}.")));
    let latest_charge = if below("latest_charge") {
        let inner: Vec<&str> = expand.iter().filter_map(|path| path.strip_prefix("latest_charge.")).collect();
        charge(payment, &inner)
    } else {
        json!(payment.charge_id())
    };
    let error = payment.decline_code.as_ref().map(|decline_code| {
        json!({ "type": "card_error", "code": "card_declined", "decline_code": decline_code,
            "charge": payment.charge_id(), "message": "Your card was declined." })
    });
    json!({
        "id": id,
        "object": "payment_intent",
        "amount": payment.amount_minor,
        "amount_capturable": if is_authorised { payment.amount_minor } else { 0 },
        "amount_received": payment.captured_minor,
        "automatic_payment_methods": { "enabled": true },
        "canceled_at": is_over.then(|| payment.updated.unix_timestamp()),
        "cancellation_reason": payment.cancellation_reason,
        "capture_method": if payment.is_manual { "manual" } else { "automatic" },
        "client_secret": format!("{id}_secret_{:x}", payment.number),
        "confirmation_method": "automatic",
        "created": payment.created.unix_timestamp(),
        "currency": payment.currency.to_lowercase(),
        "customer": null,
        "description": payment.description,
        "last_payment_error": error,
        "latest_charge": latest_charge,
        "livemode": false,
        "metadata": payment.metadata,
        "next_action": null,
        "payment_method": payment.was_tried().then(|| format!("pm_{}", payment.number)),
        "payment_method_types": ["card"],
        "processing": null,
        "receipt_email": payment.email,
        "status": intent_status(payment),
    })
}

/// "The Charge object": the latest try.
pub(super) fn charge(payment: &Payment, expand: &[&str]) -> Value {
    let Some(id) = payment.charge_id() else { return Value::Null };
    let is_declined = payment.decline_code.is_some();
    let released = payment.is_authorised_once && payment.state == PaymentState::Cancelled;
    let refunded_minor = if released { payment.amount_minor } else { payment.refunded_minor() };
    let mut charge = json!({
        "id": id,
        "object": "charge",
        "amount": payment.amount_minor,
        "amount_captured": payment.captured_minor,
        "amount_refunded": refunded_minor,
        "captured": payment.captured_minor > 0,
        "created": payment.created.unix_timestamp(),
        "currency": payment.currency.to_lowercase(),
        "disputed": !payment.disputes.is_empty(),
        "failure_code": is_declined.then_some("card_declined"),
        "livemode": false,
        "metadata": payment.metadata,
        "paid": !is_declined,
        "payment_intent": payment.intent_id(),
        "refunded": refunded_minor > 0 && refunded_minor >= payment.captured_minor.max(1),
        "status": if is_declined { "failed" } else { "succeeded" },
    });
    if expand.contains(&"refunds") {
        let refunds: Vec<Value> = (0..payment.refunds.len()).rev().map(|position| refund(payment, position)).collect();
        charge["refunds"] = json!({ "object": "list", "data": refunds, "has_more": false,
            "url": format!("/v1/charges/{id}/refunds") });
    }
    charge
}

pub(super) const fn session_status(payment: &Payment) -> &'static str {
    match payment.state {
        PaymentState::Open => "open",
        PaymentState::Expired => "expired",
        _ => "complete",
    }
}

/// "The Checkout Session object". Its PaymentIntent is made by the buyer's first try (API version 2022-08-01).
pub(super) fn session(payment: &Payment, expand: &[&str], base: &str) -> Value {
    let id = payment.id();
    let below: Vec<&str> = expand.iter().filter_map(|path| path.strip_prefix("payment_intent.")).collect();
    let is_open = payment.state == PaymentState::Open;
    let intent = if expand.is_empty() { json!(payment.intent_id()) } else { intent(payment, &below) };
    json!({
        "id": id,
        "object": "checkout.session",
        "amount_subtotal": payment.amount_minor,
        "amount_total": payment.amount_minor,
        "cancel_url": payment.cancel_url,
        "client_reference_id": payment.reference,
        "created": payment.created.unix_timestamp(),
        "currency": payment.currency.to_lowercase(),
        "customer": null,
        "customer_email": payment.email,
        "expires_at": payment.expires_at.map(OffsetDateTime::unix_timestamp),
        "livemode": false,
        "metadata": payment.session_metadata,
        "mode": "payment",
        "payment_intent": intent,
        "payment_method_types": ["card"],
        "payment_status": if payment.captured_minor > 0 { "paid" } else { "unpaid" },
        "status": session_status(payment),
        "success_url": payment.success_url,
        "url": is_open.then(|| format!("{base}/pay/{id}")),
    })
}

/// "The Refund object".
pub(super) fn refund(payment: &Payment, position: usize) -> Value {
    let refund = &payment.refunds[position];
    let (status, failure_reason) = match refund.state {
        RefundState::Pending => ("pending", None),
        RefundState::Succeeded => ("succeeded", None),
        RefundState::Failed => ("failed", Some("lost_or_stolen_card")),
    };
    json!({
        "id": refund.id(payment.kind),
        "object": "refund",
        "amount": refund.amount_minor,
        "charge": payment.charge_id(),
        "created": refund.created.unix_timestamp(),
        "currency": payment.currency.to_lowercase(),
        "failure_reason": failure_reason,
        "metadata": refund.metadata,
        "payment_intent": payment.intent_id(),
        "reason": refund.reason,
        "status": status,
    })
}

/// "The Dispute object".
pub(super) fn dispute(payment: &Payment, position: usize) -> Value {
    let dispute = &payment.disputes[position];
    let status = match dispute.state {
        DisputeState::Open => "needs_response",
        DisputeState::Won => "won",
        DisputeState::Lost => "lost",
    };
    json!({
        "id": dispute.id(payment.kind),
        "object": "dispute",
        "amount": dispute.amount_minor,
        "charge": payment.charge_id(),
        "created": dispute.created.unix_timestamp(),
        "currency": payment.currency.to_lowercase(),
        "is_charge_refundable": false,
        "livemode": false,
        "metadata": {},
        "payment_intent": payment.intent_id(),
        "reason": "fraudulent",
        "status": status,
    })
}

/// The events of a change: type, id and body.
pub(crate) fn events(
    payment: &Payment,
    change: Change,
    number: u64,
    now: OffsetDateTime,
    base: &str,
) -> Vec<(&'static str, String, String)> {
    let is_session = payment.kind == Kind::Session;
    let intent = |kind| (kind, intent(payment, &[]));
    let session = |kind| (kind, session(payment, &[], base));
    let objects: Vec<(&'static str, Value)> = match change {
        Change::Created => Vec::new(),
        Change::Authorised if is_session => {
            vec![session("checkout.session.completed"), intent("payment_intent.amount_capturable_updated")]
        }
        Change::Authorised => vec![intent("payment_intent.amount_capturable_updated")],
        Change::Paid if is_session => vec![session("checkout.session.completed"), intent("payment_intent.succeeded")],
        Change::Paid | Change::Captured => vec![intent("payment_intent.succeeded")],
        Change::Declined => vec![intent("payment_intent.payment_failed")],
        Change::Cancelled => vec![intent("payment_intent.canceled")],
        Change::Expired if payment.intent_id().is_some() => {
            vec![session("checkout.session.expired"), intent("payment_intent.canceled")]
        }
        Change::Expired => vec![session("checkout.session.expired")],
        Change::Refunded(_) => vec![("charge.refunded", charge(payment, &[]))],
        Change::RefundUpdated(position) => vec![("refund.updated", refund(payment, position))],
        Change::RefundFailed(position) => vec![("refund.failed", refund(payment, position))],
        Change::DisputeOpened(position) => vec![("charge.dispute.created", dispute(payment, position))],
        Change::DisputeClosed(position) => vec![("charge.dispute.closed", dispute(payment, position))],
    };
    let event = |(position, (kind, object)): (usize, (&'static str, Value))| {
        let id = format!("evt_{number}{position}");
        let body = json!({
            "id": id, "object": "event", "api_version": API_VERSION, "created": now.unix_timestamp(), "type": kind,
            "data": { "object": object }, "livemode": false, "pending_webhooks": 1,
            "request": { "id": null, "idempotency_key": null },
        });
        (kind, id, body.to_string())
    };
    objects.into_iter().enumerate().map(event).collect()
}
