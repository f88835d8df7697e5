//! Orders that waited too long, or whose sale has ended.

use tests::chain::Chain;
use tests::look::{change, expected, outcomes, taken};
use tests::seed::{buyers, exact, product, store};
use tests::{TestDatabase, randomness, seed};

#[tokio::test(flavor = "multi_thread")]
async fn an_overdue_order_is_rejected_and_its_neighbours_are_served() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let wishes: Vec<_> = buyers(6).into_iter().map(|buyer| (buyer, exact(&[5]))).collect();
    let ids = seed::orders(&database.app(1), &product, &wishes, 1).await;
    let overdue = format!("update orders set queue_deadline = now() - interval '1 ms' where id <= '{}'", ids[2]);
    change(&database, &overdue, 3).await;
    let chain = Chain::new(&database, 2, 10, seed);
    for id in &ids {
        chain.put(&product, *id);
    }
    chain.run().await;
    let wanted = expected([("queued-too-long", 3), ("reserved", 1), ("numbers-taken", 2)]);
    assert_eq!(outcomes(&database, &product).await, wanted);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_the_end_of_the_sale_nothing_is_reserved() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let wishes: Vec<_> = buyers(3).into_iter().map(|buyer| (buyer, exact(&[5]))).collect();
    let ids = seed::orders(&database.app(1), &product, &wishes, 1).await;
    change(&database, "update products set closes_at = now()", 1).await;
    let chain = Chain::new(&database, 2, 10, seed);
    for id in &ids {
        chain.put(&product, *id);
    }
    chain.run().await;
    assert_eq!(outcomes(&database, &product).await, expected([("sale-ended", 3)]));
    assert_eq!(taken(&database, &product).await, 0);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reconciler_ends_overdue_orders_that_no_message_reaches() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let wishes: Vec<_> = buyers(4).into_iter().map(|buyer| (buyer, exact(&[5]))).collect();
    seed::orders(&database.app(1), &product, &wishes, 1).await;
    change(&database, "delete from outbox", 4).await;
    change(
        &database,
        "update orders set created_at = now() - interval '20 min', queue_deadline = now() - interval '5 min'",
        4,
    )
    .await;
    let chain = Chain::new(&database, 2, 10, seed);
    chain.reconcile().await;
    chain.run().await;
    chain.reconcile().await;
    assert_eq!(outcomes(&database, &product).await, expected([("queued-too-long", 4)]));
    database.finish().await;
}
