//! All of an order's money, as staff see it.

use domain::payments::DisputeState;
use domain::{Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::attempts::{self, Attempt, attempt_from};
use super::refunds::{self, Refund, refund_from};
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::UUID;

/// Everything that is recorded about an order's money.
#[derive(Debug, Clone)]
pub struct Overview {
    /// ISO 4217 code of the order.
    pub currency: String,
    /// Attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Refunds, oldest first.
    pub refunds: Vec<RefundEntry>,
    /// Disputes, oldest first.
    pub disputes: Vec<DisputeOf>,
}

/// A refund as staff see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundEntry {
    /// When it was recorded.
    pub created_at: OffsetDateTime,
    /// The refund that was made in place of this failed one.
    pub retried_as: Option<Uuid>,
    /// The refund.
    pub refund: Refund,
}

/// A dispute as staff see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisputeOf {
    /// Its id.
    pub id: Uuid,
    /// Whose money.
    pub attempt_id: Uuid,
    /// The gateway's id.
    pub gateway_dispute_id: String,
    /// Minor units.
    pub amount_minor: i64,
    /// Where it is.
    pub state: DisputeState,
    /// When it was first heard of.
    pub created_at: OffsetDateTime,
}

/// All attempts, refunds and disputes of a store's order.
///
/// # Errors
/// Not-found when there is no such order, or busy or fault from the database.
pub async fn find_overview(client: &Client, tenant_id: Uuid, order_id: Uuid) -> Result<Overview> {
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&order_id, UUID), (&tenant_id, UUID)];
    let order = client.query_typed_opt("select currency from orders where id = $1 and tenant_id = $2", &params);
    let order = order.await.map_err(from_postgres)?.ok_or(Reason::NotFound)?;
    let attempts = format!(
        "select {} from payment_attempts where order_id = $1 and tenant_id = $2 order by number",
        attempts::COLUMNS
    );
    let refunds = format!(
        "select {}, created_at, retried_as from refunds where order_id = $1 and tenant_id = $2 order by created_at, id",
        refunds::COLUMNS
    );
    let disputes = "select id, attempt_id, gateway_dispute_id, amount_minor, state, created_at from disputes
        where order_id = $1 and tenant_id = $2 order by created_at, id";
    let attempts = client.query_typed(&attempts, &params).await.map_err(from_postgres)?;
    let refunds = client.query_typed(&refunds, &params).await.map_err(from_postgres)?;
    let disputes = client.query_typed(disputes, &params).await.map_err(from_postgres)?;
    Ok(Overview {
        currency: column(&order, "currency")?,
        attempts: attempts.iter().map(attempt_from).collect::<Result<_>>()?,
        refunds: refunds.iter().map(refund_entry).collect::<Result<_>>()?,
        disputes: disputes.iter().map(dispute_from).collect::<Result<_>>()?,
    })
}

/// A refund by its id; for operators, so across tenants.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_refund(client: &Client, id: Uuid) -> Result<Option<Refund>> {
    let sql = format!("select {} from refunds where id = $1", refunds::COLUMNS);
    let row = client.query_typed_opt(&sql, &[(&id, UUID)]).await.map_err(from_postgres)?;
    row.as_ref().map(refund_from).transpose()
}

fn refund_entry(row: &Row) -> Result<RefundEntry> {
    Ok(RefundEntry {
        created_at: column(row, "created_at")?,
        retried_as: column(row, "retried_as")?,
        refund: refund_from(row)?,
    })
}

fn dispute_from(row: &Row) -> Result<DisputeOf> {
    Ok(DisputeOf {
        id: column(row, "id")?,
        attempt_id: column(row, "attempt_id")?,
        gateway_dispute_id: column(row, "gateway_dispute_id")?,
        amount_minor: column(row, "amount_minor")?,
        state: one_word(row, "state", DisputeState::from_word)?,
        created_at: column(row, "created_at")?,
    })
}
