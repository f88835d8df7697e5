//! Confirmed disagreements, for the operator: an open finding raises an alarm.

use domain::Result;
use serde_json::json;
use time::OffsetDateTime;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::acts::{OperatorAct, Subject, log_of_operator_with};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{BOOL, INT4, INT8, TEXT, TEXTS, UUID};

/// A finding about to be recorded.
pub(crate) struct NewFinding<'a> {
    pub(crate) product_key: i32,
    pub(crate) chunk: Option<i32>,
    pub(crate) invariant: &'a str,
    pub(crate) detail: &'a str,
    /// Whether it was mended on the spot.
    pub(crate) resolved: bool,
}

/// Records a finding; one that is open already, for the same chunk or in the same words, is not recorded twice.
pub(crate) async fn record(client: &Client, finding: &NewFinding<'_>) -> Result<()> {
    let sql = "insert into audit_findings (id, product_key, chunk, invariant, detail, resolved_at)
        select $1, $2, $3, $4, $5, case when $6 then now() end
        where $6 or not exists (
            select from audit_findings
            where product_key = $2 and resolved_at is null and invariant = $4
                and case when $3::integer is null then detail = $5 else chunk = $3 end)";
    let id = Uuid::now_v7();
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&id, UUID),
        (&finding.product_key, INT4),
        (&finding.chunk, INT4),
        (&finding.invariant, TEXT),
        (&finding.detail, TEXT),
        (&finding.resolved, BOOL),
    ];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    let NewFinding { product_key, chunk, invariant, detail, resolved } = finding;
    tracing::error!(product.key = product_key, chunk, invariant, detail, resolved, "audit finding");
    Ok(())
}

/// Closes the open findings about a product's chunks, which were just rebuilt.
pub(crate) async fn resolve_chunks(client: &Client, product_key: i32) -> Result<()> {
    let sql = "update audit_findings set resolved_at = now()
        where product_key = $1 and chunk is not null and invariant in ('I2', 'I3') and resolved_at is null";
    client.execute_typed(sql, &[(&product_key, INT4)]).await.map_err(from_postgres)?;
    Ok(())
}

/// What is recorded about an order that could not be released: always the same words, so that it is one finding.
pub(crate) fn unreleasable(order_id: Uuid) -> String {
    format!("order {order_id} cannot be released")
}

/// Closes the findings about orders that have been released after all.
pub(crate) async fn resolve_released(client: &Client, product_key: i32, order_ids: &[Uuid]) -> Result<()> {
    let details: Vec<String> = order_ids.iter().map(|id| unreleasable(*id)).collect();
    let sql = "update audit_findings set resolved_at = now()
        where product_key = $1 and resolved_at is null and chunk is null and detail = any($2)";
    client.execute_typed(sql, &[(&product_key, INT4), (&details, TEXTS)]).await.map_err(from_postgres)?;
    Ok(())
}

/// What is recorded about an order whose money is wrong: always the same words.
pub(crate) fn wrong_money(order_id: Uuid) -> String {
    format!(
        "order {order_id} owns numbers worth another amount than the money that is kept: see \
         `tirada payments {order_id}`"
    )
}

/// Closes the findings about orders whose money is right again.
pub(crate) async fn resolve_money(client: &Client, order_ids: &[Uuid]) -> Result<()> {
    let details: Vec<String> = order_ids.iter().map(|id| wrong_money(*id)).collect();
    let sql = "update audit_findings set resolved_at = now()
        where invariant = 'I4' and resolved_at is null and chunk is null and detail = any($1)";
    client.execute_typed(sql, &[(&details, TEXTS)]).await.map_err(from_postgres)?;
    Ok(())
}

/// Findings that nobody has resolved.
///
/// # Errors
/// Busy or fault from the database.
pub async fn count_open(client: &Client) -> Result<i64> {
    let sql = "select count(*) as open from audit_findings where resolved_at is null";
    let row = client.query_typed_one(sql, &[]).await.map_err(from_postgres)?;
    column(&row, "open")
}

/// A recorded finding that nobody has resolved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OpenFinding {
    /// Its id.
    pub id: Uuid,
    /// The product.
    pub product_id: Uuid,
    /// The chunk, where it is about one.
    pub chunk: Option<i32>,
    /// Which invariant, I1 to I12.
    pub invariant: String,
    /// What is wrong.
    pub detail: String,
    /// When it was found.
    pub found_at: OffsetDateTime,
}

/// Closes an open finding that the platform's operator has dealt with. False when there is none with this id.
///
/// # Errors
/// Busy or fault from the database.
pub async fn close(client: &mut Client, id: Uuid, because: &str) -> Result<bool> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update audit_findings f set resolved_at = now(), resolved_because = $2 from products p
        where f.id = $1 and f.resolved_at is null and p.key = f.product_key returning p.tenant_id, p.id";
    let closed = tx.query_typed_opt(sql, &[(&id, UUID), (&because, TEXT)]).await.map_err(from_postgres)?;
    let Some(row) = closed else { return Ok(false) };
    let (product, detail) = ((Subject::Product, column(&row, "id")?), json!({ "finding": id }));
    let (tenant_id, act) = (column(&row, "tenant_id")?, OperatorAct::CloseFinding);
    log_of_operator_with(&tx, tenant_id, act, product, &detail, Some(because)).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(true)
}

/// Findings that nobody has resolved, oldest first, `limit` at most; of one product, or of all.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_open(client: &Client, product_id: Option<Uuid>, limit: i64) -> Result<Vec<OpenFinding>> {
    let sql = "select f.id as finding_id, p.id, f.chunk, f.invariant, f.detail, f.found_at
        from audit_findings f join products p on p.key = f.product_key
        where f.resolved_at is null and ($1::uuid is null or p.id = $1) order by f.found_at, f.id limit $2";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&product_id, UUID), (&limit, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let finding = |row| {
        Ok(OpenFinding {
            id: column(row, "finding_id")?,
            product_id: column(row, "id")?,
            chunk: column(row, "chunk")?,
            invariant: column(row, "invariant")?,
            detail: column(row, "detail")?,
            found_at: column(row, "found_at")?,
        })
    };
    rows.iter().map(finding).collect()
}
