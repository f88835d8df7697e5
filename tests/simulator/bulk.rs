//! Many orders at once, written set by set, as if they had come and gone the usual way.

use store::catalog::Product;
use store::numbers::rebuild;
use tests::TestDatabase;
use uuid::Uuid;

/// Orders that share a row of the list of holds.
const ORDERS_PER_HOLD: i64 = 100;
/// Spreads numbers over a product: a prime, so that no number comes twice.
const STRIDE: i64 = 7_919;

/// Queued orders of one random number each, of a buyer each; their ids.
pub(crate) async fn queue(database: &TestDatabase, product: &Product, count: i32) -> Vec<Uuid> {
    let sql = "with placed as (
            insert into orders (id, tenant_id, product_id, product_key, buyer_id, state, requested_numbers,
                requested_quantity, fallback, idempotency_key, fingerprint, unit_price_minor, currency, hold_seconds,
                queue_deadline, only_held_stock)
            select uuidv7(), p.tenant_id, p.id, p.key, uuidv7(), 'queued', '{}', 1, 'reject', 'bulk', sha256('bulk'),
                p.price_minor, p.currency, p.hold_seconds, now() + interval '15 minutes', false
            from products p cross join generate_series(1, $2) where p.key = $1
            returning id, product_key, created_at
        ), queued as (
            insert into order_queue (product_key, created_at, order_id) select product_key, created_at, id from placed
        ), recorded as (
            insert into order_events (order_id, version, to_state, cause) select id, 1, 'queued', 'buyer' from placed
        )
        select id from placed";
    let rows = database.owner().query(sql, &[&product.key, &count]).await.expect("the orders");
    rows.iter().map(|row| row.get(0)).collect()
}

/// The same, each with a message that is owed and due.
pub(crate) async fn owe(database: &TestDatabase, product: &Product, count: i32) {
    queue(database, product, count).await;
    let sql = "insert into outbox (id, queue, tenant_id, product_id, order_id, next_attempt_at)
        select id, 'reserve-numbers', tenant_id, product_id, id, now() from orders where product_key = $1";
    database.owner().execute(sql, &[&product.key]).await.expect("the outbox");
}

/// Reserved orders of two numbers each, of a buyer each, spread over the whole product; all of their holds are over.
pub(crate) async fn hold(database: &TestDatabase, product: &Product, count: i32) {
    assert!(i64::from(product.described.range.count) % STRIDE != 0 && 2 * count <= product.described.range.count);
    let sql = "with reserved as (
            insert into orders (id, tenant_id, product_id, product_key, buyer_id, state, requested_numbers,
                requested_quantity, fallback, idempotency_key, fingerprint, unit_price_minor, currency, hold_seconds,
                queue_deadline, only_held_stock, numbers, total_minor, expires_at, sweep_at, version)
            select uuidv7(), p.tenant_id, p.id, p.key, uuidv7(), 'reserved', '{}', 2, 'reject', 'bulk', sha256('bulk'),
                p.price_minor, p.currency, p.hold_seconds, now() + interval '15 minutes', false,
                array[p.first_number + (n * 2 * $3 % p.number_count)::integer,
                    p.first_number + ((n * 2 + 1) * $3 % p.number_count)::integer],
                2 * p.price_minor, now(), now(), 2
            from products p cross join generate_series(1::bigint, $2) as n where p.key = $1
            returning id, product_key, buyer_id, numbers, sweep_at
        ), recorded as (
            insert into order_events (order_id, version, from_state, to_state, cause)
            select id, 1, null, 'queued', 'buyer' from reserved
            union all select id, 2, 'queued', 'reserved', 'reserve-numbers' from reserved
        ), taken as (
            insert into taken_numbers (product_key, number, order_id)
            select product_key, unnest(numbers), id from reserved
        ), holdings as (
            insert into buyer_holdings (product_key, buyer_id, held) select product_key, buyer_id, 2 from reserved
        )
        insert into holds (product_key, sweep_at, order_ids)
        select product_key, sweep_at, array_agg(id) from (
            select product_key, sweep_at, id, row_number() over () / $4 as part from reserved) as numbered
        group by product_key, sweep_at, part";
    let mut client = database.another_owner().await;
    let rows = i64::from(count);
    client.execute(sql, &[&product.key, &rows, &STRIDE, &ORDERS_PER_HOLD]).await.expect("the holds");
    rebuild(&mut client, product).await.expect("bits and counters");
    client.batch_execute("vacuum analyze").await.expect("statistics");
}
