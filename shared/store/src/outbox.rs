//! Messages that a commit owes to a queue.
//!
//! The relay never holds a lock while it sends: it claims rows by moving their next try into the future, commits,
//! sends, and deletes what was sent.

use domain::Result;
use domain::limits::{OUTBOX_BACKOFF_MAX, OUTBOX_CLAIM_ROWS_MAX, PARKED_FOR, QUEUE_HEAD_MAX, QUEUED_SILENT_AFTER};
use domain::messages::{OrderMessage, Queue};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT4S, INT8, TEXT, TEXTS, UUIDS};

/// A claimed row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Owed {
    /// Id of the row.
    pub id: Uuid,
    /// Where the message goes.
    pub queue: Queue,
    /// The message.
    pub message: OrderMessage,
    /// Tries so far, this one included.
    pub attempts: i32,
}

/// Claims rows whose next try is due, oldest first. A claim is a later next try, so a relay that dies delays its
/// rows by one backoff and loses none. Rows for a queue that only a newer version knows are left to it.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim(client: &Client) -> Result<Vec<Owed>> {
    let sql = "update outbox o set attempts = o.attempts + 1,
            next_attempt_at = now() + make_interval(secs => least($2, 15 * power(2, least(greatest(o.attempts, 0), 10))) * (0.75 + random() / 2))
        from (select id from outbox where next_attempt_at <= now() and queue = any($3)
            order by next_attempt_at limit $1 for no key update skip locked) as due
        where o.id = due.id
        returning o.id, o.queue, o.tenant_id, o.product_id, o.order_id, o.attempts";
    let known = Queue::OF_ORDERS.map(Queue::name);
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&OUTBOX_CLAIM_ROWS_MAX, INT8), (&OUTBOX_BACKOFF_MAX.as_secs_f64(), FLOAT8), (&known.as_slice(), TEXTS)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let mut claimed = Vec::with_capacity(rows.len());
    for row in &rows {
        let message =
            OrderMessage::new(column(row, "order_id")?, column(row, "product_id")?, column(row, "tenant_id")?);
        claimed.push(Owed {
            id: column(row, "id")?,
            queue: one_word(row, "queue", Queue::from_name)?,
            message,
            attempts: column(row, "attempts")?,
        });
    }
    Ok(claimed)
}

/// Deletes claimed rows whose messages were sent, unless somebody has owed them again since the claim; returns how
/// many were deleted.
///
/// # Errors
/// Busy or fault from the database.
pub async fn delete(client: &Client, sent: &[Owed]) -> Result<u64> {
    let ids: Vec<Uuid> = sent.iter().map(|owed| owed.id).collect();
    let attempts: Vec<i32> = sent.iter().map(|owed| owed.attempts).collect();
    let sql = "delete from outbox o using unnest($1, $2) as sent (id, attempts)
        where o.id = sent.id and o.attempts = sent.attempts";
    client.execute_typed(sql, &[(&ids, UUIDS), (&attempts, INT4S)]).await.map_err(from_postgres)
}

/// Deletes due rows that nobody needs any more: their order has left the state that the message is about. What a newer
/// version's queue needs is not known here.
///
/// # Errors
/// Busy or fault from the database.
pub async fn delete_needless(client: &Client) -> Result<u64> {
    let sql = "delete from outbox where id in (
            select x.id from outbox x left join orders o on o.id = x.order_id
            where x.next_attempt_at <= now()
                and case x.queue when 'reserve-numbers' then o.state is distinct from 'queued'
                    when 'settle-payment' then o.id is null
                    when 'release-numbers' then o.state is distinct from 'reserved' or o.cancel_requested_at is null
                    else false end
            order by x.next_attempt_at limit $1
            for no key update of x skip locked)";
    client.execute_typed(sql, &[(&OUTBOX_CLAIM_ROWS_MAX, INT8)]).await.map_err(from_postgres)
}

/// Owes a message again for orders that have been queued for long: at 2, 4 and 8 minutes of age, so that a backlog
/// is not multiplied. Most still have their message in the queue; the second one then finds nothing to do.
///
/// # Errors
/// Busy or fault from the database.
pub async fn owe_silent(client: &Client) -> Result<u64> {
    let sql = "with silent as (
            select silent.id from products p cross join lateral (
                select o.id
                from (
                    select order_id, created_at from order_queue
                    where product_key = p.key and created_at < now() - make_interval(secs => $1)
                    order by created_at, order_id limit $3) as q
                join orders o on o.id = q.order_id
                where o.state = 'queued'
                    and q.created_at < now() - make_interval(secs => $1 * power(2, o.sweep_attempts))
                order by q.created_at, q.order_id limit $2
                for no key update of o skip locked) as silent
        ), nudged as (
            update orders o set sweep_attempts = o.sweep_attempts + 1 from silent
            where o.id = silent.id and o.state = 'queued'
            returning o.id, o.tenant_id, o.product_id
        )
        insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        select gen_random_uuid(), 'reserve-numbers', tenant_id, product_id, id, now() from nudged";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&QUEUED_SILENT_AFTER.as_secs_f64(), FLOAT8), (&OUTBOX_CLAIM_ROWS_MAX, INT8), (&QUEUE_HEAD_MAX, INT8)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)
}

/// Parks orders of a halted product: their messages are owed again a little later. One row per order and queue,
/// however often its messages come; a row being sent right now starts over, so that its delete misses it.
pub(crate) async fn park(tx: &Transaction<'_>, queue: Queue, order_ids: &[Uuid]) -> Result<()> {
    let sql = "insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        select md5('parked ' || $2 || id::text)::uuid, $2, tenant_id, product_id, id,
            now() + make_interval(secs => $3 * (0.75 + random() / 2))
        from orders where id = any($1) order by id
        on conflict (id) do update set attempts = -1, next_attempt_at = excluded.next_attempt_at";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&order_ids, UUIDS), (&queue.name(), TEXT), (&PARKED_FOR.as_secs_f64(), FLOAT8)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}
