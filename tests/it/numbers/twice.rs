//! The same message more than once: in two workers at the same time, in one batch, and long after.

use rand::SeedableRng;
use rand::rngs::StdRng;
use store::numbers::{Served, reserve};
use tests::chain::Chain;
use tests::look::{expected, outcomes};
use tests::seed::{buyers, exact, product, store};
use tests::{TestDatabase, look, randomness, seed};

#[tokio::test(flavor = "multi_thread")]
async fn two_workers_with_the_same_orders() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 1_000).insert(&mut client).await;
    let app = database.app(4);
    for round in 0..60 {
        let wishes: Vec<_> = buyers(5).into_iter().map(|b| (b, exact(&[round * 10 + 1, round * 10 + 2]))).collect();
        let ids = seed::orders(&app, &product, &wishes, 2).await;
        let worker = |stream: u64| {
            let (app, ids, product_id) = (app.clone(), ids.clone(), product.described.id);
            let mut rng = StdRng::seed_from_u64(seed ^ stream);
            async move {
                let mut client = app.client().await.unwrap();
                reserve(&mut client, tenant, product_id, &ids, &mut rng).await.unwrap().served
            }
        };
        let (one, other) = tokio::join!(tokio::spawn(worker(1)), tokio::spawn(worker(2)));
        let (one, other) = (one.unwrap(), other.unwrap());
        assert_eq!((one.len(), other.len()), (5, 5), "every id is answered for");
        for (id, served) in one.iter().chain(&other) {
            assert_ne!(*served, Served::Unknown, "{id}");
        }
        for id in &ids {
            let done = [&one, &other].iter().any(|served| served.contains(&(*id, Served::Done)));
            assert!(done, "one of the two has decided {id}: {one:?} {other:?}");
        }
    }
    assert_eq!(outcomes(&database, &product).await, expected([("reserved", 60), ("numbers-taken", 240)]));
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twice_in_one_batch_and_once_more_later() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 10).insert(&mut client).await;
    let id = seed::order(&client, &product, buyers(1)[0], &exact(&[3])).await;
    let chain = Chain::new(&database, 2, 10, seed);
    for _ in 0..4 {
        chain.put(&product, id);
    }
    chain.run().await;
    let first = look::order(&database, id).await;
    chain.put(&product, id);
    chain.run().await;
    let second = look::order(&database, id).await;
    assert_eq!(store::orders::Order { read_at: first.read_at, ..second }, first);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_in_somebody_elses_hands_comes_again() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 10).insert(&mut client).await;
    let id = seed::order(&client, &product, buyers(1)[0], &exact(&[3])).await;
    let nobody = uuid::Uuid::now_v7();
    let tx = client.transaction().await.unwrap();
    tx.execute("select from orders where id = $1 for no key update", &[&id]).await.unwrap();
    let mut rng = StdRng::seed_from_u64(1);
    let mut worker = database.app_client().await;
    let served = reserve(&mut worker, tenant, product.described.id, &[id, nobody], &mut rng).await.unwrap().served;
    assert_eq!(served, [(id, Served::Again), (nobody, Served::Unknown)], "the other worker may still crash");
    tx.rollback().await.unwrap();
    let served = reserve(&mut worker, tenant, product.described.id, &[id], &mut rng).await.unwrap().served;
    assert_eq!(served, [(id, Served::Done)]);
    let served = reserve(&mut worker, tenant, nobody, &[id], &mut rng).await.unwrap().served;
    assert_eq!(served, [(id, Served::Unknown)], "of another product");
    database.finish().await;
}

/// Requests are checked long before, but rows outlive the code that checked them.
#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_names_a_number_twice_gets_it_once() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 10).insert(&mut client).await;
    let id = seed::order(&client, &product, buyers(1)[0], &exact(&[3, 4])).await;
    look::change(&database, "update orders set requested_numbers = '{4, 3, 4}'", 1).await;
    let chain = Chain::new(&database, 1, 10, seed);
    chain.put(&product, id);
    chain.run().await;
    assert_eq!(look::order(&database, id).await.numbers, [3, 4]);
    assert_eq!(look::taken(&database, &product).await, 2);
    database.finish().await;
}
