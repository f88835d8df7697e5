//! What staff do to orders: give one up for its buyer, or give its buyer more time.

use std::time::Duration;

use domain::limits::{HOLD_EXTENSION_SECONDS_MAX, HOLD_SECONDS_MAX};
use domain::messages::Queue;
use domain::orders::State;
use domain::{Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::cancel::{mark_cancelled, mark_requested};
use crate::acts::{NewAct, claim_key, log, record};
use crate::errors::{from_postgres, is_lock_timeout};
use crate::rows::{column, one_word};
use crate::types::{INT4, UUID};

/// What the log calls it.
const CAUSE: &str = "staff";

/// Gives an order up for its buyer, as the buyer could: at once while it is queued; once it holds numbers they go back
/// within a minute, after what is open at a gateway has been closed. Again, or under the same key, it changes nothing.
///
/// # Errors
/// Not-found, wrong-state, those of a key, busy (409) when a worker has the order now; busy or fault.
pub async fn give_up(client: &mut Client, outbox_id: Uuid, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let row = lock(&tx, act).await?;
    if !claim_key(&tx, act).await? {
        return Ok(());
    }
    let requested: bool = column(&row, "requested")?;
    match one_word(&row, "state", State::from_word)? {
        State::Queued => mark_cancelled(&tx, act.tenant_id, act.subject_id, CAUSE).await?,
        state @ (State::Reserved | State::Paying) if !requested => {
            let queue = if state == State::Paying { Queue::SettlePayment } else { Queue::ReleaseNumbers };
            mark_requested(&tx, (act.tenant_id, act.subject_id), outbox_id, queue, Duration::ZERO).await?;
        }
        // Somebody was first, whom the log has or who is its buyer.
        State::Cancelled | State::Reserved | State::Paying => return tx.commit().await.map_err(from_postgres),
        _ => return Err(Reason::WrongState.into()),
    }
    log(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)
}

/// Gives a buyer more time to pay. The whole hold stays below the longest that a product may have, counted from the
/// order's acceptance. Returns the hold's new end; none when the same was done under the key before.
///
/// # Errors
/// Not-found; wrong-state when it holds nothing or its buyer gave it up; hold-expired; limit-exceeded; those of a key;
/// busy (409) when a worker has the order now; busy or fault.
pub async fn extend(client: &mut Client, seconds: i32, act: &NewAct) -> Result<Option<OffsetDateTime>> {
    if !(1..=HOLD_EXTENSION_SECONDS_MAX).contains(&seconds) {
        return Err(Reason::Invalid.into());
    }
    let tx = client.transaction().await.map_err(from_postgres)?;
    let row = lock(&tx, act).await?;
    if !record(&tx, act).await? {
        return Ok(None);
    }
    let state = one_word(&row, "state", State::from_word)?;
    if !matches!(state, State::Reserved | State::Paying) || column(&row, "requested")? {
        return Err(Reason::WrongState.into());
    }
    if column(&row, "over")? {
        return Err(Reason::HoldExpired.into());
    }
    let end = mark_extended(&tx, act, seconds).await?.ok_or(Reason::LimitExceeded)?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(Some(end))
}

async fn lock(tx: &Transaction<'_>, act: &NewAct) -> Result<Row> {
    let sql = "select state, cancel_requested_at is not null as requested, coalesce(expires_at <= now(), true) as over
        from orders where id = $1 and tenant_id = $2 for no key update";
    match tx.query_typed_opt(sql, &[(&act.subject_id, UUID), (&act.tenant_id, UUID)]).await {
        Ok(row) => row.ok_or_else(|| Reason::NotFound.into()),
        Err(error) if is_lock_timeout(&error) => Err(Reason::Busy.into()),
        Err(error) => Err(from_postgres(error)),
    }
}

/// The expiry sweep is told of the new end; the row of the old one names an order that is not due, and goes.
async fn mark_extended(tx: &Transaction<'_>, act: &NewAct, seconds: i32) -> Result<Option<OffsetDateTime>> {
    let sql = "with changed as (
            update orders set expires_at = expires_at + make_interval(secs => $2),
                sweep_at = expires_at + make_interval(secs => $2)
            where id = $1 and tenant_id = $4
                and expires_at + make_interval(secs => $2) <= created_at + make_interval(secs => $3)
            returning id, product_key, sweep_at, expires_at
        ), listed as (
            insert into holds (product_key, sweep_at, order_ids) select product_key, sweep_at, array[id] from changed
        )
        select expires_at from changed";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&act.subject_id, UUID), (&seconds, INT4), (&HOLD_SECONDS_MAX, INT4), (&act.tenant_id, UUID)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    row.map(|row| column(&row, "expires_at")).transpose()
}
