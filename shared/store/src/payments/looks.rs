//! Attempts and refunds whose turn to be looked at has come: their orders are owed a message.

use domain::Result;
use domain::limits::{LOOK_AFTER, LOOK_AFTER_CLOSED, LOOK_BACKOFF_MAX, LOOKS_PER_PASS_MAX};
use domain::messages::Queue;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::errors::from_postgres;
use crate::types::{FLOAT8, INT8, TEXT};

/// Owes a message for every order with an attempt or a refund that is due, oldest first; returns how many. The next
/// look moves away with every one that came to nothing.
///
/// # Errors
/// Busy or fault from the database.
pub async fn owe_looks(client: &Client) -> Result<u64> {
    // Those that may still be paid first: a look at yesterday's captures can wait.
    let sql = "with due_open as (
            select id from payment_attempts
            where look_at <= now() and look_at is not null
                and state in ('created', 'open', 'processing', 'authorised')
            order by look_at limit $1
            for no key update skip locked
        ), due_ended as (
            select id from payment_attempts
            where look_at <= now() and look_at is not null
                and state in ('declined', 'cancelled', 'abandoned', 'captured')
            order by look_at limit $1 / 5
            for no key update skip locked
        ), due_refunds as (
            select id from refunds where look_at <= now() order by look_at limit $1
            for no key update skip locked
        ), attempts as (
            update payment_attempts a set looks = least(a.looks + 1, 1000), look_owed = true,
                look_at = now() + make_interval(secs => least($3, $2 * power(2, least(a.looks, 10))))
            from due_open d where a.id = d.id returning a.order_id
        ), ended as (
            update payment_attempts a set looks = least(a.looks + 1, 1000), look_owed = true,
                look_at = now() + make_interval(secs => $5 * power(2, least(a.looks, 6)))
            from due_ended d where a.id = d.id returning a.order_id
        ), back as (
            update refunds r set tries = least(r.tries + 1, 1000),
                look_at = now() + make_interval(secs => least($3, $2 * power(2, least(r.tries, 10))))
            from due_refunds d where r.id = d.id returning r.order_id
        )
        insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        select gen_random_uuid(), $4, o.tenant_id, o.product_id, o.id, now()
        from orders o where o.id in (
            select order_id from attempts union select order_id from ended union select order_id from back)";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&LOOKS_PER_PASS_MAX, INT8),
        (&LOOK_AFTER.as_secs_f64(), FLOAT8),
        (&LOOK_BACKOFF_MAX.as_secs_f64(), FLOAT8),
        (&Queue::SettlePayment.name(), TEXT),
        (&LOOK_AFTER_CLOSED.as_secs_f64(), FLOAT8),
    ];
    client.execute_typed(sql, &params).await.map_err(from_postgres)
}
