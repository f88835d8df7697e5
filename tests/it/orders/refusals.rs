//! Why an order is not accepted; and that a refusal changes nothing.

use std::collections::BTreeSet;

use domain::Reason;
use domain::catalog::Intake;
use domain::limits::OPEN_ORDERS_MAX;
use domain::orders::Request;
use store::catalog::Product;
use store::orders::{NewOrder, Placed, place};
use store::switches::{Switch, set_intake};
use tests::chain::Chain;
use tests::look::{change, count};
use tests::seed::{buyers, exact, order, product, quick, store, try_order};
use tests::{TestDatabase, operator, randomness};
use tokio_postgres::Client;
use uuid::Uuid;

async fn refusal(client: &Client, product: &Product, buyer_id: Uuid, request: &Request) -> Option<Reason> {
    match try_order(client, product, buyer_id, request).await.1 {
        Placed::Refused { reason, .. } => Some(reason),
        _ => None,
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn every_refusal_has_its_reason_and_changes_nothing() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 50).first(100).per_order(5).per_buyer(4).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let reasons = [
        (exact(&[99]), Reason::OutOfRange),
        (exact(&[149, 150]), Reason::OutOfRange),
        (exact(&[100, 101, 102, 103, 104, 105]), Reason::LimitExceeded),
        (quick(5), Reason::LimitExceeded),
    ];
    for (request, reason) in reasons {
        assert_eq!(refusal(&client, &product, buyer, &request).await, Some(reason), "{request:?}");
    }
    for switch in [Switch::Platform, Switch::Tenant(tenant), Switch::Product(tenant, product.described.id)] {
        set_intake(&client, switch, Intake::Paused, Some("a test")).await.unwrap();
        assert_eq!(refusal(&client, &product, buyer, &quick(1)).await, Some(Reason::SalesPaused), "{switch:?}");
        set_intake(&client, switch, Intake::Open, None).await.unwrap();
    }
    let elsewhere = store(&client).await;
    let (id, key) = (Uuid::now_v7(), "k");
    let foreign = NewOrder {
        id,
        product_id: product.described.id,
        tenant_id: elsewhere,
        buyer_id: buyer,
        request: &quick(1),
        key,
    };
    let placed = place(&client, &foreign, &[]).await.unwrap();
    assert_eq!(placed, Placed::Refused { reason: Reason::NotFound, retry_after: None }, "another store's product");
    for table in ["orders", "order_events", "outbox", "taken_numbers", "buyer_holdings"] {
        assert_eq!(count(&database, &format!("select count(*) from {table}")).await, 0, "{table}");
    }
    assert_eq!(refusal(&client, &product, buyer, &exact(&[100, 149])).await, None);
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn reserved_stock_is_not_sold_out_and_blocked_stock_is() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 3).insert(&mut client).await;
    operator::block(&mut client, &product, &BTreeSet::from([1, 2])).await.unwrap();
    let chain = Chain::new(&database, 1, 10, seed);
    chain.put(&product, order(&client, &product, buyers(1)[0], &exact(&[3])).await);
    chain.run().await;
    let hopeful = try_order(&client, &product, buyers(1)[0], &quick(1)).await;
    assert!(matches!(hopeful.1, Placed::Accepted { only_held_stock: true, .. }), "a hold may still run out");
    chain.put(&product, hopeful.0);
    chain.run().await;
    change(&database, "update orders set expires_at = now(), sweep_at = now() where state = 'reserved'", 1).await;
    chain.expire().await;
    operator::block(&mut client, &product, &BTreeSet::from([3])).await.unwrap();
    assert_eq!(refusal(&client, &product, buyers(1)[0], &quick(1)).await, Some(Reason::SoldOut));
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn open_orders_of_one_buyer_are_counted_until_they_end() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let chain = Chain::new(&database, 1, 10, seed);
    for _ in 0..OPEN_ORDERS_MAX {
        chain.put(&product, order(&client, &product, buyer, &exact(&[7])).await);
    }
    assert_eq!(refusal(&client, &product, buyer, &quick(1)).await, Some(Reason::TooManyOpenOrders));
    assert_eq!(refusal(&client, &product, buyers(1)[0], &quick(1)).await, None, "another buyer");
    chain.run().await;
    // One of them holds the number, the others have ended.
    assert_eq!(refusal(&client, &product, buyer, &quick(1)).await, None);
    database.finish_under_way().await;
}

/// The bound counts a buyer's latest orders, however long the history and whichever index a planner likes.
#[tokio::test(flavor = "multi_thread")]
async fn open_orders_are_counted_behind_long_histories() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 1_000).insert(&mut client).await;
    let many = buyers(20);
    let sql = "with placed as (
            insert into orders (id, tenant_id, product_id, product_key, buyer_id, state, reason, requested_numbers,
                requested_quantity, fallback, idempotency_key, fingerprint, unit_price_minor, currency, hold_seconds,
                queue_deadline, only_held_stock, version)
            select uuidv7(), $1, $2, $4, ($3::uuid[])[1 + i % 20], 'rejected', 'sold-out', '{}', 1, 'reject', '00' || i,
                decode(repeat('ab', 32), 'hex'), 100, 'EUR', 900, now(), false, 2
            from generate_series(1, 40000) as i
            returning id
        )
        insert into order_events (order_id, version, from_state, to_state, cause)
        select id, 1, null, 'queued', 'test' from placed
        union all select id, 2, 'queued', 'rejected', 'test' from placed";
    client.execute(sql, &[&tenant, &product.described.id, &many, &product.key]).await.unwrap();
    client.batch_execute("vacuum analyze orders").await.unwrap();
    let app = database.app_client().await;
    let mut refused = 0;
    for _ in 0..30 {
        let reason = refusal(&app, &product, many[7], &quick(1)).await;
        assert!(reason.is_none_or(|reason| reason == Reason::TooManyOpenOrders), "{reason:?}");
        refused += i64::from(reason.is_some());
    }
    assert_eq!(30 - refused, OPEN_ORDERS_MAX);
    database.finish_under_way().await;
}
