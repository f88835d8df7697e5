//! What a worker needs to know of an order before it asks a gateway, and what an order shows of its money.

use domain::orders::State;
use domain::payments::{
    AttemptState, AttemptView, Gateway, Instructions, Method, OrderView, RefundCause, RefundState, Use,
};
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::attempts::{Attempt, COLUMNS, attempt_from};
use super::refunds::{Refund, refund_from};
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::UUID;

/// An order that may have something to settle, read without a lock.
#[derive(Debug, Clone)]
pub struct Payable {
    /// Its tenant.
    pub tenant_id: Uuid,
    /// Its product.
    pub product_id: Uuid,
    /// What to call it at the gateway.
    pub description: String,
    /// Where it is.
    pub order: OrderView,
    /// Its attempts, oldest first.
    pub attempts: Vec<Attempt>,
    /// Its refunds that are not over.
    pub refunds: Vec<Refund>,
}

impl Attempt {
    /// As the rules see it.
    #[must_use]
    pub fn view(&self) -> AttemptView {
        AttemptView {
            state: self.state,
            age: self.age,
            is_declined: self.decline_code.is_some(),
            is_given_up: self.is_given_up,
        }
    }
}

/// A store's order with its attempts and the refunds that are not over.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_payable(client: &Client, tenant_id: Uuid, order_id: Uuid) -> Result<Option<Payable>> {
    let sql = "select o.tenant_id, o.product_id, p.name, o.state, coalesce(o.expires_at <= now(), false) as hold_over,
            o.cancel_requested_at is not null as cancelled
        from orders o join products p on p.id = o.product_id where o.id = $1 and o.tenant_id = $2";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&order_id, UUID), (&tenant_id, UUID)];
    let Some(row) = client.query_typed_opt(sql, &params).await.map_err(from_postgres)? else {
        return Ok(None);
    };
    let attempts =
        format!("select {COLUMNS} from payment_attempts where order_id = $1 and tenant_id = $2 order by number");
    let refunds = format!(
        "select {} from refunds where order_id = $1 and tenant_id = $2 and state in ('created', 'pending') order by id",
        super::refunds::COLUMNS
    );
    let attempts = client.query_typed(&attempts, &params).await.map_err(from_postgres)?;
    let refunds = client.query_typed(&refunds, &params).await.map_err(from_postgres)?;
    Ok(Some(Payable {
        tenant_id: column(&row, "tenant_id")?,
        product_id: column(&row, "product_id")?,
        description: column(&row, "name")?,
        order: OrderView {
            state: one_word(&row, "state", State::from_word)?,
            hold_over: column(&row, "hold_over")?,
            cancel_requested: column(&row, "cancelled")?,
        },
        attempts: attempts.iter().map(attempt_from).collect::<Result<_>>()?,
        refunds: refunds.iter().map(refund_from).collect::<Result<_>>()?,
    }))
}

/// An attempt as its buyer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PaymentOf {
    /// Its id.
    pub id: Uuid,
    /// With whom.
    pub gateway: Gateway,
    /// How.
    pub method: Method,
    /// Where it is.
    pub state: AttemptState,
    /// What its money counts as.
    pub used: Option<Use>,
    /// Minor units asked for.
    pub amount_minor: i64,
    /// What the buyer has to do.
    pub instructions: Option<Instructions>,
    /// Why a try was refused.
    pub decline_code: Option<String>,
}

/// A refund as the buyer sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefundOf {
    /// Its id.
    pub id: Uuid,
    /// Minor units.
    pub amount_minor: i64,
    /// Numbers that it gives up.
    pub numbers: Vec<i32>,
    /// Why.
    pub cause: RefundCause,
    /// Where it is.
    pub state: RefundState,
}

/// The latest attempt of a store's order and all of its refunds.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_payments(
    client: &Client,
    tenant_id: Uuid,
    order_id: Uuid,
) -> Result<(Option<PaymentOf>, Vec<RefundOf>)> {
    let attempts = "select id, gateway, method, state, used, amount_minor, instructions, decline_code
        from payment_attempts where order_id = $1 and tenant_id = $2
        order by (used = 'payment') desc nulls last, number desc limit 1";
    let refunds = "select id, amount_minor, numbers, cause, state from refunds
        where order_id = $1 and tenant_id = $2 order by id";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&order_id, UUID), (&tenant_id, UUID)];
    let (attempt, refunds) =
        futures::future::try_join(client.query_typed_opt(attempts, &params), client.query_typed(refunds, &params))
            .await
            .map_err(from_postgres)?;
    let attempt = attempt.as_ref().map(payment_from).transpose()?;
    Ok((attempt, refunds.iter().map(refund_of).collect::<Result<_>>()?))
}

fn payment_from(row: &Row) -> Result<PaymentOf> {
    let used: Option<&str> = column(row, "used")?;
    let instructions: Option<&str> = column(row, "instructions")?;
    Ok(PaymentOf {
        id: column(row, "id")?,
        gateway: one_word(row, "gateway", Gateway::from_word)?,
        method: one_word(row, "method", Method::from_word)?,
        state: one_word(row, "state", AttemptState::from_word)?,
        used: used.and_then(Use::from_word),
        amount_minor: column(row, "amount_minor")?,
        instructions: instructions
            .map(|text| serde_json::from_str(text).map_err(|error| Error::Fault(Box::new(error))))
            .transpose()?,
        decline_code: column(row, "decline_code")?,
    })
}

fn refund_of(row: &Row) -> Result<RefundOf> {
    Ok(RefundOf {
        id: column(row, "id")?,
        amount_minor: column(row, "amount_minor")?,
        numbers: column(row, "numbers")?,
        cause: one_word(row, "cause", RefundCause::from_word)?,
        state: one_word(row, "state", RefundState::from_word)?,
    })
}
