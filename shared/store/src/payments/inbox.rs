//! What gateways told us, once each. Its own outbox: what is not processed in time is owed again.

use domain::Result;
use domain::limits::{INBOX_GRACE, LOOK_BACKOFF_MAX, LOOKS_PER_PASS_MAX};
use domain::payments::Gateway;
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT8, TEXT, UUID};

/// An event of a store's gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// The store.
    pub tenant_id: Uuid,
    /// Its gateway.
    pub gateway: Gateway,
    /// The gateway's id of the event.
    pub event_id: String,
    /// What happened, in the gateway's words. A hint.
    pub kind: String,
    /// Which payment it is about; none when it does not concern us.
    pub payment_id: Option<String>,
}

/// What became of an event that came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received {
    /// It is new: somebody has to be told.
    New,
    /// It came before and nobody has worked on it yet.
    Unprocessed,
    /// It came before and is done with.
    Processed,
}

/// Writes an event down, in one statement.
///
/// # Errors
/// Busy or fault from the database; then the gateway must send it again.
pub async fn receive(client: &Client, event: &Event) -> Result<Received> {
    let sql = "with new as (
            insert into inbox (tenant_id, gateway, event_id, kind, payment_id, look_at)
            values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))
            on conflict on constraint inbox_pkey do nothing
            returning 1
        )
        select exists (select from new) as new, coalesce((
            select processed_at is not null from inbox where tenant_id = $1 and gateway = $2 and event_id = $3), false)
            as processed";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&event.tenant_id, UUID),
        (&event.gateway.word(), TEXT),
        (&event.event_id, TEXT),
        (&event.kind, TEXT),
        (&event.payment_id, TEXT),
        (&INBOX_GRACE.as_secs_f64(), FLOAT8),
    ];
    let row = client.query_typed_one(sql, &params).await.map_err(from_postgres)?;
    Ok(match (column(&row, "new")?, column(&row, "processed")?) {
        (true, _) => Received::New,
        (false, true) => Received::Processed,
        (false, false) => Received::Unprocessed,
    })
}

/// An event that was written down and not processed, and when it came.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_event(
    client: &Client,
    tenant_id: Uuid,
    gateway: Gateway,
    event_id: &str,
) -> Result<Option<(Event, OffsetDateTime)>> {
    let sql = "select tenant_id, gateway, event_id, kind, payment_id, received_at from inbox
        where tenant_id = $1 and gateway = $2 and event_id = $3 and processed_at is null";
    let row = client
        .query_typed_opt(sql, &[(&tenant_id, UUID), (&gateway.word(), TEXT), (&event_id, TEXT)])
        .await
        .map_err(from_postgres)?;
    row.map(|row| Ok((event_from(&row)?, column(&row, "received_at")?))).transpose()
}

/// Notes that everything an event is about has been recorded.
///
/// # Errors
/// Busy or fault from the database.
pub async fn mark_processed(client: &Client, event: &Event) -> Result<()> {
    let sql = "update inbox set processed_at = now()
        where tenant_id = $1 and gateway = $2 and event_id = $3 and processed_at is null";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&event.tenant_id, UUID), (&event.gateway.word(), TEXT), (&event.event_id, TEXT)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Claims events that nobody has processed in time, by moving their next look into the future. Those looked at least go
/// first: a store whose events cannot be read keeps no other waiting.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim_unprocessed(client: &Client) -> Result<Vec<Event>> {
    let sql = "update inbox i set looks = least(i.looks + 1, 1000),
            look_at = now() + make_interval(secs => least($2, $3 * power(2, least(i.looks, 10))))
        from (select tenant_id, gateway, event_id from inbox where processed_at is null and look_at <= now()
            order by looks, look_at limit $1 for no key update skip locked) as due
        where i.tenant_id = due.tenant_id and i.gateway = due.gateway and i.event_id = due.event_id
        returning i.tenant_id, i.gateway, i.event_id, i.kind, i.payment_id";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&LOOKS_PER_PASS_MAX, INT8), (&LOOK_BACKOFF_MAX.as_secs_f64(), FLOAT8), (&INBOX_GRACE.as_secs_f64(), FLOAT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(event_from).collect()
}

fn event_from(row: &Row) -> Result<Event> {
    Ok(Event {
        tenant_id: column(row, "tenant_id")?,
        gateway: one_word(row, "gateway", Gateway::from_word)?,
        event_id: column(row, "event_id")?,
        kind: column(row, "kind")?,
        payment_id: column(row, "payment_id")?,
    })
}
