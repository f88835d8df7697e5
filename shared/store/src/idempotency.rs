//! Answers under idempotency keys, for POSTs other than placing orders: written in the transaction of their effect.

use domain::{Reason, Result};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::errors::{from_postgres, is_lock_timeout};
use crate::rows::column;
use crate::types::{BYTEA, INT2, TEXT, UUID};

/// Who used a key, where.
#[derive(Debug, Clone, Copy)]
pub struct Scope<'a> {
    /// The tenant.
    pub tenant_id: Uuid,
    /// The buyer or member of staff.
    pub subject_id: Uuid,
    /// The route's template.
    pub route: &'a str,
    /// The key.
    pub key: &'a str,
}

/// Claims a key for a request. True when it is new; false when the same request was answered under it before.
///
/// # Errors
/// Key-reused when another request was, key-in-flight while a twin has not committed.
pub(crate) async fn claim(tx: &Transaction<'_>, scope: Scope<'_>, fingerprint: &[u8], status: i16) -> Result<bool> {
    let insert = "insert into idempotency_keys (tenant_id, subject_id, route, key, fingerprint, status)
        values ($1, $2, $3, $4, $5, $6) on conflict on constraint idempotency_keys_pkey do nothing";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&scope.tenant_id, UUID),
        (&scope.subject_id, UUID),
        (&scope.route, TEXT),
        (&scope.key, TEXT),
        (&fingerprint, BYTEA),
        (&status, INT2),
    ];
    match tx.execute_typed(insert, &params).await {
        Ok(0) => {}
        Ok(_) => return Ok(true),
        Err(error) if is_lock_timeout(&error) => return Err(Reason::KeyInFlight.into()),
        Err(error) => return Err(from_postgres(error)),
    }
    let find = "select fingerprint from idempotency_keys
        where tenant_id = $1 and subject_id = $2 and route = $3 and key = $4";
    let row = tx.query_typed_one(find, &params[..4]).await.map_err(from_postgres)?;
    if column::<&[u8]>(&row, "fingerprint")? == fingerprint { Ok(false) } else { Err(Reason::KeyReused.into()) }
}

/// Whether a request was answered under a key before.
pub(crate) async fn is_claimed(tx: &Transaction<'_>, scope: Scope<'_>) -> Result<bool> {
    let sql = "select from idempotency_keys
        where tenant_id = $1 and subject_id = $2 and route = $3 and key = $4";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&scope.tenant_id, UUID), (&scope.subject_id, UUID), (&scope.route, TEXT), (&scope.key, TEXT)];
    Ok(tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?.is_some())
}
