//! Connections come back clean, and everything works through a transaction pooler.

use std::time::Duration;

use domain::messages::Queue;
use store::numbers::reserve;
use tests::chain::Chain;
use tests::look::{change, count, expected, outcomes};
use tests::seed::{buyers, exact, order, orders, product, quick, store};
use tests::{TestDatabase, look, randomness};

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_returned_inside_a_transaction_is_clean_for_the_next() {
    let database = TestDatabase::new().await;
    let app = database.app(1);
    let dirty = app.client().await.unwrap();
    dirty.batch_execute("begin; insert into queue_health (product_key, measured_at) values (7, now())").await.unwrap();
    drop(dirty);
    let next = app.client().await.unwrap();
    next.batch_execute("insert into queue_health (product_key, measured_at) values (8, now())").await.unwrap();
    drop(next);
    let broken = app.client().await.unwrap();
    assert!(broken.batch_execute("begin; select 1 / 0").await.is_err());
    drop(broken);
    app.client().await.unwrap().batch_execute("select 1").await.unwrap();
    assert_eq!(
        count(&database, "select sum(product_key) from queue_health").await,
        8,
        "seen from outside, and only it"
    );
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_future_dropped_inside_a_transaction_undoes_it() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let app = database.app(1);
    let id = order(&client, &product, buyers(1)[0], &exact(&[3])).await;
    for after_ms in [1, 3, 10, 100] {
        // The worker has the order's row and waits for the chunk's when its invocation is cut off.
        let holder = client.transaction().await.unwrap();
        holder
            .execute("select from number_chunks where product_key = $1 for no key update", &[&product.key])
            .await
            .unwrap();
        let mut worker = app.client().await.unwrap();
        let mut rng = randomness::stream(seed, after_ms);
        let (tenant_id, product_id) = (product.described.tenant_id, product.described.id);
        let work = async move { reserve(&mut worker, tenant_id, product_id, &[id], &mut rng).await };
        assert!(tokio::time::timeout(Duration::from_millis(after_ms), work).await.is_err());
        holder.rollback().await.unwrap();
        let next = app.client().await.unwrap();
        next.batch_execute("insert into queue_health (product_key, measured_at) values (7, now())").await.unwrap();
        change(&database, "delete from queue_health", 1).await;
    }
    assert_eq!(outcomes(&database, &product).await, expected([("queued", 1)]));
    let chain = Chain::new(&database, 1, 10, seed);
    chain.put(&product, id);
    chain.run().await;
    assert_eq!(look::order(&database, id).await.numbers, [3]);
    database.finish().await;
}

/// The whole suite goes through PgBouncer when asked; this much does wherever there is one.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_goes_all_the_way_through_pgbouncer() {
    let Some(database) = TestDatabase::through_pgbouncer().await else {
        eprintln!("not run: there is no PgBouncer here");
        return;
    };
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 30_000).insert(&mut client).await;
    let chain = Chain::new(&database, 8, 20, seed);
    let wish = |(i, buyer)| (buyer, if i % 2 == 0 { quick(2) } else { exact(&[5, 20_000]) });
    let wishes: Vec<_> = buyers(400).into_iter().enumerate().map(wish).collect();
    orders(&database.app(8), &product, &wishes, 8).await;
    change(&database, "update outbox set next_attempt_at = now()", 400).await;
    assert_eq!(chain.reconcile().await.published, 400);
    chain.run().await;
    assert!(chain.queues.dead(Queue::ReserveNumbers).is_empty());
    let outcomes = outcomes(&database, &product).await;
    // Half of them wanted the same two numbers, unless a quick pick was faster.
    let exact = outcomes["reserved"] - 200;
    assert!((0..=1).contains(&exact), "{outcomes:?}");
    let reserved = u64::try_from(outcomes["reserved"]).unwrap();
    change(&database, "update orders set expires_at = now(), sweep_at = now() where state = 'reserved'", reserved)
        .await;
    assert_eq!(chain.expire().await.orders, reserved);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_prepared_statement_on_a_pooled_connection_would_be_seen() {
    let Some(database) = TestDatabase::through_pgbouncer().await else {
        eprintln!("not run: there is no PgBouncer here");
        return;
    };
    assert_eq!(database.prepared_statements().await, 0);
    let client = database.app_client().await;
    client.batch_execute("prepare left_over as select 1").await.unwrap();
    assert_eq!(database.prepared_statements().await, 1);
    database.deallocate().await;
    database.finish().await;
}
