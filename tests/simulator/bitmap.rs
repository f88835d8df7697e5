//! Bits, counters and lists that lie about the rows that they are derived from.

use std::time::Duration;

use domain::catalog::Reserving;
use domain::limits::{PARKED_FOR, QUEUED_SILENT_AFTER};
use serde_json::Value;
use store::catalog::Product;
use store::numbers::{count_unlisted, rebuild};
use store::switches::set_reserving;
use tests::look;
use tests::simulator::{Call, Fault, Setup, Shopper, World, wish};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const OPEN: &str = "select count(*) from audit_findings where resolved_at is null";
const MENDED: &str = "select count(*) from audit_findings where resolved_at is not null";

/// Fault 19: bits lie in both directions, and a row is lost, while orders flow. The unique index decides who has a
/// number, the worker mends the chunk, and nobody pays who should not.
#[tokio::test(flavor = "multi_thread")]
async fn the_worker_meets_a_lie() {
    for counters_agree in [true, false] {
        let world = World::start(Setup::default()).await;
        let product = world.product(20_000).await;
        world.mapping("reserve-numbers").set(|polling| (polling.batch_max, polling.window) = (10, Duration::ZERO));
        world.mapping("reserve-numbers").start();
        let first = place(&world, &product, &[7, 8]).await;
        assert_eq!(ended(first).await, "reserved");
        world.note("number 7 says free, 9 says taken, 8 has lost its row");
        lie(&world, &product, 7, 0, counters_agree).await;
        lie(&world, &product, 9, 1, counters_agree).await;
        let lost = format!("delete from taken_numbers where product_key = {} and number = 8", product.key);
        look::change(&world.database, &lost, 1).await;
        let mut crowd = Vec::new();
        for _ in 0..20 {
            crowd.push(pick(&world, &product).await);
        }
        let (seventh, eighth, ninth) = (
            place(&world, &product, &[7]).await,
            place(&world, &product, &[8]).await,
            place(&world, &product, &[9]).await,
        );
        for _ in 0..20 {
            crowd.push(pick(&world, &product).await);
        }
        assert_eq!((ended(seventh).await.as_str(), ended(eighth).await.as_str()), ("numbers-taken", "numbers-taken"));
        // A pick of the crowd may have been faster, once the bit was mended.
        let ninth = ended(ninth).await;
        assert!(matches!(ninth.as_str(), "reserved" | "numbers-taken"), "{ninth}");
        for order in crowd {
            assert_eq!(ended(order).await, "reserved", "whoever did not meet the lie did not notice it");
        }
        let nine = "select count(*) from taken_numbers where number = 9";
        assert_eq!(look::count(&world.database, nine).await, 1, "it was sold after all");
        assert!(look::count(&world.database, MENDED).await > 0, "the lie is on record");
        assert_eq!(look::count(&world.database, OPEN).await, 0, "and nobody need do anything");
        world.finish(BOUND).await;
    }
}

/// Fault 19: a lie that nobody meets. The auditor finds it, looks again under the chunk's lock, and halts that product
/// and no other; a rebuild from the rows resumes it.
#[tokio::test(flavor = "multi_thread")]
async fn the_auditor_finds_the_rest() {
    let world = World::start(Setup::default()).await;
    let (product, other) = (world.product(20_000).await, world.product(100).await);
    world.run();
    for number in [7, 9_000] {
        assert_eq!(ended(place(&world, &product, &[number]).await).await, "reserved");
    }
    world.note("two bits lie");
    lie(&world, &product, 7, 0, true).await;
    lie(&world, &product, 9_001, 1, true).await;
    let halted = format!("select count(*) from products where reserving = 'halted' and key = {}", product.key);
    world.until("the product is halted", BOUND, async || look::count(&world.database, &halted).await == 1).await;
    let waiting = place(&world, &product, &[11]).await;
    let parked = format!("select count(*) from outbox where order_id = '{}' and id <> order_id", waiting.1);
    world.until("its order is parked", BOUND, async || look::count(&world.database, &parked).await == 1).await;
    assert_eq!(ended(place(&world, &other, &[11]).await).await, "reserved", "other products go on");
    world.until("both are found", BOUND, async || look::count(&world.database, OPEN).await == 2).await;
    assert_eq!(waiting.0.read(waiting.1).await.unwrap()["state"], "queued");
    assert_eq!(look::taken(&world.database, &product).await, 2, "nothing moved");
    world.note("an operator rebuilds and resumes");
    let mut client = world.database.another_owner().await;
    assert_eq!(rebuild(&mut client, &product).await.unwrap(), 2);
    let (tenant_id, id) = (product.described.tenant_id, product.described.id);
    set_reserving(&client, tenant_id, id, Reserving::On, Some("rebuilt")).await.unwrap();
    world.pass(PARKED_FOR * 2).await;
    assert_eq!(ended(waiting).await, "reserved");
    assert_eq!(ended(place(&world, &product, &[7]).await).await, "numbers-taken");
    assert_eq!(ended(place(&world, &product, &[9_001]).await).await, "reserved");
    assert_eq!(look::count(&world.database, OPEN).await, 0);
    world.finish(BOUND).await;
}

/// Fault 19: the auditor suspects a chunk whose lock somebody has, who puts it right before letting go. It waits for
/// the lock, looks again, and neither records nor halts anything.
#[tokio::test(flavor = "multi_thread")]
async fn a_suspicion_that_the_lock_clears() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    world.mapping("reserve-numbers").start();
    assert_eq!(ended(place(&world, &product, &[7]).await).await, "reserved");
    lie(&world, &product, 7, 0, true).await;
    let mut mender = world.database.another_owner().await;
    let tx = mender.transaction().await.unwrap();
    assert_eq!(tx.execute(&lie_of(&product, 7, 1, true), &[]).await.unwrap(), 1);
    let audit = world.schedule("reconcile-orders").run_once();
    let waits = "select count(*) from pg_stat_activity where datname = current_database()
        and usename = 'tirada_app' and wait_event_type = 'Lock' and query like '%number_chunks%'";
    let mend = async {
        world.until("the auditor waits", BOUND, async || look::count(&world.database, waits).await == 1).await;
        tx.commit().await.unwrap();
    };
    let (report, ()) = futures::join!(audit, mend);
    let report: Value = report.answer();
    assert_eq!((&report["findings"], &report["failed_steps"]), (&0.into(), &Value::Array(Vec::new())), "{report}");
    assert_eq!(look::count(&world.database, "select count(*) from products where reserving = 'halted'").await, 0);
    world.finish(BOUND).await;
}

/// Fault 19 in the lists of waiting orders: places are lost, others are too many. The audit mends them without halting
/// anything; a queued order that nobody remembered gets its numbers, and a hold that nobody remembered runs out.
#[tokio::test(flavor = "multi_thread")]
async fn lists_of_waiting_orders_lie() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    world.mapping("reserve-numbers").start();
    let held = place(&world, &product, &[7]).await;
    assert_eq!(held.0.follow(held.1).await.unwrap()["state"], "reserved");
    world.halt();
    world.note("a message is lost, and places in both lists");
    world.sqs.fail(Call::Send, Fault::Forget, 1);
    let silent = place(&world, &product, &[8]).await;
    look::change(&world.database, "delete from outbox", 1).await;
    let owner = world.database.owner();
    owner.batch_execute("delete from order_queue; delete from holds").await.unwrap();
    let surplus = "insert into order_queue (product_key, created_at, order_id)
        select product_key, created_at, id from orders where state = 'reserved'";
    assert_eq!(owner.execute(surplus, &[]).await.unwrap(), 1);
    assert_eq!(count_unlisted(&mut world.database.another_owner().await, product.key).await.unwrap(), 3);
    world.pass(QUEUED_SILENT_AFTER + Duration::from_secs(900)).await;
    let forgotten = world.schedule("expire-reservations").run_once().await.answer();
    assert_eq!(forgotten["orders"], 0, "the sweep knows of no hold");
    // Its deadline has passed meanwhile; a later one keeps it waiting.
    let patient = format!("update orders set queue_deadline = now() + interval '10 min' where id = '{}'", silent.1);
    look::change(&world.database, &patient, 1).await;
    let before: Value = world.schedule("reconcile-orders").run_once().await.answer();
    assert_eq!(
        (&before["nudged"], &before["findings"]),
        (&0.into(), &0.into()),
        "the nudge knew of no order: {before}"
    );
    assert_eq!(
        count_unlisted(&mut world.database.another_owner().await, product.key).await.unwrap(),
        0,
        "the audit mended the lists"
    );
    world.run();
    assert_eq!(ended(silent).await, "reserved");
    let expired = async || held.0.read(held.1).await.is_some_and(|order| order["state"] == "expired");
    world.until("the hold has run out", BOUND, expired).await;
    assert_eq!(look::count(&world.database, "select count(*) from products where reserving = 'halted'").await, 0);
    world.finish(BOUND).await;
}

async fn place(world: &World, product: &Product, numbers: &[i32]) -> (Shopper, Uuid) {
    let shopper = world.shopper(product);
    let order = shopper.place(product.described.id, &wish(numbers, 0, "reject")).await.unwrap();
    (shopper, order)
}

async fn pick(world: &World, product: &Product) -> (Shopper, Uuid) {
    let shopper = world.shopper(product);
    let order = shopper.place(product.described.id, &wish(&[], 1, "reject")).await.unwrap();
    (shopper, order)
}

/// What became of an order: its state, or the reason of its rejection.
async fn ended((shopper, order): (Shopper, Uuid)) -> String {
    let seen = shopper.follow(order).await.expect("an answer");
    seen["reason"]["code"].as_str().or_else(|| seen["state"].as_str()).unwrap().to_owned()
}

/// Makes a number's bit say what is not so; the counters agree with it, or with the rows.
async fn lie(world: &World, product: &Product, number: i32, bit: i32, counters_agree: bool) {
    let sql = lie_of(product, number, bit, counters_agree);
    assert_eq!(world.database.owner().execute(&sql, &[]).await.unwrap(), 1);
}

fn lie_of(product: &Product, number: i32, bit: i32, counters_agree: bool) -> String {
    let (range, moved) = (product.described.range, if bit == 0 { 1 } else { -1 });
    let (chunk, moved) = (range.chunk_of(number), if counters_agree { moved } else { 0 });
    format!(
        "update number_chunks set bits = set_bit(bits, {}, {bit}), available = available + {moved},
            reserved = reserved - {moved} where product_key = {} and chunk = {chunk}",
        number - range.chunk_first(chunk),
        product.key
    )
}
