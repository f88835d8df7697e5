//! I5 and I9 on a system at rest: no order waits for anything but its buyer or the clock. A message that is still
//! owed is about an order that no longer waits, or the order is a finding itself.

use tokio_postgres::Transaction;

pub(super) async fn check(tx: &Transaction<'_>, findings: &mut Vec<String>) {
    let checks = [
        ("I9: orders are still queued", "select count(*) from orders where state = 'queued'"),
        (
            "I9: cancellations are still to be done",
            "select count(*) from orders where state = 'reserved' and cancel_requested_at is not null",
        ),
        (
            "I9: messages about unknown orders are owed",
            "select count(*) from outbox x where not exists (select from orders o where o.id = x.order_id)",
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
