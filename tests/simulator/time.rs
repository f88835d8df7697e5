//! Work that takes too long, and processes that time passes by.

use std::time::Duration;

use domain::messages::Queue;
use serde_json::Value;
use store::catalog::Product;
use tests::look;
use tests::simulator::{Outcome, Setup, World, wish};

const BOUND: Duration = Duration::from_secs(30);
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const STEPS: &str = "select count(*) from order_events where to_state = 'reserved'";

async fn place(world: &World, product: &Product, numbers: std::ops::RangeInclusive<i32>) {
    let shopper = world.shopper(product);
    for number in numbers {
        shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
    }
}

/// Fault 10: the function's timeout in the middle of a batch. What was committed before stays, the rest is rolled
/// back; the whole batch comes again, which changes nothing about the first and serves the second.
#[tokio::test(flavor = "multi_thread")]
async fn a_timeout_in_a_batch() {
    let world = World::start(Setup::default()).await;
    let products = [world.product(100).await, world.product(100).await];
    for product in &products {
        place(&world, product, 1..=3).await;
    }
    let worker = world.function("reserve-numbers");
    // A margin of eight of them is kept for answering: the first group is served in the second that is left.
    worker.set(|settings| settings.timeout = Duration::from_secs(9));
    worker.arm("reserve.before_commit=1*off->1*sleep(60000)");
    let batch = world.sqs.receive(Queue::ReserveNumbers, 500, Duration::ZERO).await;
    let outcome = worker.invoke(serde_json::to_value(&batch).unwrap()).await;
    assert_eq!(outcome, Outcome::TimedOut);
    assert_eq!(look::count(&world.database, RESERVED).await, 3, "one group of two is committed");
    world.run();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 6).await;
    assert_eq!(look::count(&world.database, STEPS).await, 6, "each was reserved once");
    world.finish(BOUND).await;
}

/// Fault 10 once more: the visibility expires while a worker is still at work on its batch, before its commit or after
/// it. Another worker gets the same messages; each order is reserved once.
#[tokio::test(flavor = "multi_thread")]
async fn the_visibility_expires_before_the_commit() {
    outlive_the_visibility("reserve.before_commit=1*sleep(4000)").await;
}

/// The same after the commit.
#[tokio::test(flavor = "multi_thread")]
async fn the_visibility_expires_after_the_commit() {
    outlive_the_visibility("reserve.after_commit=1*sleep(4000)").await;
}

async fn outlive_the_visibility(failpoint: &str) {
    // Messages come again after 3.6 seconds, while the worker sleeps for four.
    let world = World::start(Setup { scale: 100.0, ..Setup::default() }).await;
    let product = world.product(100).await;
    place(&world, &product, 1..=4).await;
    let worker = world.function("reserve-numbers");
    worker.arm(failpoint);
    world.run();
    world.until("the first worker sleeps", BOUND, async || worker.busy() == 1).await;
    world.until("a second worker has the batch", BOUND, async || worker.counts().started == 2).await;
    world.until("both are done", BOUND, async || worker.counts().answers >= 2 && worker.busy() == 0).await;
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 4).await;
    assert_eq!(look::count(&world.database, STEPS).await, 4, "each was reserved once");
    assert_eq!(look::taken(&world.database, &product).await, 4);
    world.finish(BOUND).await;
}

/// How a frozen process loses its connection.
#[derive(Debug, Clone, Copy)]
enum Loss {
    /// The other side closes it.
    Closed,
    /// The server says why and closes it.
    Terminated,
    /// Nobody says anything; what is sent is not answered.
    Silent,
}

/// Fault 12: processes are stopped, meanwhile the server's side gives up their idle connections, then they go on. Each
/// of them notices, connects again, and does its work; it is not even started anew.
#[tokio::test(flavor = "multi_thread")]
async fn frozen_while_idle_connections_are_lost() {
    for loss in [Loss::Closed, Loss::Terminated, Loss::Silent] {
        let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
        let product = world.product(100).await;
        let (product_id, shopper) = (product.described.id, world.shopper(&product));
        let early = shopper.place(product_id, &wish(&[1], 0, "reject")).await.unwrap();
        everybody_works(&world).await;
        world.pass(Duration::from_secs(1_000)).await;
        let late = shopper.place(product_id, &wish(&[2], 0, "reject")).await.unwrap();
        assert_eq!(world.proxy.connections(), 4, "each has its connection");
        lose(&world, loss).await;
        let wanted = wish(&[3], 0, "reject");
        let (placed, reports, ()) = futures::join!(
            shopper.try_place(product_id, "after", &wanted),
            everybody_works(&world),
            speak_again(&world, loss)
        );
        placed.accepted();
        assert_eq!(reports, (1, 0), "{loss:?}: one hold was freed, no step failed");
        for (order, state) in [(early, "expired"), (late, "reserved"), (placed.accepted(), "queued")] {
            assert_eq!(look::order(&world.database, order).await.state.word(), state, "{loss:?}");
        }
        for name in ["orders", "reserve-numbers", "expire-reservations", "reconcile-orders"] {
            let counts = world.function(name).counts();
            assert_eq!((counts.started, counts.errors, counts.crashes), (1, 0, 0), "{loss:?}: {name}");
        }
        world.finish(BOUND).await;
    }
}

/// The worker serves what waits, both jobs run; holds freed, and steps that failed.
async fn everybody_works(world: &World) -> (u64, usize) {
    let serve = async {
        let batch = world.sqs.receive(Queue::ReserveNumbers, 500, Duration::ZERO).await;
        let answer = world.function("reserve-numbers").invoke(serde_json::to_value(&batch).unwrap()).await.answer();
        assert_eq!(answer["batchItemFailures"], Value::Array(Vec::new()));
        world.sqs.delete(Queue::ReserveNumbers, batch.records.iter().filter_map(|one| one.receipt_handle.as_deref()));
    };
    let (expire, reconcile) = (world.schedule("expire-reservations"), world.schedule("reconcile-orders"));
    let ((), expired, reconciled) = futures::join!(serve, expire.run_once(), reconcile.run_once());
    let (expired, reconciled) = (expired.answer(), reconciled.answer());
    (expired["orders"].as_u64().unwrap(), reconciled["failed_steps"].as_array().unwrap().len())
}

async fn lose(world: &World, loss: Loss) {
    world.note(&format!("connections are lost: {loss:?}"));
    match loss {
        Loss::Closed => world.proxy.cut_idle(Duration::ZERO),
        Loss::Terminated => {
            let sql = "select pg_terminate_backend(pid) from pg_stat_activity
                where datname = current_database() and usename = 'tirada_app'";
            world.database.owner().query(sql, &[]).await.unwrap();
        }
        Loss::Silent => return world.proxy.stall(true),
    }
    world.until("the connections are gone", BOUND, async || world.proxy.connections() == 0).await;
}

/// By when the silent connections were given up, new ones are answered.
async fn speak_again(world: &World, loss: Loss) {
    if matches!(loss, Loss::Silent) {
        tokio::time::sleep(Duration::from_millis(1_500)).await;
        world.proxy.stall(false);
    }
}
