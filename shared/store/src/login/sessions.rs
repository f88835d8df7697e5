//! Sessions: a family of refresh tokens each, of which one is good.

use domain::limits::{REFRESH_REPLAY, SESSION_IDLE_MAX, SESSION_LIVES_MAX};
use domain::login::Phone;
use domain::{Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::acts::{OperatorAct, Subject, log_of_operator};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{FLOAT8, INT4, TEXT, UUID};

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

/// Ends all sessions of a store's buyer for them, as the platform's operator; how many there were. Access tokens are
/// good to their end.
///
/// # Errors
/// Not-found when no buyer of the store has that phone, or busy or fault from the database.
pub async fn end_all(client: &mut Client, tenant_id: Uuid, phone: &Phone) -> Result<u64> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    // Whoever logs in changes this row first, and comes before or after.
    let sql = "select id from buyers where tenant_id = $1 and phone = $2 for no key update";
    let row = tx.query_typed_opt(sql, &[(&tenant_id, UUID), (&phone.as_str(), TEXT)]).await.map_err(from_postgres)?;
    let buyer_id: Uuid = column(&row.ok_or(Reason::NotFound)?, "id")?;
    let sql = "update sessions set ended_at = now(), ended_by = 'operator'
        where tenant_id = $1 and buyer_id = $2 and ended_at is null and expires_at > now()";
    let ended = tx.execute_typed(sql, &[(&tenant_id, UUID), (&buyer_id, UUID)]).await.map_err(from_postgres)?;
    log_of_operator(&tx, tenant_id, OperatorAct::LogOutBuyer, Subject::Buyer, buyer_id).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(ended)
}

fn refreshed(row: &Row) -> Result<Refreshed> {
    Ok(Refreshed {
        buyer_id: column(row, "buyer_id")?,
        tenant_id: column(row, "tenant_id")?,
        generation: column(row, "generation")?,
    })
}
