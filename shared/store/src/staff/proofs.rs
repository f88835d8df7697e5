//! Staff who prove again who they are, within a session of theirs.

use std::time::Duration;

use domain::limits::{FRESH_FOR, STAFF_TRIES_MAX};
use domain::roles::Action;
use domain::{Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use super::links::Password;
use super::passwords::{give_back, log_if_empty, take};
use super::sign_in::take_step;
use crate::errors::from_postgres;
use crate::idempotency::{Scope, claim, is_claimed};
use crate::rows::column;
use crate::types::{FLOAT8, INT2, UUID};

/// Status kept beside a step that was proved.
const STATUS: i16 = 204;

/// Who proves it, and in which session.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Prover {
    /// The store.
    pub tenant_id: Uuid,
    /// Who.
    pub staff_id: Uuid,
    /// The session.
    pub session_id: Uuid,
}

/// What became of a password that was given.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// It was right.
    Given,
    /// Too many were wrong: how long to wait. Nothing was used up.
    Limited(Duration),
}

/// Makes a session fresh by a one-time password; `step_of` finds the step whose password it is. Each is good once, and
/// each try counts unless it is right. Only a password that made this very session fresh is right again, and changes
/// nothing: the answer to it may have been lost.
///
/// # Errors
/// Too-many-attempts when the session has no tries left; code-wrong for a wrong password, and for one that was used
/// elsewhere; what `step_of` fails with, which uses no try up; busy or fault from the database.
pub async fn prove(
    client: &mut Client,
    who: Prover,
    step_of: impl FnOnce(&Password) -> Result<Option<i64>>,
) -> Result<Proof> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    // All who prove to be this person wait for each other.
    let password = lock(&tx, who).await?;
    take_try(&tx, who).await?;
    if let Some(wait) = take(&tx, who.staff_id).await? {
        return Ok(Proof::Limited(wait));
    }
    let is_right = match step_of(&password)? {
        None => false,
        Some(step) => is_proved(&tx, who, &password, step).await?,
    };
    if is_right {
        give_back(&tx, who.staff_id).await?;
    } else {
        log_if_empty(&tx, who.tenant_id, who.staff_id).await?;
    }
    // A wrong one as well: its try is used up before anybody hears of it.
    tx.commit().await.map_err(from_postgres)?;
    if is_right { Ok(Proof::Given) } else { Err(Reason::CodeWrong.into()) }
}

async fn lock(tx: &Transaction<'_>, who: Prover) -> Result<Password> {
    let sql = "select totp, extract(epoch from clock_timestamp())::int8 as now from staff
        where tenant_id = $1 and id = $2 and removed_at is null for no key update";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&who.tenant_id, UUID), (&who.staff_id, UUID)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?.ok_or(Reason::TooManyAttempts)?;
    Ok(Password {
        id: who.session_id,
        tenant_id: who.tenant_id,
        staff_id: who.staff_id,
        totp: column(&row, "totp")?,
        now: column(&row, "now")?,
    })
}

async fn take_try(tx: &Transaction<'_>, who: Prover) -> Result<()> {
    let sql = "update staff_sessions set tries = tries + 1
        where id = $1 and tenant_id = $2 and staff_id = $3 and tries < $4 and ended_at is null";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&who.session_id, UUID), (&who.tenant_id, UUID), (&who.staff_id, UUID), (&STAFF_TRIES_MAX, INT2)];
    match tx.execute_typed(sql, &params).await.map_err(from_postgres)? {
        0 => Err(Reason::TooManyAttempts.into()),
        _ => Ok(()),
    }
}

async fn is_proved(tx: &Transaction<'_>, who: Prover, password: &Password, step: i64) -> Result<bool> {
    if take_step(tx, who.tenant_id, who.staff_id, password.totp.as_deref(), step).await?.is_some() {
        remember(tx, who, step).await?;
        freshen(tx, who).await?;
        return Ok(true);
    }
    let is_repeated = is_claimed(tx, scope(who, &key(who, step))).await?;
    if is_repeated {
        give_try_back(tx, who).await?;
    }
    Ok(is_repeated)
}

/// Writes down by which step a session was proved.
pub(super) async fn remember(tx: &Transaction<'_>, who: Prover, step: i64) -> Result<()> {
    claim(tx, scope(who, &key(who, step)), &[], STATUS).await?;
    Ok(())
}

fn key(who: Prover, step: i64) -> String {
    format!("{}/{step}", who.session_id)
}

const fn scope(who: Prover, key: &str) -> Scope<'_> {
    Scope { tenant_id: who.tenant_id, subject_id: who.staff_id, route: Action::RenewStaffSession.word(), key }
}

async fn freshen(tx: &Transaction<'_>, who: Prover) -> Result<()> {
    let sql = "update staff_sessions set tries = 0, fresh_until = now() + make_interval(secs => $3)
        where id = $1 and tenant_id = $2";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&who.session_id, UUID), (&who.tenant_id, UUID), (&FRESH_FOR.as_secs_f64(), FLOAT8)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

async fn give_try_back(tx: &Transaction<'_>, who: Prover) -> Result<()> {
    let sql = "update staff_sessions set tries = tries - 1 where id = $1 and tenant_id = $2";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&who.session_id, UUID), (&who.tenant_id, UUID)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}
