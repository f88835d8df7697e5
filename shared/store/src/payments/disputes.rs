//! Disputes: money that a buyer's bank takes back, as gateways tell of it.

use std::time::Duration;

use domain::Result;
use domain::payments::DisputeState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::numbers::expect;
use crate::rows::{column, one_word};
use crate::types::{INT4S, INT8, TEXT, UUID};

/// A dispute of an order's payment.
pub(super) struct Dispute {
    pub(super) id: Uuid,
    pub(super) attempt_id: Uuid,
    pub(super) gateway_dispute_id: String,
    pub(super) amount_minor: i64,
    pub(super) state: DisputeState,
    /// Since it was first heard of.
    pub(super) age: Duration,
    /// Numbers that it gave up.
    pub(super) numbers: Vec<i32>,
}

pub(super) fn dispute_from(row: &Row) -> Result<Dispute> {
    Ok(Dispute {
        id: column(row, "id")?,
        attempt_id: column(row, "attempt_id")?,
        gateway_dispute_id: column(row, "gateway_dispute_id")?,
        amount_minor: column(row, "amount_minor")?,
        state: one_word(row, "state", DisputeState::from_word)?,
        age: Duration::try_from_secs_f64(column(row, "age")?).unwrap_or_default(),
        numbers: column(row, "numbers")?,
    })
}

/// Writes a dispute as it is now.
pub(super) async fn write(tx: &Transaction<'_>, dispute: &Dispute, tenant_id: Uuid, order_id: Uuid) -> Result<()> {
    let sql =
        "insert into disputes (id, tenant_id, order_id, attempt_id, gateway_dispute_id, amount_minor, state, numbers)
        values ($1, $2, $3, $4, $5, $6, $7, $8)
        on conflict on constraint disputes_at_gateway
        do update set state = excluded.state, amount_minor = excluded.amount_minor, numbers = excluded.numbers";
    let params: [(&(dyn ToSql + Sync), _); 8] = [
        (&dispute.id, UUID),
        (&tenant_id, UUID),
        (&order_id, UUID),
        (&dispute.attempt_id, UUID),
        (&dispute.gateway_dispute_id, TEXT),
        (&dispute.amount_minor, INT8),
        (&dispute.state.word(), TEXT),
        (&dispute.numbers, INT4S),
    ];
    expect(1, tx.execute_typed(sql, &params).await.map_err(from_postgres)?, "disputes")
}
