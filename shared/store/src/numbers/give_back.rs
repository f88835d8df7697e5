//! Numbers of locked orders back to stock, whatever the cause: every derived value, in the lock order.

use std::collections::{BTreeMap, BTreeSet};

use domain::Result;
use domain::numbers::Kind;
use domain::orders::State;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Transaction};
use uuid::Uuid;

use crate::catalog::Product;
use crate::errors::from_postgres;
use crate::notices::owing;
use crate::numbers::Failure;
use crate::numbers::locks::{lock_chunks, lock_holdings};
use crate::numbers::writes::{add_to_holdings, delete_taken, expect, update_chunks};
use crate::rows::column;
use crate::types::{TEXT, TEXTS, UUIDS};

/// A locked order whose numbers go back, and the state in which that leaves it.
pub(crate) struct Held {
    pub(crate) id: Uuid,
    pub(crate) buyer_id: Uuid,
    pub(crate) numbers: Vec<i32>,
    pub(crate) end: State,
}

/// Reads id, buyer_id, numbers and `cancelled`: whether its buyer gave it up.
pub(crate) fn held_from(row: &Row) -> Result<Held> {
    let end = if column(row, "cancelled")? { State::Cancelled } else { State::Expired };
    Ok(Held { id: column(row, "id")?, buyer_id: column(row, "buyer_id")?, numbers: column(row, "numbers")?, end })
}

/// Numbers of locked orders back to stock: chunks, holdings, rows, orders and history, in the lock order.
pub(crate) async fn give_back(
    tx: &Transaction<'_>,
    product: &Product,
    held: &[Held],
    cause: &str,
) -> std::result::Result<(), Failure> {
    if held.is_empty() {
        return Ok(());
    }
    let range = product.described.range;
    let taken: Vec<(i32, Option<Uuid>)> =
        held.iter().flat_map(|order| order.numbers.iter().map(|number| (*number, Some(order.id)))).collect();
    let indexes: BTreeSet<i32> = taken.iter().map(|(number, _)| range.chunk_of(*number)).collect();
    let indexes: Vec<i32> = indexes.into_iter().collect();
    let mut changes = BTreeMap::new();
    for order in held {
        *changes.entry(order.buyer_id).or_insert(0) -= i32::try_from(order.numbers.len()).unwrap_or(i32::MAX);
    }
    let buyers: Vec<Uuid> = changes.keys().copied().collect();
    let (mut chunks, _) = futures::future::try_join(
        lock_chunks(tx, product.key, range, &indexes),
        lock_holdings(tx, product.key, &buyers),
    )
    .await?;
    let mut wrong = BTreeSet::new();
    for (number, _) in &taken {
        let index = range.chunk_of(*number);
        let chunk = chunks.iter_mut().find(|chunk| chunk.index() == index);
        if !chunk.is_some_and(|chunk| chunk.give_back(*number, Kind::Reserved)) {
            wrong.insert(index);
        }
    }
    if !wrong.is_empty() {
        return Err(Failure::Disagreement(wrong.into_iter().collect()));
    }
    let (updated, added, deleted) = futures::join!(
        update_chunks(tx, product.key, &chunks),
        add_to_holdings(tx, product.key, &changes),
        delete_taken(tx, product.key, &taken)
    );
    updated?;
    added?;
    if deleted? != taken.len() as u64 {
        // Rows are missing: mending restores those that only this order claims.
        return Err(Failure::Disagreement(indexes));
    }
    end_orders(tx, held, cause).await?;
    Ok(())
}

async fn end_orders(tx: &Transaction<'_>, held: &[Held], cause: &str) -> Result<()> {
    let ids: Vec<Uuid> = held.iter().map(|order| order.id).collect();
    let states: Vec<&str> = held.iter().map(|order| order.end.word()).collect();
    let sql = format!(
        "with changed as (
            update orders o set state = new.state, version = o.version + 1
            from unnest($1, $2) as new (id, state)
            where o.id = new.id and o.state = 'reserved'
            returning o.id, o.version, o.state, o.tenant_id, o.buyer_id
        ), noticed as ({})
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, version, 'reserved', state, $3 from changed",
        owing("changed")
    );
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&ids, UUIDS), (&states, TEXTS), (&cause, TEXT)];
    expect(held.len(), tx.execute_typed(&sql, &params).await.map_err(from_postgres)?, "released orders")
}
