//! Sessions: a family of refresh tokens each, of which one is good.

use domain::limits::{REFRESH_REPLAY, SESSION_IDLE_MAX, SESSION_LIVES_MAX};
use domain::{Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{FLOAT8, INT4, UUID};

/// A session after a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refreshed {
    /// Its buyer.
    pub buyer_id: Uuid,
    /// Their store.
    pub tenant_id: Uuid,
    /// The generation that is good now.
    pub generation: i32,
}

/// Moves a session on from a generation to the next. The generation before the present one gives the present one again
/// for a short while, to the device that the session belongs to; any other old one is taken for stolen and ends the
/// session.
///
/// # Errors
/// Unauthorized: no such session, or it has ended, now or before; busy or fault from the database.
pub async fn refresh(client: &Client, session_id: Uuid, generation: i32, device_id: Option<Uuid>) -> Result<Refreshed> {
    let sql = "update sessions set generation = generation + 1, rotated_at = now(), expires_at = least(
            now() + make_interval(secs => $3), created_at + make_interval(secs => $4))
        where id = $1 and generation = $2 and ended_at is null and expires_at > now()
        returning tenant_id, buyer_id, generation";
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&session_id, UUID),
        (&generation, INT4),
        (&SESSION_IDLE_MAX.as_secs_f64(), FLOAT8),
        (&SESSION_LIVES_MAX.as_secs_f64(), FLOAT8),
    ];
    if let Some(row) = client.query_typed_opt(sql, &params).await.map_err(from_postgres)? {
        return refreshed(&row);
    }
    match find_replayed(client, session_id, generation, device_id).await? {
        Some(row) => refreshed(&row),
        None => {
            end_reused(client, session_id, generation).await?;
            Err(Reason::Unauthorized.into())
        }
    }
}

async fn find_replayed(
    client: &Client,
    session_id: Uuid,
    generation: i32,
    device_id: Option<Uuid>,
) -> Result<Option<Row>> {
    let sql = "select tenant_id, buyer_id, generation from sessions
        where id = $1 and generation = $2 + 1 and device_id = $3 and ended_at is null and expires_at > now()
            and rotated_at > now() - make_interval(secs => $4)";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&session_id, UUID), (&generation, INT4), (&device_id, UUID), (&REFRESH_REPLAY.as_secs_f64(), FLOAT8)];
    client.query_typed_opt(sql, &params).await.map_err(from_postgres)
}

async fn end_reused(client: &Client, session_id: Uuid, generation: i32) -> Result<()> {
    let sql = "update sessions set ended_at = now(), ended_by = 'reuse'
        where id = $1 and generation > $2 and ended_at is null";
    let ended = client.execute_typed(sql, &[(&session_id, UUID), (&generation, INT4)]).await.map_err(from_postgres)?;
    if ended > 0 {
        tracing::warn!(session.id = %session_id, "an old refresh token was used again: the session has ended");
    }
    Ok(())
}

/// Ends a session for its buyer. An old token of it will do: whoever has one may end it, and nothing else.
///
/// # Errors
/// Busy or fault from the database.
pub async fn end(client: &Client, session_id: Uuid) -> Result<()> {
    let sql = "update sessions set ended_at = now(), ended_by = 'buyer' where id = $1 and ended_at is null";
    client.execute_typed(sql, &[(&session_id, UUID)]).await.map_err(from_postgres)?;
    Ok(())
}

fn refreshed(row: &Row) -> Result<Refreshed> {
    Ok(Refreshed {
        buyer_id: column(row, "buyer_id")?,
        tenant_id: column(row, "tenant_id")?,
        generation: column(row, "generation")?,
    })
}
