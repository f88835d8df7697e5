//! An order's payments, refunds and disputes.

use domain::payments::Use;
use serde_json::{Value, json};
use store::Client;
use store::payments::{Attempt, DisputeOf, Overview, RefundEntry, find_overview};
use uuid::Uuid;

use crate::failure::Failure;
use crate::history::{list, require};
use crate::output::{Output, instant, or_dash, table};

/// `tirada payments`
pub(crate) async fn show(client: &Client, id: Uuid) -> Result<Output, Failure> {
    let order = require(client, id).await?;
    Ok(report(id, &find_overview(client, order.tenant_id, id).await?))
}

fn report(id: Uuid, overview: &Overview) -> Output {
    let Overview { currency, attempts, refunds, disputes } = overview;
    let text = [
        format!("order {id}, amounts in minor units of {currency}"),
        table(
            ["PAYMENT", "BEGAN", "GATEWAY", "METHOD", "STATE", "USED", "AMOUNT", "TAKEN", "BACK", "REFUSED", "THERE"],
            attempts.iter().map(attempt_row).collect(),
        ),
        table(
            ["REFUND", "ASKED", "AMOUNT", "NUMBERS", "CAUSE", "STATE", "FAILED", "AGAIN AS", "THERE", "NOTE"],
            refunds.iter().map(refund_row).collect(),
        ),
        table(["DISPUTE", "HEARD", "AMOUNT", "STATE", "THERE"], disputes.iter().map(dispute_row).collect()),
    ];
    let json = json!({
        "order": id, "currency": currency,
        "payments": attempts.iter().map(attempt_json).collect::<Vec<_>>(),
        "refunds": refunds.iter().map(refund_json).collect::<Vec<_>>(),
        "disputes": disputes.iter().map(dispute_json).collect::<Vec<_>>(),
    });
    Output::new(text.join("\n\n"), json)
}

fn attempt_row(attempt: &Attempt) -> [String; 11] {
    [
        attempt.id.to_string(),
        instant(attempt.created_at),
        attempt.gateway.word().to_owned(),
        attempt.method.word().to_owned(),
        attempt.state.word().to_owned(),
        or_dash(attempt.used.map(Use::word)),
        attempt.amount_minor.to_string(),
        attempt.captured_minor.to_string(),
        attempt.refunded_minor.to_string(),
        or_dash(attempt.decline_code.as_deref()),
        or_dash(attempt.payment_id.as_deref()),
    ]
}

/// Without what the buyer has to do, which is for the buyer only.
fn attempt_json(attempt: &Attempt) -> Value {
    json!({
        "id": attempt.id, "number": attempt.number, "created_at": instant(attempt.created_at),
        "gateway": attempt.gateway, "method": attempt.method, "capture": attempt.capture, "state": attempt.state,
        "used": attempt.used.map(Use::word), "amount_minor": attempt.amount_minor, "currency": attempt.currency,
        "captured_minor": attempt.captured_minor, "refunded_minor": attempt.refunded_minor,
        "decline_code": attempt.decline_code, "payment_id": attempt.payment_id, "given_up": attempt.is_given_up,
        "looks": attempt.looks,
    })
}

fn refund_row(entry: &RefundEntry) -> [String; 10] {
    let RefundEntry { created_at, retried_as, refund } = entry;
    [
        refund.id.to_string(),
        instant(*created_at),
        refund.amount_minor.to_string(),
        list(&refund.numbers, 0),
        refund.cause.word().to_owned(),
        refund.state.word().to_owned(),
        or_dash(refund.failure.as_deref()),
        or_dash(*retried_as),
        or_dash(refund.gateway_refund_id.as_deref()),
        or_dash(refund.note.as_deref()),
    ]
}

fn refund_json(entry: &RefundEntry) -> Value {
    let RefundEntry { created_at, retried_as, refund } = entry;
    json!({
        "id": refund.id, "payment": refund.attempt_id, "created_at": instant(*created_at),
        "amount_minor": refund.amount_minor, "numbers": refund.numbers, "cause": refund.cause, "state": refund.state,
        "failure": refund.failure, "retried_as": retried_as, "gateway_refund_id": refund.gateway_refund_id, "note": refund.note,
    })
}

fn dispute_row(dispute: &DisputeOf) -> [String; 5] {
    [
        dispute.id.to_string(),
        instant(dispute.created_at),
        dispute.amount_minor.to_string(),
        dispute.state.word().to_owned(),
        dispute.gateway_dispute_id.clone(),
    ]
}

fn dispute_json(dispute: &DisputeOf) -> Value {
    json!({
        "id": dispute.id, "payment": dispute.attempt_id, "created_at": instant(dispute.created_at),
        "amount_minor": dispute.amount_minor, "state": dispute.state,
        "gateway_dispute_id": dispute.gateway_dispute_id,
    })
}
