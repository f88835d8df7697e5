//! How many numbers one person may hold.

use domain::orders::{Fallback, Request};
use tests::chain::Chain;
use tests::look::{expected, outcomes, taken};
use tests::seed::{buyers, exact, product, quick, store};
use tests::{TestDatabase, look, randomness, seed};

#[tokio::test(flavor = "multi_thread")]
async fn parallel_orders_of_one_buyer_stay_within_the_limit() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let app = database.app(4);
    let chain = Chain::new(&database, 8, 1, seed);
    for round in 0..30 {
        // Every order asks another chunk, so that no chunk's lock hides a missing lock on the buyer.
        let product = product(tenant, 8 * 8_192).per_buyer(3).insert(&mut client).await;
        let buyer = buyers(1)[0];
        let wishes: Vec<_> = (0..8).map(|i| (buyer, exact(&[i * 8_192 + 1]))).collect();
        for id in seed::orders(&app, &product, &wishes, 4).await {
            chain.put(&product, id);
        }
        chain.run().await;
        let outcomes = outcomes(&database, &product).await;
        assert_eq!(outcomes, expected([("reserved", 3), ("limit-exceeded", 5)]), "round {round}");
    }
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_orders_of_one_buyer_in_one_batch() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).per_buyer(5).insert(&mut client).await;
    let (one, other) = (buyers(1)[0], buyers(1)[0]);
    let wishes = [(one, exact(&[1, 2, 3])), (other, exact(&[4])), (one, exact(&[5, 6, 7])), (one, exact(&[8, 9]))];
    let ids = seed::orders(&database.app(1), &product, &wishes, 1).await;
    let chain = Chain::new(&database, 1, 10, seed);
    for id in &ids {
        chain.put(&product, *id);
    }
    chain.run().await;
    let orders = look::orders(&database, &ids).await;
    let words: Vec<&str> = orders.iter().map(|o| o.reason.map_or(o.state.word(), domain::Reason::code)).collect();
    assert_eq!(words, ["reserved", "reserved", "limit-exceeded", "reserved"], "oldest first, each order whole");
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fallback_is_trimmed_to_the_limit() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).per_buyer(4).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let wishes = [
        (buyers(1)[0], exact(&[1])),
        (buyer, exact(&[2, 3])),
        (buyer, Request::new(vec![1, 4, 5], 1, Fallback::Replace).unwrap()),
        (buyer, Request::new(vec![10, 11], 0, Fallback::Drop).unwrap()),
    ];
    let ids = seed::orders(&database.app(1), &product, &wishes, 1).await;
    let chain = Chain::new(&database, 1, 10, seed);
    for id in &ids {
        chain.put(&product, *id);
    }
    chain.run().await;
    let orders = look::orders(&database, &ids).await;
    assert_eq!(orders[2].numbers, [4, 5], "two fit: the exact ones come first");
    assert_eq!(orders[2].lost_numbers, [1]);
    assert_eq!(orders[3].reason, Some(domain::Reason::LimitExceeded));
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lowered_limit_takes_nothing_away() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).per_buyer(10).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let chain = Chain::new(&database, 1, 10, seed);
    chain.put(&product, seed::order(&client, &product, buyer, &quick(6)).await);
    chain.run().await;
    let later = seed::order(&client, &product, buyer, &quick(1)).await;
    look::change(&database, "update products set numbers_per_buyer_max = 3", 1).await;
    chain.put(&product, later);
    chain.run().await;
    assert_eq!(outcomes(&database, &product).await, expected([("reserved", 1), ("limit-exceeded", 1)]));
    assert_eq!(taken(&database, &product).await, 6);
    // The auditor measures by today's limit.
    look::change(&database, "update products set numbers_per_buyer_max = 10", 1).await;
    database.finish().await;
}

/// Two groups bring a buyer's first orders at once. The later one learns of the other's holding and decides again, as
/// a group: nobody else's order pays for it with a transaction of its own.
#[tokio::test(flavor = "multi_thread")]
async fn a_first_holding_that_another_group_makes_first() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).per_buyer(3).insert(&mut client).await;
    let [buyer, neighbour] = buyers(2)[..] else { unreachable!() };
    let orders = [
        seed::order(&client, &product, buyer, &quick(2)).await,
        seed::order(&client, &product, neighbour, &quick(2)).await,
    ];
    let other = client.transaction().await.unwrap();
    let first = "insert into buyer_holdings (product_key, buyer_id, held) values ($1, $2, 0)";
    other.execute(first, &[&product.key, &buyer]).await.unwrap();
    let (tenant_id, product_id) = (product.described.tenant_id, product.described.id);
    let mut worker = database.app_client().await;
    let reserving = tokio::spawn(async move {
        let mut rng = randomness::stream(randomness::seed(), 0);
        store::numbers::reserve(&mut worker, tenant_id, product_id, &orders, &mut rng).await
    });
    let waiting =
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";
    while look::count(&database, waiting).await == 0 {
        assert!(!reserving.is_finished(), "the group does not wait for the holding");
    }
    other.commit().await.unwrap();
    let group = reserving.await.unwrap().unwrap();
    assert_eq!(group.decided.len(), 2);
    let at_once = "select count(distinct at) from order_events where to_state = 'reserved'";
    assert_eq!(look::count(&database, at_once).await, 1, "one transaction decided both");
    database.finish().await;
}
