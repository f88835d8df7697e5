//! A link and a one-time password for a session. Conditional updates decide, so that any number of exchanges at once
//! give one session and each step is used once.

use domain::limits::{FRESH_FOR, STAFF_SESSION_IDLE_MAX};
use domain::roles::Role;
use domain::staff::LinkPurpose;
use domain::{Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::links::{Password, end_links};
use super::passwords::give_back;
use super::proofs::{Prover, remember};
use super::sessions::end_all;
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{BYTEA, FLOAT8, INT8, UUID};

/// A right password that came with a link.
#[derive(Debug, Clone, Copy)]
pub struct SignIn<'a> {
    /// The link, as it was tried.
    pub tried: &'a Password,
    /// The step whose password it was.
    pub step: i64,
    /// Id of the session to be.
    pub session_id: Uuid,
    /// What the session's device is known by.
    pub device_id: Uuid,
}

/// Somebody who is in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SignedIn {
    /// Their role.
    pub role: Role,
}

/// Uses a link and a step up, for a session. Whoever sets one-time passwords up joins with it, and ends the sessions
/// that they had.
///
/// # Errors
/// Link-wrong when somebody was first with the link, code-wrong when the step was used before; busy or fault.
pub async fn sign_in(client: &mut Client, sign_in: &SignIn<'_>) -> Result<SignedIn> {
    let Password { id, tenant_id, staff_id, totp, .. } = sign_in.tried;
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update staff_links set used_at = now() where id = $1 and used_at is null and expires_at > now()
        returning purpose";
    let row = tx.query_typed_opt(sql, &[(id, UUID)]).await.map_err(from_postgres)?.ok_or(Reason::LinkWrong)?;
    let purpose = one_word(&row, "purpose", LinkPurpose::from_word)?;
    let row = if purpose.enrols() {
        end_links(&tx, *tenant_id, *staff_id).await?;
        let row = enrol(&tx, sign_in).await?;
        // Last: who signed in with the old secret a moment ago had the person's lock until their session stood.
        end_all(&tx, *tenant_id, *staff_id, "recovery").await?;
        row
    } else {
        take_step(&tx, *tenant_id, *staff_id, totp.as_deref(), sign_in.step).await?
    };
    let role = one_word(&row.ok_or(Reason::CodeWrong)?, "role", Role::from_word)?;
    insert_session(&tx, sign_in).await?;
    let who = Prover { tenant_id: *tenant_id, staff_id: *staff_id, session_id: sign_in.session_id };
    remember(&tx, who, sign_in.step).await?;
    give_back(&tx, *staff_id).await?;
    fail::fail_point!("staff.before_commit");
    tx.commit().await.map_err(from_postgres)?;
    Ok(SignedIn { role })
}

/// A step is good once, and none before it any more.
pub(super) async fn take_step(
    tx: &Transaction<'_>,
    tenant_id: Uuid,
    staff_id: Uuid,
    totp: Option<&[u8]>,
    step: i64,
) -> Result<Option<Row>> {
    let sql = "update staff set totp_step = $3
        where tenant_id = $1 and id = $2 and totp_step < $3 and totp = $4 and removed_at is null returning role";
    let params: [(&(dyn ToSql + Sync), _); 4] = [(&tenant_id, UUID), (&staff_id, UUID), (&step, INT8), (&totp, BYTEA)];
    tx.query_typed_opt(sql, &params).await.map_err(from_postgres)
}

async fn enrol(tx: &Transaction<'_>, sign_in: &SignIn<'_>) -> Result<Option<Row>> {
    let sql = "update staff set totp = $3, totp_step = $4, joined_at = coalesce(joined_at, now())
        where tenant_id = $1 and id = $2 and removed_at is null returning role";
    let Password { tenant_id, staff_id, totp, .. } = sign_in.tried;
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(tenant_id, UUID), (staff_id, UUID), (totp, BYTEA), (&sign_in.step, INT8)];
    tx.query_typed_opt(sql, &params).await.map_err(from_postgres)
}

async fn insert_session(tx: &Transaction<'_>, sign_in: &SignIn<'_>) -> Result<()> {
    let sql = "insert into staff_sessions (id, tenant_id, staff_id, device_id, expires_at, fresh_until)
        values ($1, $2, $3, $4, now() + make_interval(secs => $5), now() + make_interval(secs => $6))";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&sign_in.session_id, UUID),
        (&sign_in.tried.tenant_id, UUID),
        (&sign_in.tried.staff_id, UUID),
        (&sign_in.device_id, UUID),
        (&STAFF_SESSION_IDLE_MAX.as_secs_f64(), FLOAT8),
        (&FRESH_FOR.as_secs_f64(), FLOAT8),
    ];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// The role in a row.
pub(super) fn role(row: &Row) -> Result<Role> {
    one_word(row, "role", Role::from_word)
}

/// The id in a row.
pub(super) fn id(row: &Row) -> Result<Uuid> {
    column(row, "id")
}
