//! The rows of an export, a page at a time, by key: each page is as it was when it was read.

use domain::catalog::Range;
use domain::exports::{Cell, Kind};
use domain::limits::{EXPORT_PAGE_ROWS, EXPORT_SCAN_ROWS};
use domain::{Error, Result};
use time::{Duration, OffsetDateTime};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use super::work::{Claimed, Product};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{INT4, INT8, TIMESTAMPTZ, UUID};

/// By how much the clock that made an order's id may be behind the one that made its product's row.
const CLOCKS_DIFFER: Duration = Duration::days(1);

/// Rows of an export.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// Their cells, as many as the kind has headings.
    pub rows: Vec<Vec<Cell>>,
    /// Where the next page begins; none when there is none.
    pub next: Option<String>,
    /// How much of the export ends with it, roughly.
    pub percent: i16,
}

/// The page after a cursor, or the first one.
///
/// # Errors
/// A fault when the cursor is none of ours; busy or fault from the database.
pub async fn page(client: &Client, claimed: &Claimed, cursor: Option<&str>) -> Result<Page> {
    match claimed.kind {
        Kind::Orders => orders(client, claimed, cursor).await,
        Kind::Numbers => numbers(client, claimed, cursor).await,
    }
}

fn not_ours<E>(_: E) -> Error {
    Error::fault("the cursor of an export is none of ours")
}

async fn numbers(client: &Client, claimed: &Claimed, cursor: Option<&str>) -> Result<Page> {
    let product = &claimed.product;
    let after: i32 = cursor.map_or(Ok(product.first - 1), str::parse).map_err(not_ours)?;
    let sql = "select t.number, t.order_id, o.state, o.created_at, b.phone
        from taken_numbers t
            left join orders o on o.id = t.order_id
            left join buyers b on b.id = o.buyer_id and b.tenant_id = $4
        where t.product_key = $1 and t.number > $2 order by t.number limit $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&product.key, INT4), (&after, INT4), (&EXPORT_PAGE_ROWS, INT8), (&claimed.tenant_id, UUID)];
    let found = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let last: Option<i32> = found.last().map(|row| column(row, "number")).transpose()?;
    let is_full = i64::try_from(found.len()).is_ok_and(|count| count == EXPORT_PAGE_ROWS);
    let percent = last
        .filter(|_| is_full)
        .map_or(100, |last| share(i64::from(last) - i64::from(product.first) + 1, i64::from(product.count)));
    let rows = found.iter().map(|row| number_from(row, product)).collect::<Result<_>>()?;
    Ok(Page { rows, next: last.filter(|_| is_full).map(|last| last.to_string()), percent })
}

fn number_from(row: &Row, product: &Product) -> Result<Vec<Cell>> {
    let order_id: Option<Uuid> = column(row, "order_id")?;
    let state: Option<&str> = column(row, "state")?;
    Ok(vec![
        Cell::Text(Range::label(column(row, "number")?, product.padding)),
        // Who owns nothing is nobody: staff keep the number off sale.
        Cell::text(state.or(order_id.is_none().then_some("blocked"))),
        Cell::text(order_id.map(|id| id.to_string()).as_deref()),
        Cell::text(column(row, "phone")?),
        Cell::moment(column(row, "created_at")?),
        Cell::text(Some(&product.name)),
    ])
}

/// Orders are found by their ids, which grow with time: there is no index by product. A page looks at so many orders of
/// all products, and has those of its own among them.
async fn orders(client: &Client, claimed: &Claimed, cursor: Option<&str>) -> Result<Page> {
    let product = &claimed.product;
    let oldest = product.created_at - CLOCKS_DIFFER;
    let after: Uuid = cursor.map_or_else(|| Ok(id_at(oldest)), Uuid::try_parse).map_err(not_ours)?;
    let sql = "select id, created_at from orders where id > $1 order by id offset $2 limit 1";
    let offset = EXPORT_SCAN_ROWS - 1;
    let bound = client.query_typed_opt(sql, &[(&after, UUID), (&offset, INT8)]).await.map_err(from_postgres)?;
    let bound: Option<(Uuid, OffsetDateTime)> =
        bound.map(|row| Ok::<_, Error>((column(&row, "id")?, column(&row, "created_at")?))).transpose()?;
    let until = bound.map(|(id, _)| id);
    let sql = "select o.id, o.state, b.phone, o.numbers, o.given_up, o.unit_price_minor, o.total_minor, o.currency,
            o.created_at, o.expires_at, o.reason
        from orders o left join buyers b on b.id = o.buyer_id and b.tenant_id = o.tenant_id
        where o.id > $1 and ($2::uuid is null or o.id <= $2) and o.product_key = $3 and o.tenant_id = $4
            and o.created_at <= $5
        order by o.id";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&after, UUID),
        (&until, UUID),
        (&product.key, INT4),
        (&claimed.tenant_id, UUID),
        (&claimed.created_at, TIMESTAMPTZ),
    ];
    let found = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let rows = found.iter().map(|row| order_from(row, product)).collect::<Result<_>>()?;
    // Orders that are younger than the export are not in it, so that a sale does not run away from it.
    let goes_on = bound.filter(|(_, at)| *at <= claimed.created_at + CLOCKS_DIFFER);
    let percent = goes_on.map_or(100, |(_, at)| {
        share((at - product.created_at).whole_seconds(), (claimed.created_at - product.created_at).whole_seconds())
    });
    Ok(Page { rows, next: goes_on.map(|(id, _)| id.simple().to_string()), percent })
}

/// The smallest id that could have been made at a moment.
fn id_at(moment: OffsetDateTime) -> Uuid {
    let millis = u64::try_from(moment.unix_timestamp_nanos() / 1_000_000).unwrap_or(0);
    uuid::Builder::from_unix_timestamp_millis(millis, &[0; 10]).into_uuid()
}

fn order_from(row: &Row, product: &Product) -> Result<Vec<Cell>> {
    let id: Uuid = column(row, "id")?;
    let labels = |numbers: Vec<i32>| {
        let labels: Vec<String> = numbers.into_iter().map(|number| Range::label(number, product.padding)).collect();
        if labels.is_empty() { Cell::Empty } else { Cell::Text(labels.join(" ")) }
    };
    let total: Option<i64> = column(row, "total_minor")?;
    Ok(vec![
        Cell::Text(id.to_string()),
        Cell::text(Some(column(row, "state")?)),
        Cell::text(column(row, "phone")?),
        labels(column(row, "numbers")?),
        labels(column::<Option<Vec<i32>>>(row, "given_up")?.unwrap_or_default()),
        Cell::Whole(column(row, "unit_price_minor")?),
        total.map_or(Cell::Empty, Cell::Whole),
        Cell::text(Some(column(row, "currency")?)),
        Cell::Moment(column(row, "created_at")?),
        Cell::moment(column(row, "expires_at")?),
        Cell::text(column(row, "reason")?),
        Cell::text(Some(&product.name)),
    ])
}

/// A part of a whole, 0 to 99: what is not over is not all.
fn share(part: i64, whole: i64) -> i16 {
    let percent = part.saturating_mul(100).checked_div(whole).unwrap_or(99);
    i16::try_from(percent.clamp(0, 99)).unwrap_or(99)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_is_never_all_and_never_negative() {
        assert_eq!([share(0, 10), share(5, 10), share(10, 10), share(-1, 10), share(7, 0)], [0, 50, 99, 0, 99]);
    }

    #[test]
    fn ids_of_a_moment_come_before_those_made_then() {
        let now = OffsetDateTime::now_utc();
        let made = Uuid::now_v7();
        assert!(id_at(now - Duration::seconds(1)) < made && id_at(now + Duration::seconds(60)) > made);
    }
}
