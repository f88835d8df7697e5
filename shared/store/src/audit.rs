//! The auditor in production: compares what is derived with the rows it derives from, a bounded number at a time.
//!
//! One chunk per statement, so bits and rows come from one snapshot. A mismatch is looked at again under the chunk's
//! lock before it counts; only a confirmed one is recorded and halts the product.

mod money;

use std::time::Instant;

use domain::Result;
use domain::catalog::{Range, Reserving};
use domain::limits::{AUDIT_PASS, CHUNKS_PER_AUDIT_PASS};
use serde::Serialize;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::catalog::Product;
use crate::errors::from_postgres;
use crate::findings::{NewFinding, record};
use crate::numbers::{compare_chunk, confirm_chunk, count_unlisted, describe, find_miscounted, recount, relist};
use crate::rows::column;
use crate::switches::set_reserving;
use crate::types::{INT4, INT8, UUID};

pub use money::money_pass;

/// Miscounted buyers that one look names.
const MISCOUNTED_MAX: i64 = 1_000;

/// One broken promise.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Which invariant, I1 to I12.
    pub invariant: &'static str,
    /// The chunk, where it is about one.
    pub chunk: Option<i32>,
    /// What is wrong.
    pub detail: String,
}

/// What an audit looked at and found.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Audit {
    /// Chunks compared.
    pub chunks: u64,
    /// Numbers in them.
    pub numbers: i64,
    /// Confirmed findings.
    pub findings: Vec<Finding>,
}

struct Next {
    tenant_id: Uuid,
    product_id: Uuid,
    product_key: i32,
    range: Range,
    chunk: i32,
}

/// The next chunks after the stored cursor; confirmed mismatches are recorded and halt reserving of their product.
///
/// # Errors
/// Busy or fault from the database. The cursor has moved on all the same when only a product's holdings or lists
/// could not be compared.
pub async fn pass(client: &mut Client) -> Result<Audit> {
    let mut audit = Audit::default();
    let mut left_out = Ok(());
    let (began, next) = (Instant::now(), next_chunks(client).await?);
    let mut last = None;
    for next in &next {
        if began.elapsed() > AUDIT_PASS {
            break;
        }
        last = Some((next.product_key, next.chunk));
        audit.chunks += 1;
        audit.numbers += i64::from(next.range.chunk_size(next.chunk));
        if let Some(finding) = check_chunk(client, next.product_key, next.range, next.chunk).await? {
            let new = NewFinding {
                product_key: next.product_key,
                chunk: finding.chunk,
                invariant: finding.invariant,
                detail: &finding.detail,
                resolved: false,
            };
            record(client, &new).await?;
            let why = Some("audit finding");
            set_reserving(client, next.tenant_id, next.product_id, Reserving::Halted, why).await?;
            audit.findings.push(finding);
        }
        // With a product's last chunk its holdings and lists are due. Mending them is safe at any time, so it is done
        // at once. One that is too large or too busy keeps no other waiting.
        if next.chunk + 1 == next.range.chunk_count()
            && let Err(error) = mend_derived(client, next.product_key).await
        {
            tracing::error!(product.id = %next.product_id, error.message = error.chain(), "holdings and lists not audited");
            left_out = left_out.and(Err(error));
        }
    }
    // A pass that reached the end starts over.
    let at_the_end = next.last().map(|next| (next.product_key, next.chunk)) == last
        && i64::try_from(next.len()).unwrap_or(i64::MAX) < CHUNKS_PER_AUDIT_PASS;
    let (product_key, chunk) = last.filter(|_| !at_the_end).unwrap_or((0, -1));
    let sql = "update audit_cursor set product_key = $1, chunk = $2";
    client.execute_typed(sql, &[(&product_key, INT4), (&chunk, INT4)]).await.map_err(from_postgres)?;
    left_out.map(|()| audit)
}

/// Compares a product's holdings and lists with its orders, and mends them.
async fn mend_derived(client: &mut Client, product_key: i32) -> Result<()> {
    let miscounted = find_miscounted(client, product_key, MISCOUNTED_MAX).await?;
    if !miscounted.is_empty() {
        recount(client, product_key, &miscounted).await?;
    }
    relist(client, product_key).await.map(drop)
}

async fn next_chunks(client: &Client) -> Result<Vec<Next>> {
    let sql = "select p.id, p.tenant_id, c.product_key, c.chunk, p.first_number, p.number_count
        from number_chunks c join products p on p.key = c.product_key
        where (c.product_key, c.chunk) > (select product_key, chunk from audit_cursor)
        order by c.product_key, c.chunk limit $1";
    let rows = client.query_typed(sql, &[(&CHUNKS_PER_AUDIT_PASS, INT8)]).await.map_err(from_postgres)?;
    let next = |row| {
        Ok(Next {
            tenant_id: column(row, "tenant_id")?,
            product_id: column(row, "id")?,
            product_key: column(row, "product_key")?,
            range: Range { first: column(row, "first_number")?, count: column(row, "number_count")? },
            chunk: column(row, "chunk")?,
        })
    };
    rows.iter().map(next).collect()
}

/// Everything that can be checked about one product, page by page; nothing is recorded or halted.
///
/// Meant for operators and for the end of a sale. While orders keep coming, the checks of holdings and orders may
/// see a transaction's work in one statement and not in the other; run it on a quiet product.
///
/// # Errors
/// Busy or fault from the database.
pub async fn product(client: &mut Client, product: &Product) -> Result<Audit> {
    let mut audit = Audit::default();
    let range = product.described.range;
    for chunk in 0..range.chunk_count() {
        audit.chunks += 1;
        audit.numbers += i64::from(range.chunk_size(chunk));
        audit.findings.extend(check_chunk(client, product.key, range, chunk).await?);
        audit.findings.extend(check_owners(client, product.key, range, chunk).await?);
    }
    audit.findings.extend(check_orders(client, product.key).await?);
    audit.findings.extend(money::check_money(client, product.key).await?);
    audit.findings.extend(check_holdings(client, product.key).await?);
    audit.findings.extend(check_lists(client, product.key).await?);
    audit.findings.extend(check_stuck(client, product.key).await?);
    Ok(audit)
}

async fn check_chunk(client: &mut Client, product_key: i32, range: Range, chunk: i32) -> Result<Option<Finding>> {
    let suspected = compare_chunk(client, product_key, range, chunk).await?;
    if suspected.is_some_and(|found| found.is_none()) {
        return Ok(None);
    }
    let found = confirm_chunk(client, product_key, range, chunk).await?;
    Ok((!found.is_none()).then(|| Finding { invariant: "I2", chunk: Some(chunk), detail: describe(&found) }))
}

/// I1: every taken number is in the list of an order that owns numbers.
async fn check_owners(client: &Client, product_key: i32, range: Range, chunk: i32) -> Result<Option<Finding>> {
    let sql = "select count(*) as wrong, min(t.number) as example
        from taken_numbers t left join orders o on o.id = t.order_id
        where t.product_key = $1 and t.number between $2 and $3 and t.order_id is not null
            and (o.id is null or o.product_key <> t.product_key or not t.number = any(o.numbers)
                or t.number = any(o.given_up)
                or o.state not in ('reserved', 'paying', 'paid', 'refunding'))";
    let first = range.chunk_first(chunk);
    let last = first + range.chunk_size(chunk) - 1;
    let row = client
        .query_typed_one(sql, &[(&product_key, INT4), (&first, INT4), (&last, INT4)])
        .await
        .map_err(from_postgres)?;
    let wrong: i64 = column(&row, "wrong")?;
    let example: Option<i32> = column(&row, "example")?;
    let detail = || format!("{wrong} taken numbers without a rightful owner, {example:?} among them");
    Ok((wrong > 0).then(|| Finding { invariant: "I1", chunk: Some(chunk), detail: detail() }))
}

/// I1, the other way: every order in a state that owns numbers owns all of its list. A thousand orders per statement.
async fn check_orders(client: &Client, product_key: i32) -> Result<Vec<Finding>> {
    let sql = "with page as (
            select id, tenant_id, product_id, state, numbers, given_up, version, total_minor, unit_price_minor
            from orders
            where product_key = $1 and ($2::uuid is null or id > $2) order by id limit 1000
        )
        select count(*) as seen, max(id::text)::uuid as last,
            count(*) filter (where state in ('reserved', 'paying', 'paid', 'refunding')
                and cardinality(numbers) - coalesce(cardinality(given_up), 0) <> (
                select count(*) from taken_numbers t
                where t.product_key = $1 and t.number = any(page.numbers) and t.order_id = page.id)) as owners,
            count(*) filter (where version <> (select count(*) from order_events e where e.order_id = page.id)
                or state <> (select e.to_state from order_events e where e.order_id = page.id order by e.version desc limit 1)
                ) as histories,
            count(*) filter (where total_minor <> unit_price_minor * cardinality(numbers)) as totals,
            count(*) filter (where not exists (select from products p
                where p.key = $1 and p.id = page.product_id and p.tenant_id = page.tenant_id)) as strangers
        from page";
    let mut findings = Vec::new();
    let mut after: Option<Uuid> = None;
    loop {
        let params: [(&(dyn ToSql + Sync), _); 2] = [(&product_key, INT4), (&after, UUID)];
        let row = client.query_typed_one(sql, &params).await.map_err(from_postgres)?;
        for (invariant, name, what) in [
            ("I1", "owners", "orders do not own all their numbers"),
            ("I12", "histories", "orders have a history that does not lead to their state"),
            ("I4", "totals", "orders have a total that is not the price of their numbers"),
            ("I10", "strangers", "orders do not belong together with their product and its store"),
        ] {
            let wrong: i64 = column(&row, name)?;
            if wrong > 0 {
                findings.push(Finding { invariant, chunk: None, detail: format!("{wrong} {what}") });
            }
        }
        after = column(&row, "last")?;
        if column::<i64>(&row, "seen")? < 1_000 {
            return Ok(findings);
        }
    }
}

/// I3 for buyers: holdings equal a recount.
async fn check_holdings(client: &mut Client, product_key: i32) -> Result<Option<Finding>> {
    let wrong = find_miscounted(client, product_key, MISCOUNTED_MAX).await?.len();
    let detail =
        || format!("{wrong} buyers (at most {MISCOUNTED_MAX} are counted) hold another count than their orders say");
    Ok((wrong > 0).then(|| Finding { invariant: "I3", chunk: None, detail: detail() }))
}

/// I9: every order that waits is in its list, where jobs look for it.
async fn check_lists(client: &mut Client, product_key: i32) -> Result<Option<Finding>> {
    let wrong = count_unlisted(client, product_key).await?;
    let detail = || format!("{wrong} places in the lists of waiting orders are missing or too many");
    Ok((wrong > 0).then(|| Finding { invariant: "I9", chunk: None, detail: detail() }))
}

/// I5: nothing waits longer than it may. Fifteen minutes over its time is stuck.
async fn check_stuck(client: &Client, product_key: i32) -> Result<Option<Finding>> {
    let sql = "select count(*) as stuck from orders o join products p on p.key = o.product_key
        where o.product_key = $1 and p.reserving = 'on' and (
            (o.state = 'queued' and greatest(o.queue_deadline, p.reserving_resumed_at + interval '15 minutes')
                < now() - interval '15 minutes')
            or (o.state in ('reserved', 'paying') and o.expires_at < now() - interval '15 minutes'))";
    let row = client.query_typed_one(sql, &[(&product_key, INT4)]).await.map_err(from_postgres)?;
    let stuck: i64 = column(&row, "stuck")?;
    Ok((stuck > 0).then(|| Finding { invariant: "I5", chunk: None, detail: format!("{stuck} orders are stuck") }))
}
