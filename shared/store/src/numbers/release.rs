//! Releasing: held numbers go back to stock, because the hold ran out or the buyer gave them up.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use domain::catalog::Reserving;
use domain::limits::{ORDERS_PER_SWEEP_MAX, OUTBOX_BACKOFF_MAX, PARKED_FOR};
use domain::messages::Queue;
use domain::numbers::Kind;
use domain::orders::State;
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use crate::catalog::{Product, find_product};
use crate::errors::from_postgres;
use crate::findings::{NewFinding, record};
use crate::numbers::locks::{lock_chunks, lock_holdings};
use crate::numbers::mend::mend_chunks;
use crate::numbers::writes::{add_to_holdings, delete_taken, expect, update_chunks};
use crate::numbers::{Failure, Served};
use crate::rows::column;
use crate::types::{FLOAT8, INT4, INT8, TEXT, TEXTS, UUID, UUIDS};
use crate::{outbox, switches};

/// Gives back the numbers of orders whose cancellation was requested: together, or order by order when that fails, so
/// that one poisoned order costs only itself.
///
/// # Errors
/// Busy or fault; then nothing is known to have changed.
pub async fn release(client: &mut Client, product_id: Uuid, order_ids: &[Uuid]) -> Result<Vec<(Uuid, Served)>> {
    let Some(product) = find_product(client, product_id).await? else {
        return Ok(order_ids.iter().map(|id| (*id, Served::Unknown)).collect());
    };
    match mending(client, &product, order_ids).await {
        Err(failure) if failure.is_about_data() => each_alone(client, &product, order_ids).await,
        other => other.map_err(Failure::into_error),
    }
}

async fn each_alone(client: &mut Client, product: &Product, order_ids: &[Uuid]) -> Result<Vec<(Uuid, Served)>> {
    let mut served = Vec::new();
    for id in order_ids {
        match mending(client, product, &[*id]).await {
            Ok(one) => served.extend(one),
            Err(failure) => {
                tracing::error!(order.id = %id, error = failure.into_error().chain(), "order not released");
                served.push((*id, Served::Again));
            }
        }
    }
    Ok(served)
}

async fn mending(
    client: &mut Client,
    product: &Product,
    order_ids: &[Uuid],
) -> std::result::Result<Vec<(Uuid, Served)>, Failure> {
    match requested(client, product, order_ids).await {
        Err(Failure::Disagreement(chunks)) => {
            mend_chunks(client, product, &chunks).await?;
            requested(client, product, order_ids).await
        }
        other => other,
    }
}

async fn requested(
    client: &mut Client,
    product: &Product,
    order_ids: &[Uuid],
) -> std::result::Result<Vec<(Uuid, Served)>, Failure> {
    let tx = client.transaction().await?;
    let sql = "select id, buyer_id, numbers, true as cancelled from orders
        where id = any($1) and product_id = $2 and state = 'reserved' and cancel_requested_at is not null
        order by id for no key update skip locked";
    let rows = tx.query_typed(sql, &[(&order_ids, UUIDS), (&product.described.id, UUID)]).await?;
    let held: Vec<Held> = rows.iter().map(held_from).collect::<Result<_>>()?;
    let ids: Vec<Uuid> = held.iter().map(|order| order.id).collect();
    let mut served = explain_missing(&tx, product.described.id, order_ids, &ids).await?;
    if switches::reserving(&tx, product.key).await? == Reserving::Halted {
        outbox::park(&tx, Queue::ReleaseNumbers, &ids).await?;
    } else {
        give_back(&tx, product, &held, "release-numbers").await?;
    }
    tx.commit().await?;
    served.extend(ids.into_iter().map(|id| (id, Served::Done)));
    Ok(served)
}

async fn explain_missing(
    tx: &Transaction<'_>,
    product_id: Uuid,
    order_ids: &[Uuid],
    locked: &[Uuid],
) -> Result<Vec<(Uuid, Served)>> {
    let missing: Vec<Uuid> = order_ids.iter().copied().filter(|id| !locked.contains(id)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "select id, state = 'reserved' and cancel_requested_at is not null as waiting from orders
        where id = any($1) and product_id = $2";
    let mut waiting = BTreeMap::new();
    for row in &tx.query_typed(sql, &[(&missing, UUIDS), (&product_id, UUID)]).await.map_err(from_postgres)? {
        waiting.insert(column::<Uuid>(row, "id")?, column::<bool>(row, "waiting")?);
    }
    let explain = |id| match waiting.get(&id) {
        None => Served::Unknown,
        Some(true) => Served::Again,
        Some(false) => Served::Done,
    };
    Ok(missing.into_iter().map(|id| (id, explain(id))).collect())
}

/// Products with holds that are due for the sweep, and whose numbers may change hands.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_due_products(client: &Client) -> Result<Vec<Product>> {
    let sql = "select p.id from products p where p.reserving = 'on' and exists (
        select from orders o where o.product_key = p.key and o.state = 'reserved' and o.sweep_at <= now())";
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
}

/// Frees due holds of one product: one bounded transaction, or order by order when that fails, so that one poisoned
/// order costs only itself. It gets a later try, and more distance with every failure.
///
/// # Errors
/// Busy when the database is; then nothing is known to have changed.
pub async fn sweep(client: &mut Client, product: &Product) -> Result<Sweep> {
    match pass(client, product, &due(client, product.key).await?).await {
        Ok(swept) => Ok(swept),
        Err(Failure::Error(error @ Error::Busy(_))) => Err(error),
        Err(failure) => {
            if let Failure::Disagreement(chunks) = &failure {
                mend_chunks(client, product, chunks).await?;
            }
            tracing::warn!(product.id = %product.described.id, error = failure.into_error().chain(), "sweeping order by order");
            one_by_one(client, product).await
        }
    }
}

async fn one_by_one(client: &mut Client, product: &Product) -> Result<Sweep> {
    let mut total = Sweep::default();
    for id in due(client, product.key).await? {
        match pass(client, product, &[id]).await {
            Ok(swept) => {
                total.orders += swept.orders;
                total.numbers += swept.numbers;
            }
            Err(Failure::Error(error @ Error::Busy(_))) => return Err(error),
            Err(failure) => {
                let detail = format!("order {id} cannot be released: {}", failure.into_error().chain());
                postpone(client, id).await?;
                let (product_key, chunk, invariant) = (product.key, None, "I5");
                record(client, &NewFinding { product_key, chunk, invariant, detail: &detail, resolved: false }).await?;
                total.failed += 1;
            }
        }
    }
    Ok(total)
}

/// Due orders, longest overdue first.
async fn due(client: &Client, product_key: i32) -> Result<Vec<Uuid>> {
    let sql = "select id from orders where product_key = $1 and state = 'reserved' and sweep_at <= now()
        order by sweep_at limit $2";
    let rows =
        client.query_typed(sql, &[(&product_key, INT4), (&ORDERS_PER_SWEEP_MAX, INT8)]).await.map_err(from_postgres)?;
    rows.iter().map(|row| column(row, "id")).collect()
}

async fn pass(client: &mut Client, product: &Product, ids: &[Uuid]) -> std::result::Result<Sweep, Failure> {
    let tx = client.transaction().await?;
    // The seam for payments: orders in `paying` are not here, because their gateway has to be asked first.
    let sql = "select id, buyer_id, numbers, cancel_requested_at is not null as cancelled from orders
        where id = any($1) and state = 'reserved' and sweep_at <= now()
            and (expires_at <= now() or cancel_requested_at is not null)
        order by id for no key update skip locked";
    let rows = tx.query_typed(sql, &[(&ids, UUIDS)]).await?;
    let held: Vec<Held> = rows.iter().map(held_from).collect::<Result<_>>()?;
    if held.is_empty() || switches::reserving(&tx, product.key).await? == Reserving::Halted {
        return Ok(Sweep::default());
    }
    give_back(&tx, product, &held, "expire-reservations").await?;
    fail::fail_point!("expire.before_commit");
    tx.commit().await?;
    let numbers = held.iter().map(|order| order.numbers.len() as u64).sum();
    Ok(Sweep { orders: held.len() as u64, numbers, failed: 0 })
}

async fn postpone(client: &Client, id: Uuid) -> Result<()> {
    let sql = "update orders set sweep_attempts = least(sweep_attempts + 1, 1000),
            sweep_at = now() + make_interval(secs => least($2, $3 * power(2, least(sweep_attempts, 10))))
        where id = $1 and state = 'reserved'";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&id, UUID), (&OUTBOX_BACKOFF_MAX.as_secs_f64(), FLOAT8), (&PARKED_FOR.as_secs_f64(), FLOAT8)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

struct Held {
    id: Uuid,
    buyer_id: Uuid,
    numbers: Vec<i32>,
    end: State,
}

fn held_from(row: &Row) -> Result<Held> {
    let end = if column(row, "cancelled")? { State::Cancelled } else { State::Expired };
    Ok(Held { id: column(row, "id")?, buyer_id: column(row, "buyer_id")?, numbers: column(row, "numbers")?, end })
}

/// Numbers of locked orders back to stock: chunks, holdings, rows, orders and history, in the lock order.
async fn give_back(
    tx: &Transaction<'_>,
    product: &Product,
    held: &[Held],
    cause: &str,
) -> std::result::Result<(), Failure> {
    if held.is_empty() {
        return Ok(());
    }
    let range = product.described.range;
    let taken: Vec<(i32, Option<Uuid>)> =
        held.iter().flat_map(|order| order.numbers.iter().map(|number| (*number, Some(order.id)))).collect();
    let indexes: BTreeSet<i32> = taken.iter().map(|(number, _)| range.chunk_of(*number)).collect();
    let indexes: Vec<i32> = indexes.into_iter().collect();
    let mut changes = BTreeMap::new();
    for order in held {
        *changes.entry(order.buyer_id).or_insert(0) -= i32::try_from(order.numbers.len()).unwrap_or(i32::MAX);
    }
    let buyers: Vec<Uuid> = changes.keys().copied().collect();
    let (mut chunks, _) = futures::future::try_join(
        lock_chunks(tx, product.key, range, &indexes),
        lock_holdings(tx, product.key, &buyers),
    )
    .await?;
    let mut wrong = BTreeSet::new();
    for (number, _) in &taken {
        let index = range.chunk_of(*number);
        let chunk = chunks.iter_mut().find(|chunk| chunk.index() == index);
        if !chunk.is_some_and(|chunk| chunk.give_back(*number, Kind::Reserved)) {
            wrong.insert(index);
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::Disagreement(wrong.into_iter().collect()));
    }
    let (updated, added, deleted) = futures::join!(
        update_chunks(tx, product.key, &chunks),
        add_to_holdings(tx, product.key, &changes),
        delete_taken(tx, product.key, Kind::Reserved, &taken)
    );
    updated?;
    added?;
    expect(taken.len(), deleted?, "taken numbers of released orders")?;
    end_orders(tx, held, cause).await?;
    Ok(())
}

async fn end_orders(tx: &Transaction<'_>, held: &[Held], cause: &str) -> Result<()> {
    let ids: Vec<Uuid> = held.iter().map(|order| order.id).collect();
    let states: Vec<&str> = held.iter().map(|order| order.end.word()).collect();
    let sql = "with changed as (
            update orders o set state = new.state, version = o.version + 1
            from unnest($1, $2) as new (id, state)
            where o.id = new.id and o.state = 'reserved'
            returning o.id, o.version, o.state
        )
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, version, 'reserved', state, $3 from changed";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&ids, UUIDS), (&states, TEXTS), (&cause, TEXT)];
    expect(held.len(), tx.execute_typed(sql, &params).await.map_err(from_postgres)?, "released orders")
}

/// How long the most overdue hold has been overdue; none when nothing is due. Halted products do not count: their
/// holds wait for the operator.
///
/// # Errors
/// Busy or fault from the database.
pub async fn sweep_lag(client: &Client) -> Result<Option<Duration>> {
    let sql = "select extract(epoch from now() - min(due.expires_at))::float8 as seconds
        from products p cross join lateral (
            select expires_at from orders
            where product_key = p.key and state in ('reserved', 'paying') and sweep_at <= now() and expires_at <= now()
            order by sweep_at limit 1) as due
        where p.reserving = 'on'";
    let row = client.query_typed_one(sql, &[]).await.map_err(from_postgres)?;
    let seconds: Option<f64> = column(&row, "seconds")?;
    Ok(seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok()))
}
