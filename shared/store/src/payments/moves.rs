//! Numbers that change hands because of money: held ones become paid, paid ones go back, gone ones are taken again.
//!
//! One of these per transaction: each locks its chunks ascending and then the buyer's holding, and no chunk may be
//! locked after a higher one.

use std::collections::{BTreeMap, BTreeSet};

use domain::catalog::Range;
use domain::limits::CHUNKS_PER_GROUP_MAX;
use domain::numbers::{Chunk, Kind};
use domain::orders::Fallback;
use domain::payments::LateMoney;
use domain::{Error, Result};
use rand::SeedableRng;
use rand::rngs::{StdRng, SysRng};
use tokio_postgres::Transaction;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::money::Money;
use crate::catalog::Product;
use crate::errors::{constraint_of, from_postgres};
use crate::numbers::{Failure, add_to_holdings, delete_taken, insert_taken, lock_chunks, lock_holdings, update_chunks};
use crate::rows::column;
use crate::types::{INT4, INT8};

/// Held numbers become paid: counters only, because the rows say who owns them and the order says how.
pub(super) async fn pay(tx: &Transaction<'_>, product: &Product, numbers: &[i32]) -> std::result::Result<(), Failure> {
    let range = product.described.range;
    let mut chunks = lock_chunks(tx, product.key, range, &chunks_of(range, numbers)).await?;
    change(&mut chunks, range, numbers, |chunk, number| chunk.pay(number))?;
    update_chunks(tx, product.key, &chunks).await
}

/// Paid numbers go back to stock.
pub(super) async fn give_up(
    tx: &Transaction<'_>,
    product: &Product,
    money: &mut Money,
    numbers: &[i32],
) -> std::result::Result<(), Failure> {
    let range = product.described.range;
    let indexes = chunks_of(range, numbers);
    let buyer_id = money.order.buyer_id;
    let mut chunks = lock_chunks(tx, product.key, range, &indexes).await?;
    lock_holdings(tx, product.key, &[buyer_id]).await?;
    change(&mut chunks, range, numbers, |chunk, number| chunk.give_back(number, Kind::Paid))?;
    update_chunks(tx, product.key, &chunks).await?;
    add_to_holdings(tx, product.key, &BTreeMap::from([(buyer_id, -count(numbers))])).await?;
    let rows = rows_of(money.order.id, numbers);
    if delete_taken(tx, product.key, &rows).await? != rows.len() as u64 {
        return Err(Failure::Disagreement(indexes));
    }
    money.give_up(numbers);
    Ok(())
}

/// Takes an expired order's numbers again, as paid: the same if all are free, others if the product's policy and the
/// buyer allow it. False, and nothing changed, when they cannot be had.
pub(super) async fn retake(
    tx: &Transaction<'_>,
    product: &Product,
    policy: LateMoney,
    money: &mut Money,
) -> std::result::Result<bool, Failure> {
    if policy == LateMoney::Refund {
        return Ok(false);
    }
    let range = product.described.range;
    let wanted = money.order.numbers.clone();
    let may_replace = policy == LateMoney::Substitute && money.order.fallback == Fallback::Replace;
    let mut indexes: BTreeSet<i32> = chunks_of(range, &wanted).into_iter().collect();
    if may_replace {
        indexes.extend(find_stocked(tx, product.key).await?);
    }
    let indexes: Vec<i32> = indexes.into_iter().collect();
    let mut chunks = lock_chunks(tx, product.key, range, &indexes).await?;
    let held = lock_holdings(tx, product.key, &[money.order.buyer_id]).await?;
    let held = held.get(&money.order.buyer_id).copied().unwrap_or(0);
    if held + count(&wanted) > product.described.numbers_per_buyer_max {
        return Ok(false);
    }
    let (free, gone): (Vec<i32>, Vec<i32>) =
        wanted.iter().partition(|number| chunk_in(&chunks, range, **number).is_some_and(|c| c.is_free(**number)));
    if !gone.is_empty() && !may_replace {
        return Ok(false);
    }
    let mut taken = free;
    change(&mut chunks, range, &taken, |chunk, number| chunk.take(number, Kind::Paid))?;
    let Some(substitutes) = draw(&mut chunks, gone.len())? else { return Ok(false) };
    taken.extend(&substitutes);
    taken.sort_unstable();
    match insert_taken(tx, product.key, &rows_of(money.order.id, &taken)).await {
        Ok(_) => {}
        Err(error) if constraint_of(&error) == Some("taken_numbers_pkey") => {
            return Err(Failure::Disagreement(indexes));
        }
        Err(error) => return Err(error.into()),
    }
    update_chunks(tx, product.key, &chunks).await?;
    add_to_holdings(tx, product.key, &BTreeMap::from([(money.order.buyer_id, count(&taken))])).await?;
    if !substitutes.is_empty() {
        let mut all: Vec<i32> = money.order.substitutes.iter().copied().filter(|n| taken.contains(n)).collect();
        all.extend(substitutes);
        all.sort_unstable();
        money.replace_numbers(taken, all);
    }
    Ok(true)
}

/// Some chunks that have numbers left, at random.
async fn find_stocked(tx: &Transaction<'_>, product_key: i32) -> Result<Vec<i32>> {
    let sql = "select chunk from number_chunks where product_key = $1 and available > 0
        order by -ln(1.0 - random()) / available limit $2";
    let limit = i64::try_from(CHUNKS_PER_GROUP_MAX).unwrap_or(i64::MAX);
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&product_key, INT4), (&limit, INT8)];
    let rows = tx.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| column(row, "chunk")).collect()
}

/// Takes so many random numbers; none, with some taken in memory only, when there are not enough.
fn draw(chunks: &mut [Chunk], wanted: usize) -> Result<Option<Vec<i32>>> {
    let mut rng = StdRng::try_from_rng(&mut SysRng).map_err(|error| Error::Fault(Box::new(error)))?;
    let mut drawn = Vec::with_capacity(wanted);
    let mut position = 0;
    while drawn.len() < wanted {
        let Some(chunk) = chunks.get_mut(position) else { return Ok(None) };
        match chunk.random_free(&mut rng) {
            Some(number) if chunk.take(number, Kind::Paid) => drawn.push(number),
            _ => position += 1,
        }
    }
    Ok(Some(drawn))
}

fn change(
    chunks: &mut [Chunk],
    range: Range,
    numbers: &[i32],
    mut one: impl FnMut(&mut Chunk, i32) -> bool,
) -> std::result::Result<(), Failure> {
    let mut wrong = BTreeSet::new();
    for number in numbers {
        let index = range.chunk_of(*number);
        let chunk = chunks.iter_mut().find(|chunk| chunk.index() == index);
        if !chunk.is_some_and(|chunk| one(chunk, *number)) {
            wrong.insert(index);
        }
    }
    if wrong.is_empty() { Ok(()) } else { Err(Failure::Disagreement(wrong.into_iter().collect())) }
}

fn chunk_in(chunks: &[Chunk], range: Range, number: i32) -> Option<&Chunk> {
    chunks.iter().find(|chunk| chunk.index() == range.chunk_of(number))
}

fn chunks_of(range: Range, numbers: &[i32]) -> Vec<i32> {
    let indexes: BTreeSet<i32> = numbers.iter().map(|number| range.chunk_of(*number)).collect();
    indexes.into_iter().collect()
}

fn rows_of(order_id: Uuid, numbers: &[i32]) -> Vec<(i32, Option<Uuid>)> {
    numbers.iter().map(|number| (*number, Some(order_id))).collect()
}

fn count(numbers: &[i32]) -> i32 {
    i32::try_from(numbers.len()).unwrap_or(i32::MAX)
}
