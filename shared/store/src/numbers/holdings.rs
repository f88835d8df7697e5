//! Holdings are derived, like bits: what buyers hold is recounted from their orders, under the holdings' locks.

use domain::Result;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::findings::{NewFinding, record};
use crate::numbers::locks::lock_holdings;
use crate::rows::{column, may_scan};
use crate::types::{INT4, INT8, UUIDS};

/// Buyers of a product whose holdings differ from a recount, `limit` at most. Looks at all of the product's orders.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_miscounted(client: &mut Client, product_key: i32, limit: i64) -> Result<Vec<Uuid>> {
    let tx = may_scan(client).await?;
    let sql = "select buyer_id from (
            select buyer_id, sum(cardinality(numbers) - coalesce(cardinality(given_up), 0))::int8 as held from orders
            where product_key = $1 and state in ('reserved', 'paying', 'paid', 'refunding') group by buyer_id) as recount
        full join (select buyer_id, held::int8 from buyer_holdings where product_key = $1 and held <> 0) as holdings
            using (buyer_id)
        where coalesce(recount.held, 0) <> coalesce(holdings.held, 0) order by buyer_id limit $2";
    let rows = tx.query_typed(sql, &[(&product_key, INT4), (&limit, INT8)]).await.map_err(from_postgres)?;
    rows.iter().map(|row| column(row, "buyer_id")).collect()
}

/// Recounts buyers' holdings and records that it was needed; returns how many were wrong. Whoever changes an order's
/// numbers holds its buyer's lock, so the count cannot move meanwhile.
///
/// # Errors
/// Busy or fault from the database.
pub async fn recount(client: &mut Client, product_key: i32, buyers: &[Uuid]) -> Result<u64> {
    let mut buyers = buyers.to_vec();
    buyers.sort_unstable();
    let tx = client.transaction().await.map_err(from_postgres)?;
    lock_holdings(&tx, product_key, &buyers).await?;
    let sql = "update buyer_holdings h set held = recount.held
        from (select b.buyer_id, coalesce(sum(cardinality(o.numbers) - coalesce(cardinality(o.given_up), 0)), 0)::int4 as held
            from unnest($2) as b (buyer_id) left join orders o
                on o.product_key = $1 and o.buyer_id = b.buyer_id and o.state in ('reserved', 'paying', 'paid', 'refunding')
            group by b.buyer_id) as recount
        where h.product_key = $1 and h.buyer_id = recount.buyer_id and h.held <> recount.held";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&product_key, INT4), (&buyers, UUIDS)];
    let wrong = tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    if wrong > 0 {
        let detail = format!("{wrong} buyers' holdings were recounted");
        let finding = NewFinding { product_key, chunk: None, invariant: "I3", detail: &detail, resolved: true };
        record(tx.client(), &finding).await?;
    }
    tx.commit().await.map_err(from_postgres)?;
    Ok(wrong)
}
