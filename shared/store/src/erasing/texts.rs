//! Texts beside a buyer's orders, emptied some orders at a time. Amounts, states, numbers and ids stay as they are.

use domain::Result;
use domain::limits::ORDERS_PER_ERASURE;
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::traces::WITH_TEXTS;
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{INT8, UUID, UUIDS};

/// Keys are replaced by ones with a blank, which no client's key has, so that none is taken.
const KEYS: &str = "update orders set idempotency_key = 'erased ' || id::text
    where id = any($1) and tenant_id = $2 and idempotency_key not like 'erased %'";

const ATTEMPTS: &str = "update payment_attempts set return_url = null, instructions = null,
        requested_under = case when requested_under like '% %' then requested_under else 'erased ' || id::text end
    where order_id = any($1) and tenant_id = $2
        and (requested_under not like '% %' or return_url is not null or instructions is not null)";

const NOTES: &str = "update refunds set note = null where order_id = any($1) and tenant_id = $2 and note is not null";

/// What is owed is owed to nobody any more.
const NOTICES: &str = "update notices set failure = null, outcome = coalesce(outcome, 'needless'), claimed_until = null
    where order_id = any($1) and tenant_id = $2 and (outcome is null or failure is not null)";

/// Empties the texts of the buyer's next orders; returns of how many. Fewer than `ORDERS_PER_ERASURE` are the last.
pub(super) async fn clear_some(tx: &Transaction<'_>, tenant_id: Uuid, buyer_id: Uuid) -> Result<i64> {
    let sql = format!(
        "select o.id from orders o where o.tenant_id = $1 and o.buyer_id = $2 and {WITH_TEXTS}
        order by o.id limit $3 for no key update of o"
    );
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&buyer_id, UUID), (&ORDERS_PER_ERASURE, INT8)];
    let rows = tx.query_typed(&sql, &params).await.map_err(from_postgres)?;
    let ids: Vec<Uuid> = rows.iter().map(|row| column(row, "id")).collect::<Result<_>>()?;
    if !ids.is_empty() {
        for sql in [KEYS, ATTEMPTS, NOTES, NOTICES] {
            tx.execute_typed(sql, &[(&ids, UUIDS), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
        }
    }
    Ok(i64::try_from(ids.len()).unwrap_or(i64::MAX))
}
