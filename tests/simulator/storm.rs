//! The storm: thousands of orders, and faults of every kind at random. Then everything comes to rest, and nothing is
//! lost, sold twice or taken back.
//!
//! `TIRADA_STORM_SEEDS` says how often; `TIRADA_TEST_SEED` repeats one.

mod crowd;
pub(crate) mod faults;

use std::panic::{AssertUnwindSafe, resume_unwind};
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use tests::randomness;
use tests::seed;
use tests::simulator::{Setup, World};
use tokio::time::Instant;

/// How large a storm is.
#[derive(Debug, Clone, Copy)]
struct Form {
    orders: usize,
    orders_per_s: f64,
    numbers: i32,
    drain: Duration,
}

const SHORT: Form = Form { orders: 600, orders_per_s: 80.0, numbers: 1_500, drain: Duration::from_secs(60) };
const MIDDLE: Form = Form { orders: 2_000, orders_per_s: 200.0, numbers: 5_000, drain: Duration::from_secs(90) };
const LONG: Form = Form { orders: 5_000, orders_per_s: 300.0, numbers: 12_000, drain: Duration::from_secs(120) };

/// How often time passes, at most: altogether less than an order may wait.
const PASSES_MAX: u32 = 8;
/// Where functions may be killed, and how often relative to each other.
const FAILPOINTS: [(&str, &str); 15] = [
    ("orders", "place.before_commit"),
    ("orders", "publish.before_send"),
    ("orders", "publish.after_send"),
    ("orders", "http.request"),
    ("reserve-numbers", "sqs.record"),
    ("reserve-numbers", "reserve.locked"),
    ("reserve-numbers", "reserve.decide"),
    ("reserve-numbers", "reserve.before_commit"),
    ("reserve-numbers", "reserve.after_commit"),
    ("release-numbers", "sqs.record"),
    ("release-numbers", "release.before_commit"),
    ("expire-reservations", "expire.before_commit"),
    ("expire-reservations", "expire.after_commit"),
    ("reconcile-orders", "relay.claimed"),
    ("reconcile-orders", "relay.sent"),
];

#[tokio::test(flavor = "multi_thread")]
async fn short() {
    repeat(1, |seed| storm(SHORT, seed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn middle() {
    repeat(1, |seed| storm(MIDDLE, seed)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn long() {
    repeat(1, |seed| storm(LONG, seed)).await;
}

/// As often as the environment says, so many at once, each time with a seed of its own.
pub(crate) async fn repeat<F: Future<Output = ()>>(at_once: usize, storm: impl Fn(u64) -> F) {
    let count = std::env::var("TIRADA_STORM_SEEDS").map_or(1, |text| text.parse().expect("a number of storms"));
    let one = async |round: usize| {
        let (seed, began) = (randomness::seed(), Instant::now());
        let end = AssertUnwindSafe(storm(seed)).catch_unwind().await;
        let outcome = if end.is_ok() { "passed" } else { "FAILED" };
        println!("storm {round} of {count}: seed {seed} {outcome}, {:.1} s", began.elapsed().as_secs_f64());
        if let Err(panic) = end {
            resume_unwind(panic);
        }
    };
    stream::iter(1..=count).map(one).buffer_unordered(at_once).collect::<()>().await;
}

async fn storm(form: Form, seed: u64) {
    let setup = Setup { scale: 30.0, duplicates: 0.02, seed: Some(seed), ..Setup::default() };
    let world = Arc::new(World::start(setup).await);
    let mut client = world.database.another_owner().await;
    let mut products = Vec::new();
    for share in [3, 1] {
        let product = seed::product(seed::store(&client).await, form.numbers * share / 4).hold_seconds(90);
        products.push(product.insert(&mut client).await);
    }
    drop(client);
    world.function("orders").set(|settings| settings.concurrency = 16);
    world.jobs_at_once(2, Duration::from_secs(1));
    world.mapping("reserve-numbers").set(|polling| (polling.batch_max, polling.concurrency) = (40, 4));
    world.mapping("release-numbers").set(|polling| polling.concurrency = 1);
    world.run();
    let began = Instant::now();
    let faults = tokio::spawn(faults::rage(Arc::clone(&world), products.clone(), &FAILPOINTS, PASSES_MAX));
    crowd::shop(&world, &products, form.orders, form.orders_per_s).await;
    faults.abort();
    let _ = faults.await;
    faults::end(&world, &products).await;
    report(&world, began.elapsed());
    let world = Arc::into_inner(world).expect("nobody else has the world");
    world.finish(form.drain).await;
}

/// What the storm was, in three lines.
fn report(world: &World, lasted: Duration) {
    let (faults, accepted) = (world.story().len(), world.ledger.acceptances().len());
    println!(
        "{faults} faults in {:.1} s; {accepted} orders accepted, refused for good: {:?}",
        lasted.as_secs_f64(),
        world.ledger.refusals()
    );
    println!("told to try again: {:?}", world.ledger.retries());
    let functions = ["orders", "reserve-numbers", "release-numbers", "expire-reservations", "reconcile-orders"];
    let counts = functions.map(|name| (name, world.function(name).counts()));
    let crashes = counts.map(|(name, counts)| format!("{name} {} of {}", counts.crashes, counts.started));
    println!("processes that ended: {}", crashes.join(", "));
}
