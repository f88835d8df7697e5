//! Cancelling: the order's own row, never a chunk, so that buyers' traffic cannot reach the workers' locks.

use std::time::Duration;

use domain::limits::{OUTBOX_GRACE, QUEUED_SILENT_AFTER};
use domain::messages::Queue;
use domain::orders::State;
use domain::{Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::errors::{from_postgres, is_lock_timeout};
use crate::idempotency::{Scope, claim};
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, TEXT, UUID};

/// What a cancellation did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Cancelled {
    /// The order was queued and is cancelled.
    Now,
    /// The order holds numbers: a worker gives them back, after it has closed what is open at a gateway. Its message is
    /// owed by this outbox row.
    Requested {
        /// Whose work it is: `settle-payment` for an order that is being paid, else `release-numbers`.
        queue: Queue,
        /// The outbox row.
        outbox_id: Uuid,
        /// The order's product.
        product_id: Uuid,
    },
    /// It was cancelled, or its cancellation requested, before.
    Already,
    /// The same request was answered under the same key before.
    Replayed,
}

/// Answer kept under the key: accepted.
const STATUS: i16 = 202;

/// Cancels a buyer's order: at once while queued, by request once it holds numbers.
///
/// `scope` names the buyer and the idempotency key; the request's fingerprint is the order's id.
///
/// # Errors
/// Not-found, wrong-state, key-reused, key-in-flight, or busy-as-a-rejection (409) when a worker has the order now.
pub async fn cancel(client: &mut Client, scope: Scope<'_>, id: Uuid, outbox_id: Uuid) -> Result<Cancelled> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "select state, product_id, cancel_requested_at is not null as requested from orders
        where id = $1 and tenant_id = $2 and buyer_id = $3 for no key update";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&id, UUID), (&scope.tenant_id, UUID), (&scope.subject_id, UUID)];
    let row = match tx.query_typed_opt(sql, &params).await {
        Ok(row) => row.ok_or(Reason::NotFound)?,
        Err(error) if is_lock_timeout(&error) => return Err(Reason::Busy.into()),
        Err(error) => return Err(from_postgres(error)),
    };
    if !claim(&tx, scope, id.as_bytes(), STATUS).await? {
        return Ok(Cancelled::Replayed);
    }
    let state = one_word(&row, "state", State::from_word)?;
    let product_id: Uuid = column(&row, "product_id")?;
    let requested: bool = column(&row, "requested")?;
    let done = match state {
        State::Queued => {
            mark_cancelled(&tx, scope.tenant_id, id, "buyer").await?;
            Cancelled::Now
        }
        State::Reserved | State::Paying if !requested => {
            let queue = if state == State::Paying { Queue::SettlePayment } else { Queue::ReleaseNumbers };
            mark_requested(&tx, (scope.tenant_id, id), outbox_id, queue, OUTBOX_GRACE).await?;
            Cancelled::Requested { queue, outbox_id, product_id }
        }
        State::Cancelled | State::Reserved | State::Paying => Cancelled::Already,
        _ => return Err(Reason::WrongState.into()),
    };
    tx.commit().await.map_err(from_postgres)?;
    Ok(done)
}

pub(super) async fn mark_cancelled(tx: &Transaction<'_>, tenant_id: Uuid, id: Uuid, cause: &str) -> Result<()> {
    let sql = "with changed as (
            update orders set state = 'cancelled', version = version + 1
            where id = $1 and tenant_id = $3 and state = 'queued'
            returning id, version, product_key, created_at
        ), dequeued as (
            delete from order_queue q using changed c
            where q.product_key = c.product_key and q.created_at = c.created_at and q.order_id = c.id
        )
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, version, 'queued', 'cancelled', $2 from changed";
    tx.execute_typed(sql, &[(&id, UUID), (&cause, TEXT), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
    Ok(())
}

/// The relay leaves the message alone for a while, if somebody is about to send it. The expiry sweep looks at the order
/// as well, should the message be lost for good.
pub(super) async fn mark_requested(
    tx: &Transaction<'_>,
    (tenant_id, id): (Uuid, Uuid),
    outbox_id: Uuid,
    queue: Queue,
    grace: Duration,
) -> Result<()> {
    let sql = "with changed as (
            update orders set cancel_requested_at = now(), sweep_at = least(sweep_at, now() + make_interval(secs => $5))
            where id = $1 and tenant_id = $6 and state in ('reserved', 'paying')
            returning id, tenant_id, product_id, product_key, sweep_at
        ), listed as (
            insert into holds (product_key, sweep_at, order_ids) select product_key, sweep_at, array[id] from changed
        )
        insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        select $2, $3, tenant_id, product_id, id, now() + make_interval(secs => $4) from changed";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&id, UUID),
        (&outbox_id, UUID),
        (&queue.name(), TEXT),
        (&grace.as_secs_f64(), FLOAT8),
        (&QUEUED_SILENT_AFTER.as_secs_f64(), FLOAT8),
        (&tenant_id, UUID),
    ];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}
