//! How the queues are doing: a small value that intake and buyers read, refreshed by whoever works on the queue.

use std::time::Duration;

use domain::Result;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{INT8, UUID};

/// Ages that decide whether intake stays open.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Health {
    /// Age of the product's oldest queued order, as last measured; none when the queue was empty.
    pub oldest_queued: Option<Duration>,
    /// Age of the oldest message that no queue has; none when there was none.
    pub oldest_unpublished: Option<Duration>,
}

/// The health of one product's queue and of the outbox: two primary-key look-ups.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find(client: &Client, product_id: Uuid) -> Result<Health> {
    let sql = "select extract(epoch from now() - h.oldest_queued_at)::float8 as queued,
            extract(epoch from now() - x.oldest_unpublished_at)::float8 as unpublished
        from outbox_health x left join (
            select q.oldest_queued_at from queue_health q join products p on p.key = q.product_key where p.id = $1
        ) as h on true";
    let row = client.query_typed_one(sql, &[(&product_id, UUID)]).await.map_err(from_postgres)?;
    Ok(Health { oldest_queued: age(column(&row, "queued")?), oldest_unpublished: age(column(&row, "unpublished")?) })
}

/// Measures one product's queue, unless somebody did within the last second. The pace is smoothed over about ten
/// measurements; it is unknown while the queue is empty and falls towards zero while nothing moves.
///
/// # Errors
/// Busy or fault from the database.
pub async fn measure_queue(client: &Client, product_id: Uuid) -> Result<()> {
    let sql = "insert into queue_health as h (product_key, oldest_queued_at, measured_at)
        select p.key, (
            select created_at from order_queue where product_key = p.key order by created_at limit 1
        ), now()
        from products p where p.id = $1
        on conflict (product_key) do update set
            oldest_queued_at = excluded.oldest_queued_at,
            measured_at = excluded.measured_at,
            advance_per_second = (
                select 0.8 * coalesce(h.advance_per_second, pace) + 0.2 * pace
                from (select extract(epoch from greatest(excluded.oldest_queued_at - h.oldest_queued_at, interval '0'))::float8
                    / extract(epoch from excluded.measured_at - h.measured_at)::float8) as moved (pace))
        where h.measured_at < now() - interval '1 second'";
    client.execute_typed(sql, &[(&product_id, UUID)]).await.map_err(from_postgres)?;
    Ok(())
}

/// Measures the queue of every product that has, or had, orders waiting; returns the greatest age.
///
/// # Errors
/// Busy or fault from the database.
pub async fn measure_queues(client: &Client) -> Result<Option<Duration>> {
    let sql = "select p.id from products p
        where exists (select from order_queue q where q.product_key = p.key)
            or exists (select from queue_health h where h.product_key = p.key and h.oldest_queued_at is not null)";
    for row in &client.query_typed(sql, &[]).await.map_err(from_postgres)? {
        measure_queue(client, column(row, "id")?).await?;
    }
    let sql = "select extract(epoch from now() - min(oldest_queued_at))::float8 as seconds from queue_health";
    let row = client.query_typed_one(sql, &[]).await.map_err(from_postgres)?;
    Ok(age(column(&row, "seconds")?))
}

/// A product's stock, for the metrics.
#[derive(Debug, Clone, PartialEq)]
pub struct Stock {
    /// Slug of its store.
    pub store: String,
    /// Its campaign.
    pub campaign: String,
    /// Numbers free to take.
    pub available: i64,
    /// Numbers held for a payment.
    pub held: i64,
    /// Age of the oldest hold; none when nothing is held.
    pub oldest_hold: Option<Duration>,
}

/// Stock of products that are on sale, or were within the last day; `limit` at most, latest opening first.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_stock(client: &Client, limit: i64) -> Result<Vec<Stock>> {
    let sql = "select t.slug, p.campaign, stock.available, stock.held, (
                select extract(epoch from now() - (o.expires_at - make_interval(secs => o.hold_seconds)))::float8
                from holds h join orders o on o.id = any(h.order_ids)
                where h.product_key = p.key and o.state in ('reserved', 'paying')
                order by h.sweep_at limit 1) as oldest
        from products p join tenants t on t.id = p.tenant_id cross join lateral (
            select sum(available)::int8 as available, sum(reserved)::int8 as held
            from number_chunks where product_key = p.key) as stock
        where p.opens_at <= now() and p.closes_at > now() - interval '1 day'
        order by p.opens_at desc limit $1";
    let stock = |row| {
        Ok(Stock {
            store: column(row, "slug")?,
            campaign: column(row, "campaign")?,
            available: column(row, "available")?,
            held: column(row, "held")?,
            oldest_hold: age(column(row, "oldest")?),
        })
    };
    let rows = client.query_typed(sql, &[(&limit, INT8)]).await.map_err(from_postgres)?;
    rows.iter().map(stock).collect()
}

/// Measures the outbox; returns the age of its oldest row.
///
/// # Errors
/// Busy or fault from the database.
pub async fn measure_outbox(client: &Client) -> Result<Option<Duration>> {
    let sql = "update outbox_health set measured_at = now(),
            oldest_unpublished_at = (select min(created_at) from outbox where next_attempt_at <= now() or attempts > 0)
        returning extract(epoch from now() - oldest_unpublished_at)::float8 as seconds";
    let row = client.query_typed_one(sql, &[]).await.map_err(from_postgres)?;
    Ok(age(column(&row, "seconds")?))
}

/// How one product's queue is doing, for operators.
#[derive(Debug, Clone, PartialEq)]
pub struct QueueHealth {
    /// The product.
    pub product_id: Uuid,
    /// Its name.
    pub product_name: String,
    /// Orders waiting now; the count stops at [`QUEUED_COUNT_MAX`].
    pub queued: i64,
    /// Age of the oldest of them, now.
    pub oldest_queued: Option<Duration>,
    /// Seconds of arrivals that one second of work serves, as last measured.
    pub advance_per_second: Option<f64>,
    /// How long ago the queue was last measured; none when it never was.
    pub measured: Option<Duration>,
}

/// Where the count of a queue's orders stops: one index range, read in well under a second.
pub const QUEUED_COUNT_MAX: i64 = 100_000;

/// Every product that has orders waiting or was measured before, the longest wait first, `limit` at most.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_queues(client: &Client, limit: i64) -> Result<Vec<QueueHealth>> {
    let sql = "select p.id, p.name, waiting.queued, h.advance_per_second,
            extract(epoch from now() - oldest.created_at)::float8 as oldest,
            extract(epoch from now() - h.measured_at)::float8 as measured
        from products p left join queue_health h on h.product_key = p.key
        left join lateral (
            select created_at from order_queue where product_key = p.key order by created_at limit 1) as oldest on true
        cross join lateral (
            select count(*) as queued from (
                select from order_queue where product_key = p.key limit $1) as counted) as waiting
        where oldest.created_at is not null or h.product_key is not null
        order by oldest.created_at nulls last, p.key limit $2";
    let rows = client.query_typed(sql, &[(&QUEUED_COUNT_MAX, INT8), (&limit, INT8)]).await.map_err(from_postgres)?;
    let queue = |row| {
        Ok(QueueHealth {
            product_id: column(row, "id")?,
            product_name: column(row, "name")?,
            queued: column(row, "queued")?,
            oldest_queued: age(column(row, "oldest")?),
            advance_per_second: column(row, "advance_per_second")?,
            measured: age(column(row, "measured")?),
        })
    };
    rows.iter().map(queue).collect()
}

/// What the outbox owes to one queue, for operators.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutboxHealth {
    /// The queue.
    pub queue: String,
    /// Rows, those in their grace and parked ones included.
    pub rows: i64,
    /// Rows that the relay should send now.
    pub due: i64,
    /// Age of the oldest row.
    pub oldest: Option<Duration>,
}

/// What the outbox owes, by queue; queues that are owed nothing are absent.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_outbox(client: &Client) -> Result<Vec<OutboxHealth>> {
    let sql = "select queue, count(*) as owed, count(*) filter (where next_attempt_at <= now()) as due,
            extract(epoch from now() - min(created_at))::float8 as oldest
        from outbox group by queue order by queue";
    let rows = client.query_typed(sql, &[]).await.map_err(from_postgres)?;
    let owed = |row| {
        Ok(OutboxHealth {
            queue: column(row, "queue")?,
            rows: column(row, "owed")?,
            due: column(row, "due")?,
            oldest: age(column(row, "oldest")?),
        })
    };
    rows.iter().map(owed).collect()
}

fn age(seconds: Option<f64>) -> Option<Duration> {
    seconds.and_then(|seconds| Duration::try_from_secs_f64(seconds.max(0.0)).ok())
}
