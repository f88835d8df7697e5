//! Owing a notice: a part of the statement that moves orders, so that it costs no round trip.

use domain::Result;
use domain::notices::{Kind, Outcome};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::types::{TEXT, UUID};

/// The insert that owes a notice for each order in a part of a statement, which must have their tenant_id, id, buyer_id
/// and state; the state they came into is the kind. An order never waits for its notice: one that is there stays.
pub(crate) fn owing(orders: &str) -> String {
    // The buyer is looked up by key for each order: as a join it could be planned as a walk through all buyers.
    format!(
        "insert into notices (order_id, kind, tenant_id)
        select c.id, c.state, c.tenant_id from {orders} c join tenants t on t.id = c.tenant_id
        where c.state = any(t.notices)
            and (select true from buyers b where b.id = c.buyer_id and b.tenant_id = c.tenant_id)
        on conflict on constraint notices_pkey do nothing"
    )
}

/// Owes the notice that money of an order goes back. Later refunds of the same order have none of their own, unless the
/// first came to nothing before anybody was told of it.
pub(crate) async fn owe_refund(tx: &Transaction<'_>, tenant_id: Uuid, order_id: Uuid, buyer_id: Uuid) -> Result<()> {
    let sql = "insert into notices (order_id, kind, tenant_id)
        select $2, $4, t.id from tenants t
        where t.id = $1 and $4 = any(t.notices)
            and exists (select from buyers b where b.id = $3 and b.tenant_id = t.id)
        on conflict on constraint notices_pkey do update set created_at = now(), look_at = now(), attempts = 0,
            claimed_until = null, not_before = null, phone_sent_at = null, email_sent_at = null, failure = null,
            outcome = null
        where notices.outcome = $5";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&tenant_id, UUID),
        (&order_id, UUID),
        (&buyer_id, UUID),
        (&Kind::Refunded.word(), TEXT),
        (&Outcome::Needless.word(), TEXT),
    ];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}
