//! Sealed secrets of one-time passwords, all stores', for a rotation of the keys that seal.

use domain::Result;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::sign_in::id;
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{BYTEA, INT8, UUID};

/// Somebody's sealed secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealedTotp {
    /// Whose.
    pub staff_id: Uuid,
    /// Their store.
    pub tenant_id: Uuid,
    /// The secret.
    pub sealed: Vec<u8>,
}

/// Sealed secrets of all staff that were not removed, `limit` at most, by id, after one of them.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_sealed(client: &Client, after: Option<Uuid>, limit: i64) -> Result<Vec<SealedTotp>> {
    let sql = "select id, tenant_id, totp from staff
        where totp is not null and removed_at is null and ($1::uuid is null or id > $1) order by id limit $2";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&after, UUID), (&limit, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let sealed = |row: &Row| {
        Ok(SealedTotp { staff_id: id(row)?, tenant_id: column(row, "tenant_id")?, sealed: column(row, "totp")? })
    };
    rows.iter().map(sealed).collect()
}

/// Puts the same secret, sealed again, in its place. False, and nothing changed, when another was set up since it was
/// read.
///
/// # Errors
/// Busy or fault from the database.
pub async fn reseal(client: &Client, one: &SealedTotp, sealed: &[u8]) -> Result<bool> {
    let sql = "update staff set totp = $4 where tenant_id = $1 and id = $2 and totp = $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&one.tenant_id, UUID), (&one.staff_id, UUID), (&one.sealed, BYTEA), (&sealed, BYTEA)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}
