//! The set-based writes behind locked rows. Each asserts how many rows it changed: fewer means that somebody wrote
//! without the lock.

use std::collections::BTreeMap;

use domain::numbers::Chunk;
use domain::{Error, Result};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::errors::{constraint_of, from_postgres};
use crate::numbers::Failure;
use crate::types::{BYTEAS, INT4, INT4S, UUIDS};

/// Takes numbers; the primary key decides. A violation means that bits and rows disagreed.
pub(crate) async fn insert_taken(
    tx: &Transaction<'_>,
    product_key: i32,
    taken: &[(i32, Option<Uuid>)],
) -> std::result::Result<u64, tokio_postgres::Error> {
    let numbers: Vec<i32> = taken.iter().map(|(number, _)| *number).collect();
    let orders: Vec<Option<Uuid>> = taken.iter().map(|(_, order)| *order).collect();
    let sql = "insert into taken_numbers (product_key, number, order_id)
        select $1, number, order_id from unnest($2, $3) as new (number, order_id)";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&product_key, INT4), (&numbers, INT4S), (&orders, UUIDS)];
    tx.execute_typed(sql, &params).await
}

/// Gives numbers up; returns how many were really in these hands.
pub(crate) async fn delete_taken(tx: &Transaction<'_>, product_key: i32, taken: &[(i32, Option<Uuid>)]) -> Result<u64> {
    let numbers: Vec<i32> = taken.iter().map(|(number, _)| *number).collect();
    let orders: Vec<Option<Uuid>> = taken.iter().map(|(_, order)| *order).collect();
    let sql = "delete from taken_numbers t using unnest($2, $3) as gone (number, order_id)
        where t.product_key = $1 and t.number = gone.number and t.order_id is not distinct from gone.order_id";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&product_key, INT4), (&numbers, INT4S), (&orders, UUIDS)];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)
}

/// Writes the changed ones of locked chunks.
///
/// A violated counter check means that the counters were wrong before: a disagreement, to be mended.
pub(crate) async fn update_chunks(
    tx: &Transaction<'_>,
    product_key: i32,
    chunks: &[Chunk],
) -> std::result::Result<(), Failure> {
    let changed: Vec<&Chunk> = chunks.iter().filter(|chunk| chunk.is_changed()).collect();
    if changed.is_empty() {
        return Ok(());
    }
    let indexes: Vec<i32> = changed.iter().map(|chunk| chunk.index()).collect();
    let bits: Vec<Vec<u8>> = changed.iter().map(|chunk| chunk.bits()).collect();
    let of = |get: fn(&domain::numbers::Counters) -> i32| {
        changed.iter().map(|chunk| get(&chunk.counters())).collect::<Vec<_>>()
    };
    let (available, reserved, paid, blocked) =
        (of(|c| c.available), of(|c| c.reserved), of(|c| c.paid), of(|c| c.blocked));
    let sql = "update number_chunks c
        set bits = new.bits, available = new.available, reserved = new.reserved, paid = new.paid, blocked = new.blocked,
            version = c.version + 1
        from unnest($2, $3, $4, $5, $6, $7) as new (chunk, bits, available, reserved, paid, blocked)
        where c.product_key = $1 and c.chunk = new.chunk";
    let params: [(&(dyn ToSql + Sync), _); 7] = [
        (&product_key, INT4),
        (&indexes, INT4S),
        (&bits, BYTEAS),
        (&available, INT4S),
        (&reserved, INT4S),
        (&paid, INT4S),
        (&blocked, INT4S),
    ];
    match tx.execute_typed(sql, &params).await {
        Ok(updated) => Ok(expect(changed.len(), updated, "chunks")?),
        Err(error) if constraint_of(&error).is_some_and(|name| name.starts_with("number_chunks_")) => {
            Err(Failure::Disagreement(indexes))
        }
        Err(error) => Err(error.into()),
    }
}

/// Adds to locked holdings, one row per buyer.
///
/// A count that would fall below zero was wrong before.
pub(crate) async fn add_to_holdings(
    tx: &Transaction<'_>,
    product_key: i32,
    changes: &BTreeMap<Uuid, i32>,
) -> std::result::Result<(), Failure> {
    if changes.is_empty() {
        return Ok(());
    }
    let buyers: Vec<Uuid> = changes.keys().copied().collect();
    let counts: Vec<i32> = changes.values().copied().collect();
    let sql = "update buyer_holdings h set held = h.held + new.change
        from unnest($2, $3) as new (buyer_id, change)
        where h.product_key = $1 and h.buyer_id = new.buyer_id";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&product_key, INT4), (&buyers, UUIDS), (&counts, INT4S)];
    match tx.execute_typed(sql, &params).await {
        Ok(updated) => Ok(expect(buyers.len(), updated, "holdings")?),
        Err(error) if constraint_of(&error) == Some("buyer_holdings_not_negative") => Err(Failure::Miscounted(buyers)),
        Err(error) => Err(error.into()),
    }
}

/// Makes the holdings of buyers who had none when the others were locked, ascending, one row per buyer.
///
/// If another transaction made one of them first, its count is not known here: the group must be decided again.
pub(crate) async fn insert_holdings(
    tx: &Transaction<'_>,
    product_key: i32,
    holdings: &BTreeMap<Uuid, i32>,
) -> std::result::Result<(), Failure> {
    if holdings.is_empty() {
        return Ok(());
    }
    let buyers: Vec<Uuid> = holdings.keys().copied().collect();
    let counts: Vec<i32> = holdings.values().copied().collect();
    let sql = "insert into buyer_holdings (product_key, buyer_id, held)
        select $1, buyer_id, held from unnest($2, $3) as new (buyer_id, held)";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&product_key, INT4), (&buyers, UUIDS), (&counts, INT4S)];
    match tx.execute_typed(sql, &params).await {
        Ok(inserted) => Ok(expect(buyers.len(), inserted, "first holdings")?),
        Err(error) if constraint_of(&error) == Some("buyer_holdings_pkey") => Err(Failure::Overtaken),
        Err(error) => Err(error.into()),
    }
}

/// A fault unless a write changed exactly as many rows as it was meant to.
pub(crate) fn expect(wanted: usize, changed: u64, what: &str) -> Result<()> {
    if u64::try_from(wanted).is_ok_and(|wanted| wanted == changed) {
        Ok(())
    } else {
        Err(Error::fault(format!("{changed} of {wanted} {what} were written")))
    }
}
