//! An order's money on its way back into the rows, in the lock order: the order, attempts, refunds, disputes.

use domain::limits::{LOOK_AFTER, LOOK_BACKOFF_MAX};
use domain::payments::RefundState;
use domain::{Error, Result};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::Money;
use crate::errors::from_postgres;
use crate::notices::{owe_refund, owing};
use crate::numbers::expect;
use crate::payments::attempts::Attempt;
use crate::payments::disputes;
use crate::payments::refunds::Refund;
use crate::payments::settle::next_look;
use crate::types::{BOOL, FLOAT8, INT2, INT4, INT4S, INT8, TEXT, TEXTS, TIMESTAMPTZ, UUID};

impl Money {
    /// Writes what has changed; the order first, as it is locked first.
    pub(in crate::payments) async fn write(&self, tx: &Transaction<'_>) -> Result<()> {
        self.write_order(tx).await?;
        for attempt in self.attempts.iter().filter(|attempt| self.changed_attempts.contains(&attempt.id)) {
            write_attempt(tx, attempt).await?;
        }
        for refund in &self.refunds {
            if self.new_refunds.contains(&refund.id) {
                insert_refund(tx, refund).await?;
            } else if self.changed_refunds.contains(&refund.id) {
                update_refund(tx, refund).await?;
            }
        }
        for dispute in &self.disputes {
            disputes::write(tx, dispute, self.order.tenant_id, self.order.id).await?;
        }
        let written = |id: &Uuid| self.new_refunds.contains(id) || self.changed_refunds.contains(id);
        if self.refunds.iter().any(|refund| refund.state.is_accepted() && written(&refund.id)) {
            owe_refund(tx, self.order.tenant_id, self.order.id, self.order.buyer_id).await?;
        }
        Ok(())
    }

    async fn write_order(&self, tx: &Transaction<'_>) -> Result<()> {
        let order = &self.order;
        if order.numbers_changed {
            let sql = "update orders set numbers = $2, substitutes = nullif($3, '{}'), given_up = nullif($4, '{}')
                where id = $1 and tenant_id = $5";
            let params: [(&(dyn ToSql + Sync), _); 5] = [
                (&order.id, UUID),
                (&order.numbers, INT4S),
                (&order.substitutes, INT4S),
                (&order.given_up, INT4S),
                (&order.tenant_id, UUID),
            ];
            expect(1, tx.execute_typed(sql, &params).await.map_err(from_postgres)?, "orders")?;
        }
        if self.steps.is_empty() {
            return Ok(());
        }
        let states: Vec<&str> = self.steps.iter().map(|(state, _)| state.word()).collect();
        let causes: Vec<&str> = self.steps.iter().map(|(_, cause)| *cause).collect();
        let steps = i32::try_from(self.steps.len()).unwrap_or(i32::MAX);
        let sql = format!(
            "with changed as (
                update orders set state = $2, version = version + $3
                where id = $1 and tenant_id = $8 and state = $4 and version = $5
                returning id, tenant_id, buyer_id, state
            ), paid as (
                select id, tenant_id, buyer_id, state from changed where state = 'paid'
            ), noticed as ({})
            insert into order_events (order_id, version, from_state, to_state, cause)
            select c.id, $5 + s.position::int4, lag(s.state, 1, $4) over (order by s.position), s.state, s.cause
            from changed c cross join unnest($6, $7) with ordinality as s (state, cause, position)",
            owing("paid")
        );
        let params: [(&(dyn ToSql + Sync), _); 8] = [
            (&order.id, UUID),
            (&order.state.word(), TEXT),
            (&steps, INT4),
            (&order.state_before.word(), TEXT),
            (&order.version, INT4),
            (&states, TEXTS),
            (&causes, TEXTS),
            (&order.tenant_id, UUID),
        ];
        expect(self.steps.len(), tx.execute_typed(&sql, &params).await.map_err(from_postgres)?, "steps")
    }
}

async fn write_attempt(tx: &Transaction<'_>, attempt: &Attempt) -> Result<()> {
    let instructions = attempt
        .instructions
        .as_ref()
        .map(|instructions| serde_json::to_string(instructions).map_err(|error| Error::Fault(Box::new(error))))
        .transpose()?;
    let wait = next_look(attempt).map(|wait| wait.as_secs_f64());
    // A payment that is recorded as another attempt's by mistake stays there.
    let sql = "update payment_attempts a set state = $2, used = $3, captured_minor = $4, refunded_minor = $5,
            payment_id = case when exists (select from payment_attempts other where other.tenant_id = a.tenant_id
                and other.gateway = a.gateway and other.payment_id = $6 and other.id <> a.id) then a.payment_id
                else $6 end,
            instructions = $7, decline_code = $8, looks = $9,
            look_at = now() + make_interval(secs => $10), look_owed = false, looked_at = $11, version = version + 1
        where a.id = $1 and a.tenant_id = $12";
    let params: [(&(dyn ToSql + Sync), _); 12] = [
        (&attempt.id, UUID),
        (&attempt.state.word(), TEXT),
        (&attempt.used.map(|used| used.word()), TEXT),
        (&attempt.captured_minor, INT8),
        (&attempt.refunded_minor, INT8),
        (&attempt.payment_id, TEXT),
        (&instructions, TEXT),
        (&attempt.decline_code, TEXT),
        (&attempt.looks, INT2),
        (&wait, FLOAT8),
        (&attempt.looked_at, TIMESTAMPTZ),
        (&attempt.tenant_id, UUID),
    ];
    expect(1, tx.execute_typed(sql, &params).await.map_err(from_postgres)?, "attempts")
}

async fn insert_refund(tx: &Transaction<'_>, refund: &Refund) -> Result<()> {
    let sql = "insert into refunds (id, tenant_id, order_id, attempt_id, amount_minor, numbers, cause, note, state,
            key_number, gateway_refund_id, failure, look_at, key_of)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, now() + make_interval(secs => $13), $14)";
    let wait = next_look_at(refund);
    let params: [(&(dyn ToSql + Sync), _); 14] = [
        (&refund.id, UUID),
        (&refund.tenant_id, UUID),
        (&refund.order_id, UUID),
        (&refund.attempt_id, UUID),
        (&refund.amount_minor, INT8),
        (&refund.numbers, INT4S),
        (&refund.cause.word(), TEXT),
        (&refund.note, TEXT),
        (&refund.state.word(), TEXT),
        (&refund.key_number, INT2),
        (&refund.gateway_refund_id, TEXT),
        (&refund.failure, TEXT),
        (&wait, FLOAT8),
        (&refund.key_of, UUID),
    ];
    expect(1, tx.execute_typed(sql, &params).await.map_err(from_postgres)?, "refunds")
}

async fn update_refund(tx: &Transaction<'_>, refund: &Refund) -> Result<()> {
    let sql = "update refunds set state = $2, gateway_refund_id = $3, failure = $4, numbers = $7, key_of = $8,
            key_number = $9, retried_as = case when $10 then coalesce(retried_as, id) end, version = version + 1,
            look_at = now() + make_interval(secs => least($5, $6 * power(2, least(tries, 10))))
        where id = $1 and tenant_id = $11";
    let params: [(&(dyn ToSql + Sync), _); 11] = [
        (&refund.id, UUID),
        (&refund.state.word(), TEXT),
        (&refund.gateway_refund_id, TEXT),
        (&refund.failure, TEXT),
        (&LOOK_BACKOFF_MAX.as_secs_f64(), FLOAT8),
        (&next_look_at(refund), FLOAT8),
        (&refund.numbers, INT4S),
        (&refund.key_of, UUID),
        (&refund.key_number, INT2),
        (&refund.is_retried, BOOL),
        (&refund.tenant_id, UUID),
    ];
    expect(1, tx.execute_typed(sql, &params).await.map_err(from_postgres)?, "refunds")
}

/// Seconds until it wants to be looked at; none once nothing more is expected.
fn next_look_at(refund: &Refund) -> Option<f64> {
    matches!(refund.state, RefundState::Created | RefundState::Pending).then(|| LOOK_AFTER.as_secs_f64())
}
