//! Connections that come back in the middle of something, and what is left on those of a pooler.

use std::time::Duration;

use domain::messages::Queue;
use serde_json::Value;
use store::catalog::Product;
use tests::look;
use tests::simulator::{HttpRequest, Setup, Shopper, World, code, wish};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
/// Sessions of functions that are inside a transaction and wait for their client.
const ASTRAY: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and usename = 'tirada_app' and state like 'idle in transaction%'";
/// Sessions of functions that wait for a lock.
const WAITING: &str = "select count(*) from pg_stat_activity
    where datname = current_database() and usename = 'tirada_app' and wait_event_type = 'Lock'";

/// Fault 18: a worker's connection goes back to its pool inside a transaction that had written everything. The next
/// group of the same batch commits its own work and nothing else.
#[tokio::test(flavor = "multi_thread")]
async fn a_group_panics_inside_its_transaction() {
    let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
    let products = [world.product(100).await, world.product(100).await];
    for product in &products {
        let shopper = world.shopper(product);
        for number in 1..=4 {
            shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
        }
    }
    let worker = world.function("reserve-numbers");
    worker.arm("reserve.before_commit=1*panic");
    let batch = world.sqs.receive(Queue::ReserveNumbers, 8, Duration::from_secs(60)).await;
    assert_eq!(batch.records.len(), 8);
    let answer = worker.invoke(serde_json::to_value(&batch).unwrap()).await.answer();
    assert_eq!(answer["batchItemFailures"].as_array().unwrap().len(), 4, "{answer}");
    let mut reserved = Vec::new();
    for product in &products {
        reserved.push((look::outcomes(&world.database, product).await, look::taken(&world.database, product).await));
    }
    reserved.sort();
    let wanted = [(look::expected([("queued", 4)]), 0), (look::expected([("reserved", 4)]), 4)];
    assert_eq!(reserved, wanted, "one group failed, the other is complete");
    assert_eq!((look::count(&world.database, ASTRAY).await, worker.counts().started), (0, 1));
    world.run();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 8).await;
    let steps = "select count(*) from order_events where to_state = 'reserved'";
    assert_eq!(look::count(&world.database, steps).await, 8);
    world.finish(BOUND).await;
}

/// Fault 18: a request runs out of its time inside a transaction, because the database's answer does not arrive. The
/// next request on the same connection is not inside that transaction.
#[tokio::test(flavor = "multi_thread")]
async fn a_request_ends_inside_its_transaction() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    world.function("orders").set(|settings| settings.concurrency = 1);
    let (shopper, id) = (world.shopper(&product), product.described.id);
    let order = shopper.place(id, &wish(&[7], 0, "reject")).await.unwrap();
    let mut holder = world.database.another_owner().await;
    let lock = holder.transaction().await.unwrap();
    lock.execute("select from orders where id = $1 for no key update", &[&order]).await.unwrap();
    let cancelling = {
        let request = cancellation(&shopper.buyer.bearer, order);
        let gateway = world.gateway.clone();
        tokio::spawn(async move { gateway.send(request).await })
    };
    world.until("it waits for the order", BOUND, async || look::count(&world.database, WAITING).await == 1).await;
    world.note("answers stall");
    world.proxy.stall(true);
    lock.rollback().await.unwrap();
    let answer = cancelling.await.unwrap();
    assert_eq!((answer.status, code(&answer).as_str()), (503, "unavailable"));
    assert_eq!(look::count(&world.database, ASTRAY).await, 1, "the transaction is still open");
    world.proxy.stall(false);
    let second = shopper.try_place(id, "second", &wish(&[8], 0, "reject")).await.accepted();
    assert_eq!(look::order(&world.database, second).await.requested_numbers, [8], "seen from outside");
    assert_eq!((look::count(&world.database, ASTRAY).await, world.function("orders").counts().started), (0, 1));
    let requested = "select count(*) from orders where state = 'cancelled' or cancel_requested_at is not null";
    assert_eq!(look::count(&world.database, requested).await, 0, "what was not committed is undone");
    assert!(shopper.cancel(order).await);
    world.finish(BOUND).await;
}

/// Fault 18: returning a connection fails in a way that nobody foresaw. It costs that request, and not the only place
/// in the pool.
#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_cannot_be_recycled() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    world.function("orders").set(|settings| settings.concurrency = 1);
    world.function("orders").arm("pool.recycle=1*panic");
    let (shopper, id) = (world.shopper(&product), product.described.id);
    let mut statuses = Vec::new();
    for number in [7, 8, 8, 9] {
        let key = format!("key-{number}");
        statuses.push(shopper.try_place(id, &key, &wish(&[number], 0, "reject")).await.status);
    }
    assert_eq!((statuses, world.function("orders").counts().started), (vec![202, 500, 202, 202], 1));
    world.run();
    world.until("all are reserved", BOUND, async || look::count(&world.database, RESERVED).await == 3).await;
    world.finish(BOUND).await;
}

/// Fault 18: every function works through PgBouncer, and leaves no prepared statement on its connections.
#[tokio::test(flavor = "multi_thread")]
async fn every_function_through_a_pooler() {
    if std::env::var("TIRADA_TEST_PGBOUNCER").is_err() {
        eprintln!("not run: there is no PgBouncer here");
        return;
    }
    let world = World::start(Setup { pooler: true, ..Setup::default() }).await;
    let product = world.product(20_000).await;
    let shoppers: Vec<_> = std::iter::repeat_with(|| world.shopper(&product)).take(8).collect();
    world.run();
    let place = async |shopper: &Shopper| {
        let mut orders = Vec::new();
        for wish in [wish(&[7, 9_000], 2, "replace"), wish(&[], 3, "reject"), wish(&[7], 0, "reject")] {
            orders.push(shopper.place(product.described.id, &wish).await.unwrap());
        }
        for order in &orders {
            shopper.follow(*order).await.unwrap();
        }
        assert!(shopper.cancel(orders[1]).await);
    };
    futures::future::join_all(shoppers.iter().map(place)).await;
    for path in reads(&product) {
        let mut request = HttpRequest { method: "GET", path, ..HttpRequest::default() };
        request.headers.insert("authorization".into(), shoppers[0].buyer.bearer.clone());
        let path = request.path.clone();
        assert_eq!(world.gateway.send(request).await.status, 200, "{path}");
    }
    let open = "select count(*) from orders where state in ('queued', 'reserved')";
    world.pass(Duration::from_secs(1_000)).await;
    world.until("no hold is left", BOUND, async || look::count(&world.database, open).await == 0).await;
    for name in ["catalog", "orders", "order-status", "reserve-numbers", "release-numbers", "expire-reservations"] {
        assert!(world.function(name).counts().answers > 0, "{name} had nothing to do");
    }
    world.halt();
    let reconciler = world.function("reconcile-orders");
    world.until("no job runs", BOUND, async || reconciler.busy() == 0).await;
    let report: Value = world.schedule("reconcile-orders").run_once().await.answer();
    assert_eq!(report["failed_steps"].as_array().unwrap().len(), 0, "{report}");
    assert_eq!(world.database.prepared_statements().await, 0);
    world.finish(BOUND).await;
}

/// Every path that can be read.
fn reads(product: &Product) -> Vec<String> {
    let (id, store) = (product.described.id, &product.store);
    [
        "/v1/time".to_owned(),
        format!("/v1/stores/{store}"),
        format!("/v1/stores/{store}/products"),
        format!("/v1/products/{id}"),
        format!("/v1/products/{id}/availability"),
        format!("/v1/products/{id}/availability/1"),
        format!("/v1/products/{id}/numbers/7"),
        "/v1/orders".to_owned(),
    ]
    .to_vec()
}

fn cancellation(bearer: &str, order: Uuid) -> HttpRequest {
    let path = format!("/v1/orders/{order}/cancellations");
    let mut request = HttpRequest { method: "POST", path, body: "{}".into(), ..HttpRequest::default() };
    for (name, value) in [("authorization", bearer), ("idempotency-key", "once"), ("content-type", "application/json")]
    {
        request.headers.insert(name.into(), value.into());
    }
    request
}
