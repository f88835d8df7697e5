//! Faults between a buyer's click and the message in the queue.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::limits::{INTAKE_CLOSES_AT_AGE, OUTBOX_GRACE};
use domain::messages::Queue;
use futures::future::join_all;
use serde_json::Value;
use tests::look;
use tests::simulator::{Call, Fault, Setup, World, code, wish};
use tokio::time::Instant;

const BOUND: Duration = Duration::from_secs(30);
const ORDERS: &str = "select count(*) from orders";
const OUTBOX: &str = "select count(*) from outbox";
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";

/// Fault 1: the function is killed before the order's commit. There is no order, and a retry with the same key makes
/// exactly one.
#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_commit() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let (shopper, wish) = (world.shopper(&product), wish(&[7], 0, "reject"));
    world.function("orders").arm("place.before_commit=kill");
    let first = shopper.try_place(product.described.id, "key", &wish).await;
    assert_eq!(first.status, 502);
    assert_eq!(look::count(&world.database, ORDERS).await, 0);
    let second = shopper.try_place(product.described.id, "key", &wish).await;
    assert!(!second.is_replay());
    let third = shopper.try_place(product.described.id, "key", &wish).await;
    assert_eq!((third.accepted(), third.is_replay()), (second.accepted(), true));
    assert_eq!(look::count(&world.database, ORDERS).await, 1);
    world.finish(BOUND).await;
}

/// Fault 2: killed after the commit and before the message is sent. The outbox row stays, the client's retry finds the
/// order, and the relay publishes.
#[tokio::test(flavor = "multi_thread")]
async fn killed_before_the_message_is_sent() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let (shopper, wish) = (world.shopper(&product), wish(&[7], 0, "reject"));
    world.function("orders").arm("publish.before_send=kill");
    assert_eq!(shopper.try_place(product.described.id, "key", &wish).await.status, 502);
    let retried = shopper.try_place(product.described.id, "key", &wish).await;
    assert!(retried.is_replay());
    let counts = (look::count(&world.database, ORDERS).await, look::count(&world.database, OUTBOX).await);
    assert_eq!((counts, world.sqs.len(Queue::ReserveNumbers)), ((1, 1), 0));
    world.pass(OUTBOX_GRACE).await;
    world.run();
    assert_eq!(shopper.follow(retried.accepted()).await.unwrap()["state"], "reserved");
    world.finish(BOUND).await;
}

/// Fault 3: killed after the message was sent and before its outbox row is gone; once in intake, once in the relay.
/// There are duplicates of the message, and one reservation.
#[tokio::test(flavor = "multi_thread")]
async fn killed_after_the_message_was_sent() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let (shopper, wish) = (world.shopper(&product), wish(&[7], 1, "reject"));
    world.function("orders").arm("publish.after_send=kill");
    assert_eq!(shopper.try_place(product.described.id, "key", &wish).await.status, 502);
    assert_eq!(world.sqs.len(Queue::ReserveNumbers), 1);
    world.pass(OUTBOX_GRACE).await;
    world.function("reconcile-orders").arm("relay.sent=kill");
    world.schedule("reconcile-orders").run_once().await;
    assert_eq!(world.sqs.len(Queue::ReserveNumbers), 2);
    assert_eq!(look::count(&world.database, OUTBOX).await, 1, "nobody deleted the row");
    world.run();
    let order = shopper.place_under(product.described.id, "key", &wish).await.unwrap();
    let seen = shopper.follow(order).await.unwrap();
    assert_eq!((&seen["state"], seen["numbers"].as_array().unwrap().len()), (&"reserved".into(), 2));
    assert_eq!(look::taken(&world.database, &product).await, 2);
    world.finish(BOUND).await;
}

/// Fault 4, first half: sending times out although it succeeds. The buyer is answered in time, duplicates do no harm.
#[tokio::test(flavor = "multi_thread")]
async fn a_send_that_succeeds_too_late() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let shopper = world.shopper(&product);
    for fault in [Fault::Late(Duration::from_secs(4)), Fault::LoseAnswer] {
        world.sqs.fail(Call::Send, fault, u32::MAX);
        let began = Instant::now();
        shopper.place(product.described.id, &wish(&[], 2, "reject")).await.unwrap();
        assert!(began.elapsed() < Duration::from_secs(4), "the buyer waited {:?}", began.elapsed());
        world.sqs.heal();
    }
    assert!(world.sqs.len(Queue::ReserveNumbers) >= 2);
    assert_eq!(look::count(&world.database, OUTBOX).await, 2, "what was not answered counts as not sent");
    world.pass(OUTBOX_GRACE).await;
    world.run();
    world.until("both are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 2).await;
    assert_eq!(look::taken(&world.database, &product).await, 4);
    world.finish(BOUND).await;
}

/// Fault 4, second half: a batch of messages is accepted in part. Only the failed entries are sent again.
#[tokio::test(flavor = "multi_thread")]
async fn a_batch_of_messages_accepted_in_part() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    world.sqs.fail(Call::Send, Fault::Refuse, u32::MAX);
    let shoppers: Vec<_> = (0..15).map(|_| world.shopper(&product)).collect();
    let one = wish(&[], 1, "reject");
    let placed = join_all(shoppers.iter().map(|shopper| shopper.place(product.described.id, &one))).await;
    let orders: BTreeSet<String> = placed.into_iter().map(|order| order.unwrap().to_string()).collect();
    world.sqs.heal();
    world.pass(OUTBOX_GRACE).await;
    let _ = world.sqs.take_calls();
    world.sqs.fail(Call::Send, Fault::Partial, 2);
    world.schedule("reconcile-orders").run_once().await.answer();
    let first = sent(&world.sqs.take_calls());
    world.pass(Duration::from_secs(60)).await;
    let report = world.schedule("reconcile-orders").run_once().await.answer();
    let second = sent(&world.sqs.take_calls());
    assert_eq!(first.iter().map(|(id, _)| id.clone()).collect::<BTreeSet<_>>(), orders);
    let refused: BTreeSet<String> =
        first.into_iter().filter(|(_, position)| position % 2 == 0).map(|(id, _)| id).collect();
    assert_eq!(second.into_iter().map(|(id, _)| id).collect::<BTreeSet<_>>(), refused);
    assert_eq!(report["published"], refused.len());
    world.finish(BOUND).await;
}

/// Orders in sent messages, each with its position in its call.
fn sent(calls: &[(String, Value)]) -> Vec<(String, usize)> {
    let calls = calls.iter().filter(|(operation, _)| operation == "SendMessageBatch");
    let entries = calls.flat_map(|(_, input)| input["Entries"].as_array().unwrap().iter().zip(0..));
    let order = |(entry, position): (&Value, usize)| {
        let body: Value = serde_json::from_str(entry["MessageBody"].as_str().unwrap()).unwrap();
        (body["order_id"].as_str().unwrap().to_owned(), position)
    };
    entries.map(order).collect()
}

/// Fault 5: SQS is down for minutes at the opening. Orders are accepted until what waits is too old; then the answer
/// is 503 with a time to come back, except for those who had an answer before. All of them drain.
#[tokio::test(flavor = "multi_thread")]
async fn the_queue_is_down_at_the_opening() {
    let world = World::start(Setup::default()).await;
    let product = world.product(1_000).await;
    world.note("SQS is down");
    world.sqs.fail(Call::Any, Fault::Refuse, u32::MAX);
    world.run();
    let shopper = world.shopper(&product);
    let (shopper, id) = (&shopper, product.described.id);
    let place = |number: i32| async move {
        shopper.place_under(id, &format!("key-{number}"), &wish(&[number], 0, "reject")).await.unwrap()
    };
    join_all((1..=8).map(place)).await;
    world.pass(INTAKE_CLOSES_AT_AGE + Duration::from_secs(10)).await;
    world.schedule("reconcile-orders").run_once().await;
    let late = world.shopper(&product);
    let closed = async || {
        let answer = late.try_place(product.described.id, "late", &wish(&[], 1, "reject")).await;
        answer.status == 503 && code(&answer) == "queue-full" && answer.retry_after().is_some()
    };
    // Each environment looks at the age once a second.
    world.until("intake is closed", BOUND, closed).await;
    assert!(shopper.try_place(product.described.id, "key-1", &wish(&[1], 0, "reject")).await.is_replay());
    world.note("SQS is back");
    world.sqs.heal();
    world.drain(BOUND).await;
    assert_eq!(look::count(&world.database, RESERVED).await, look::count(&world.database, ORDERS).await);
    world.finish(BOUND).await;
}
