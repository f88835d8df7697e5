//! Messages that nobody can read, orders that panic, and requests of absurd size.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::limits::ORDERS_PER_TRANSACTION_MAX;
use domain::messages::{OrderMessage, Queue};
use serde_json::{Value, json};
use store::catalog::Product;
use tests::chain::message;
use tests::look;
use tests::simulator::{Setup, World, code, wish};
use tokio::time::Instant;
use uuid::Uuid;

use crate::bulk;

const BOUND: Duration = Duration::from_secs(30);
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
/// What nobody can read waits twenty times for its visibility of six minutes.
const HASTE: f64 = 1_200.0;

/// Hands everything that is visible to the queue's worker as one batch, deletes what it has done, and returns the
/// bodies of what it reports as failed.
async fn serve(world: &World, queue: Queue) -> BTreeSet<String> {
    let batch = world.sqs.receive(queue, 10_000, Duration::ZERO).await;
    let event = serde_json::to_value(&batch).unwrap();
    let answer = world.function(queue.name()).invoke(event).await.answer();
    let failed = failed(&answer);
    let is_failed = |id: &Option<String>| failed.contains(id.as_deref().unwrap());
    let (failed, done): (Vec<_>, Vec<_>) = batch.records.iter().partition(|record| is_failed(&record.message_id));
    world.sqs.delete(queue, done.iter().filter_map(|record| record.receipt_handle.as_deref()));
    failed.into_iter().filter_map(|record| record.body.clone()).collect()
}

fn failed(answer: &Value) -> BTreeSet<&str> {
    let failures = answer["batchItemFailures"].as_array().unwrap();
    failures.iter().map(|failure| failure["itemIdentifier"].as_str().unwrap()).collect()
}

/// What no worker can serve: not JSON, not a message, an unknown version, an unknown order, one of another store, and
/// for those who look at the product first, an unknown product.
fn poison(product: &Product, order: Uuid) -> impl Fn(Queue) -> BTreeSet<String> {
    let good = message(product, order);
    let for_all = BTreeSet::from([
        "{".to_owned(),
        r#"{"v":1,"order_id":7}"#.to_owned(),
        good.body().replace(r#""v":1"#, r#""v":9"#),
        message(product, Uuid::now_v7()).body(),
        OrderMessage { tenant_id: Uuid::now_v7(), ..good }.body(),
    ]);
    let product = OrderMessage { product_id: Uuid::now_v7(), ..good }.body();
    move |queue| {
        let product = (queue != Queue::SettlePayment).then(|| product.clone());
        for_all.iter().cloned().chain(product).collect()
    }
}

/// Fault 8: poison in a batch. Only it is reported, its neighbours are served by that very batch; only it dies.
#[tokio::test(flavor = "multi_thread")]
async fn poison_dies_alone() {
    let world = World::start(Setup { scale: HASTE, ..Setup::default() }).await;
    let product = world.product(1_000).await;
    let shopper = world.shopper(&product);
    let mut orders = Vec::new();
    for number in 1..=8 {
        orders.push(shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap());
    }
    let poison = poison(&product, orders[0]);
    let put = |queue| {
        poison(queue).into_iter().for_each(|body| world.sqs.put_body(queue, body, Uuid::nil().to_string()));
    };
    put(Queue::ReserveNumbers);
    assert_eq!(serve(&world, Queue::ReserveNumbers).await, poison(Queue::ReserveNumbers));
    assert_eq!(look::count(&world.database, RESERVED).await, 8);
    for order in &orders[..4] {
        assert!(shopper.cancel(*order).await);
    }
    put(Queue::ReleaseNumbers);
    assert_eq!(serve(&world, Queue::ReleaseNumbers).await, poison(Queue::ReleaseNumbers));
    assert_eq!(look::taken(&world.database, &product).await, 4);
    put(Queue::SettlePayment);
    assert_eq!(serve(&world, Queue::SettlePayment).await, poison(Queue::SettlePayment));
    world.run();
    let is_over = async || Queue::OF_ORDERS.iter().all(|queue| world.sqs.dead(*queue).len() >= poison(*queue).len());
    world.until("the poison is dead", BOUND, is_over).await;
    world.drain(BOUND).await;
    for queue in Queue::OF_ORDERS {
        assert_eq!(world.sqs.dead(queue).into_iter().collect::<BTreeSet<_>>(), poison(queue));
        assert_eq!(world.function(queue.name()).counts().crashes, 0);
    }
    world.finish_with_dead().await;
}

/// Fault 9: something panics in a batch, while a message is read, an order is decided, or a group is served. What it
/// did not touch stays committed; the panicked one comes again and is served. The process lives on.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_only_what_panicked() {
    for (failpoint, lost) in
        [("sqs.record=2*off->1*panic", 1), ("reserve.decide=2*off->1*panic", 1), ("reserve.locked=1*panic", 3)]
    {
        let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
        for product in [world.product(100).await, world.product(100).await] {
            let shopper = world.shopper(&product);
            for _ in 0..3 {
                shopper.place(product.described.id, &wish(&[], 2, "reject")).await.unwrap();
            }
        }
        let worker = world.function("reserve-numbers");
        worker.arm(failpoint);
        assert_eq!(serve(&world, Queue::ReserveNumbers).await.len(), lost, "{failpoint}");
        let served = i64::try_from(6 - lost).unwrap();
        assert_eq!(look::count(&world.database, RESERVED).await, served, "{failpoint}");
        let taken = look::count(&world.database, "select count(*) from taken_numbers").await;
        assert_eq!(taken, served * 2, "{failpoint}");
        world.run();
        world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 6).await;
        assert_eq!((worker.counts().crashes, worker.counts().errors), (0, 0), "{failpoint}");
        world.finish(BOUND).await;
    }
}

/// Fault 11, the batch: ten thousand messages, the most that Lambda hands over, and not enough time for them. The
/// worker stops at its deadline and answers in time; what it did not reach is reported as failed, and served later.
#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_messages_and_too_little_time() {
    const MESSAGES: usize = 10_000;
    let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
    let product = world.product(20_000).await;
    let orders = bulk::queue(&world.database, &product, i32::try_from(MESSAGES).unwrap()).await;
    orders.iter().for_each(|order| world.sqs.put(Queue::ReserveNumbers, &message(&product, *order)));
    let worker = world.function("reserve-numbers");
    worker.set(|settings| settings.timeout = Duration::from_secs(10));
    worker.arm("reserve.before_commit=sleep(400)");
    let began = Instant::now();
    let left = serve(&world, Queue::ReserveNumbers).await;
    println!("{} of {MESSAGES} messages left after {:?}", left.len(), began.elapsed());
    let served = MESSAGES - left.len();
    assert!(
        served > 0 && !left.is_empty() && served.is_multiple_of(ORDERS_PER_TRANSACTION_MAX),
        "{served} were served"
    );
    let queued = "select id from orders where state = 'queued'";
    let queued = world.database.owner().query(queued, &[]).await.unwrap();
    let queued: BTreeSet<String> = queued.iter().map(|row| message(&product, row.get(0)).body()).collect();
    assert_eq!(left, queued, "what is reported is what was not served");
    worker.disarm();
    world.run();
    let all = i64::try_from(MESSAGES).unwrap();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == all).await;
    assert_eq!((worker.counts().timeouts, worker.counts().errors), (0, 0));
    world.finish(BOUND).await;
}

/// Fault 11, the message: as large as SQS takes them. With fields that a newer version may have added it is served;
/// without sense it dies alone.
#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_mebibyte() {
    const MEBIBYTE: usize = 1_024 * 1_024;
    let world = World::start(Setup { scale: HASTE, ..Setup::default() }).await;
    let product = world.product(1_000).await;
    let orders = bulk::queue(&world.database, &product, 4).await;
    let [padded, nested, ..] = &orders[..] else { unreachable!() };
    let large =
        |order: Uuid, value: String| message(&product, order).body().replace('{', &format!(r#"{{"new":{value},"#));
    let text = large(*padded, format!("{:?}", "x".repeat(MEBIBYTE - 300)));
    let list = large(*nested, format!("[{}1]", "1,".repeat(MEBIBYTE / 2 - 200)));
    let nonsense = "[".repeat(MEBIBYTE);
    let group = product.described.tenant_id.to_string();
    for body in [&text, &list, &nonsense] {
        assert!(body.len() <= MEBIBYTE);
        world.sqs.put_body(Queue::ReserveNumbers, body.clone(), group.clone());
    }
    orders[2..].iter().for_each(|order| world.sqs.put(Queue::ReserveNumbers, &message(&product, *order)));
    assert_eq!(serve(&world, Queue::ReserveNumbers).await, BTreeSet::from([nonsense.clone()]));
    assert_eq!(look::count(&world.database, RESERVED).await, 4);
    world.run();
    world.until("it is dead", BOUND, async || !world.sqs.dead(Queue::ReserveNumbers).is_empty()).await;
    world.drain(BOUND).await;
    assert_eq!(world.sqs.dead(Queue::ReserveNumbers), [nonsense]);
    assert_eq!(world.function("reserve-numbers").counts().crashes, 0);
    world.finish_with_dead().await;
}

/// Fault 11, the request: ten megabytes, or a million numbers. The answer is 413 or 422 at once, from a function that
/// cannot reach its database.
#[tokio::test(flavor = "multi_thread")]
async fn requests_of_absurd_size_never_reach_the_database() {
    let world = World::start(Setup::default()).await;
    let product = world.product(1_000).await;
    let shopper = world.shopper(&product);
    world.note("the database is unreachable");
    world.proxy.down();
    let padded = |bytes: usize| json!({ "numbers": [7], "fallback": "x".repeat(bytes) });
    for (what, wish, expected) in [
        // Past what API Gateway and Lambda let through, and as much as they do.
        ("10 MB", padded(10_000_000), (413, "")),
        ("5 MB", padded(5_000_000), (413, "too-large")),
        ("a million numbers", wish(&(1..=1_000_000).collect::<Vec<_>>(), 0, "drop"), (413, "")),
        ("a number a million times", wish(&vec![7; 1_000_000], 0, "drop"), (413, "too-large")),
        ("as many numbers as a body holds", wish(&vec![7; 8_000], 0, "drop"), (422, "invalid")),
        ("one number too many", wish(&(1..=101).collect::<Vec<_>>(), 0, "drop"), (422, "invalid")),
        ("a million random ones", wish(&[], 1_000_000, "drop"), (422, "invalid")),
    ] {
        let began = Instant::now();
        let answer = shopper.try_place(product.described.id, &what.replace(' ', "-"), &wish).await;
        assert_eq!((answer.status, code(&answer).as_str()), expected, "{what}");
        assert!(began.elapsed() < Duration::from_secs(3), "{what} took {:?}", began.elapsed());
    }
    let orders = world.function("orders");
    assert_eq!((orders.counts().started, orders.counts().crashes), (1, 0), "one process answered all of it");
    let healthy = shopper.try_place(product.described.id, "healthy", &wish(&[7], 0, "reject")).await;
    assert_eq!((healthy.status, code(&healthy).as_str()), (503, "unavailable"), "this one needs the database");
    world.proxy.heal();
    world.run();
    let order = shopper.place_under(product.described.id, "healthy", &wish(&[7], 0, "reject")).await.unwrap();
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
    assert_eq!(world.ledger.acceptances().len(), 1);
    world.finish(BOUND).await;
}
