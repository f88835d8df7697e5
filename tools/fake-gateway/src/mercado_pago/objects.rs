//! What payments look like in Mercado Pago's answers and events.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::BorrowedFormatItem;
use time::macros::{format_description, offset};

use super::pix;
use crate::books::Change;
use crate::payments::{Payment, PaymentState};
use crate::refunds::{DisputeState, RefundState};

const DATE: &[BorrowedFormatItem<'_>] = format_description!(
    "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:3][offset_hour sign:mandatory]:[offset_minute]"
);

/// Dates are written as the merchant's country sees them.
fn date(at: OffsetDateTime) -> String {
    at.to_offset(offset!(-3)).format(DATE).expect("every date can be written")
}

/// Minor units as a decimal. Exact for every amount that anybody pays.
fn decimal(minor: i64) -> f64 {
    minor as f64 / 100.0
}

/// `status` and `status_detail`: "Payments possible status".
fn status(payment: &Payment) -> (&'static str, String) {
    let dispute = payment.disputes.last().map(|dispute| match dispute.state {
        DisputeState::Open => "in_process",
        DisputeState::Lost => "settled",
        DisputeState::Won => "reimbursed",
    });
    let refunded_minor = payment.refunded_minor();
    let (status, detail) = match payment.state {
        PaymentState::Open => ("pending", "pending_waiting_transfer"),
        PaymentState::Authorised => ("authorized", "pending_capture"),
        PaymentState::Cancelled => ("cancelled", "by_collector"),
        PaymentState::Expired => ("cancelled", "expired"),
        PaymentState::Declined => ("rejected", payment.decline_code.as_deref().unwrap_or("rejected_by_bank")),
        PaymentState::Captured => match dispute {
            Some(detail) => ("charged_back", detail),
            None if refunded_minor == 0 => ("approved", "accredited"),
            None if refunded_minor < payment.captured_minor => ("approved", "partially_refunded"),
            None => ("refunded", "refunded"),
        },
    };
    (status, detail.to_owned())
}

/// A payment.
pub(super) fn payment(payment: &Payment, base: &str) -> Value {
    let (status, status_detail) = status(payment);
    let (id, is_paid) = (payment.id(), payment.state == PaymentState::Captured);
    let refunds: Vec<Value> = (0..payment.refunds.len()).map(|position| refund(payment, position)).collect();
    json!({
        "id": payment.number,
        "date_created": date(payment.created),
        "date_approved": is_paid.then(|| date(payment.updated)),
        "date_last_updated": date(payment.updated),
        "date_of_expiration": payment.expires_at.map(date),
        "captured": true,
        "currency_id": payment.currency,
        "description": payment.description,
        "external_reference": payment.reference,
        "live_mode": false,
        "metadata": payment.metadata,
        "operation_type": "regular_payment",
        "payer": { "email": payment.email },
        "payment_method": { "id": "pix", "issuer_id": null, "type": "bank_transfer" },
        "payment_method_id": "pix",
        "payment_type_id": "bank_transfer",
        "point_of_interaction": {
            "type": "PIX",
            "transaction_data": {
                "qr_code": pix::code(&id, payment.amount_minor),
                "qr_code_base64": pix::PICTURE,
                "ticket_url": format!("{base}/pay/{id}"),
            },
        },
        "refunds": refunds,
        "status": status,
        "status_detail": status_detail,
        "transaction_amount": decimal(payment.amount_minor),
        "transaction_amount_refunded": decimal(payment.refunded_minor()),
    })
}

/// A refund.
pub(super) fn refund(payment: &Payment, position: usize) -> Value {
    let refund = &payment.refunds[position];
    let status = match refund.state {
        RefundState::Pending => "in_process",
        RefundState::Succeeded => "approved",
        RefundState::Failed => "rejected",
    };
    json!({
        "id": refund.number,
        "payment_id": payment.number,
        "amount": decimal(refund.amount_minor),
        "date_created": date(refund.created),
        "metadata": refund.metadata,
        "reason": refund.reason,
        "refund_mode": "standard",
        "source": { "id": "1", "name": "Shop", "type": "collector" },
        "status": status,
        "unique_sequence_number": null,
    })
}

/// A change's notification: type, id and body. It says which payment, never what happened.
pub(crate) fn event(
    payment: &Payment,
    change: Change,
    number: u64,
    now: OffsetDateTime,
) -> (&'static str, String, String) {
    let action = if change == Change::Created { "payment.created" } else { "payment.updated" };
    let body = json!({
        "id": number, "action": action, "api_version": "v1", "data": { "id": payment.id() },
        "date_created": date(now), "live_mode": false, "type": "payment", "user_id": 1,
    });
    (action, number.to_string(), body.to_string())
}
