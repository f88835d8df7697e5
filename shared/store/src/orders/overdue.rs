//! Orders that waited past their deadline get an answer, whether or not a worker ever sees them.

use domain::limits::{ORDERS_PER_SWEEP_MAX, QUEUE_DEADLINE, QUEUE_HEAD_MAX};
use domain::{Reason, Result};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::errors::from_postgres;
use crate::notices::owing;
use crate::types::{FLOAT8, INT8, TEXT};

/// Rejects queued orders past their deadline (while their product is halted they wait), and those of sales that have ended; a bounded number, skipping those that a worker holds. Returns how many.
///
/// # Errors
/// Busy or fault from the database.
pub async fn reject_overdue(client: &Client) -> Result<u64> {
    let sql = format!(
        "with due as (
            select late.id, late.sale_ended from products p cross join lateral (
                select o.id, p.closes_at <= now() as sale_ended
                from (
                    select order_id, created_at from order_queue where product_key = p.key
                    order by created_at, order_id limit $5) as q
                join orders o on o.id = q.order_id
                where o.state = 'queued' and (p.closes_at <= now() or p.reserving = 'on'
                    and greatest(o.queue_deadline, p.reserving_resumed_at + make_interval(secs => $4)) <= now())
                order by q.created_at, q.order_id limit $1
                for no key update of o skip locked) as late
        ), changed as (
            update orders o set state = 'rejected', version = o.version + 1,
                reason = case when due.sale_ended then $2 else $3 end
            from due where o.id = due.id and o.state = 'queued'
            returning o.id, o.version, o.state, o.tenant_id, o.buyer_id, o.product_key, o.created_at
        ), dequeued as (
            delete from order_queue q using changed c
            where q.product_key = c.product_key and q.created_at = c.created_at and q.order_id = c.id
        ), noticed as ({})
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, version, 'queued', 'rejected', 'reconcile-orders' from changed",
        owing("changed")
    );
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&ORDERS_PER_SWEEP_MAX, INT8),
        (&Reason::SaleEnded.code(), TEXT),
        (&Reason::QueuedTooLong.code(), TEXT),
        (&QUEUE_DEADLINE.as_secs_f64(), FLOAT8),
        (&QUEUE_HEAD_MAX, INT8),
    ];
    client.execute_typed(&sql, &params).await.map_err(from_postgres)
}
