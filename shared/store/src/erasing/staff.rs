//! Forgetting somebody who worked for a store. Their row stays, because the audit log and what they made name it.

use domain::Result;
use domain::staff::Email;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::acts::{OperatorAct, Subject, log_of_operator};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{BYTEA, TEXT, UUID, UUIDS};

/// In place of a sealed secret: the shortest that fits, and opens with no key.
const NO_SECRET: &[u8] = &[0; 29];

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasedStaff {
    /// These rows had the address, and have it no more. None when nobody had it.
    Done(Vec<Uuid>),
    /// They are staff now, and must be removed first. Nothing has changed.
    StillStaff,
}

/// Forgets an address of somebody who was removed from a store's staff, as often as they had been staff.
///
/// # Errors
/// Busy or fault from the database.
pub async fn erase_staff(client: &mut Client, tenant_id: Uuid, email: &Email) -> Result<ErasedStaff> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "select id, removed_at is null as is_staff from staff
        where tenant_id = $1 and email = $2 order by id for no key update";
    let found = tx.query_typed(sql, &[(&tenant_id, UUID), (&email.as_str(), TEXT)]).await.map_err(from_postgres)?;
    let mut ids = Vec::with_capacity(found.len());
    for row in &found {
        if column(row, "is_staff")? {
            return Ok(ErasedStaff::StillStaff);
        }
        ids.push(column::<Uuid>(row, "id")?);
    }
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&tenant_id, UUID), (&ids, UUIDS)];
    for sql in [
        "delete from staff_links where tenant_id = $1 and staff_id = any($2)",
        "delete from staff_sessions where tenant_id = $1 and staff_id = any($2)",
        "delete from idempotency_keys where tenant_id = $1 and subject_id = any($2)",
    ] {
        tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    }
    let sql = "update staff set email = id::text || '@erased.invalid', totp = case when totp is not null then $3 end
        where tenant_id = $1 and id = any($2)";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&ids, UUIDS), (&NO_SECRET, BYTEA)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    for id in &ids {
        log_of_operator(&tx, tenant_id, OperatorAct::EraseStaff, Subject::Staff, *id).await?;
    }
    tx.commit().await.map_err(from_postgres)?;
    Ok(ErasedStaff::Done(ids))
}
