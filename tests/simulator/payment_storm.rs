//! The storm of payments: thousands of orders whose buyers pay, are declined, pay another way, late or never, while
//! functions die, a third of the gateway's calls and events go wrong, and staff give money back. Then everything comes
//! to rest, and our books and the gateway's say the same to the cent.
//!
//! `TIRADA_STORM_SEEDS` says how often; `TIRADA_TEST_SEED` repeats one.

mod buyers;
mod staff;

use std::sync::Arc;
use std::time::Duration;

use tests::gateway::{PaymentEntry, Rates};
use tests::leaks;
use tests::look;
use tests::simulator::{Setup, World};
use tests::till::Policy;
use tokio::sync::Semaphore;
use tokio::time::Instant;

use crate::storm::faults::{self, Failpoint};
use crate::storm::repeat;

/// How large a storm is.
#[derive(Debug, Clone, Copy)]
struct Form {
    orders: usize,
    /// At most: a slow machine has fewer buyers at once, instead of buyers who wait in vain.
    orders_per_s: f64,
    buyers_at_once: usize,
    numbers: i32,
    drain: Duration,
}

const SHORT: Form =
    Form { orders: 100, orders_per_s: 20.0, buyers_at_once: 100, numbers: 600, drain: Duration::from_secs(120) };
const MIDDLE: Form = Form { orders: 200, numbers: 1_200, drain: Duration::from_secs(240), ..SHORT };
const LONG: Form =
    Form { orders: 2_000, orders_per_s: 50.0, buyers_at_once: 160, numbers: 12_000, drain: Duration::from_secs(900) };
/// Long storms at once, where there are many: they wait for most of their time. One rages, the others come to rest. So
/// do two shorter ones.
const LONG_AT_ONCE: usize = 3;
static RAGING: Semaphore = Semaphore::const_new(1);

/// Where functions may be killed, and how often relative to each other.
const FAILPOINTS: [Failpoint; 20] = [
    ("payments", "payment.before_create"),
    ("payments", "payment.after_create"),
    ("payments", "payment.before_commit"),
    ("payments", "payment.after_commit"),
    ("payments", "http.request"),
    ("settle-payment", "payment.before_commit"),
    ("settle-payment", "payment.before_commit"),
    ("settle-payment", "payment.after_commit"),
    ("settle-payment", "payment.after_commit"),
    ("settle-payment", "refund.before_call"),
    ("settle-payment", "refund.after_call"),
    ("settle-payment", "expire.before_commit"),
    ("settle-payment", "sqs.record"),
    ("payment-webhook", "webhook.received"),
    ("payment-webhook", "webhook.received"),
    ("reconcile-orders", "relay.claimed"),
    ("reconcile-orders", "relay.sent"),
    ("expire-reservations", "expire.before_commit"),
    ("expire-reservations", "expire.after_commit"),
    ("release-numbers", "release.before_commit"),
];
/// A third of the gateway's calls, events and refunds go wrong.
const RATES: Rates = Rates { calls: 0.33, events: 0.33, refunds: 0.33, delay_ms_max: 400, hold_ms: 0 };
/// Some holds run out during the storm. Time does not pass in jumps: a payment that is asked for again must end at the
/// same moment as before.
const HOLD: Duration = Duration::from_secs(40);
/// Long enough for every hold, page and key to be over, and for every payment to be looked at again.
const AFTERWARDS: Duration = Duration::from_secs(25 * 3_600);
/// Of the continuous audit: it knows what is on its way.
const ALARMS: &str = "select count(*) from audit_findings where invariant = 'I4' and resolved_at is null";
const HELD: &str = "select count(*) from orders where state in ('queued', 'reserved', 'paying')";

#[tokio::test(flavor = "multi_thread")]
async fn short() {
    repeat(2, |seed| storm(SHORT, seed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn middle() {
    repeat(2, |seed| storm(MIDDLE, seed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long() {
    repeat(LONG_AT_ONCE, |seed| storm(LONG, seed)).await;
}

async fn storm(form: Form, seed: u64) {
    let setup = Setup { scale: 30.0, duplicates: 0.02, seed: Some(seed), ..Setup::default() };
    let world = Arc::new(World::start(setup).await);
    let mut products = Vec::new();
    for (share, capture, late_money) in
        [(2, "automatic", "retake"), (1, "manual", "refund"), (1, "automatic", "substitute")]
    {
        let policy = Policy { capture, late_money, ..Policy::default() };
        let hold = i32::try_from(HOLD.as_secs()).expect("a short time");
        products.push(world.sell(form.numbers * share / 4, policy, |product| product.hold_seconds(hold)).await);
    }
    for (name, at_once) in [("orders", 16), ("payments", 24), ("payment-webhook", 8), ("settle-payment", 8)] {
        world.function(name).set(|settings| settings.concurrency = at_once);
    }
    // Once a minute, by the queues' time. Each run audits two thousand orders.
    world.jobs_at_once(2, Duration::from_secs(2));
    // The gateway's faults keep a worker waiting, not working.
    world.mapping("settle-payment").set(|polling| polling.concurrency = 8);
    world.mapping("reserve-numbers").set(|polling| (polling.batch_max, polling.concurrency) = (40, 4));
    world.mapping("release-numbers").set(|polling| polling.concurrency = 1);
    let raging = RAGING.acquire().await.expect("never closed");
    world.run();
    world.bank.random(seed, RATES);
    let began = Instant::now();
    let faults = tokio::spawn(faults::rage(Arc::clone(&world), products.clone(), &FAILPOINTS, 0));
    let staff = tokio::spawn(staff::work(Arc::clone(&world), products.clone()));
    let forger = tokio::spawn(staff::forge(Arc::clone(&world)));
    let late = buyers::shop(&world, &products, form).await;
    // Everybody's time is over, and some pay all the same: while the sweep and the gateways are at it, and afterwards.
    let (while_swept, afterwards) = late.split_at(late.len() / 2);
    world.pass(HOLD).await;
    buyers::pay_late(&world, while_swept);
    for task in [faults, staff, forger] {
        task.abort();
        assert!(task.await.is_err_and(|end| end.is_cancelled()), "nobody who makes trouble stops by himself");
    }
    faults::end(&world, &products).await;
    let lasted = began.elapsed();
    drop(raging);
    world.halt();
    world.jobs_at_once(2, Duration::from_secs(1));
    // Every payment is looked at when the time has passed, and once more at the end.
    world.calm(form.drain).await;
    world.halt();
    buyers::pay_late(&world, afterwards);
    world.pass(AFTERWARDS).await;
    world.run();
    world.until("every hold is over", form.drain, async || look::count(&world.database, HELD).await == 0).await;
    world
        .until("no alarm of money is open", form.drain, async || look::count(&world.database, ALARMS).await == 0)
        .await;
    report(&world, lasted).await;
    let leaks = leaks::in_rows(world.database.owner()).await;
    assert!(leaks.is_empty(), "rows hold what none may: {leaks:#?}");
    let world = Arc::into_inner(world).expect("nobody else has the world");
    world.finish(form.drain).await;
}

/// What the storm was, in a few lines.
async fn report(world: &World, lasted: Duration) {
    let (faults, accepted) = (world.story().len(), world.ledger.acceptances().len());
    println!("{faults} faults in {:.1} s; {accepted} orders accepted", lasted.as_secs_f64());
    println!("refused for good: {:?}", world.ledger.refusals());
    println!("told to try again: {:?}", world.ledger.retries());
    let sql = "select state, count(*) from orders group by state order by state";
    let rows = world.database.owner().query(sql, &[]).await.expect(sql);
    let states = rows.iter().map(|row| format!("{} {}", row.get::<_, i64>(1), row.get::<_, String>(0)));
    println!("orders: {}", states.collect::<Vec<_>>().join(", "));
    let ledger = world.bank.ledger();
    let sum = |amount: fn(&PaymentEntry) -> i64| ledger.payments.iter().map(amount).sum::<i64>();
    println!(
        "money: {} payments, {} captured, {} refunded, {} disputed, {} kept; {} deliveries of events",
        ledger.payments.len(),
        sum(|payment| payment.captured_minor),
        sum(PaymentEntry::refunded_minor),
        sum(PaymentEntry::disputed_minor),
        sum(PaymentEntry::kept_minor),
        world.bank.deliveries().len()
    );
    let counts = world.functions().map(|function| (function.name(), function.counts()));
    let crashes = counts.map(|(name, counts)| format!("{name} {} of {}", counts.crashes, counts.started));
    println!("processes that ended: {}", crashes.collect::<Vec<_>>().join(", "));
}
