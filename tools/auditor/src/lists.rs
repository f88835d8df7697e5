//! I9: the lists that jobs read name the orders that wait.

use tokio_postgres::Transaction;

const CHECKS: [(&str, &str); 5] = [
    (
        "queued orders are not in the queue's list",
        "select o.id::text from orders o where o.state = 'queued' and not exists (
            select from order_queue q
            where q.order_id = o.id and q.product_key = o.product_key and q.created_at = o.created_at)",
    ),
    (
        "orders in the queue's list are not queued",
        "select q.order_id::text from order_queue q where not exists (
            select from orders o where o.id = q.order_id and o.state = 'queued')",
    ),
    (
        "orders are in the queue's list twice",
        "select order_id::text from order_queue group by order_id having count(*) > 1",
    ),
    (
        "held orders are not in the list of holds",
        "select id::text from (
            select id, product_key, sweep_at from orders where state in ('reserved', 'paying')
            except select unnest(order_ids), product_key, sweep_at from holds) as unlisted",
    ),
    (
        "unknown orders are in the list of holds",
        "select id::text from (select unnest(order_ids) as id from holds except select id from orders) as unknown",
    ),
];

pub(super) async fn check(tx: &Transaction<'_>, findings: &mut Vec<String>) {
    for (finding, sql) in CHECKS {
        let rows = tx.query(sql, &[]).await.expect(sql);
        if let Some(row) = rows.first() {
            findings.push(format!("I9: {finding}: {}, {} among them", rows.len(), row.get::<_, String>(0)));
        }
    }
}
