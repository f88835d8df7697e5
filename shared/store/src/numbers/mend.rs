//! Bits and counters are derived; rows decide. What disagrees is recomputed from the rows, under the chunk's lock.

use domain::catalog::Range;
use domain::numbers::{Chunk, Disagreement, Kind};
use domain::{Error, Result};
use tokio_postgres::{Client, Row, Transaction};

use crate::acts::{OperatorAct, Subject, log_of_operator};
use crate::catalog::Product;
use crate::errors::from_postgres;
use crate::findings::{self, NewFinding};
use crate::numbers::Failure;
use crate::numbers::holdings::{find_miscounted, recount};
use crate::numbers::locks::{chunk_from, lock_chunks};
use crate::numbers::waiting::relist;
use crate::numbers::writes::update_chunks;
use crate::rows::{allow_scans, column};
use crate::types::{INT4, INT4S};

/// Buyers whose holdings one transaction recounts.
const BUYERS_PER_RECOUNT: i64 = 1_000;

/// Numbers of a range that are not available, and their kinds: a number is what its order's state makes it.
const TAKEN: &str = "select coalesce(array_agg(t.number), '{}') as numbers,
        coalesce(array_agg(case when t.order_id is null then 'blocked'
            when o.state in ('paid', 'refunding') then 'paid' else 'reserved' end), '{}') as kinds
    from taken_numbers t left join orders o on o.id = t.order_id
    where t.product_key = $1 and t.number between $2 and $3";

/// Compares one chunk with its rows, both from one snapshot; none when there is no such chunk.
///
/// # Errors
/// Busy or fault from the database.
pub async fn compare_chunk(
    client: &Client,
    product_key: i32,
    range: Range,
    chunk: i32,
) -> Result<Option<Disagreement>> {
    let sql = format!(
        "select c.chunk, c.bits, c.available, c.reserved, c.paid, c.blocked, t.numbers, t.kinds
        from number_chunks c cross join lateral ({TAKEN}) as t where c.product_key = $1 and c.chunk = $4"
    );
    let (first, last) = bounds(range, chunk);
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 4] =
        [(&product_key, INT4), (&first, INT4), (&last, INT4), (&chunk, INT4)];
    let Some(row) = client.query_typed_opt(&sql, &params).await.map_err(from_postgres)? else { return Ok(None) };
    let stored = chunk_from(&row, range)?;
    Ok(Some(stored.compare(&taken_from(&row)?)))
}

/// Compares one chunk with its rows under the chunk's lock, so that no writer is between the two.
///
/// # Errors
/// Busy or fault from the database.
pub async fn confirm_chunk(client: &mut Client, product_key: i32, range: Range, chunk: i32) -> Result<Disagreement> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let stored = lock_one(&tx, product_key, range, chunk).await?;
    let found = stored.compare(&list_taken(&tx, product_key, range, chunk).await?);
    tx.rollback().await.map_err(from_postgres)?;
    Ok(found)
}

/// Repairs what a failed transaction found to be wrong; the caller then tries once more.
pub(crate) async fn repair(client: &mut Client, product: &Product, failure: &Failure) -> Result<()> {
    match failure {
        Failure::Disagreement(chunks) => mend_chunks(client, product, chunks).await.map(drop),
        Failure::Miscounted(buyers) => recount(client, product.key, buyers).await.map(drop),
        Failure::TooNarrow | Failure::Overtaken | Failure::Error(_) => Ok(()),
    }
}

/// Mends chunks from their rows and records what was wrong; returns how many were.
///
/// A number that is taken by its bit and has no row is freed only if no live order claims it: otherwise its row is
/// restored, because freeing it would sell it twice.
///
/// # Errors
/// Busy or fault from the database.
pub async fn mend_chunks(client: &mut Client, product: &Product, chunks: &[i32]) -> Result<usize> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let range = product.described.range;
    let mut mended = 0;
    let mut changed = Vec::new();
    for stored in lock_chunks(&tx, product.key, range, chunks).await? {
        let mut rows = list_taken(&tx, product.key, range, stored.index()).await?;
        let found = stored.compare(&rows);
        if found.is_none() {
            continue;
        }
        mended += 1;
        let restored = restore_rows(&tx, product.key, &found.wrongly_taken).await?;
        if restored > 0 {
            rows = list_taken(&tx, product.key, range, stored.index()).await?;
        }
        let detail = format!("{}, rows restored: {restored}", describe(&found));
        let new = NewFinding {
            product_key: product.key,
            chunk: Some(stored.index()),
            invariant: "I2",
            detail: &detail,
            resolved: true,
        };
        findings::record(tx.client(), &new).await?;
        changed.push(stored.rebuilt(&rows));
    }
    update_chunks(&tx, product.key, &changed).await.map_err(Failure::into_error)?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(mended)
}

/// Restores the rows of numbers that a live order claims and nobody has; of two claims the older order's counts.
async fn restore_rows(tx: &Transaction<'_>, product_key: i32, numbers: &[i32]) -> Result<u64> {
    if numbers.is_empty() {
        return Ok(0);
    }
    // Paid orders are in no list: all of the product's are looked through, which only this rare damage costs.
    let sql = "insert into taken_numbers (product_key, number, order_id)
        select distinct on (claimed.number) $1, claimed.number, o.id
        from orders o cross join lateral unnest(o.numbers) as claimed (number)
        where o.product_key = $1 and o.state in ('reserved', 'paying', 'paid', 'refunding') and o.numbers && $2
            and claimed.number = any($2) and not claimed.number = any(coalesce(o.given_up, '{}'))
        order by claimed.number, o.created_at, o.id
        on conflict do nothing";
    allow_scans(tx).await?;
    tx.execute_typed(sql, &[(&product_key, INT4), (&numbers, INT4S)]).await.map_err(from_postgres)
}

/// Rebuilds every chunk of a product from its rows, a few at a time, its lists of waiting orders and its buyers'
/// holdings, and closes its findings; returns how many chunks, places in lists and holdings were wrong.
///
/// # Errors
/// Busy or fault from the database.
pub async fn rebuild(client: &mut Client, product: &Product) -> Result<usize> {
    // First: mending a chunk asks the list of holds who claims a number.
    let mut mended = relist(client, product.key).await?;
    let all: Vec<i32> = (0..product.described.range.chunk_count()).collect();
    for some in all.chunks(domain::limits::CHUNKS_PER_GROUP_MAX) {
        mended += mend_chunks(client, product, some).await?;
    }
    loop {
        let buyers = find_miscounted(client, product.key, BUYERS_PER_RECOUNT).await?;
        if buyers.is_empty() || recount(client, product.key, &buyers).await? == 0 {
            break;
        }
        mended += buyers.len();
    }
    findings::resolve_chunks(client, product.key).await?;
    Ok(mended)
}

/// The same as an act of the platform's operator, which is logged before it begins: it is many transactions.
///
/// # Errors
/// As [`rebuild`].
pub async fn rebuild_as_operator(client: &mut Client, product: &Product) -> Result<usize> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let (tenant_id, id) = (product.described.tenant_id, product.described.id);
    log_of_operator(&tx, tenant_id, OperatorAct::RebuildProduct, Subject::Product, id).await?;
    tx.commit().await.map_err(from_postgres)?;
    rebuild(client, product).await
}

async fn lock_one(tx: &Transaction<'_>, product_key: i32, range: Range, chunk: i32) -> Result<Chunk> {
    let locked = lock_chunks(tx, product_key, range, &[chunk]).await?;
    locked.into_iter().next().ok_or_else(|| Error::fault(format!("chunk {chunk} is missing")))
}

async fn list_taken(tx: &Transaction<'_>, product_key: i32, range: Range, chunk: i32) -> Result<Vec<(i32, Kind)>> {
    let (first, last) = bounds(range, chunk);
    let row = tx
        .query_typed_one(TAKEN, &[(&product_key, INT4), (&first, INT4), (&last, INT4)])
        .await
        .map_err(from_postgres)?;
    taken_from(&row)
}

fn taken_from(row: &Row) -> Result<Vec<(i32, Kind)>> {
    let numbers: Vec<i32> = column(row, "numbers")?;
    let kinds: Vec<&str> = column(row, "kinds")?;
    let kind = |word| Kind::from_word(word).ok_or_else(|| Error::fault(format!("unknown kind {word:?}")));
    numbers.into_iter().zip(kinds).map(|(number, word)| Ok((number, kind(word)?))).collect()
}

fn bounds(range: Range, chunk: i32) -> (i32, i32) {
    let first = range.chunk_first(chunk);
    (first, first + range.chunk_size(chunk) - 1)
}

/// What a finding says, with a bounded number of examples.
pub(crate) fn describe(found: &Disagreement) -> String {
    let some = |numbers: &[i32]| format!("{} ({:?})", numbers.len(), &numbers[..numbers.len().min(5)]);
    format!(
        "wrongly free: {}, wrongly taken: {}, counters: {}, padding: {}",
        some(&found.wrongly_free),
        some(&found.wrongly_taken),
        if found.counters.is_some() { "wrong" } else { "right" },
        if found.padding { "wrong" } else { "right" },
    )
}
