//! Who buys during the storm: people who press twice, hang up, look, and change their minds.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::Value;
use store::catalog::Product;
use tests::randomness;
use tests::simulator::{Shopper, World, wish};
use tokio::task::JoinSet;
use uuid::Uuid;

/// Orders of one buyer, at most: fewer than a buyer may have open.
const ORDERS_PER_BUYER: usize = 4;
/// How long a buyer keeps trying.
const PATIENCE: Duration = Duration::from_secs(30);

/// What one buyer does about one order.
struct Intent {
    product_id: Uuid,
    wish: Value,
    /// Hangs up after this time and comes back with the same key.
    hangs_up: Option<Duration>,
    cancels: bool,
    looks: bool,
}

/// Places so many orders at a pace, and waits until every buyer has an answer or has given up.
pub(super) async fn shop(world: &World, products: &[Product], orders: usize, per_second: f64) {
    let mut rng = randomness::stream(world.seed, 1);
    let mut buyers = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / per_second));
    let mut shopper = None;
    for position in 0..orders {
        let product = &products[usize::from(rng.random_bool(0.25))];
        if position % ORDERS_PER_BUYER == 0
            || shopper.as_ref().is_none_or(|(tenant, _)| *tenant != product.described.tenant_id)
        {
            shopper = Some((product.described.tenant_id, world.shopper(product).patience(PATIENCE)));
        }
        let (intent, shopper) = (intent(&mut rng, product), shopper.as_ref().expect("a buyer").1.clone());
        ticks.tick().await;
        buyers.spawn(act(shopper, intent));
    }
    while let Some(done) = buyers.join_next().await {
        done.expect("a buyer does not panic");
    }
}

fn intent(rng: &mut StdRng, product: &Product) -> Intent {
    let count = product.described.range.count;
    // Most want the same few numbers.
    let popular = (count / 20).max(1);
    let numbers: Vec<i32> = match rng.random_range(0..4) {
        0 => Vec::new(),
        1 => vec![rng.random_range(1..=count)],
        wanted => (0..wanted).map(|_| rng.random_range(1..=popular)).collect(),
    };
    let mut distinct = numbers.clone();
    distinct.sort_unstable();
    distinct.dedup();
    let quantity = if numbers.is_empty() { rng.random_range(1..=5) } else { rng.random_range(0..=2) };
    let fallback = ["reject", "drop", "replace"][rng.random_range(0..3)];
    Intent {
        product_id: product.described.id,
        wish: wish(&distinct, quantity, fallback),
        hangs_up: rng.random_bool(0.05).then(|| Duration::from_millis(rng.random_range(1..40))),
        cancels: rng.random_bool(0.2),
        looks: rng.random_bool(0.3),
    }
}

async fn act(shopper: Shopper, intent: Intent) {
    let key = Uuid::now_v7().to_string();
    if let Some(time) = intent.hangs_up {
        let _ = tokio::time::timeout(time, shopper.try_place(intent.product_id, &key, &intent.wish)).await;
    }
    let Some(order) = shopper.place_under(intent.product_id, &key, &intent.wish).await else { return };
    if intent.looks {
        shopper.read(order).await;
        tokio::time::sleep(Duration::from_millis(300)).await;
        shopper.read(order).await;
    }
    if intent.cancels {
        shopper.cancel(order).await;
        shopper.read(order).await;
    }
}
