//! The two switches: `intake` (who may place orders) and `reserving` (whether numbers may change hands).

use domain::catalog::{Intake, Reserving};
use domain::{Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::one_word;
use crate::types::{INT4, TEXT, UUID};

/// What an intake switch belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Switch {
    /// Everything.
    Platform,
    /// One tenant.
    Tenant(Uuid),
    /// One product of a tenant.
    Product(Uuid, Uuid),
}

/// Opens or pauses intake. Accepted orders are not touched.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn set_intake(client: &Client, switch: Switch, intake: Intake, reason: Option<&str>) -> Result<()> {
    let word = intake.word();
    let changed = match switch {
        Switch::Platform => {
            let sql = "update platform set intake = $1, intake_reason = $2, changed_at = now()";
            client.execute_typed(sql, &[(&word, TEXT), (&reason, TEXT)]).await
        }
        Switch::Tenant(id) => {
            let sql = "update tenants set intake = $1, intake_reason = $2 where id = $3";
            client.execute_typed(sql, &[(&word, TEXT), (&reason, TEXT), (&id, UUID)]).await
        }
        Switch::Product(tenant_id, id) => {
            let sql = "update products set intake = $1, intake_reason = $2, version = version + 1
                where id = $3 and tenant_id = $4";
            client.execute_typed(sql, &[(&word, TEXT), (&reason, TEXT), (&id, UUID), (&tenant_id, UUID)]).await
        }
    };
    if changed.map_err(from_postgres)? == 1 { Ok(()) } else { Err(Reason::NotFound.into()) }
}

/// What platform and tenant say together about new orders; a product's own switch may still be paused.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn find_intake_of_tenant(client: &Client, tenant_id: Uuid) -> Result<Intake> {
    let sql = "select case when t.intake = 'open' then platform.intake else t.intake end as intake
        from tenants t cross join platform where t.id = $1";
    let row = client.query_typed_opt(sql, &[(&tenant_id, UUID)]).await.map_err(from_postgres)?;
    one_word(&row.ok_or(Reason::NotFound)?, "intake", Intake::from_word)
}

/// Halts or resumes everything that changes a product's numbers. Orders wait through a halt: their queue deadline
/// starts over when it ends.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn set_reserving(
    client: &Client,
    tenant_id: Uuid,
    product_id: Uuid,
    reserving: Reserving,
    reason: Option<&str>,
) -> Result<()> {
    let sql = "update products set reserving = $1, reserving_reason = $2, version = version + 1,
            reserving_resumed_at = case when reserving = 'halted' and $1 = 'on' then now() else reserving_resumed_at end
        where id = $3 and tenant_id = $4";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&reserving.word(), TEXT), (&reason, TEXT), (&product_id, UUID), (&tenant_id, UUID)];
    let changed = client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    if changed == 1 { Ok(()) } else { Err(Reason::NotFound.into()) }
}

/// Whether a product's numbers may change hands, as this transaction sees it.
pub(crate) async fn reserving(tx: &Transaction<'_>, product_key: i32) -> Result<Reserving> {
    let sql = "select reserving from products where key = $1";
    let row = tx.query_typed_one(sql, &[(&product_key, INT4)]).await.map_err(from_postgres)?;
    one_word(&row, "reserving", Reserving::from_word)
}
