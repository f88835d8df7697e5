//! A gateway's own ledger against ours: every payment that it took is known here, to the cent, and the reverse.

use std::collections::HashMap;

use tokio_postgres::Client;

use fake_gateway::{DisputeState, Ledger, PaymentEntry, RefundState};

struct Attempt {
    order_id: String,
    captured: i64,
    pending: i64,
    succeeded: i64,
    lost: i64,
}

/// Compares; meant for a system at rest whose gateway has come to rest as well.
pub(super) async fn check(client: &Client, ledger: &Ledger, findings: &mut Vec<String>) {
    findings.extend(ledger.violations.iter().map(|v| format!("gateway: {:?}: {}", v.kind, v.detail)));
    let sql = "select a.id::text, a.order_id::text, a.captured_minor,
            (select coalesce(sum(r.amount_minor), 0)::int8 from refunds r where r.attempt_id = a.id and r.state = 'pending'),
            (select coalesce(sum(r.amount_minor), 0)::int8 from refunds r where r.attempt_id = a.id and r.state = 'succeeded'),
            (select coalesce(sum(d.amount_minor), 0)::int8 from disputes d where d.attempt_id = a.id and d.state = 'lost')
        from payment_attempts a where a.gateway <> 'manual'";
    let rows = client.query(sql, &[]).await.expect("the attempts");
    let mut attempts: HashMap<String, Attempt> = rows
        .iter()
        .map(|r| {
            let attempt = Attempt {
                order_id: r.get(1),
                captured: r.get(2),
                pending: r.get(3),
                succeeded: r.get(4),
                lost: r.get(5),
            };
            (r.get(0), attempt)
        })
        .collect();
    for payment in ledger.payments.iter().filter(|payment| payment.captured_minor > 0) {
        let known = payment.attempt_id.as_ref().and_then(|id| attempts.remove(id));
        match known {
            Some(attempt) => compare(payment, &attempt, findings),
            None => findings.push(format!("gateway: {} was paid and is not known here, or twice", payment.payment_id)),
        }
    }
    for (id, attempt) in attempts.into_iter().filter(|(_, attempt)| attempt.captured > 0) {
        findings.push(format!("gateway: attempt {id} of order {} has no money there", attempt.order_id));
    }
}

fn compare(payment: &PaymentEntry, attempt: &Attempt, findings: &mut Vec<String>) {
    let refunds = |state| payment.refunds.iter().filter(|r| r.state == state).map(|r| r.amount_minor).sum::<i64>();
    let lost: i64 = payment.disputes.iter().filter(|d| d.state == DisputeState::Lost).map(|d| d.amount_minor).sum();
    let there = [payment.captured_minor, refunds(RefundState::Pending), refunds(RefundState::Succeeded), lost];
    let here = [attempt.captured, attempt.pending, attempt.succeeded, attempt.lost];
    if there != here {
        findings.push(format!(
            "gateway: {} of order {}: captured, pending, refunded, lost are {there:?} there and {here:?} here",
            payment.payment_id, attempt.order_id
        ));
    }
    if payment.captures > 1 {
        findings.push(format!("gateway: {} was captured {} times", payment.payment_id, payment.captures));
    }
}
