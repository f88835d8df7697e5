//! The countries that a store sends codes and notices to.

use domain::{Reason, Result};
use serde_json::json;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::acts::{OperatorAct, Subject, log_of_operator_with};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{TEXTS, UUID};

/// Country calling codes that a store serves, without the plus sign.
///
/// # Errors
/// Not-found when there is no such store, or busy or fault from the database.
pub async fn list_prefixes(client: &Client, tenant_id: Uuid) -> Result<Vec<String>> {
    let sql = "select phone_prefixes from tenants where id = $1";
    let row = client.query_typed_opt(sql, &[(&tenant_id, UUID)]).await.map_err(from_postgres)?;
    column(&row.ok_or(Reason::NotFound)?, "phone_prefixes")
}

/// Puts other country calling codes in their place, as the platform's operator.
///
/// # Errors
/// Not-found when there is no such store, or busy or fault from the database.
pub async fn save_prefixes(client: &mut Client, tenant_id: Uuid, prefixes: &[String]) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update tenants set phone_prefixes = $2 where id = $1";
    if tx.execute_typed(sql, &[(&tenant_id, UUID), (&prefixes, TEXTS)]).await.map_err(from_postgres)? != 1 {
        return Err(Reason::NotFound.into());
    }
    let (store, detail) = ((Subject::Store, tenant_id), json!({ "countries": prefixes }));
    log_of_operator_with(&tx, tenant_id, OperatorAct::SetCountries, store, &detail, None).await?;
    tx.commit().await.map_err(from_postgres)
}
