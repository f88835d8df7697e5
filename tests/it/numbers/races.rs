//! Many orders, few numbers, several workers.

use domain::orders::{Fallback, Request};
use rand::RngExt;
use rand::seq::IndexedRandom;
use tests::chain::Chain;
use tests::look::{expected, outcomes, taken};
use tests::seed::{buyers, exact, product, quick, store};
use tests::{TestDatabase, look, operator, randomness, seed};

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_orders_over_three_thousand_numbers() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut rng = randomness::stream(seed, 0);
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 3_000).insert(&mut client).await;
    let mut wishes = Vec::new();
    for buyer in buyers(10_000) {
        let count = rng.random_range(1..=5);
        let numbers = rand::seq::index::sample(&mut rng, 3_000, count);
        let numbers = numbers.into_iter().map(|n| i32::try_from(n).unwrap() + 1).collect();
        let fallback = *[Fallback::Reject, Fallback::Drop, Fallback::Replace].choose(&mut rng).unwrap();
        wishes.push((buyer, Request::new(numbers, 0, fallback).unwrap()));
    }
    let chain = Chain::new(&database, 6, 100, seed);
    for id in seed::orders(&database.app(6), &product, &wishes, 6).await {
        chain.put(&product, id);
    }
    chain.run().await;
    let outcomes = outcomes(&database, &product).await;
    assert_eq!(outcomes.values().sum::<i64>(), 10_000, "{outcomes:?}");
    assert!(!outcomes.contains_key("queued"), "{outcomes:?}");
    assert_eq!(taken(&database, &product).await, 3_000, "so many wishes leave nothing over: {outcomes:?}");
    chain.reconcile().await;
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_orders_over_ten_numbers_a_hundred_times() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut rng = randomness::stream(seed, 0);
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let app = database.app(6);
    let chain = Chain::new(&database, 4, 5, seed);
    for round in 0..100 {
        let product = product(tenant, 10).insert(&mut client).await;
        let mut wishes = Vec::new();
        for buyer in buyers(20) {
            let first = rng.random_range(1..=9);
            wishes.push((buyer, exact(&[first, rng.random_range(first + 1..=10)])));
        }
        for id in seed::orders(&app, &product, &wishes, 6).await {
            chain.put(&product, id);
        }
        chain.run().await;
        let outcomes = outcomes(&database, &product).await;
        let reserved = outcomes["reserved"];
        assert!((1..=5).contains(&reserved), "round {round}: {outcomes:?}");
        assert_eq!(outcomes, expected([("reserved", reserved), ("numbers-taken", 20 - reserved)]), "round {round}");
        assert_eq!(taken(&database, &product).await, 2 * reserved);
    }
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_very_first_orders_of_a_product() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let app = database.app(6);
    let chain = Chain::new(&database, 6, 1, seed);
    for round in 0..20 {
        // No holding, no taken number and no version yet: every row that a worker locks or makes is new.
        let product = product(tenant, 10_000).insert(&mut client).await;
        let buyer = buyers(1)[0];
        let wishes: Vec<_> = (0..8).map(|i| (buyer, exact(&[1, 10_000 - i]))).collect();
        for id in seed::orders(&app, &product, &wishes, 6).await {
            chain.put(&product, id);
        }
        chain.run().await;
        let outcomes = outcomes(&database, &product).await;
        assert_eq!(outcomes, expected([("reserved", 1), ("numbers-taken", 7)]), "round {round}");
    }
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_two_numbers_in_both_orders() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let app = database.app(6);
    let chain = Chain::new(&database, 6, 1, seed);
    for round in 0..40 {
        // The two numbers lie in different chunks, so that a worker without a lock order would deadlock.
        let product = product(tenant, 20_000).insert(&mut client).await;
        let wishes: Vec<_> = buyers(6)
            .into_iter()
            .enumerate()
            .map(|(i, buyer)| (buyer, exact(&if i % 2 == 0 { [5, 19_000] } else { [19_000, 5] })))
            .collect();
        for id in seed::orders(&app, &product, &wishes, 6).await {
            chain.put(&product, id);
        }
        chain.run().await;
        let outcomes = outcomes(&database, &product).await;
        assert_eq!(outcomes, expected([("reserved", 1), ("numbers-taken", 5)]), "round {round}");
    }
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn quick_picks_for_more_than_is_left() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    // Three chunks, so that the narrow plan and the wide one both have something to do.
    let product = product(tenant, 17_000).insert(&mut client).await;
    let free: Vec<i32> = vec![1, 2, 3, 9_000, 9_001, 16_999, 17_000];
    let rest = (1..=17_000).filter(|number| !free.contains(number)).collect();
    operator::block(&mut client, &product, &rest).await.unwrap();
    let wishes: Vec<_> = buyers(30).into_iter().map(|buyer| (buyer, quick(2))).collect();
    let chain = Chain::new(&database, 4, 3, seed);
    for id in seed::orders(&database.app(4), &product, &wishes, 4).await {
        chain.put(&product, id);
    }
    chain.run().await;
    assert_eq!(outcomes(&database, &product).await, expected([("reserved", 3), ("sold-out", 27)]));
    let last = seed::order(&client, &product, buyers(1)[0], &Request::new(vec![], 5, Fallback::Drop).unwrap()).await;
    chain.put(&product, last);
    chain.run().await;
    let last = look::order(&database, last).await;
    assert_eq!(last.numbers.len(), 1, "what is left, when that will do: {last:?}");
    assert!(free.contains(&last.numbers[0]));
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_last_number() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let app = database.app(3);
    let chain = Chain::new(&database, 5, 1, seed);
    for _ in 0..20 {
        let product = product(tenant, 1).first(77).insert(&mut client).await;
        let wish = |i: usize| match i % 3 {
            0 => quick(1),
            1 => exact(&[77]),
            _ => Request::new(vec![77], 0, Fallback::Replace).unwrap(),
        };
        let wishes: Vec<_> = buyers(9).into_iter().enumerate().map(|(i, buyer)| (buyer, wish(i))).collect();
        for id in seed::orders(&app, &product, &wishes, 3).await {
            chain.put(&product, id);
        }
        chain.run().await;
        let outcomes = outcomes(&database, &product).await;
        assert_eq!(outcomes["reserved"], 1, "{outcomes:?}");
        assert_eq!(outcomes["sold-out"] + outcomes["numbers-taken"], 8, "{outcomes:?}");
    }
    database.finish().await;
}
