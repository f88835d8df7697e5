//! Staff take free numbers off sale and put them back.

use std::collections::BTreeSet;

use domain::catalog::Reserving;
use domain::numbers::Kind;
use domain::{Reason, Result};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::acts::{NewAct, record};
use crate::catalog::Product;
use crate::errors::{constraint_of, from_postgres};
use crate::numbers::Failure;
use crate::numbers::locks::lock_chunks;
use crate::numbers::mend::mend_chunks;
use crate::numbers::writes::{delete_taken, expect, insert_taken, update_chunks};
use crate::rows::column;
use crate::switches;
use crate::types::{BOOL, INT4, INT4S};

/// Blocks free numbers as an act of staff or of the platform's operator, all or none, once per key.
///
/// # Errors
/// Out-of-range, reserving-halted, numbers-taken when one of them is not free, those of a key, or busy or fault from
/// the database.
pub async fn block(client: &mut Client, product: &Product, numbers: &BTreeSet<i32>, act: &NewAct) -> Result<()> {
    twice(client, product, numbers, true, act).await
}

/// Unblocks blocked numbers as an act of staff or of the platform's operator, all or none, once per key.
///
/// # Errors
/// Out-of-range, reserving-halted, numbers-taken when one of them is not blocked, those of a key, or busy or fault
/// from the database.
pub async fn unblock(client: &mut Client, product: &Product, numbers: &BTreeSet<i32>, act: &NewAct) -> Result<()> {
    twice(client, product, numbers, false, act).await
}

/// Which of these numbers cannot be blocked, or else unblocked, as it is now: those that are not free, or not blocked.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_unfit(client: &Client, product: &Product, numbers: &BTreeSet<i32>, take: bool) -> Result<Vec<i32>> {
    let numbers: Vec<i32> = numbers.iter().copied().collect();
    let sql = "select wanted.number from unnest($2) as wanted (number)
            left join taken_numbers t on t.product_key = $1 and t.number = wanted.number
        where case when $3 then t.number is not null else t.number is null or t.order_id is not null end
        order by wanted.number";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&product.key, INT4), (&numbers, INT4S), (&take, BOOL)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| column(row, "number")).collect()
}

/// Once, and once more after mending when bits and rows disagreed.
async fn twice(
    client: &mut Client,
    product: &Product,
    numbers: &BTreeSet<i32>,
    take: bool,
    act: &NewAct,
) -> Result<()> {
    if !numbers.iter().all(|number| product.described.range.contains(*number)) {
        return Err(Reason::OutOfRange.into());
    }
    match change(client, product, numbers, take, act).await {
        Err(Failure::Disagreement(chunks)) => {
            mend_chunks(client, product, &chunks).await?;
            change(client, product, numbers, take, act).await.map_err(Failure::into_error)
        }
        other => other.map_err(Failure::into_error),
    }
}

async fn change(
    client: &mut Client,
    product: &Product,
    numbers: &BTreeSet<i32>,
    take: bool,
    act: &NewAct,
) -> std::result::Result<(), Failure> {
    let range = product.described.range;
    let indexes: BTreeSet<i32> = numbers.iter().map(|number| range.chunk_of(*number)).collect();
    let indexes: Vec<i32> = indexes.into_iter().collect();
    let rows: Vec<(i32, Option<Uuid>)> = numbers.iter().map(|number| (*number, None)).collect();
    let tx = client.transaction().await.map_err(from_postgres)?;
    if !record(&tx, act).await? {
        return Ok(());
    }
    if switches::reserving(&tx, product.key).await? == Reserving::Halted {
        return Err(Reason::ReservingHalted.into());
    }
    let mut chunks = lock_chunks(&tx, product.key, range, &indexes).await?;
    for number in numbers {
        let chunk = chunks.iter_mut().find(|chunk| chunk.index() == range.chunk_of(*number));
        let done = chunk
            .is_some_and(|c| if take { c.take(*number, Kind::Blocked) } else { c.give_back(*number, Kind::Blocked) });
        if !done {
            return Err(Reason::NumbersTaken.into());
        }
    }
    if take {
        match insert_taken(&tx, product.key, &rows).await {
            Ok(inserted) => expect(rows.len(), inserted, "blocked numbers")?,
            Err(error) if constraint_of(&error) == Some("taken_numbers_pkey") => {
                return Err(Failure::Disagreement(indexes));
            }
            Err(error) => return Err(error.into()),
        }
    } else if delete_taken(&tx, product.key, &rows).await? != rows.len() as u64 {
        // Sold numbers among them, whose bits are set as well.
        return Err(Reason::NumbersTaken.into());
    }
    update_chunks(&tx, product.key, &chunks).await?;
    tx.commit().await?;
    Ok(())
}
