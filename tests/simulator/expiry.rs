//! The expiry sweep twice at once, killed midway, and with an order that cannot be released.

use std::time::Duration;

use domain::messages::Queue;
use serde_json::Value;
use store::catalog::Product;
use tests::simulator::{Outcome, Setup, World};
use tests::{chain, look, seed};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);
const JOB: &str = "expire-reservations";
const RESERVED: &str = "select count(*) from orders where state = 'reserved'";
const EXPIRED: &str = "select count(*) from orders where state = 'expired'";
const STEPS: &str = "select count(*) from order_events where to_state = 'expired'";
const OPEN: &str = "select count(*) from audit_findings where resolved_at is null";
const HOLD: Duration = Duration::from_secs(900);

/// Fault 21: one of a hundred holds cannot be released. The others are; that one is counted, and a finding, which
/// raises an alarm. It is tried again later, and ends when its cause is put right.
#[tokio::test(flavor = "multi_thread")]
async fn two_sweepers_at_once() {
    let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
    let product = world.product(1_000).await;
    world.function(JOB).set(|settings| settings.concurrency = 2);
    for round in 1..=3 {
        hold(&world, &product, 200).await;
        world.pass(HOLD).await;
        // The first one has locked everything when the second comes.
        world.function(JOB).arm("expire.before_commit=1*sleep(300)");
        let schedule = world.schedule(JOB);
        let late = async {
            tokio::time::sleep(Duration::from_millis(150 * (round - 1))).await;
            schedule.run_once().await
        };
        let (first, second) = futures::join!(schedule.run_once(), late);
        let (first, second) = (first.answer(), second.answer());
        let freed = first["orders"].as_i64().unwrap() + second["orders"].as_i64().unwrap();
        assert_eq!(freed, 200, "{first} and {second}");
        let round = i64::try_from(round).unwrap();
        assert_eq!(look::count(&world.database, STEPS).await, 200 * round, "each was freed once");
        assert_eq!(look::taken(&world.database, &product).await, 0);
        assert_eq!((&first["failed"], &second["failed"]), (&0.into(), &0.into()));
    }
    world.finish(BOUND).await;
}

/// Fault 21: the sweeper is killed midway, before or after a commit. What it had committed stays freed, the next run
/// frees the rest, and nothing is freed twice.
#[tokio::test(flavor = "multi_thread")]
async fn killed_midway() {
    for (failpoint, freed) in [("expire.before_commit", 500), ("expire.after_commit", 700)] {
        let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
        let product = world.product(2_000).await;
        hold(&world, &product, 700).await;
        world.pass(HOLD).await;
        world.function(JOB).arm(&format!("{failpoint}=1*off->kill"));
        assert_eq!(world.schedule(JOB).run_once().await, Outcome::Crashed);
        assert_eq!(look::count(&world.database, EXPIRED).await, freed, "{failpoint}");
        assert_eq!(look::taken(&world.database, &product).await, 700 - freed, "{failpoint}");
        // The lost session's locks end with it.
        world
            .until("all are freed", BOUND, async || {
                world.schedule(JOB).run_once().await.answer();
                look::count(&world.database, EXPIRED).await == 700
            })
            .await;
        assert_eq!((look::count(&world.database, STEPS).await, look::taken(&world.database, &product).await), (700, 0));
        world.finish(BOUND).await;
    }
}

/// Fault 21: one of a hundred holds cannot be released. The others are; that one is a finding, which raises an
/// raises an alarm, is tried again later, and ends when its cause is put right.
#[tokio::test(flavor = "multi_thread")]
async fn one_poisoned_order_among_a_hundred() {
    let world = World::start(Setup { duplicates: 0.0, ..Setup::default() }).await;
    let product = world.product(1_000).await;
    let orders = hold(&world, &product, 100).await;
    let poisoned = orders[37];
    world.note("somebody else has a number of one of them");
    let number = look::order(&world.database, poisoned).await.numbers[0];
    let stolen = format!("update taken_numbers set order_id = gen_random_uuid() where number = {number}");
    look::change(&world.database, &stolen, 1).await;
    world.pass(HOLD).await;
    let report = world.schedule(JOB).run_once().await.answer();
    assert_eq!((&report["orders"], &report["failed"], &report["products_failed"]), (&99.into(), &1.into(), &0.into()));
    assert_eq!((look::count(&world.database, EXPIRED).await, look::count(&world.database, RESERVED).await), (99, 1));
    let log = world.function(JOB).log();
    world.until("the metric is out", BOUND, async || counted(&log.with("holds_failed")) == 1).await;
    assert_eq!(look::count(&world.database, OPEN).await, 1, "an open finding");
    let again = world.schedule(JOB).run_once().await.answer();
    assert_eq!((&again["orders"], &again["failed"]), (&0.into(), &0.into()), "it does not head every pass");
    world.pass(Duration::from_secs(60)).await;
    let later = world.schedule(JOB).run_once().await.answer();
    assert_eq!((&later["failed"], look::count(&world.database, OPEN).await), (&1.into(), 1), "still one finding");
    world.note("the row is put right");
    let right = format!("update taken_numbers set order_id = '{poisoned}' where number = {number}");
    look::change(&world.database, &right, 1).await;
    world.pass(Duration::from_secs(300)).await;
    assert_eq!(world.schedule(JOB).run_once().await.answer()["orders"], 1);
    assert_eq!((look::count(&world.database, STEPS).await, look::count(&world.database, OPEN).await), (100, 0));
    world.finish(BOUND).await;
}

/// So many orders of one number each, by as many buyers, all of which hold it.
async fn hold(world: &World, product: &Product, count: usize) -> Vec<Uuid> {
    let wishes: Vec<_> = seed::buyers(count).into_iter().map(|buyer| (buyer, seed::quick(1))).collect();
    let orders = seed::orders(&world.database.app(4), product, &wishes, 4).await;
    for order in &orders {
        world.sqs.put(Queue::ReserveNumbers, &chain::message(product, *order));
    }
    world.mapping("reserve-numbers").start();
    let held = i64::try_from(count).unwrap();
    world.until("all are held", BOUND, async || look::count(&world.database, RESERVED).await == held).await;
    world.until("the queue is empty", BOUND, async || world.sqs.len(Queue::ReserveNumbers) == 0).await;
    world.mapping("reserve-numbers").stop();
    orders
}

/// How many runs reported holds that could not be released, by the metrics that a job wrote.
fn counted(lines: &[String]) -> usize {
    let metrics = |line: &String| serde_json::from_str::<Value>(&line[line.find('{')?..]).ok();
    let has_failed = |metrics: &Value| metrics["holds_failed"].as_f64().is_some_and(|failed| failed > 0.0);
    lines.iter().filter_map(metrics).filter(has_failed).count()
}
