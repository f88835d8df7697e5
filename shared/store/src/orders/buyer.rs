//! Who a buyer is, for staff who look at an order.

use domain::Result;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::UUID;

/// What a store knows of a buyer. Not shown by `Debug`, which it does not have.
#[derive(Clone, PartialEq, Eq)]
pub struct KnownBuyer {
    /// E.164.
    pub phone: String,
    /// As staff entered it.
    pub name: Option<String>,
}

/// A buyer of a store; none who has never logged in or was erased.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_buyer(client: &Client, tenant_id: Uuid, buyer_id: Uuid) -> Result<Option<KnownBuyer>> {
    let sql = "select phone, name from buyers where tenant_id = $1 and id = $2";
    let row = client.query_typed_opt(sql, &[(&tenant_id, UUID), (&buyer_id, UUID)]).await.map_err(from_postgres)?;
    row.map(|row| Ok(KnownBuyer { phone: column(&row, "phone")?, name: column(&row, "name")? })).transpose()
}
