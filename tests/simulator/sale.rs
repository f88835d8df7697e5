//! A sale is closed, paused or halted while orders wait.

use std::time::Duration;

use domain::catalog::{Intake, Reserving};
use domain::limits::QUEUE_DEADLINE;
use store::catalog::Product;
use store::switches::{Switch, set_intake, set_reserving};
use tests::look;
use tests::simulator::{Call, Fault, Setup, Shopper, World, code, wish};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const QUEUED: &str = "select count(*) from orders where state = 'queued'";
/// Orders that a worker has put aside because their product is halted.
const PARKED: &str = "select count(distinct order_id) from outbox where id <> order_id";
/// Orders put aside whose next try is still to come.
const WAITING: &str = "select count(distinct order_id) from outbox where id <> order_id and next_attempt_at > now()";
/// A minute past the end of a hold.
const PAST_A_HOLD: Duration = Duration::from_secs(960);

/// Fault 26: the sale is closed with a backlog in the queue. Late orders are told so, accepted ones that were not
/// served are rejected with the reason, whether or not their message is still there; reserved ones keep their hold.
#[tokio::test(flavor = "multi_thread")]
async fn closed_with_a_backlog() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let id = product.described.id;
    let held = [place(&world, &product, 1).await, place(&world, &product, 2).await];
    world.mapping("reserve-numbers").start();
    world.until("two are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 2).await;
    world.mapping("reserve-numbers").stop();
    let mut waiting = Vec::new();
    for number in 3..=6 {
        waiting.push(place(&world, &product, number).await);
    }
    world.sqs.fail(Call::Send, Fault::Forget, 1);
    waiting.push(place(&world, &product, 7).await);
    world.note("the sale is closed");
    close(&world, &product).await;
    let late = world.shopper(&product);
    let answer = late.try_place(id, "late", &wish(&[], 1, "reject")).await;
    assert_eq!((answer.status, code(&answer).as_str(), answer.retry_after()), (409, "sale-closed", None));
    let (first, order) = &waiting[0];
    let replay = first.try_place(id, &key(3), &wish(&[3], 0, "reject")).await;
    assert_eq!((replay.accepted(), replay.is_replay()), (*order, true), "who was accepted is still told so");
    world.run();
    for (shopper, order) in &waiting {
        let seen = shopper.follow(*order).await.unwrap();
        assert_eq!((&seen["state"], &seen["reason"]["code"]), (&"rejected".into(), &"sale-ended".into()));
    }
    assert!(held[0].0.cancel(held[0].1).await, "a hold may still be given up");
    world.until("its number is back", BOUND, async || look::taken(&world.database, &product).await == 1).await;
    assert_eq!(look::order(&world.database, held[1].1).await.state, domain::orders::State::Reserved);
    world.pass(PAST_A_HOLD).await;
    world.until("the other has run out", BOUND, async || look::taken(&world.database, &product).await == 0).await;
    let outcomes = look::outcomes(&world.database, &product).await;
    assert_eq!(outcomes, look::expected([("sale-ended", 5), ("cancelled", 1), ("expired", 1)]));
    world.finish(BOUND).await;
}

/// Fault 26: intake is paused with a backlog in the queue, everywhere, for a store, for a product. New orders are told
/// to come back, accepted ones finish, and who was refused is served after the pause.
#[tokio::test(flavor = "multi_thread")]
async fn paused_with_a_backlog() {
    let world = World::start(Setup::default()).await;
    let (product, other) = (world.product(100).await, world.product(100).await);
    let (id, tenant) = (product.described.id, product.described.tenant_id);
    let switches = [Switch::Platform, Switch::Tenant(tenant), Switch::Product(tenant, id)];
    for (switch, round) in switches.into_iter().zip(0..) {
        world.halt();
        let numbers = 10 * round + 1..=10 * round + 4;
        let mut waiting = Vec::new();
        for number in numbers.clone() {
            waiting.push(place(&world, &product, number).await);
        }
        world.note(&format!("intake is paused: {switch:?}"));
        set_intake(world.database.owner(), switch, Intake::Paused, Some("a test")).await.unwrap();
        let (late, elsewhere) = (world.shopper(&product), world.shopper(&other));
        let last = 10 * round + 5;
        let answer = late.try_place(id, &key(last), &wish(&[last], 0, "reject")).await;
        assert_eq!((answer.status, code(&answer).as_str()), (503, "sales-paused"));
        assert!(answer.retry_after().is_some());
        let another = elsewhere.try_place(other.described.id, &key(1_000 + last), &wish(&[last], 0, "reject")).await;
        assert_eq!(another.status, if switch == Switch::Platform { 503 } else { 202 }, "{switch:?}");
        let replay = waiting[0].0.try_place(id, &key(*numbers.start()), &wish(&[*numbers.start()], 0, "reject")).await;
        assert!(replay.is_replay(), "who was accepted is still told so");
        world.run();
        for (shopper, order) in &waiting {
            assert_eq!(shopper.follow(*order).await.unwrap()["state"], "reserved");
        }
        assert!(waiting[0].0.cancel(waiting[0].1).await);
        set_intake(world.database.owner(), switch, Intake::Open, None).await.unwrap();
        let order = late.place_under(id, &key(last), &wish(&[last], 0, "reject")).await.unwrap();
        assert_eq!(late.follow(order).await.unwrap()["state"], "reserved");
    }
    world.finish(BOUND).await;
}

/// Fault 26: reserving is halted with a backlog in the queue. Nothing changes the product's numbers, orders wait as
/// long as it takes, also those that come later, and all finish when it is resumed.
#[tokio::test(flavor = "multi_thread")]
async fn halted_with_a_backlog() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let held = [place(&world, &product, 1).await, place(&world, &product, 2).await];
    world.mapping("reserve-numbers").start();
    world.until("two are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 2).await;
    world.halt();
    for number in 3..=6 {
        place(&world, &product, number).await;
    }
    world.note("reserving is halted");
    halt(&world, &product, Reserving::Halted).await;
    assert!(held[0].0.cancel(held[0].1).await);
    world.run();
    place(&world, &product, 7).await;
    world.until("all are put aside", BOUND, async || look::count(&world.database, PARKED).await == 6).await;
    for _ in 0..4 {
        // Longer in all than an order may wait in the queue, and than a hold.
        world.pass(QUEUE_DEADLINE / 3).await;
        world.schedule("expire-reservations").run_once().await;
        world.until("all are put aside again", BOUND, async || look::count(&world.database, WAITING).await == 6).await;
    }
    let counts = (look::count(&world.database, QUEUED).await, look::taken(&world.database, &product).await);
    assert_eq!(counts, (5, 2), "nothing moved");
    world.note("reserving goes on");
    halt(&world, &product, Reserving::On).await;
    world.pass(Duration::from_secs(60)).await;
    let done = look::expected([("reserved", 5), ("cancelled", 1), ("expired", 1)]);
    world.until("all are done", BOUND, async || look::outcomes(&world.database, &product).await == done).await;
    world.finish(BOUND).await;
}

/// Fault 26: reserving is halted, and then the sale is over. Waiting orders are not kept for the operator: they are
/// rejected with the reason. What is held waits, and is given back when reserving goes on.
#[tokio::test(flavor = "multi_thread")]
async fn halted_until_the_sale_is_over() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let held = place(&world, &product, 1).await;
    world.run();
    assert_eq!(held.0.follow(held.1).await.unwrap()["state"], "reserved");
    halt(&world, &product, Reserving::Halted).await;
    let waiting = place(&world, &product, 2).await;
    world.until("it is put aside", BOUND, async || look::count(&world.database, PARKED).await == 1).await;
    close(&world, &product).await;
    let seen = waiting.0.follow(waiting.1).await.unwrap();
    assert_eq!((&seen["state"], &seen["reason"]["code"]), (&"rejected".into(), &"sale-ended".into()));
    assert!(held.0.cancel(held.1).await);
    let parked = format!("{PARKED} and order_id = '{}'", held.1);
    world.until("it is put aside", BOUND, async || look::count(&world.database, &parked).await == 1).await;
    assert_eq!(look::taken(&world.database, &product).await, 1);
    halt(&world, &product, Reserving::On).await;
    world.pass(Duration::from_secs(60)).await;
    world.until("its number is back", BOUND, async || look::taken(&world.database, &product).await == 0).await;
    world.finish(BOUND).await;
}

/// A new buyer, and an order of one number under [`key`].
async fn place(world: &World, product: &Product, number: i32) -> (Shopper, Uuid) {
    let shopper = world.shopper(product);
    let wish = wish(&[number], 0, "reject");
    let order = shopper.place_under(product.described.id, &key(number), &wish).await.unwrap();
    (shopper, order)
}

fn key(number: i32) -> String {
    format!("key-{number}")
}

async fn close(world: &World, product: &Product) {
    let sql = format!("update products set closes_at = now() where key = {}", product.key);
    look::change(&world.database, &sql, 1).await;
}

async fn halt(world: &World, product: &Product, reserving: Reserving) {
    let (tenant_id, id) = (product.described.tenant_id, product.described.id);
    set_reserving(world.database.owner(), tenant_id, id, reserving, Some("a test")).await.unwrap();
}
