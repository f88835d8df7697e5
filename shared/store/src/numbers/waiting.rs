//! The lists of orders that wait, for a decision or for the end of their hold: derived from the orders' states.

use domain::Result;
use tokio_postgres::Client;

use crate::errors::from_postgres;
use crate::rows::{column, may_scan};
use crate::types::INT4;

/// Queued orders without a place in the queue, held ones that the sweep would not look at, and places in the queue of
/// orders that are not queued. Looking once too often at a hold is no fault.
const WRONG: &str = "unqueued as (
        select id from orders o where product_key = $1 and state = 'queued' and not exists (
            select from order_queue q where q.product_key = $1 and q.created_at = o.created_at and q.order_id = o.id)
    ), unlisted as (
        select id from (
            select id, sweep_at from orders where product_key = $1 and state in ('reserved', 'paying')
            except select unnest(order_ids), sweep_at from holds where product_key = $1) as held
    ), surplus as (
        select created_at, order_id from order_queue q where product_key = $1 and not exists (
            select from orders o where o.id = q.order_id and o.state = 'queued' and o.created_at = q.created_at)
    )";

/// How many places in a product's lists are wrong. Looks at all of its orders, in one snapshot.
///
/// # Errors
/// Busy or fault from the database.
pub async fn count_unlisted(client: &mut Client, product_key: i32) -> Result<i64> {
    let tx = may_scan(client).await?;
    let sql = format!(
        "with {WRONG} select (select count(*) from unqueued) + (select count(*) from unlisted)
            + (select count(*) from surplus) as wrong"
    );
    column(&tx.query_typed_one(&sql, &[(&product_key, INT4)]).await.map_err(from_postgres)?, "wrong")
}

/// Mends a product's lists; returns how many places were wrong. Safe while orders move: what is missing is added under
/// the order's lock, what is too many belongs to a state that does not come back.
///
/// # Errors
/// Busy or fault from the database.
pub async fn relist(client: &mut Client, product_key: i32) -> Result<usize> {
    let tx = may_scan(client).await?;
    let sql = format!(
        "with {WRONG}, missing as (
            select id, state, created_at, sweep_at from orders
            where id in (table unqueued union all table unlisted) and state in ('queued', 'reserved', 'paying')
            order by id for no key update
        ), queued as (
            insert into order_queue (product_key, created_at, order_id)
            select $1, created_at, id from missing where state = 'queued' on conflict do nothing returning 1
        ), held as (
            insert into holds (product_key, sweep_at, order_ids)
            select $1, sweep_at, array[id] from missing where state <> 'queued' returning 1
        ), dequeued as (
            delete from order_queue q using surplus s
            where q.product_key = $1 and q.created_at = s.created_at and q.order_id = s.order_id returning 1
        )
        select from queued union all select from held union all select from dequeued"
    );
    let rows = tx.query_typed(&sql, &[(&product_key, INT4)]).await.map_err(from_postgres)?;
    tx.commit().await.map_err(from_postgres)?;
    if !rows.is_empty() {
        tracing::error!(product.key = product_key, places = rows.len(), "lists of waiting orders were wrong");
    }
    Ok(rows.len())
}
