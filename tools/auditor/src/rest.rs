//! I5 and I9 on a system at rest: no order waits for anything but its buyer or the clock. A message that is still
//! owed is about an order that no longer waits, or the order is a finding itself.

use tokio_postgres::Transaction;

pub(super) async fn check(tx: &Transaction<'_>, findings: &mut Vec<String>) {
    let checks = [
        ("I9: orders are still queued", "select count(*) from orders where state = 'queued'"),
        (
            "I9: cancellations are still to be done",
            "select count(*) from orders where state in ('reserved', 'paying') and cancel_requested_at is not null",
        ),
        ("I9: attempts that nobody has answered for", "select count(*) from payment_attempts where state = 'created'"),
        (
            "I9: attempts that may still be paid for orders that do not want it",
            "select count(*) from payment_attempts a join orders o on o.id = a.order_id
            where a.state in ('created', 'open', 'processing', 'authorised') and o.state <> 'paying'",
        ),
        (
            "I9: orders that are being paid by nothing",
            "select count(*) from orders o where o.state = 'paying'
            and not exists (select from payment_attempts a where a.order_id = o.id
                and a.state in ('created', 'open', 'processing', 'authorised'))",
        ),
        ("I9: refunds that no gateway has accepted", "select count(*) from refunds where state = 'created'"),
        ("I9: events that nobody has processed", "select count(*) from inbox where processed_at is null"),
        (
            "I9: messages about unknown orders, or orders of another store, are owed",
            "select count(*) from outbox x where not exists (select from orders o
                where o.id = x.order_id and o.tenant_id = x.tenant_id and o.product_id = x.product_id)",
        ),
        (
            "I9: notices about unknown orders, or orders of another store",
            "select count(*) from notices n where not exists (
                select from orders o where o.id = n.order_id and o.tenant_id = n.tenant_id)",
        ),
        (
            "I5: orders are later than their deadline, hold and a margin allow",
            "select count(*) from orders where now() > interval '15 minutes' + case state
                when 'queued' then queue_deadline + make_interval(secs => hold_seconds)
                when 'reserved' then expires_at when 'paying' then expires_at else 'infinity' end",
        ),
    ];
    for (finding, sql) in checks {
        let count: i64 = tx.query_one(sql, &[]).await.expect(sql).get(0);
        if count > 0 {
            findings.push(format!("{finding}: {count}"));
        }
    }
}
