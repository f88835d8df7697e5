//! Sessions of staff: a family of refresh tokens each, looked at with every request.

use domain::limits::{PAGE_MAX, REFRESH_REPLAY, STAFF_SESSION_IDLE_MAX, STAFF_SESSION_LIVES_MAX};
use domain::roles::Role;
use domain::{Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::sign_in::role;
use crate::acts::{NewAct, record};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{FLOAT8, INT4, INT8, TEXT, UUID};

/// What a session allows at this moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Look {
    /// Its owner's role.
    pub role: Role,
    /// Whether they have proved a moment ago who they are.
    pub is_fresh: bool,
}

/// Looks at a session of somebody of a store's staff; none when it has ended or they are staff no more.
///
/// # Errors
/// Busy or fault from the database.
pub async fn look(client: &Client, tenant_id: Uuid, staff_id: Uuid, session_id: Uuid) -> Result<Option<Look>> {
    let sql = "select s.role, ss.fresh_until > now() as fresh
        from staff_sessions ss join staff s on s.tenant_id = ss.tenant_id and s.id = ss.staff_id
        where ss.id = $1 and ss.tenant_id = $2 and ss.staff_id = $3 and ss.ended_at is null and ss.expires_at > now()
            and s.removed_at is null";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&session_id, UUID), (&tenant_id, UUID), (&staff_id, UUID)];
    let row = client.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    row.map(|row| Ok(Look { role: role(&row)?, is_fresh: column(&row, "fresh")? })).transpose()
}

/// A session after a refresh.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refreshed {
    /// Whose it is.
    pub staff_id: Uuid,
    /// Their store.
    pub tenant_id: Uuid,
    /// The generation that is good now.
    pub generation: i32,
}

/// Moves a session on, as [`crate::login::refresh`] does for buyers: a used token gets the same successor for a short
/// while, on the same device; later it ends the session.
///
/// # Errors
/// Unauthorized: no such session, or it has ended, now or before; busy or fault from the database.
pub async fn refresh(client: &Client, session_id: Uuid, generation: i32, device_id: Option<Uuid>) -> Result<Refreshed> {
    let sql = "update staff_sessions ss set generation = ss.generation + 1, rotated_at = now(), expires_at = least(
            now() + make_interval(secs => $3), ss.created_at + make_interval(secs => $4))
        from staff s
        where ss.id = $1 and ss.generation = $2 and ss.ended_at is null and ss.expires_at > now()
            and s.tenant_id = ss.tenant_id and s.id = ss.staff_id and s.removed_at is null
        returning ss.tenant_id, ss.staff_id, ss.generation";
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&session_id, UUID),
        (&generation, INT4),
        (&STAFF_SESSION_IDLE_MAX.as_secs_f64(), FLOAT8),
        (&STAFF_SESSION_LIVES_MAX.as_secs_f64(), FLOAT8),
    ];
    if let Some(row) = client.query_typed_opt(sql, &params).await.map_err(from_postgres)? {
        return refreshed(&row);
    }
    let again = "select tenant_id, staff_id, generation from staff_sessions
        where id = $1 and generation = $2 + 1 and device_id = $3 and ended_at is null and expires_at > now()
            and rotated_at > now() - make_interval(secs => $4)";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&session_id, UUID), (&generation, INT4), (&device_id, UUID), (&REFRESH_REPLAY.as_secs_f64(), FLOAT8)];
    if let Some(row) = client.query_typed_opt(again, &params).await.map_err(from_postgres)? {
        return refreshed(&row);
    }
    end_reused(client, session_id, generation).await?;
    Err(Reason::Unauthorized.into())
}

async fn end_reused(client: &Client, session_id: Uuid, generation: i32) -> Result<()> {
    let sql = "update staff_sessions set ended_at = now(), ended_by = 'reuse'
        where id = $1 and generation > $2 and ended_at is null";
    let ended = client.execute_typed(sql, &[(&session_id, UUID), (&generation, INT4)]).await.map_err(from_postgres)?;
    if ended > 0 {
        tracing::warn!(session.id = %session_id, "an old refresh token of staff was used again: the session has ended");
    }
    Ok(())
}

fn refreshed(row: &Row) -> Result<Refreshed> {
    Ok(Refreshed {
        staff_id: column(row, "staff_id")?,
        tenant_id: column(row, "tenant_id")?,
        generation: column(row, "generation")?,
    })
}

/// Ends a session for its owner. An old token of it will do.
///
/// # Errors
/// Busy or fault from the database.
pub async fn end(client: &Client, session_id: Uuid) -> Result<()> {
    let sql = "update staff_sessions set ended_at = now(), ended_by = 'staff' where id = $1 and ended_at is null";
    client.execute_typed(sql, &[(&session_id, UUID)]).await.map_err(from_postgres)?;
    Ok(())
}

/// Ends one of somebody's own sessions.
///
/// # Errors
/// Not-found when they have no such session that lives; busy or fault from the database.
pub async fn end_other(client: &mut Client, staff_id: Uuid, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update staff_sessions set ended_at = now(), ended_by = 'staff'
        where id = $1 and tenant_id = $2 and staff_id = $3 and ended_at is null and expires_at > now()";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&act.subject_id, UUID), (&act.tenant_id, UUID), (&staff_id, UUID)];
    if tx.execute_typed(sql, &params).await.map_err(from_postgres)? == 0 {
        return Err(Reason::NotFound.into());
    }
    record(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)
}

/// Ends all of somebody's sessions.
pub(super) async fn end_all(tx: &Transaction<'_>, tenant_id: Uuid, staff_id: Uuid, by: &str) -> Result<()> {
    let sql = "update staff_sessions set ended_at = now(), ended_by = $3
        where tenant_id = $1 and staff_id = $2 and ended_at is null";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&staff_id, UUID), (&by, TEXT)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// A session that lives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Session {
    /// Its id.
    pub id: Uuid,
    /// When its owner signed in.
    pub created_at: OffsetDateTime,
    /// When its refresh token was last used.
    pub rotated_at: OffsetDateTime,
    /// When it ends if it is not used.
    pub expires_at: OffsetDateTime,
}

/// Somebody's sessions that live, newest first.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_sessions(client: &Client, tenant_id: Uuid, staff_id: Uuid) -> Result<Vec<Session>> {
    let sql = "select id, created_at, rotated_at, expires_at from staff_sessions
        where tenant_id = $1 and staff_id = $2 and ended_at is null and expires_at > now() order by id desc limit $3";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&staff_id, UUID), (&PAGE_MAX, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(session_from).collect()
}

fn session_from(row: &Row) -> Result<Session> {
    Ok(Session {
        id: column(row, "id")?,
        created_at: column(row, "created_at")?,
        rotated_at: column(row, "rotated_at")?,
        expires_at: column(row, "expires_at")?,
    })
}
