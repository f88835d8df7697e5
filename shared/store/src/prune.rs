//! Deletes what was kept long enough, a bounded number of rows at a time.

use std::time::Duration;

use domain::Result;
use domain::limits::{
    EXPORT_ROWS_KEPT, FINDINGS_KEPT, IDEMPOTENCY_KEYS_KEPT, INBOX_KEPT, LOGIN_CODES_KEPT, NOTICES_KEPT,
    ROWS_PER_PRUNE_MAX, SESSIONS_KEPT, UPLOAD_ROWS_KEPT,
};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;

use crate::errors::from_postgres;
use crate::types::{FLOAT8, INT8};

/// Deletes answers kept under idempotency keys, resolved findings, processed events, old asking sessions, links,
/// sessions, notices, exports and uploads, and pots that are full again; returns how many rows. A remainder is left to
/// the next pass.
///
/// # Errors
/// Busy or fault from the database.
pub async fn prune(client: &Client) -> Result<u64> {
    let keys = "delete from idempotency_keys where ctid = any(array(
        select ctid from idempotency_keys where created_at < now() - make_interval(secs => $1) order by created_at limit $2))";
    let findings = "delete from audit_findings where id in (
        select id from audit_findings where resolved_at < now() - make_interval(secs => $1) limit $2)";
    let inbox = "delete from inbox where ctid = any(array(
        select ctid from inbox where processed_at < now() - make_interval(secs => $1) order by processed_at limit $2))";
    let login_codes = "delete from login_codes where id = any(array(
        select id from login_codes where expires_at < now() - make_interval(secs => $1) order by expires_at limit $2))";
    let sessions = "delete from sessions where id = any(array(
        select id from sessions where expires_at < now() - make_interval(secs => $1) order by expires_at limit $2))";
    let staff_links = "delete from staff_links where id = any(array(
        select id from staff_links where expires_at < now() - make_interval(secs => $1) order by expires_at limit $2))";
    let staff_sessions = "delete from staff_sessions where id = any(array(
        select id from staff_sessions where expires_at < now() - make_interval(secs => $1) order by expires_at limit $2))";
    let notices = "delete from notices where ctid = any(array(
        select ctid from notices where created_at < now() - make_interval(secs => $1) order by created_at limit $2))";
    let exports = "delete from exports where id = any(array(
        select id from exports where finished_at < now() - make_interval(secs => $1) order by finished_at limit $2))";
    let uploads = "delete from uploads where id = any(array(
        select id from uploads where state in ('rejected', 'expired') and finished_at < now() - make_interval(secs => $1)
        order by finished_at limit $2))";
    // One that somebody takes from meanwhile is not full any more, and stays.
    let pots = "delete from login_limits where full_until < now() - make_interval(secs => $1) and subject = any(array(
        select subject from login_limits where full_until < now() - make_interval(secs => $1) limit $2))";
    let mut deleted = 0;
    for (sql, kept) in [
        (keys, IDEMPOTENCY_KEYS_KEPT),
        (findings, FINDINGS_KEPT),
        (inbox, INBOX_KEPT),
        (login_codes, LOGIN_CODES_KEPT),
        (sessions, SESSIONS_KEPT),
        (staff_links, SESSIONS_KEPT),
        (staff_sessions, SESSIONS_KEPT),
        (notices, NOTICES_KEPT),
        (exports, EXPORT_ROWS_KEPT),
        (uploads, UPLOAD_ROWS_KEPT),
        (pots, Duration::ZERO),
    ] {
        let params: [(&(dyn ToSql + Sync), _); 2] = [(&kept.as_secs_f64(), FLOAT8), (&ROWS_PER_PRUNE_MAX, INT8)];
        deleted += client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    }
    Ok(deleted)
}
