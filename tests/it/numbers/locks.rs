//! Every writer at once on the same few chunks: they wait for each other in one order, so nothing deadlocks.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::orders::{Fallback, Request};
use rand::RngExt;
use rand::rngs::StdRng;
use store::Database;
use store::catalog::Product;
use store::numbers::{release, reserve, sweep};
use tests::chain::Chain;
use tests::look::{change, count};
use tests::operator::{block, unblock};
use tests::seed::{buyers, cancel, product, store};
use tests::{TestDatabase, randomness, seed};
use tokio::time::Instant;
use uuid::Uuid;

const LASTS: Duration = Duration::from_secs(6);
const NUMBERS: i32 = 3 * 8_192;

#[tokio::test(flavor = "multi_thread")]
async fn all_writers_at_once_do_not_deadlock() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, NUMBERS).per_buyer(1_000).insert(&mut client).await;
    let app = database.app(12);
    let people = buyers(12);
    let end = Instant::now() + LASTS;
    let mut tasks = tokio::task::JoinSet::new();
    for stream in 0..5 {
        let rng = randomness::stream(seed, stream);
        tasks.spawn(buy_and_serve(app.clone(), product.clone(), people.clone(), rng, end));
    }
    tasks.spawn(sweep_all(app.clone(), product.clone(), end));
    tasks.spawn(sweep_all(app.clone(), product.clone(), end));
    tasks.spawn(block_some(app.clone(), product.clone(), randomness::stream(seed, 100), end));
    tasks.spawn(run_out(database.another_owner().await, end));
    while let Some(task) = tasks.join_next().await {
        task.unwrap();
    }
    assert!(count(&database, "select count(*) from orders where state = 'expired'").await > 20);
    assert!(count(&database, "select count(*) from orders where state = 'cancelled'").await > 5);
    // What is left goes through the usual ways.
    let chain = Chain::new(&database, 4, 100, seed);
    let overdue = "update orders set queue_deadline = now() where state = 'queued'";
    let queued = count(&database, "select count(*) from orders where state = 'queued'").await;
    change(&database, overdue, u64::try_from(queued).unwrap()).await;
    database.owner().execute("update outbox set next_attempt_at = now()", &[]).await.unwrap();
    chain.reconcile().await;
    chain.run().await;
    chain.expire().await;
    chain.release().await;
    drop(app);
    // Sessions hand in their counts a second after the last one.
    tokio::time::sleep(Duration::from_millis(1_200)).await;
    let deadlocks = "select deadlocks from pg_stat_database where datname = current_database()";
    assert_eq!(count(&database, deadlocks).await, 0);
    database.finish().await;
}

/// A refusal or a lock that took too long is part of the stress; a fault is not.
fn tolerate<T>(result: domain::Result<T>) -> Option<T> {
    match result {
        Ok(value) => Some(value),
        Err(domain::Error::Fault(error)) => panic!("{error}"),
        Err(_) => None,
    }
}

async fn buy_and_serve(app: Database, product: Product, people: Vec<Uuid>, mut rng: StdRng, end: Instant) {
    let mut client = app.client().await.unwrap();
    while Instant::now() < end {
        let mut ids = Vec::new();
        for _ in 0..8 {
            let mut numbers = BTreeSet::new();
            for _ in 0..rng.random_range(0..5) {
                // A few hot numbers in every chunk.
                numbers.insert(rng.random_range(0..3) * 8_192 + rng.random_range(1..40));
            }
            let fallback = if rng.random_bool(0.5) { Fallback::Replace } else { Fallback::Drop };
            let quantity = rng.random_range(i32::from(numbers.is_empty())..4);
            let request = Request::new(numbers.into_iter().collect(), quantity, fallback).unwrap();
            let buyer_id = people[rng.random_range(0..people.len())];
            let (id, placed) = seed::try_order(&client, &product, buyer_id, &request).await;
            if matches!(placed, store::orders::Placed::Accepted { .. }) {
                ids.push((id, buyer_id));
            }
        }
        let mut group: Vec<Uuid> = ids.iter().map(|(id, _)| *id).collect();
        // The order in which messages come is not the order in which rows are locked.
        group.reverse();
        tolerate(reserve(&mut client, product.described.tenant_id, product.described.id, &group, &mut rng).await);
        let mut cancelled = Vec::new();
        for (id, buyer_id) in &ids {
            if rng.random_bool(0.3)
                && tolerate(cancel(&mut client, product.described.tenant_id, *buyer_id, *id).await).is_some()
            {
                cancelled.push(*id);
            }
        }
        tolerate(release(&mut client, product.described.tenant_id, product.described.id, &cancelled).await);
    }
}

async fn sweep_all(app: Database, product: Product, end: Instant) {
    let mut client = app.client().await.unwrap();
    while Instant::now() < end {
        let swept = tolerate(sweep(&mut client, &product).await).unwrap_or_default();
        assert_eq!(swept.failed, 0);
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

async fn block_some(app: Database, product: Product, mut rng: StdRng, end: Instant) {
    let mut client = app.client().await.unwrap();
    while Instant::now() < end {
        let numbers: BTreeSet<i32> = (0..4).map(|_| rng.random_range(0..3) * 8_192 + rng.random_range(1..80)).collect();
        if tolerate(block(&mut client, &product, &numbers).await).is_some() {
            tolerate(unblock(&mut client, &product, &numbers).await);
        }
    }
}

/// Lets holds run out as they come.
async fn run_out(client: tokio_postgres::Client, end: Instant) {
    while Instant::now() < end {
        let sql = "with due as (
                update orders set expires_at = now(), sweep_at = now() where id in (
                    select id from orders where state = 'reserved' and cancel_requested_at is null and expires_at > now()
                    order by id for no key update skip locked)
                returning id, product_key, sweep_at
            )
            insert into holds (product_key, sweep_at, order_ids) select product_key, sweep_at, array[id] from due";
        client.execute(sql, &[]).await.unwrap();
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}
