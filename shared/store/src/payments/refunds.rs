//! Refunds: asked for by staff or owed by the rules, never more than was captured, each with a key of its own.

use domain::limits::{KEY_KEPT_FOR, LOOKS_PER_PASS_MAX, REFUND_KEY_AGE};
use domain::messages::Queue;
use domain::orders::State;
use domain::payments::{RefundCause, RefundState, Use};
use domain::{Reason, Result};
use serde_json::json;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::attempts::Attempt;
use super::money::Money;
use crate::acts::{NewAct, OperatorAct, Subject, log_of_operator_with, record};
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT2, INT8, TEXT, UUID};

/// Money on its way back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refund {
    /// Its id, which the gateway keeps as our reference where it can.
    pub id: Uuid,
    /// Its tenant.
    pub tenant_id: Uuid,
    /// The order.
    pub order_id: Uuid,
    /// Whose money.
    pub attempt_id: Uuid,
    /// Minor units.
    pub amount_minor: i64,
    /// Numbers that go back to stock for it.
    pub numbers: Vec<i32>,
    /// Why.
    pub cause: RefundCause,
    /// What staff wrote.
    pub note: Option<String>,
    /// Where it is.
    pub state: RefundState,
    /// Grows when another key is wanted: the gateway keeps an answer under the old one that says nothing.
    pub key_number: i16,
    /// Under whose id the gateway is asked.
    pub key_of: Uuid,
    /// Requests sent under the present key.
    pub asked: i16,
    /// The gateway's id.
    pub gateway_refund_id: Option<String>,
    /// The gateway's word for why it failed.
    pub failure: Option<String>,
    /// It failed and another was made in its place.
    pub is_retried: bool,
}

pub(super) const COLUMNS: &str = "id, tenant_id, order_id, attempt_id, amount_minor, numbers, cause, note, state,
    key_number, key_of, asked, gateway_refund_id, failure, retried_as is not null as retried";

pub(super) fn refund_from(row: &Row) -> Result<Refund> {
    Ok(Refund {
        id: column(row, "id")?,
        tenant_id: column(row, "tenant_id")?,
        order_id: column(row, "order_id")?,
        attempt_id: column(row, "attempt_id")?,
        amount_minor: column(row, "amount_minor")?,
        numbers: column(row, "numbers")?,
        cause: one_word(row, "cause", RefundCause::from_word)?,
        note: column(row, "note")?,
        state: one_word(row, "state", RefundState::from_word)?,
        key_number: column(row, "key_number")?,
        key_of: column(row, "key_of")?,
        asked: column(row, "asked")?,
        gateway_refund_id: column(row, "gateway_refund_id")?,
        failure: column(row, "failure")?,
        is_retried: column(row, "retried")?,
    })
}

impl Refund {
    /// A refund to be written.
    pub(super) fn new(attempt: &Attempt, amount_minor: i64, numbers: Vec<i32>, cause: RefundCause) -> Self {
        let id = Uuid::now_v7();
        Self {
            id,
            tenant_id: attempt.tenant_id,
            order_id: attempt.order_id,
            attempt_id: attempt.id,
            amount_minor,
            numbers,
            cause,
            note: None,
            state: RefundState::Created,
            key_number: 1,
            key_of: id,
            asked: 0,
            gateway_refund_id: None,
            failure: None,
            is_retried: false,
        }
    }
}

/// What staff ask for.
#[derive(Debug, Clone)]
pub struct RefundRequest<'a> {
    /// The tenant, whose order it must be.
    pub tenant_id: Uuid,
    /// The order.
    pub order_id: Uuid,
    /// Numbers to be given up; none = all that are left.
    pub numbers: Option<&'a [i32]>,
    /// Why, for the record.
    pub note: &'a str,
    /// Id of the refund. The same one again finds the first.
    pub refund_id: Uuid,
}

/// Records a refund of a paid order and owes its message: an act of staff, once per key, or of the platform's operator,
/// who has none. Asked again under the same id it changes nothing.
///
/// # Errors
/// Not-found, wrong-state, numbers-taken when a number is not the order's or goes back already, those of a key, or busy
/// or fault.
pub async fn request_refund(client: &mut Client, request: &RefundRequest<'_>, act: &NewAct) -> Result<Refund> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let mut money = Money::lock(&tx, request.tenant_id, request.order_id).await?.ok_or(Reason::NotFound)?;
    // A key that is known names a refund that is.
    let is_new = record(&tx, act).await? && act.keyed.is_some();
    if let Some(known) = money.refunds.iter().find(|refund| refund.id == request.refund_id) {
        // Ids are made from keys: one that was used before its key was forgotten may have been for other numbers.
        return if is_new { Err(Reason::KeyReused.into()) } else { Ok(known.clone()) };
    }
    let paid = money.attempts.iter().find(|attempt| attempt.used == Some(Use::Payment)).cloned();
    let Some(attempt) = paid.filter(|_| matches!(money.order.state, State::Paid | State::Refunding)) else {
        return Err(Reason::WrongState.into());
    };
    let left = money.staying();
    let numbers = match request.numbers {
        None => left.clone(),
        Some(some) if some.iter().all(|number| left.contains(number)) => {
            let mut some = some.to_vec();
            some.sort_unstable();
            some.dedup();
            some
        }
        Some(_) => return Err(Reason::NumbersTaken.into()),
    };
    let rest = money.rest(&attempt);
    let amount = if numbers.len() == left.len() {
        rest
    } else {
        money.order.unit_price_minor * i64::try_from(numbers.len()).unwrap_or(i64::MAX)
    };
    // Of an order without numbers only the money that is still owed can go back.
    let is_empty = numbers.is_empty() && money.order.state == State::Paid;
    if is_empty || amount <= 0 || amount > rest {
        return Err(Reason::WrongState.into());
    }
    let mut refund = Refund::new(&attempt, amount, numbers, RefundCause::Staff);
    refund.id = request.refund_id;
    refund.key_of = request.refund_id;
    refund.note = Some(request.note.to_owned());
    let covered = covered_by(&money, &refund, refund.amount_minor == rest);
    money.add_refund(refund.clone());
    super::settle::complete(&mut money)?;
    money.write(&tx).await?;
    for failed in covered {
        mark_retried(&tx, refund.tenant_id, failed, refund.id).await?;
    }
    owe(&tx, &money, refund.id).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(refund)
}

/// Tries a failed refund of a store's order again, as a new one with a new key: an act of the platform's operator.
///
/// # Errors
/// Not-found, wrong-state when it has not failed or was tried again before, or busy or fault from the database.
pub async fn retry_refund(client: &mut Client, tenant_id: Uuid, order_id: Uuid, refund_id: Uuid) -> Result<Refund> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let mut money = Money::lock(&tx, tenant_id, order_id).await?.ok_or(Reason::NotFound)?;
    let failed = money.refunds.iter().find(|refund| refund.id == refund_id).cloned().ok_or(Reason::NotFound)?;
    let attempt = money.attempts.iter().find(|a| a.id == failed.attempt_id).cloned().ok_or(Reason::NotFound)?;
    let rest = money.rest(&attempt);
    let named_again = |other: &Refund| {
        other.state != RefundState::Failed && other.numbers.iter().any(|number| failed.numbers.contains(number))
    };
    let is_over = failed.state != RefundState::Failed || failed.is_retried || rest <= 0;
    if is_over || money.refunds.iter().any(named_again) {
        return Err(Reason::WrongState.into());
    }
    // What it had given up stays given up: only what never went back goes with it.
    let staying = money.staying();
    let numbers = failed.numbers.iter().copied().filter(|number| staying.contains(number)).collect();
    let mut again = Refund::new(&attempt, failed.amount_minor.min(rest), numbers, failed.cause);
    again.note = failed.note.clone();
    money.add_refund(again.clone());
    super::settle::complete(&mut money)?;
    money.write(&tx).await?;
    mark_retried(&tx, tenant_id, failed.id, again.id).await?;
    owe(&tx, &money, again.id).await?;
    let (order, detail) = ((Subject::Order, order_id), json!({ "refund": failed.id, "again": again.id }));
    log_of_operator_with(&tx, tenant_id, OperatorAct::RetryRefund, order, &detail, None).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(again)
}

/// Whether a refund may be asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MayAsk {
    /// Yes.
    Now,
    /// It was asked for before and is so old that the gateway may have forgotten the key. A second request could be a
    /// second refund: only the payment tells.
    AfterALook,
    /// No: there is an answer meanwhile, or another key.
    No,
}

/// Notes that a refund is about to be asked for under the key that it was read with.
///
/// # Errors
/// Busy or fault from the database.
pub async fn note_refund_asked(client: &Client, refund: &Refund) -> Result<MayAsk> {
    let sql = "update refunds set asked = least(asked + 1, 1000)
        where id = $1 and tenant_id = $5 and state = 'created' and key_of = $2 and key_number = $3
        returning asked > 1 and created_at < now() - make_interval(secs => $4) as forgotten";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&refund.id, UUID),
        (&refund.key_of, UUID),
        (&refund.key_number, INT2),
        (&KEY_KEPT_FOR.as_secs_f64(), FLOAT8),
        (&refund.tenant_id, UUID),
    ];
    Ok(match client.query_typed_opt(sql, &params).await.map_err(from_postgres)? {
        None => MayAsk::No,
        Some(row) if column(&row, "forgotten")? => MayAsk::AfterALook,
        Some(_) => MayAsk::Now,
    })
}

/// From now on a refund that no gateway has accepted is asked for under another key, unless it is so young that a
/// request under the old one may still be under way.
///
/// # Errors
/// Busy or fault from the database.
pub async fn renew_refund_key(client: &Client, refund: &Refund) -> Result<()> {
    let sql = "update refunds set key_number = key_number + 1, asked = 0
        where id = $1 and tenant_id = $4 and state = 'created' and key_number = $2
            and created_at < now() - make_interval(secs => $3)";
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&refund.id, UUID),
        (&refund.key_number, INT2),
        (&REFUND_KEY_AGE.as_secs_f64(), FLOAT8),
        (&refund.tenant_id, UUID),
    ];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Paid orders of a store's product that have something left to refund, by id, after one of them; for refunds of many.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_refundable(
    client: &Client,
    tenant_id: Uuid,
    product_id: Uuid,
    after: Option<Uuid>,
) -> Result<Vec<Uuid>> {
    let sql = "select o.id from orders o
        where o.product_id = $1 and o.tenant_id = $4 and o.state = 'paid' and o.total_minor > 0
            and ($2::uuid is null or o.id > $2)
        order by o.id limit $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&product_id, UUID), (&after, UUID), (&LOOKS_PER_PASS_MAX, INT8), (&tenant_id, UUID)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| column(row, "id")).collect()
}

/// Failed refunds of a store's product that nobody has tried again, with their orders, by id, after one of them.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_failed(
    client: &Client,
    tenant_id: Uuid,
    product_id: Uuid,
    after: Option<Uuid>,
) -> Result<Vec<(Uuid, Uuid)>> {
    let sql = "select r.id, r.order_id from refunds r join orders o on o.id = r.order_id
        where o.product_id = $1 and o.tenant_id = $4 and r.state = 'failed' and r.retried_as is null
            and ($2::uuid is null or r.id > $2)
        order by r.id limit $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&product_id, UUID), (&after, UUID), (&LOOKS_PER_PASS_MAX, INT8), (&tenant_id, UUID)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| Ok((column(row, "id")?, column(row, "order_id")?))).collect()
}

/// Failed refunds that nobody has tried again and that a new one makes good: it gives back all that is left, or names
/// all of their numbers.
fn covered_by(money: &Money, new: &Refund, gives_all: bool) -> Vec<Uuid> {
    let covers = |failed: &&Refund| {
        failed.state == RefundState::Failed
            && failed.attempt_id == new.attempt_id
            && !failed.is_retried
            && (gives_all
                || (!failed.numbers.is_empty() && failed.numbers.iter().all(|number| new.numbers.contains(number))))
    };
    money.refunds.iter().filter(covers).map(|failed| failed.id).collect()
}

async fn mark_retried(tx: &Transaction<'_>, tenant_id: Uuid, failed: Uuid, again: Uuid) -> Result<()> {
    let sql = "update refunds set retried_as = $2 where id = $1 and tenant_id = $3 and retried_as is null";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&failed, UUID), (&again, UUID), (&tenant_id, UUID)];
    match tx.execute_typed(sql, &params).await.map_err(from_postgres)? {
        1 => Ok(()),
        _ => Err(Reason::WrongState.into()),
    }
}

async fn owe(tx: &Transaction<'_>, money: &Money, refund_id: Uuid) -> Result<()> {
    let sql = "insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        values ($1, $2, $3, $4, $5, now())";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&refund_id, UUID),
        (&Queue::SettlePayment.name(), TEXT),
        (&money.order.tenant_id, UUID),
        (&money.order.product_id, UUID),
        (&money.order.id, UUID),
    ];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}
