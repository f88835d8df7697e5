//! Forgetting a buyer: first the texts beside the orders, in short transactions; last, in one, everything that says who
//! it is, with the line in the audit log. What is cut short in between is taken up by the next run.

use domain::limits::ORDERS_PER_ERASURE;
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use super::texts::clear_some;
use super::traces::{FILES, Traces, Whom, find_traces, list_under_way};
use crate::acts::{OperatorAct, Subject, log_of_operator};
use crate::errors::from_postgres;
use crate::types::{TEXT, UUID};

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ErasedBuyer {
    /// Nothing says who it was; these traces there were before. Those of somebody unknown are none.
    Done(Traces),
    /// These orders are under way: nothing that says who it is has changed.
    UnderWay(Vec<Uuid>),
}

/// Forgets somebody at a store. Again, it changes nothing. Whoever logs in with the same phone later is a new buyer.
///
/// # Errors
/// Busy when somebody works on one of the orders, or when orders keep coming; busy or fault from the database. What was
/// done until then is done, and the next run goes on.
pub async fn erase_buyer(client: &mut Client, tenant_id: Uuid, whom: &Whom) -> Result<ErasedBuyer> {
    let traces = find_traces(client, tenant_id, whom).await?;
    if !traces.under_way.is_empty() {
        return Ok(ErasedBuyer::UnderWay(traces.under_way));
    }
    if let Some(buyer_id) = traces.buyer_id {
        // One more than there can be: texts that came meanwhile are the last transaction's.
        for _ in 0..=traces.texts / ORDERS_PER_ERASURE {
            let tx = client.transaction().await.map_err(from_postgres)?;
            let cleared = clear_some(&tx, tenant_id, buyer_id).await?;
            tx.commit().await.map_err(from_postgres)?;
            if cleared < ORDERS_PER_ERASURE {
                break;
            }
        }
    }
    let tx = client.transaction().await.map_err(from_postgres)?;
    if let Some(phone) = &traces.phone {
        let sql = "delete from login_codes where tenant_id = $1 and phone = $2";
        tx.execute_typed(sql, &[(&tenant_id, UUID), (&phone.as_str(), TEXT)]).await.map_err(from_postgres)?;
    }
    if let Some(buyer_id) = traces.buyer_id {
        let under_way = forget(&tx, tenant_id, buyer_id).await?;
        if !under_way.is_empty() {
            return Ok(ErasedBuyer::UnderWay(under_way));
        }
    }
    tx.commit().await.map_err(from_postgres)?;
    Ok(ErasedBuyer::Done(traces))
}

/// Everything that says who a buyer is; orders that came under way meanwhile, of which there must be none.
async fn forget(tx: &Transaction<'_>, tenant_id: Uuid, buyer_id: Uuid) -> Result<Vec<Uuid>> {
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&tenant_id, UUID), (&buyer_id, UUID)];
    // Whoever logs in, or is sold to, changes this row first: from here on they wait, and are somebody new.
    let lock = "select id from buyers where tenant_id = $1 and id = $2 for no key update";
    tx.query_typed_opt(lock, &params).await.map_err(from_postgres)?;
    let under_way = list_under_way(tx.client(), tenant_id, buyer_id).await?;
    if !under_way.is_empty() {
        return Ok(under_way);
    }
    if clear_some(tx, tenant_id, buyer_id).await? >= ORDERS_PER_ERASURE {
        return Err(Error::busy("orders keep coming"));
    }
    for sql in [
        "delete from idempotency_keys where tenant_id = $1 and subject_id = $2",
        "delete from sessions where tenant_id = $1 and buyer_id = $2",
    ] {
        tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    }
    let sql = "delete from buyers where tenant_id = $1 and id = $2";
    if tx.execute_typed(sql, &params).await.map_err(from_postgres)? == 1 {
        // Files that were written after somebody was forgotten have no phone in them.
        withdraw_exports(tx, tenant_id, buyer_id).await?;
        log_of_operator(tx, tenant_id, OperatorAct::EraseBuyer, Subject::Buyer, buyer_id).await?;
    }
    Ok(under_way)
}

/// Files that may have the phone in them: nobody gets another link to one that is ready, which the bucket deletes after
/// days. One that is being written is begun anew, and its upload stays named, so that whoever begins aborts it first: a
/// writer who is late then has nothing to complete. One that nobody has begun is only locked: whoever claims it reads
/// rows when the phone is gone.
async fn withdraw_exports(tx: &Transaction<'_>, tenant_id: Uuid, buyer_id: Uuid) -> Result<()> {
    let sql = format!(
        "update exports e set expires_at = case when e.state = 'ready' then now() end,
            state = case when e.state = 'ready' then 'ready' else 'queued' end,
            claim = null, claimed_until = null, look_at = now(),
            parts = case when e.state = 'ready' then e.parts else '{{}}' end,
            cursor = case when e.state = 'ready' then e.cursor end,
            written_at = case when e.state = 'ready' then e.written_at end,
            rows_done = case when e.state = 'ready' then e.rows_done else 0 end,
            bytes_done = case when e.state = 'ready' then e.bytes_done else 0 end,
            percent = case when e.state = 'ready' then e.percent else 0 end
        where e.tenant_id = $1 and ({FILES} or e.state = 'queued') and e.product_id in (
            select o.product_id from orders o where o.tenant_id = $1 and o.buyer_id = $2)"
    );
    tx.execute_typed(&sql, &[(&tenant_id, UUID), (&buyer_id, UUID)]).await.map_err(from_postgres)?;
    Ok(())
}
