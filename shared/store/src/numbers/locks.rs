//! Locks on several rows, always by an ordered `select … for no key update` before the set-based write: an update's
//! own order is the plan's, and two plans can deadlock. NO KEY, because foreign-key checks take KEY SHARE.

use std::collections::HashMap;

use domain::Result;
use domain::catalog::Range;
use domain::numbers::Chunk;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

use crate::catalog::counters_from;
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{INT4, INT4S, UUIDS};

/// Locks chunks, ascending. Fewer come back than asked only when there are no such chunks.
pub(crate) async fn lock_chunks(
    tx: &Transaction<'_>,
    product_key: i32,
    range: Range,
    chunks: &[i32],
) -> Result<Vec<Chunk>> {
    let sql = "select chunk, bits, available, reserved, paid, blocked from number_chunks
        where product_key = $1 and chunk = any($2) order by chunk for no key update";
    let rows = tx.query_typed(sql, &[(&product_key, INT4), (&chunks, INT4S)]).await.map_err(from_postgres)?;
    rows.iter().map(|row| chunk_from(row, range)).collect()
}

const LOCK_HOLDINGS: &str = "select buyer_id, held from buyer_holdings
    where product_key = $1 and buyer_id = any($2) order by buyer_id for no key update";

/// Locks buyers' holdings, ascending, making the missing ones first: numbers held per buyer.
pub(crate) async fn lock_holdings(
    tx: &Transaction<'_>,
    product_key: i32,
    buyers: &[Uuid],
) -> Result<HashMap<Uuid, i32>> {
    let insert = "insert into buyer_holdings (product_key, buyer_id)
        select $1, buyer_id from unnest($2) as new (buyer_id) order by buyer_id on conflict do nothing";
    let inserted_params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] =
        [(&product_key, INT4), (&buyers, UUIDS)];
    let selected_params = inserted_params.clone();
    let (inserted, selected) =
        futures::join!(tx.execute_typed(insert, &inserted_params), tx.query_typed(LOCK_HOLDINGS, &selected_params));
    inserted.map_err(from_postgres)?;
    holdings_from(&selected.map_err(from_postgres)?)
}

/// Locks the holdings that there are, ascending: numbers held per buyer. Buyers who never held any have no row.
pub(crate) async fn lock_known_holdings(
    tx: &Transaction<'_>,
    product_key: i32,
    buyers: &[Uuid],
) -> Result<HashMap<Uuid, i32>> {
    let rows = tx.query_typed(LOCK_HOLDINGS, &[(&product_key, INT4), (&buyers, UUIDS)]).await.map_err(from_postgres)?;
    holdings_from(&rows)
}

fn holdings_from(rows: &[Row]) -> Result<HashMap<Uuid, i32>> {
    rows.iter().map(|row| Ok((column(row, "buyer_id")?, column(row, "held")?))).collect()
}

pub(crate) fn chunk_from(row: &Row, range: Range) -> Result<Chunk> {
    Chunk::from_stored(range, column(row, "chunk")?, column(row, "bits")?, counters_from(row)?)
}
