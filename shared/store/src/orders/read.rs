//! Reading orders.

use std::time::Duration;

use domain::limits::{PLACE_COUNT_MAX, PLACE_KNOWN_AFTER};
use domain::orders::{Fallback, State};
use domain::{Error, Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT8, UUID};

/// An order as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// Its id.
    pub id: Uuid,
    /// Its tenant.
    pub tenant_id: Uuid,
    /// Its product.
    pub product_id: Uuid,
    /// Small key of the product.
    pub product_key: i32,
    /// Digits of a printed number of the product.
    pub padding: i16,
    /// Its buyer.
    pub buyer_id: Uuid,
    /// Where it is.
    pub state: State,
    /// Exact numbers asked for.
    pub requested_numbers: Vec<i32>,
    /// Random numbers asked for.
    pub requested_quantity: i32,
    /// What was to be done if exact numbers were taken.
    pub fallback: Fallback,
    /// Price of one number at acceptance, minor units.
    pub unit_price_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// Price of what it got, minor units; none before reservation.
    pub total_minor: Option<i64>,
    /// When it was accepted.
    pub created_at: OffsetDateTime,
    /// When it is given up if still queued.
    pub queue_deadline: OffsetDateTime,
    /// At its acceptance no number was free, some were only held.
    pub only_held_stock: bool,
    /// Numbers it got.
    pub numbers: Vec<i32>,
    /// Exact numbers that others had.
    pub lost_numbers: Vec<i32>,
    /// Which of `numbers` stand in for lost ones.
    pub substitutes: Vec<i32>,
    /// Numbers that were free when it lost some.
    pub suggestions: Vec<i32>,
    /// Those of `numbers` that went back to stock after they were paid.
    pub given_up: Vec<i32>,
    /// Why it was rejected.
    pub reason: Option<Reason>,
    /// End of the hold.
    pub expires_at: Option<OffsetDateTime>,
    /// When its buyer asked to cancel it.
    pub cancel_requested_at: Option<OffsetDateTime>,
    /// Grows with every transition.
    pub version: i32,
    /// The database's time of this reading.
    pub read_at: OffsetDateTime,
}

pub(super) const COLUMNS: &str =
    "o.id, o.tenant_id, o.product_id, o.product_key, p.padding, o.buyer_id, o.state, o.requested_numbers,
    o.requested_quantity, o.fallback, o.unit_price_minor, o.currency, o.total_minor, o.created_at, o.queue_deadline, o.only_held_stock,
    o.numbers, o.lost_numbers, o.substitutes, o.suggestions, o.given_up, o.reason, o.expires_at, o.cancel_requested_at, o.version,
    now() as read_at";

/// A buyer's order, and its place if it waits for a decision. The place is unknown in an order's first seconds: until
/// every older order's insert has ended, it could still rise. One round trip, with a plan that stays with the
/// connection: buyers ask again and again.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find(
    client: &Client,
    tenant_id: Uuid,
    buyer_id: Uuid,
    id: Uuid,
) -> Result<Option<(Order, Option<Place>)>> {
    let sql = "select id, tenant_id, product_id, product_key, padding, buyer_id, state, requested_numbers,
            requested_quantity, fallback, unit_price_minor, currency, total_minor, created_at, queue_deadline,
            only_held_stock, numbers, lost_numbers, substitutes, suggestions, given_up, reason, expires_at, cancel_requested_at,
            version, read_at, older, wait_seconds
        from read_order($1, $2, $3, $4, $5)";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&tenant_id, UUID),
        (&buyer_id, UUID),
        (&id, UUID),
        (&PLACE_KNOWN_AFTER.as_secs_f64(), FLOAT8),
        (&PLACE_COUNT_MAX, INT8),
    ];
    let row = client.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    row.as_ref().map(|row| Ok((order_from(row)?, place_from(row)?))).transpose()
}

/// Which orders of a buyer to list.
#[derive(Debug, Clone, Copy)]
pub struct Page {
    /// The last order of the page before.
    pub after: Option<Uuid>,
    /// Orders at most.
    pub limit: i64,
}

/// A buyer's orders, newest first.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list(client: &Client, tenant_id: Uuid, buyer_id: Uuid, page: Page) -> Result<Vec<Order>> {
    let sql = format!(
        "select {COLUMNS} from orders o join products p on p.id = o.product_id
        where o.tenant_id = $1 and o.buyer_id = $2 and ($3::uuid is null or o.id < $3)
        order by o.id desc limit $4"
    );
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&tenant_id, UUID), (&buyer_id, UUID), (&page.after, UUID), (&page.limit, INT8)];
    let rows = client.query_typed(&sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(order_from).collect()
}

/// An order's place among the queued orders of its product.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    /// 1 = next. Never below the true rank, never rising while the order is queued.
    pub position: i64,
    /// The count stopped there: the true place is `position` or more.
    pub or_more: bool,
    /// How long it may take, from how fast the queue has moved; none while nothing moves.
    pub estimate: Option<Duration>,
}

fn place_from(row: &Row) -> Result<Option<Place>> {
    let Some(older) = column::<Option<i64>>(row, "older")? else { return Ok(None) };
    let seconds: Option<f64> = column(row, "wait_seconds")?;
    let estimate = seconds.and_then(|s| Duration::try_from_secs_f64(s.max(1.0)).ok());
    Ok(Some(Place { position: older + 1, or_more: older == PLACE_COUNT_MAX, estimate }))
}

/// One line of an order's history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The order's version after the transition.
    pub version: i32,
    /// None for the first.
    pub from_state: Option<State>,
    /// The state it went to.
    pub to_state: State,
    /// Who or what did it.
    pub cause: String,
    /// When.
    pub at: OffsetDateTime,
}

/// An order's history, oldest first, with the order itself; for operators, so across tenants.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn history(client: &Client, id: Uuid) -> Result<(Order, Vec<Event>)> {
    read_with_history(client, None, id).await
}

/// The same for a store's staff; orders of other stores do not exist.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn history_of(client: &Client, tenant_id: Uuid, id: Uuid) -> Result<(Order, Vec<Event>)> {
    read_with_history(client, Some(tenant_id), id).await
}

async fn read_with_history(client: &Client, tenant_id: Option<Uuid>, id: Uuid) -> Result<(Order, Vec<Event>)> {
    let sql = format!(
        "select {COLUMNS} from orders o join products p on p.id = o.product_id
        where o.id = $1 and ($2::uuid is null or o.tenant_id = $2)"
    );
    let row = client.query_typed_opt(&sql, &[(&id, UUID), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
    let order = order_from(&row.ok_or(Reason::NotFound)?)?;
    let sql = "select version, from_state, to_state, cause, at from order_events where order_id = $1 order by version";
    let rows = client.query_typed(sql, &[(&id, UUID)]).await.map_err(from_postgres)?;
    let events = rows.iter().map(event_from).collect::<Result<_>>()?;
    Ok((order, events))
}

fn event_from(row: &Row) -> Result<Event> {
    let from: Option<&str> = column(row, "from_state")?;
    Ok(Event {
        version: column(row, "version")?,
        from_state: from.map(|word| State::from_word(word).ok_or_else(|| Error::fault("unknown state"))).transpose()?,
        to_state: one_word(row, "to_state", State::from_word)?,
        cause: column(row, "cause")?,
        at: column(row, "at")?,
    })
}

/// A list that is null when it is empty.
fn list_of(row: &Row, name: &str) -> Result<Vec<i32>> {
    Ok(column::<Option<Vec<i32>>>(row, name)?.unwrap_or_default())
}

pub(super) fn order_from(row: &Row) -> Result<Order> {
    let reason: Option<&str> = column(row, "reason")?;
    Ok(Order {
        id: column(row, "id")?,
        tenant_id: column(row, "tenant_id")?,
        product_id: column(row, "product_id")?,
        product_key: column(row, "product_key")?,
        padding: column(row, "padding")?,
        buyer_id: column(row, "buyer_id")?,
        state: one_word(row, "state", State::from_word)?,
        requested_numbers: column(row, "requested_numbers")?,
        requested_quantity: column(row, "requested_quantity")?,
        fallback: one_word(row, "fallback", Fallback::from_word)?,
        unit_price_minor: column(row, "unit_price_minor")?,
        currency: column(row, "currency")?,
        total_minor: column(row, "total_minor")?,
        created_at: column(row, "created_at")?,
        queue_deadline: column(row, "queue_deadline")?,
        only_held_stock: column(row, "only_held_stock")?,
        numbers: column(row, "numbers")?,
        lost_numbers: list_of(row, "lost_numbers")?,
        substitutes: list_of(row, "substitutes")?,
        suggestions: list_of(row, "suggestions")?,
        given_up: list_of(row, "given_up")?,
        reason: reason.and_then(Reason::from_code),
        expires_at: column(row, "expires_at")?,
        cancel_requested_at: column(row, "cancel_requested_at")?,
        version: column(row, "version")?,
        read_at: column(row, "read_at")?,
    })
}
