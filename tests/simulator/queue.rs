//! What standard queues do on bad days: duplicates at once, no order.

use std::time::Duration;

use domain::messages::Queue;
use tests::chain::message;
use tests::look;
use tests::simulator::{Setup, World, wish};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);

/// Fault 7: the same message twice at once, and messages out of order. A number has one winner, whoever else wanted it
/// is refused, and each order takes each step once.
#[tokio::test(flavor = "multi_thread")]
async fn the_same_message_twice_at_once_and_out_of_order() {
    let setup = Setup { scale: 240.0, duplicates: 0.3, out_of_order: 0.5, ..Setup::default() };
    let world = World::start(setup).await;
    let product = world.product(1_000).await;
    world.mapping("reserve-numbers").set(|polling| {
        polling.batch_max = 5;
        polling.window = Duration::ZERO;
    });
    let mut orders: Vec<Uuid> = Vec::new();
    for number in 1..=20 {
        for _ in 0..3 {
            let shopper = world.shopper(&product);
            orders.push(shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap());
        }
    }
    for order in &orders {
        world.sqs.put(Queue::ReserveNumbers, &message(&product, *order));
        world.sqs.put(Queue::ReleaseNumbers, &message(&product, *order));
    }
    world.run();
    let queued = "select count(*) from orders where state = 'queued'";
    world.until("all are decided", BOUND, async || look::count(&world.database, queued).await == 0).await;
    let outcomes = look::outcomes(&world.database, &product).await;
    assert_eq!(outcomes, look::expected([("reserved", 20), ("numbers-taken", 40)]));
    world.finish(BOUND).await;
}

/// Fault 7 once more: an order was cancelled before its message came, and cancelled again by a message that overtook.
#[tokio::test(flavor = "multi_thread")]
async fn a_message_about_an_order_that_was_cancelled_before() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let shopper = world.shopper(&product);
    let order = shopper.place(product.described.id, &wish(&[7], 0, "reject")).await.unwrap();
    world.sqs.put(Queue::ReleaseNumbers, &message(&product, order));
    assert!(shopper.cancel(order).await);
    world.sqs.put(Queue::ReserveNumbers, &message(&product, order));
    world.run();
    world
        .until("the queues are empty", BOUND, async || Queue::ALL.iter().all(|queue| world.sqs.len(*queue) == 0))
        .await;
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "cancelled");
    assert_eq!(look::taken(&world.database, &product).await, 0);
    world.finish(BOUND).await;
}
