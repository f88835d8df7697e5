//! The expiry sweep: numbers whose hold ran out go back to stock, and those of lost cancellations.

use std::time::Duration;

use domain::catalog::Reserving;
use domain::limits::{ORDERS_PER_SWEEP_MAX, OUTBOX_BACKOFF_MAX, PARKED_FOR};
use domain::messages::Queue;
use domain::{Error, Result};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::catalog::{Product, find_product};
use crate::errors::from_postgres;
use crate::findings::{NewFinding, record, resolve_released, unreleasable};
use crate::numbers::Failure;
use crate::numbers::give_back::{Held, give_back, held_from};
use crate::numbers::mend::repair;
use crate::rows::column;
use crate::switches;
use crate::types::{BOOL, FLOAT8, INT4, INT8, INT8S, TEXT, UUID, UUIDS};

/// Products with holds that are due for the sweep, and whose numbers may change hands.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_due_products(client: &Client) -> Result<Vec<Product>> {
    let sql = "select p.id from products p where p.reserving = 'on' and exists (
        select from holds h where h.product_key = p.key and h.sweep_at <= now())";
    let rows = client.query_typed(sql, &[]).await.map_err(from_postgres)?;
    let mut products = Vec::new();
    for row in &rows {
        products.extend(find_product(client, column(row, "id")?).await?);
    }
    Ok(products)
}

/// What one sweep pass did.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Sweep {
    /// Orders whose numbers went back.
    pub orders: u64,
    /// Numbers that went back.
    pub numbers: u64,
    /// Orders that failed; each is tried again later, alone if need be.
    pub failed: u64,
    /// Rows of the list of holds that were done with.
    pub done: u64,
}

/// Frees due holds of one product: one bounded transaction, or order by order when that fails, so that one poisoned
/// order costs only itself. It gets a later try, and more distance with every failure.
///
/// # Errors
/// Busy when the database is; then nothing is known to have changed.
pub async fn sweep(client: &mut Client, product: &Product) -> Result<Sweep> {
    let due = due(client, product.key).await?;
    close_payments(client, &due.orders).await?;
    let swept = match mending(client, product, &due.orders, false).await {
        Ok(swept) => swept,
        Err(Failure::Error(error @ Error::Busy(_))) => return Err(error),
        Err(failure) => {
            tracing::warn!(product.id = %product.described.id, error.message = failure.into_error().chain(), "sweeping order by order");
            one_by_one(client, product, &due.orders).await?
        }
    };
    Ok(Sweep { done: unlist(client, product.key, &due.rows).await?, ..swept })
}

async fn mending(
    client: &mut Client,
    product: &Product,
    ids: &[Uuid],
    at_once: bool,
) -> std::result::Result<Sweep, Failure> {
    match pass(client, product, ids, at_once).await {
        Err(failure @ (Failure::Disagreement(_) | Failure::Miscounted(_))) => {
            repair(client, product, &failure).await?;
            pass(client, product, ids, at_once).await
        }
        other => other,
    }
}

async fn one_by_one(client: &mut Client, product: &Product, ids: &[Uuid]) -> Result<Sweep> {
    let mut total = Sweep::default();
    for id in ids.iter().copied() {
        match mending(client, product, &[id], false).await {
            Ok(swept) => {
                total.orders += swept.orders;
                total.numbers += swept.numbers;
            }
            Err(Failure::Error(error @ Error::Busy(_))) => return Err(error),
            Err(failure) => {
                tracing::error!(order.id = %id, error.message = failure.into_error().chain(), "hold not released");
                postpone(client, id).await?;
                let detail = unreleasable(id);
                let (product_key, chunk, invariant) = (product.key, None, "I5");
                record(client, &NewFinding { product_key, chunk, invariant, detail: &detail, resolved: false }).await?;
                total.failed += 1;
            }
        }
    }
    Ok(total)
}

/// What one pass looks at.
#[derive(Default)]
struct Due {
    /// Rows of the list of holds.
    rows: Vec<i64>,
    /// The orders listed there; some may have ended before.
    orders: Vec<Uuid>,
}

/// The longest overdue rows of the list, so many that they name `ORDERS_PER_SWEEP_MAX` orders or a little more.
async fn due(client: &Client, product_key: i32) -> Result<Due> {
    let sql = "select id, order_ids from (
            select id, sweep_at, order_ids, sum(cardinality(order_ids)) over (order by sweep_at, id) as orders from (
                select id, sweep_at, order_ids from holds where product_key = $1 and sweep_at <= now()
                order by sweep_at, id limit $2) as first) as counted
        where orders - cardinality(order_ids) < $2 order by sweep_at, id";
    let rows =
        client.query_typed(sql, &[(&product_key, INT4), (&ORDERS_PER_SWEEP_MAX, INT8)]).await.map_err(from_postgres)?;
    let mut due = Due::default();
    for row in &rows {
        due.rows.push(column(row, "id")?);
        due.orders.extend(column::<Vec<Uuid>>(row, "order_ids")?);
    }
    Ok(due)
}

/// Deletes rows of the list that nobody waits for: of their orders none is still held and due there. One that another
/// transaction has in hand keeps its row.
async fn unlist(client: &Client, product_key: i32, rows: &[i64]) -> Result<u64> {
    let sql = "delete from holds h where h.product_key = $1 and h.sweep_at <= now() and h.id = any($2)
        and not exists (select from orders o where o.id = any(h.order_ids)
            and o.state in ('reserved', 'paying') and o.sweep_at = h.sweep_at)";
    client.execute_typed(sql, &[(&product_key, INT4), (&rows, INT8S)]).await.map_err(from_postgres)
}

/// Orders whose hold ended while they were being paid: from here on no payment may start, because their time is over.
/// What is open at a gateway must be closed first, which `settle-payment` does. Each is owed a message and gets a later
/// look, with growing distance, so that those that cannot be closed do not head every pass.
async fn close_payments(client: &Client, ids: &[Uuid]) -> Result<u64> {
    let sql = "with due as (
            select id from orders where id = any($1) and state = 'paying' and sweep_at <= now()
            order by id for no key update skip locked
        ), changed as (
            update orders o set sweep_attempts = least(o.sweep_attempts + 1, 1000),
                sweep_at = now() + make_interval(secs => least($2, $3 * power(2, least(o.sweep_attempts, 10))))
            from due where o.id = due.id
            returning o.id, o.tenant_id, o.product_id, o.product_key, o.sweep_at
        ), listed as (
            insert into holds (product_key, sweep_at, order_ids) select product_key, sweep_at, array[id] from changed
        )
        insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        select gen_random_uuid(), $4, tenant_id, product_id, id, now() from changed";
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&ids, UUIDS),
        (&OUTBOX_BACKOFF_MAX.as_secs_f64(), FLOAT8),
        (&PARKED_FOR.as_secs_f64(), FLOAT8),
        (&Queue::SettlePayment.name(), TEXT),
    ];
    client.execute_typed(sql, &params).await.map_err(from_postgres)
}

/// Gives the numbers of these orders back at once, if their hold is over or their buyers gave them up. Others are left
/// alone.
///
/// # Errors
/// Busy or fault from the database; the sweep finds them all the same.
pub async fn release_due(client: &mut Client, tenant_id: Uuid, product_id: Uuid, ids: &[Uuid]) -> Result<Sweep> {
    let product = crate::products::find(client, tenant_id, product_id).await?;
    mending(client, &product, ids, true).await.map_err(Failure::into_error)
}

async fn pass(
    client: &mut Client,
    product: &Product,
    ids: &[Uuid],
    at_once: bool,
) -> std::result::Result<Sweep, Failure> {
    let tx = client.transaction().await?;
    // Not those in `paying`: their gateways are asked first, see `close_payments`.
    let sql = "select id, buyer_id, numbers, cancel_requested_at is not null as cancelled from orders
        where id = any($1) and product_key = $3 and state = 'reserved' and (sweep_at <= now() or $2)
            and (expires_at <= now() or cancel_requested_at is not null)
        order by id for no key update skip locked";
    let rows = tx.query_typed(sql, &[(&ids, UUIDS), (&at_once, BOOL), (&product.key, INT4)]).await?;
    let held: Vec<Held> = rows.iter().map(held_from).collect::<Result<_>>()?;
    if held.is_empty() || switches::reserving(&tx, product.key).await? == Reserving::Halted {
        return Ok(Sweep::default());
    }
    give_back(&tx, product, &held, "expire-reservations").await?;
    let released: Vec<Uuid> = held.iter().map(|order| order.id).collect();
    resolve_released(tx.client(), product.key, &released).await?;
    fail::fail_point!("expire.before_commit");
    tx.commit().await?;
    fail::fail_point!("expire.after_commit");
    let numbers = held.iter().map(|order| order.numbers.len() as u64).sum();
    Ok(Sweep { orders: held.len() as u64, numbers, ..Sweep::default() })
}

async fn postpone(client: &Client, id: Uuid) -> Result<()> {
    let sql = "with changed as (
            update orders set sweep_attempts = least(sweep_attempts + 1, 1000),
                sweep_at = now() + make_interval(secs => least($2, $3 * power(2, least(sweep_attempts, 10))))
            where id = $1 and state = 'reserved'
            returning id, product_key, sweep_at
        )
        insert into holds (product_key, sweep_at, order_ids) select product_key, sweep_at, array[id] from changed";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&id, UUID), (&OUTBOX_BACKOFF_MAX.as_secs_f64(), FLOAT8), (&PARKED_FOR.as_secs_f64(), FLOAT8)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// How long the most overdue hold has been overdue; none when nothing is due. Halted products do not count: their
/// holds wait for the operator.
///
/// # Errors
/// Busy or fault from the database.
pub async fn sweep_lag(client: &Client) -> Result<Option<Duration>> {
    let sql = "select extract(epoch from now() - min(due.expires_at))::float8 as seconds
        from products p cross join lateral (
            select o.expires_at from holds h join orders o on o.id = any(h.order_ids)
            where h.product_key = p.key and h.sweep_at <= now()
                and o.state in ('reserved', 'paying') and o.expires_at <= now()
            order by h.sweep_at limit 1) as due
        where p.reserving = 'on'";
    let row = client.query_typed_one(sql, &[]).await.map_err(from_postgres)?;
    let seconds: Option<f64> = column(&row, "seconds")?;
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok()))
}
