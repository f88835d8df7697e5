//! Recording an order: one statement, one commit, no lock that a worker holds. The statement is the database function
//! `place_order`, so that its plan is kept.

use std::time::Duration;

use domain::limits::{OPEN_ORDERS_MAX, ORDERS_COUNTED_MAX, OUTBOX_GRACE, QUEUE_DEADLINE};
use domain::messages::Queue;
use domain::orders::Request;
use domain::{Error, Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::errors::{constraint_of, from_postgres, is_lock_timeout};
use crate::rows::column;
use crate::types::{BYTEA, FLOAT8, INT4, INT4S, INT8, TEXT, UUID, UUIDS};

/// An order about to be recorded.
#[derive(Debug)]
pub struct NewOrder<'a> {
    /// Id chosen by the application, a UUIDv7. Also the id of its outbox row.
    pub id: Uuid,
    /// The product.
    pub product_id: Uuid,
    /// The buyer's tenant; the product must be its.
    pub tenant_id: Uuid,
    /// The buyer.
    pub buyer_id: Uuid,
    /// What is asked for.
    pub request: &'a Request,
    /// The client's idempotency key.
    pub key: &'a str,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Placed {
    /// Recorded now, with its outbox row.
    Accepted {
        /// The database's time of the order.
        created_at: OffsetDateTime,
        /// No number was free, some were only held.
        only_held_stock: bool,
    },
    /// The same request was recorded before under this key.
    Replayed {
        /// The order of the first request.
        id: Uuid,
        /// As it was then.
        only_held_stock: bool,
    },
    /// Not recorded; nothing changed.
    Refused {
        /// Why.
        reason: Reason,
        /// When trying again may help.
        retry_after: Option<Duration>,
    },
}

/// Records an order and its outbox row if the sale allows it, judged by the database's clock.
///
/// `published` are ids of outbox rows whose messages were sent; they are deleted by the same commit. Rows that somebody else holds are skipped, the relay clears them.
///
/// # Errors
/// Busy or fault from the database. After either the order may exist or not: the client's retry with the same key
/// finds out.
pub async fn place(client: &Client, order: &NewOrder<'_>, published: &[Uuid]) -> Result<Placed> {
    // Twice, because the sale may change between the insert and the look at the reason: at the very opening it does.
    for _ in 0..2 {
        match insert(client, order, published, OUTBOX_GRACE).await {
            Ok(Some(accepted)) => return Ok(accepted),
            Ok(None) => {
                if let Some(replay) = replay(client, order).await? {
                    return Ok(replay);
                }
                if let Some(refused) = explain(client, order).await? {
                    return Ok(refused);
                }
            }
            // A twin under the same key committed between the look at the key and the insert.
            Err(error) if constraint_of(&error) == Some("orders_idempotency_key_unique") => {
                if let Some(replay) = replay(client, order).await? {
                    return Ok(replay);
                }
            }
            // A twin under the same key holds what this insert waits for, or the whole table is locked.
            Err(error) if is_lock_timeout(&error) => {
                let in_flight =
                    Placed::Refused { reason: Reason::KeyInFlight, retry_after: Some(Duration::from_secs(1)) };
                return Ok(replay(client, order).await?.unwrap_or(in_flight));
            }
            Err(error) => return Err(from_postgres(error)),
        }
    }
    Err(Error::busy("the sale changed between two looks at it, twice"))
}

/// The order and its outbox row, which the relay leaves alone for a while, if somebody is about to send its message. None
/// when something stands in the way.
pub(super) async fn insert(
    client: &Client,
    order: &NewOrder<'_>,
    published: &[Uuid],
    grace: Duration,
) -> std::result::Result<Option<Placed>, tokio_postgres::Error> {
    let sql = "select accepted_at, held_stock_only
        from place_order($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)";
    let request = order.request;
    // With no exact numbers these bounds hold for every product.
    let smallest = request.numbers().first().copied().unwrap_or(i32::MAX);
    let largest = request.numbers().last().copied().unwrap_or(i32::MIN);
    let row = client
        .query_typed_one(
            sql,
            &[
                (&published, UUIDS),
                (&order.id, UUID),
                (&order.product_id, UUID),
                (&order.tenant_id, UUID),
                (&order.buyer_id, UUID),
                (&request.numbers(), INT4S),
                (&request.quantity(), INT4),
                (&request.fallback().word(), TEXT),
                (&order.key, TEXT),
                (&request.fingerprint(order.product_id).as_slice(), BYTEA),
                (&QUEUE_DEADLINE.as_secs_f64(), FLOAT8),
                (&smallest, INT4),
                (&largest, INT4),
                (&request.asked(), INT4),
                (&OPEN_ORDERS_MAX, INT8),
                (&ORDERS_COUNTED_MAX, INT8),
                (&Queue::ReserveNumbers.name(), TEXT),
                (&grace.as_secs_f64(), FLOAT8),
            ],
        )
        .await?;
    let Some(created_at) = row.try_get("accepted_at")? else { return Ok(None) };
    Ok(Some(Placed::Accepted { created_at, only_held_stock: row.try_get("held_stock_only")? }))
}

/// What an order recorded before under the same key makes of this one; none when the key is new.
///
/// # Errors
/// Busy or fault from the database.
pub async fn replay(client: &Client, order: &NewOrder<'_>) -> Result<Option<Placed>> {
    let sql = "select id, fingerprint, only_held_stock from orders where tenant_id = $1 and buyer_id = $2 and idempotency_key = $3";
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 3] =
        [(&order.tenant_id, UUID), (&order.buyer_id, UUID), (&order.key, TEXT)];
    let Some(row) = client.query_typed_opt(sql, &params).await.map_err(from_postgres)? else { return Ok(None) };
    let fingerprint: &[u8] = column(&row, "fingerprint")?;
    if fingerprint == order.request.fingerprint(order.product_id) {
        Ok(Some(Placed::Replayed { id: column(&row, "id")?, only_held_stock: column(&row, "only_held_stock")? }))
    } else {
        Ok(Some(Placed::Refused { reason: Reason::KeyReused, retry_after: None }))
    }
}

/// Why the insert found no row to insert; none when it would find one now. The conditions are those of the insert,
/// looked at one by one.
pub(super) async fn explain(client: &Client, order: &NewOrder<'_>) -> Result<Option<Placed>> {
    let sql = "select now() < p.opens_at as too_early, p.closes_at <= now() as too_late,
            extract(epoch from p.opens_at - now())::float8 as opens_in,
            p.intake <> 'open' or t.intake <> 'open' or platform.intake <> 'open' as paused,
            $3 < p.first_number or $4 >= p.first_number + p.number_count as outside,
            $5 > p.numbers_per_order_max or $5 > p.numbers_per_buyer_max as too_many_numbers,
            $6 <= (select count(*) from (
                    select product_key, state from orders where buyer_id >= $7 and buyer_id <= $7
                    order by buyer_id desc, id desc limit $8) as latest
                where product_key = p.key and state in ('queued', 'reserved', 'paying', 'refunding')) as too_many_orders,
            not exists (select from number_chunks c where c.product_key = p.key and c.available + c.reserved > 0)
                as sold_out
        from products p join tenants t on t.id = p.tenant_id cross join platform
        where p.id = $1 and p.tenant_id = $2";
    let smallest = order.request.numbers().first().copied().unwrap_or(i32::MAX);
    let largest = order.request.numbers().last().copied().unwrap_or(i32::MIN);
    let row = client
        .query_typed_opt(
            sql,
            &[
                (&order.product_id, UUID),
                (&order.tenant_id, UUID),
                (&smallest, INT4),
                (&largest, INT4),
                (&order.request.asked(), INT4),
                (&OPEN_ORDERS_MAX, INT8),
                (&order.buyer_id, UUID),
                (&ORDERS_COUNTED_MAX, INT8),
            ],
        )
        .await
        .map_err(from_postgres)?;
    let Some(row) = row else { return Ok(Some(Placed::Refused { reason: Reason::NotFound, retry_after: None })) };
    let opens_in = Duration::try_from_secs_f64(column::<f64>(&row, "opens_in")?).ok();
    let reasons = [
        ("too_late", Reason::SaleClosed, None),
        ("outside", Reason::OutOfRange, None),
        ("too_many_numbers", Reason::LimitExceeded, None),
        ("too_early", Reason::NotOpen, opens_in),
        ("paused", Reason::SalesPaused, Some(Duration::from_secs(30))),
        ("sold_out", Reason::SoldOut, None),
        ("too_many_orders", Reason::TooManyOpenOrders, None),
    ];
    for (condition, reason, retry_after) in reasons {
        if column(&row, condition)? {
            return Ok(Some(Placed::Refused { reason, retry_after }));
        }
    }
    Ok(None)
}
