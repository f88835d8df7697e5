//! A store's credentials at a gateway, as they were sealed elsewhere. Never in clear here.

use domain::Result;
use domain::payments::Gateway;
use serde_json::json;
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::acts::{OperatorAct, Subject, log_of_operator_with};
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{BYTEA, INT8, TEXT, UUID};

/// That a store has credentials at a gateway, without them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Account {
    /// The gateway.
    pub gateway: Gateway,
    /// Grows each time other credentials are saved.
    pub version: i32,
    /// When that was last.
    pub changed_at: OffsetDateTime,
}

/// Sealed credentials of any store.
#[derive(Clone, PartialEq, Eq)]
pub struct SealedAccount {
    /// The store.
    pub tenant_id: Uuid,
    /// The gateway.
    pub gateway: Gateway,
    /// The credentials.
    pub sealed: Vec<u8>,
}

/// The sealed credentials of a store at a gateway.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_account(client: &Client, tenant_id: Uuid, gateway: Gateway) -> Result<Option<Vec<u8>>> {
    let sql = "select sealed from gateway_accounts where tenant_id = $1 and gateway = $2";
    let row =
        client.query_typed_opt(sql, &[(&tenant_id, UUID), (&gateway.word(), TEXT)]).await.map_err(from_postgres)?;
    row.map(|row| column(&row, "sealed")).transpose()
}

/// Saves sealed credentials, in place of earlier ones.
///
/// # Errors
/// Busy or fault from the database.
pub async fn save_account(client: &Client, tenant_id: Uuid, gateway: Gateway, sealed: &[u8]) -> Result<()> {
    let sql = "insert into gateway_accounts (tenant_id, gateway, sealed) values ($1, $2, $3)
        on conflict on constraint gateway_accounts_pkey
        do update set sealed = excluded.sealed, version = gateway_accounts.version + 1, changed_at = now()";
    client
        .execute_typed(sql, &[(&tenant_id, UUID), (&gateway.word(), TEXT), (&sealed, BYTEA)])
        .await
        .map_err(from_postgres)?;
    Ok(())
}

/// The same as an act of the platform's operator.
///
/// # Errors
/// As [`save_account`].
pub async fn save_account_as_operator(
    client: &mut Client,
    tenant_id: Uuid,
    gateway: Gateway,
    sealed: &[u8],
) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    save_account(tx.client(), tenant_id, gateway, sealed).await?;
    let (store, detail) = ((Subject::Store, tenant_id), json!({ "gateway": gateway.word() }));
    log_of_operator_with(&tx, tenant_id, OperatorAct::SaveCredentials, store, &detail, None).await?;
    tx.commit().await.map_err(from_postgres)
}

/// The gateways that a store has credentials for.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_accounts(client: &Client, tenant_id: Uuid) -> Result<Vec<Account>> {
    let sql = "select gateway, version, changed_at from gateway_accounts where tenant_id = $1 order by gateway";
    let rows = client.query_typed(sql, &[(&tenant_id, UUID)]).await.map_err(from_postgres)?;
    let account = |row: &Row| {
        Ok(Account {
            gateway: one_word(row, "gateway", Gateway::from_word)?,
            version: column(row, "version")?,
            changed_at: column(row, "changed_at")?,
        })
    };
    rows.iter().map(account).collect()
}

/// Sealed credentials of all stores, `limit` at most, after a store's gateway.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_sealed(client: &Client, after: Option<(Uuid, Gateway)>, limit: i64) -> Result<Vec<SealedAccount>> {
    let sql = "select tenant_id, gateway, sealed from gateway_accounts
        where $1::uuid is null or (tenant_id, gateway) > ($1, $2) order by tenant_id, gateway limit $3";
    let (tenant_id, gateway) = after.unzip();
    let gateway = gateway.map(Gateway::word);
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&gateway, TEXT), (&limit, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let account = |row: &Row| {
        Ok(SealedAccount {
            tenant_id: column(row, "tenant_id")?,
            gateway: one_word(row, "gateway", Gateway::from_word)?,
            sealed: column(row, "sealed")?,
        })
    };
    rows.iter().map(account).collect()
}

/// Puts the same credentials, sealed again, in their place. False, and nothing changed, when others were saved since
/// they were read.
///
/// # Errors
/// Busy or fault from the database.
pub async fn reseal_account(client: &Client, account: &SealedAccount, sealed: &[u8]) -> Result<bool> {
    let sql = "update gateway_accounts set sealed = $4 where tenant_id = $1 and gateway = $2 and sealed = $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&account.tenant_id, UUID), (&account.gateway.word(), TEXT), (&account.sealed, BYTEA), (&sealed, BYTEA)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}
