//! The pot of wrong one-time passwords: each member has one, whatever links and sessions they come with.
//!
//! A password counts as wrong before anybody looks at it, so that guesses at once are counted one by one; the right one
//! is given back in the transaction of what it does. Only signing in and proving ask here: a session that is there goes
//! on.

use std::time::Duration;

use domain::limits::WRONG_PASSWORDS_PER_MEMBER;
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use super::links::Password;
use crate::acts::log_wrong_passwords;
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{FLOAT8, UUID};

/// Somebody who gives a one-time password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tried {
    /// What it is to be checked with. It counts as wrong until it turns out to be right.
    Password(Password),
    /// Too many were wrong: how long to wait. Nothing was used up.
    Limited(Duration),
}

/// Takes a password from its owner's pot and commits the try that was counted for it; neither when the pot is empty.
pub(super) async fn count(tx: Transaction<'_>, password: Password) -> Result<Tried> {
    if let Some(wait) = take(&tx, password.staff_id).await? {
        return Ok(Tried::Limited(wait));
    }
    tx.commit().await.map_err(from_postgres)?;
    Ok(Tried::Password(password))
}

/// Takes one from a pot; how long to wait when it is empty.
pub(super) async fn take(tx: &Transaction<'_>, staff_id: Uuid) -> Result<Option<Duration>> {
    // Nothing personal: ids of staff are random.
    let sql = "select wait_seconds from take_from_pots(
        array[md5('wrong passwords of ' || $1::text)::uuid], array[$2], array[$3])";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&staff_id, UUID), (&interval(), FLOAT8), (&(interval() * most()), FLOAT8)];
    let row = tx.query_typed_one(sql, &params).await.map_err(from_postgres)?;
    let seconds: Option<f64> = column(&row, "wait_seconds")?;
    seconds.map(|seconds| Duration::try_from_secs_f64(seconds).map_err(Error::fault)).transpose()
}

/// A right one is not counted.
pub(super) async fn give_back(tx: &Transaction<'_>, staff_id: Uuid) -> Result<()> {
    let sql = "update login_limits set full_until = full_until - make_interval(secs => $2)
        where subject = md5('wrong passwords of ' || $1::text)::uuid";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&staff_id, UUID), (&interval(), FLOAT8)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// A password was wrong. If none may be wrong for a while after it, the audit log says so: at most as often as the pot
/// gives one back.
///
/// # Errors
/// Busy or fault from the database.
pub async fn note_wrong(client: &mut Client, password: &Password) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    log_if_empty(&tx, password.tenant_id, password.staff_id).await?;
    tx.commit().await.map_err(from_postgres)
}

pub(super) async fn log_if_empty(tx: &Transaction<'_>, tenant_id: Uuid, staff_id: Uuid) -> Result<()> {
    let sql = "select exists (select from login_limits where subject = md5('wrong passwords of ' || $1::text)::uuid
        and full_until > now() + make_interval(secs => $2)) as is_empty";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&staff_id, UUID), (&(interval() * (most() - 1.0)), FLOAT8)];
    let row = tx.query_typed_one(sql, &params).await.map_err(from_postgres)?;
    if column(&row, "is_empty")? {
        log_wrong_passwords(tx, tenant_id, staff_id).await?;
    }
    Ok(())
}

/// Seconds until one that was wrong is forgotten.
fn interval() -> f64 {
    WRONG_PASSWORDS_PER_MEMBER.one_per.as_secs_f64()
}

/// How many may be wrong at once.
fn most() -> f64 {
    f64::from(WRONG_PASSWORDS_PER_MEMBER.messages)
}
