//! Commits whose answer is lost, and commits that take seconds.

use std::time::Duration;

use domain::limits::{OUTBOX_GRACE, REQUEST_BUDGET};
use domain::messages::Queue;
use tests::look;
use tests::simulator::{Setup, World, code, wish};
use tokio::task::JoinSet;
use tokio::time::Instant;

const BOUND: Duration = Duration::from_secs(30);
/// From a function's answer to the client's.
const MARGIN: Duration = Duration::from_secs(1);
const ORDERS: &str = "select count(*) from orders";
const OUTBOX: &str = "select count(*) from outbox";
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const EXPIRED: &str = "select count(*) from orders where state = 'expired'";

/// Fault 14 in intake: the connection is cut between the insert's commit and its answer. The buyer is not told that
/// the order failed; the same key finds it. The same for a cancellation.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_intakes_commit_is_lost() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let (shopper, wish) = (world.shopper(&product), wish(&[7], 1, "reject"));
    world.proxy.lose_answers("place_order(", 1);
    let first = shopper.try_place(product.described.id, "key", &wish).await;
    assert_eq!((first.status, code(&first).as_str(), world.proxy.lost()), (503, "unavailable", 1));
    assert!(first.retry_after().is_some());
    assert_eq!(look::count(&world.database, ORDERS).await, 1, "it was committed all the same");
    let second = shopper.try_place(product.described.id, "key", &wish).await;
    assert!(second.is_replay());
    assert_eq!(look::count(&world.database, ORDERS).await, 1);
    assert_eq!((world.sqs.len(Queue::ReserveNumbers), look::count(&world.database, OUTBOX).await), (0, 1));
    world.pass(OUTBOX_GRACE).await;
    world.run();
    let order = second.accepted();
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
    rest(&world).await;
    world.proxy.lose_answers("commit", 1);
    assert!(shopper.cancel(order).await, "the same key finds the cancellation");
    assert_eq!(world.proxy.lost(), 2);
    world.pass(OUTBOX_GRACE).await;
    world.run();
    world.until("it is cancelled", BOUND, async || look::taken(&world.database, &product).await == 0).await;
    assert_eq!(steps(&world, "cancelled").await, 1);
    world.finish(BOUND).await;
}

/// Fault 14 in the workers: the connection is cut between a group's commit and its answer. What was done is found
/// done when the messages come again.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_a_workers_commit_is_lost() {
    let world = World::start(Setup::default()).await;
    let product = world.product(1_000).await;
    let shopper = world.shopper(&product);
    let mut orders = Vec::new();
    for number in 1..=8 {
        orders.push(shopper.place(product.described.id, &wish(&[number], 1, "replace")).await.unwrap());
    }
    let lost = async |worker: &str, queue: Queue, done: &str, said: &str| {
        world.proxy.lose_answers("commit", 1);
        world.mapping(worker).start();
        world.until("all messages are done", BOUND, async || world.sqs.len(queue) == 0).await;
        rest(&world).await;
        assert_eq!(steps(&world, done).await, 8, "each was {done} once");
        let log = world.function(worker).log();
        world.until("it is not taken for a success", BOUND, async || !log.with(said).is_empty()).await;
    };
    lost("reserve-numbers", Queue::ReserveNumbers, "reserved", "group not served").await;
    assert_eq!((look::taken(&world.database, &product).await, world.proxy.lost()), (16, 1));
    for order in orders {
        assert!(shopper.cancel(order).await);
    }
    lost("release-numbers", Queue::ReleaseNumbers, "cancelled", "group not released").await;
    assert_eq!((look::taken(&world.database, &product).await, world.proxy.lost()), (0, 2));
    world.finish(BOUND).await;
}

/// Fault 14 in the sweep: it reports that it does not know, and its next run finds nothing left to do.
#[tokio::test(flavor = "multi_thread")]
async fn the_answer_to_the_sweeps_commit_is_lost() {
    let world = World::start(Setup::default()).await;
    let product = world.product(1_000).await;
    let shopper = world.shopper(&product);
    for number in 1..=6 {
        shopper.place(product.described.id, &wish(&[number], 1, "replace")).await.unwrap();
    }
    world.mapping("reserve-numbers").start();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 6).await;
    rest(&world).await;
    world.pass(Duration::from_secs(1_000)).await;
    world.proxy.lose_answers("commit", 1);
    let first = world.schedule("expire-reservations").run_once().await.answer();
    assert_eq!((&first["orders"], &first["products_failed"]), (&0.into(), &1.into()), "{first}");
    assert_eq!((look::count(&world.database, EXPIRED).await, world.proxy.lost()), (6, 1));
    let second = world.schedule("expire-reservations").run_once().await.answer();
    assert_eq!((&second["orders"], &second["products_failed"]), (&0.into(), &0.into()), "{second}");
    assert_eq!((look::taken(&world.database, &product).await, steps(&world, "expired").await), (0, 6));
    world.finish(BOUND).await;
}

/// Fault 15: every commit takes 1 to 5 seconds. Each request is answered within its budget, orders wait in the queue,
/// and nothing is lost.
#[tokio::test(flavor = "multi_thread")]
async fn commits_take_seconds() {
    let world = World::start(Setup::default()).await;
    let product = world.product(1_000).await;
    slow_down(&world).await;
    commits_take(&world, 1.0, 5.0).await;
    world.run();
    let mut buyers = JoinSet::new();
    for number in 1..=15 {
        let (shopper, id) = (world.shopper(&product), product.described.id);
        buyers.spawn(async move {
            let began = Instant::now();
            let answer = shopper.try_place(id, &format!("key-{number}"), &wish(&[number], 1, "replace")).await;
            (answer, began.elapsed())
        });
    }
    for (answer, elapsed) in buyers.join_all().await {
        assert_eq!(answer.status, 202, "{}", answer.text());
        assert!((1.0..9.0).contains(&elapsed.as_secs_f64()), "the answer took {elapsed:?}");
    }
    // The worker's first group is under way or done; whatever it is, nothing waits for a person.
    commits_take(&world, 0.0, 0.0).await;
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 15).await;
    assert_eq!(steps(&world, "reserved").await, 15);
    world.finish(BOUND).await;
}

/// Fault 15 beyond any patience: the commit takes longer than a request may. The answer is 503 in time, and says
/// nothing about the order; the same key finds it.
#[tokio::test(flavor = "multi_thread")]
async fn a_commit_takes_longer_than_the_request_may() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let (shopper, wish) = (world.shopper(&product), wish(&[7], 0, "reject"));
    slow_down(&world).await;
    commits_take(&world, 12.0, 12.0).await;
    let began = Instant::now();
    let first = shopper.try_place(product.described.id, "key", &wish).await;
    assert_eq!((first.status, code(&first).as_str()), (503, "unavailable"));
    assert!(first.retry_after().is_some() && began.elapsed() < REQUEST_BUDGET + MARGIN, "{:?}", began.elapsed());
    assert_eq!(look::count(&world.database, ORDERS).await, 0, "it is still being committed");
    commits_take(&world, 0.0, 0.0).await;
    let order = shopper.place_under(product.described.id, "key", &wish).await.unwrap();
    assert_eq!(look::count(&world.database, ORDERS).await, 1);
    world.pass(OUTBOX_GRACE).await;
    world.run();
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
    world.finish(BOUND).await;
}

/// From now on every transaction that moves an order waits at its commit, for as long as [`commits_take`] says.
async fn slow_down(world: &World) {
    let sql = "create table slowness (least double precision not null, most double precision not null);
        insert into slowness values (0, 0);
        create function wait_once() returns trigger language plpgsql security definer set search_path = public as $$
        begin
            if current_setting('tests.waited', true) is distinct from pg_current_xact_id()::text then
                perform set_config('tests.waited', pg_current_xact_id()::text, true);
                perform pg_sleep(least + (most - least) * random()) from slowness;
            end if;
            return null;
        end $$;
        create constraint trigger wait_once after insert on order_events deferrable initially deferred
            for each row execute function wait_once()";
    world.database.owner().batch_execute(sql).await.unwrap();
}

/// How long commits wait from now on, in seconds.
async fn commits_take(world: &World, least: f64, most: f64) {
    world.note(&format!("commits take {least} to {most} s"));
    world.database.owner().execute("update slowness set least = $1, most = $2", &[&least, &most]).await.unwrap();
}

/// How many orders took a step to a state, repeated ones counted.
async fn steps(world: &World, state: &str) -> i64 {
    look::count(&world.database, &format!("select count(*) from order_events where to_state = '{state}'")).await
}

/// Stops what runs, and waits until it has ended.
async fn rest(world: &World) {
    world.halt();
    let all = ["reserve-numbers", "release-numbers", "expire-reservations", "reconcile-orders", "orders"];
    world.until("nothing runs", BOUND, async || all.iter().all(|name| world.function(name).busy() == 0)).await;
}
