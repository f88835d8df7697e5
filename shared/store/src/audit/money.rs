//! I4 and I6: the money that is kept is the price of what is owned.

use domain::Result;
use domain::limits::{ORDERS_PER_AUDIT_PASS, WRONG_MONEY_SETTLES_IN};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::Finding;
use crate::errors::from_postgres;
use crate::findings::{NewFinding, record, resolve_money, wrong_money};
use crate::rows::column;
use crate::types::{FLOAT8, INT4, INT4S, INT8, UUID, UUIDS};

/// The orders after a page's last one whose money is wrong (I4, I6): kept is the price of the numbers still owned, more
/// by what is owed, less by what a seller gave back in the gateway's dashboard without taking numbers for it; one
/// payment per order.
const WRONG_MONEY: &str = "with page as (
        select o.id, o.product_key, o.state, o.unit_price_minor, o.unit_price_minor
                * case when o.state in ('paid', 'refunding')
                    then cardinality(o.numbers) - coalesce(cardinality(o.given_up), 0) else 0 end as owned,
            p.keeps_disputed, p.reserving
        from orders o join products p on p.key = o.product_key
        where ($1::integer is null or o.product_key = $1) and o.id > $2 order by o.id limit $3
    ), money as (
        select page.id, page.product_key, page.state, page.owned, page.reserving, coalesce(a.captured, 0) as captured, coalesce(a.payments, 0) as payments,
            coalesce(r.back, 0) as back, coalesce(r.owed, 0) as owed, coalesce(r.asked, 0) as asked,
            greatest(coalesce(r.goodwill, 0), 0) as goodwill,
            case when keeps_disputed then 0 else coalesce(d.lost, 0) end as lost
        from page
        left join lateral (select sum(captured_minor) as captured, count(*) filter (where used = 'payment') as payments
            from payment_attempts where order_id = page.id) as a on true
        left join lateral (select sum(amount_minor) filter (where state <> 'failed') as back,
                sum(amount_minor) filter (where state = 'failed' and retried_as is null) as owed,
                count(*) filter (where state = 'created') as asked,
                sum(amount_minor - page.unit_price_minor * cardinality(numbers))
                    filter (where state <> 'failed' and cause = 'elsewhere') as goodwill
            from refunds where order_id = page.id) as r on true
        left join lateral (select sum(amount_minor) as lost from disputes
            where order_id = page.id and state = 'lost') as d on true
    ), wrong as (
        select id, product_key, asked, reserving from money
        where payments > 1 or (state not in ('reserved', 'paying')
            and (captured - back - lost < owned - goodwill or captured - back - lost > owned + owed))
    )
    select (select count(*) from page) as seen, (select max(id::text)::uuid from page) as last,
        (select count(*) from wrong) as wrong,
        coalesce((select array_agg(id order by id) from wrong), '{}') as ids,
        coalesce((select array_agg(product_key order by id) from wrong), '{}') as products,
        coalesce((select array_agg(id) from wrong where asked > 0 or reserving <> 'on'), '{}') as excused";

/// Orders per statement.
const MONEY_PAGE: i64 = 1_000;

/// I4 and I6 for all orders of a product.
pub(super) async fn check_money(client: &Client, product_key: i32) -> Result<Option<Finding>> {
    let (mut wrong, mut after): (i64, Uuid) = (0, Uuid::nil());
    loop {
        let params: [(&(dyn ToSql + Sync), _); 3] = [(&Some(product_key), INT4), (&after, UUID), (&MONEY_PAGE, INT8)];
        let row = client.query_typed_one(WRONG_MONEY, &params).await.map_err(from_postgres)?;
        wrong += column::<i64>(&row, "wrong")?;
        after = column::<Option<Uuid>>(&row, "last")?.unwrap_or(after);
        if column::<i64>(&row, "seen")? < MONEY_PAGE {
            let detail = || format!("{wrong} orders own numbers worth another amount than the money that is kept");
            return Ok((wrong > 0).then(|| Finding { invariant: "I4", chunk: None, detail: detail() }));
        }
    }
}

/// The money of the next orders after the stored cursor, of all products. What is wrong, and is still wrong when its turn
/// comes again after a while, is recorded; what is right again is closed. Orders with a refund that no gateway has accepted
/// or of a halted product are left to a later round. Returns how many orders were compared.
///
/// One look does not say it: a payment that two things follow from is settled by two transactions, and the message of an
/// order that waited through a halt comes a little later.
///
/// # Errors
/// Busy or fault from the database.
pub async fn money_pass(client: &Client) -> Result<u64> {
    let row = client.query_typed_one("select order_id from audit_cursor", &[]).await.map_err(from_postgres)?;
    let mut after: Uuid = column(&row, "order_id")?;
    let mut seen = 0;
    while seen < ORDERS_PER_AUDIT_PASS {
        let params: [(&(dyn ToSql + Sync), _); 3] = [(&None::<i32>, INT4), (&after, UUID), (&MONEY_PAGE, INT8)];
        let row = client.query_typed_one(WRONG_MONEY, &params).await.map_err(from_postgres)?;
        let page: i64 = column(&row, "seen")?;
        seen += page;
        let last = column::<Option<Uuid>>(&row, "last")?.filter(|_| page == MONEY_PAGE);
        let wrong =
            Wrong { ids: column(&row, "ids")?, products: column(&row, "products")?, excused: column(&row, "excused")? };
        suspect(client, after, last, &wrong).await?;
        // A round that reached the end starts over.
        after = last.unwrap_or(Uuid::nil());
        if page < MONEY_PAGE {
            break;
        }
    }
    client.execute_typed("update audit_cursor set order_id = $1", &[(&after, UUID)]).await.map_err(from_postgres)?;
    Ok(u64::try_from(seen).unwrap_or(0))
}

/// Orders whose money is wrong, their products' keys, and which of them are excused.
struct Wrong {
    ids: Vec<Uuid>,
    products: Vec<i32>,
    excused: Vec<Uuid>,
}

/// Between two ids, or from one on: these orders are wrong, and no others are. For what is excused time starts over.
async fn suspect(client: &Client, after: Uuid, last: Option<Uuid>, wrong: &Wrong) -> Result<()> {
    let sql = "delete from audit_suspects
        where order_id > $1 and ($2::uuid is null or order_id <= $2) and order_id <> all($3)
        returning order_id";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&after, UUID), (&last, UUID), (&wrong.ids, UUIDS)];
    let cleared = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    let cleared = cleared.iter().map(|row| column(row, "order_id")).collect::<Result<Vec<Uuid>>>()?;
    if !cleared.is_empty() {
        resolve_money(client, &cleared).await?;
    }
    if wrong.ids.is_empty() {
        return Ok(());
    }
    let sql = "with added as (
            insert into audit_suspects (order_id, product_key)
            select wrong.order_id, wrong.product_key from unnest($1, $2) as wrong (order_id, product_key)
            on conflict do nothing
        ), excused as (
            update audit_suspects set seen_at = now() where order_id = any($3)
        )
        select order_id, product_key from audit_suspects
        where order_id = any($1) and order_id <> all($3) and seen_at < now() - make_interval(secs => $4)
        order by order_id";
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&wrong.ids, UUIDS),
        (&wrong.products, INT4S),
        (&wrong.excused, UUIDS),
        (&WRONG_MONEY_SETTLES_IN.as_secs_f64(), FLOAT8),
    ];
    for row in client.query_typed(sql, &params).await.map_err(from_postgres)? {
        let (order_id, product_key): (Uuid, i32) = (column(&row, "order_id")?, column(&row, "product_key")?);
        let detail = wrong_money(order_id);
        record(client, &NewFinding { product_key, chunk: None, invariant: "I4", detail: &detail, resolved: false })
            .await?;
    }
    Ok(())
}
