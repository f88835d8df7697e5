//! Somebody else has the locks, for too long or in the wrong order.

use std::time::Duration;

use domain::messages::Queue;
use store::catalog::Product;
use tests::look;
use tests::simulator::{Setup, Shopper, World, code, wish};
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
/// Sessions of functions that wait for a lock.
const WAITING: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and usename = 'tirada_app' and wait_event_type = 'Lock'";
const LOCK_CHUNK: &str = "select from number_chunks where product_key = $1 and chunk = $2 for no key update";
const LOCK_HOLDING: &str = "select from buyer_holdings where product_key = $1 and buyer_id = $2 for no key update";

/// Fault 16: a chunk is locked for longer than anybody waits. Whoever needs it changes nothing at all, nobody else is
/// held up, and everything is done afterwards.
#[tokio::test(flavor = "multi_thread")]
async fn a_chunk_is_locked_for_too_long() {
    let world = World::start(Setup::default()).await;
    let (product, other) = (world.product(20_000).await, world.product(100).await);
    let held = [reserved(&world, &product, 1).await, reserved(&world, &product, 2).await];
    let before = state(&world, &product).await;
    let mut holder = world.database.another_owner().await;
    let lock = holder.transaction().await.unwrap();
    lock.execute(LOCK_CHUNK, &[&product.key, &0]).await.unwrap();
    world.note("chunk 0 is locked");
    let overdue = format!("update orders set sweep_at = now(), expires_at = now() where id = '{}'", held[0].1);
    look::change(&world.database, &overdue, 1).await;
    assert!(held[1].0.cancel(held[1].1).await, "a buyer never waits for a chunk");
    let mut waiting = Vec::new();
    for number in [10, 9_000] {
        let shopper = world.shopper(&product);
        waiting.push(shopper.place(product.described.id, &wish(&[number], 1, "reject")).await.unwrap());
    }
    let neighbour = world.shopper(&other);
    let order = neighbour.place(other.described.id, &wish(&[7], 0, "reject")).await.unwrap();
    world.run();
    assert_eq!(neighbour.follow(order).await.unwrap()["state"], "reserved", "another product's orders go on");
    for (name, said) in [
        ("reserve-numbers", "group not served"),
        ("release-numbers", "group not released"),
        ("expire-reservations", "product not swept"),
    ] {
        let log = world.function(name).log();
        world.until(&format!("{name} gave up"), BOUND, async || !log.with(said).is_empty()).await;
        assert!(log.with(said)[0].contains("lock timeout"), "{}", log.with(said)[0]);
    }
    assert_eq!(state(&world, &product).await, before, "nothing was done by halves");
    lock.rollback().await.unwrap();
    world.note("chunk 0 is free");
    let done = look::expected([("expired", 1), ("cancelled", 1), ("reserved", 2)]);
    world.until("all are done", BOUND, async || look::outcomes(&world.database, &product).await == done).await;
    assert_eq!(look::taken(&world.database, &product).await, 4);
    world.finish(BOUND).await;
}

/// Fault 16: a deadlock over two chunks with a session that takes them in the opposite order, and one over two
/// buyers' holdings. The worker is the victim; its group is decided again, whole.
#[tokio::test(flavor = "multi_thread")]
async fn a_deadlock() {
    for over_chunks in [true, false] {
        let world = World::start(Setup::default()).await;
        let product = world.product(20_000).await;
        let mut buyers = [reserved(&world, &product, 1).await.0, reserved(&world, &product, 2).await.0];
        buyers.sort_by_key(|shopper| shopper.buyer.id);
        for (shopper, number) in buyers.iter().zip([10, 9_000]) {
            shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
        }
        let before = state(&world, &product).await;
        let (mut foreign, ids) = (stubborn(&world).await, buyers.map(|shopper| shopper.buyer.id));
        let tx = foreign.transaction().await.unwrap();
        lock(&tx, &product, over_chunks, 1, ids).await;
        world.mapping("reserve-numbers").start();
        world.until("the worker waits", BOUND, async || look::count(&world.database, WAITING).await == 1).await;
        world.note("the circle closes");
        lock(&tx, &product, over_chunks, 0, ids).await;
        let log = world.function("reserve-numbers").log();
        world.until("the worker gave up", BOUND, async || !log.with("group not served").is_empty()).await;
        assert!(log.with("group not served")[0].contains("deadlock detected"), "{:?}", log.with("group not served"));
        assert_eq!(state(&world, &product).await, before, "nothing was done by halves");
        tx.rollback().await.unwrap();
        let done = look::expected([("reserved", 4)]);
        world.until("both are reserved", BOUND, async || look::outcomes(&world.database, &product).await == done).await;
        world.until("the queue is empty", BOUND, async || world.sqs.len(Queue::ReserveNumbers) == 0).await;
        world.finish(BOUND).await;
    }
}

/// Fault 16 in intake: an order's twin under the same key, and whatever else keeps the insert waiting, is answered
/// before the client gives up, as something to be repeated.
#[tokio::test(flavor = "multi_thread")]
async fn intake_waits_for_a_lock() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let (shopper, id) = (world.shopper(&product), product.described.id);
    let mut holder = world.database.another_owner().await;
    let lock = holder.transaction().await.unwrap();
    lock.execute("lock table orders in access exclusive mode", &[]).await.unwrap();
    let answer = shopper.try_place(id, "key", &wish(&[7], 0, "reject")).await;
    assert!(matches!(answer.status, 409 | 503) && answer.retry_after().is_some(), "{}", answer.text());
    assert!(matches!(code(&answer).as_str(), "key-in-flight" | "unavailable"), "{}", answer.text());
    lock.rollback().await.unwrap();
    let order = shopper.place_under(id, "key", &wish(&[7], 0, "reject")).await.unwrap();
    let mut holder = world.database.another_owner().await;
    let lock = holder.transaction().await.unwrap();
    lock.execute("select from orders where id = $1 for no key update", &[&order]).await.unwrap();
    world.run();
    // The worker does not wait for the row: somebody else is deciding, so the message comes again.
    let report = "\"batch.retried\":1";
    let log = world.function("reserve-numbers").log();
    world.until("the message was put off", BOUND, async || !log.with(report).is_empty()).await;
    lock.rollback().await.unwrap();
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
    world.finish(BOUND).await;
}

/// A new buyer with one number.
async fn reserved(world: &World, product: &Product, number: i32) -> (Shopper, Uuid) {
    let shopper = world.shopper(product);
    let order = shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
    world.mapping("reserve-numbers").start();
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
    world.mapping("reserve-numbers").stop();
    (shopper, order)
}

/// A session that is nobody's victim: it never looks for deadlocks itself.
async fn stubborn(world: &World) -> Client {
    let client = world.database.another_owner().await;
    client.batch_execute("set deadlock_timeout = '1min'").await.unwrap();
    client
}

/// Takes the first or the second of two chunks, or of two buyers' holdings.
async fn lock(tx: &Transaction<'_>, product: &Product, over_chunks: bool, which: usize, buyers: [Uuid; 2]) {
    let taken = if over_chunks {
        tx.execute(LOCK_CHUNK, &[&product.key, &i32::try_from(which).unwrap()]).await
    } else {
        tx.execute(LOCK_HOLDING, &[&product.key, &buyers[which]]).await
    };
    assert_eq!(taken.unwrap(), 1);
}

/// Everything that a reservation or a release of a product changes, as one text.
async fn state(world: &World, product: &Product) -> String {
    let sql = "select (select string_agg(chunk || ':' || version, ' ' order by chunk) from number_chunks where product_key = $1)
        || ' numbers ' || (select string_agg(number || ':' || order_id, ' ' order by number) from taken_numbers where product_key = $1)
        || ' holdings ' || (select string_agg(buyer_id || ':' || held, ' ' order by buyer_id) from buyer_holdings where product_key = $1)
        || ' reserved ' || (select string_agg(id || ':' || version, ' ' order by id) from orders
            where product_key = $1 and state <> 'queued')";
    world.database.owner().query_one(sql, &[&product.key]).await.unwrap().get(0)
}
