//! Who buys and pays during the storm, and how.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;
use serde_json::Value;
use store::catalog::Product;
use tests::randomness;
use tests::simulator::{Shopper, World, wish};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, sleep};
use uuid::Uuid;

use super::Form;

/// How long a buyer keeps trying.
const PATIENCE: Duration = Duration::from_secs(8);
const METHODS: [&str; 3] = ["card", "checkout", "pix"];
const CODES: [&str; 3] = ["insufficient_funds", "expired_card", "do_not_honor"];

/// What a buyer does about paying.
#[derive(Debug, Clone, Copy)]
enum Plan {
    Pays,
    /// Is declined so many times first.
    Declined(usize),
    /// Opens a payment, then pays another way.
    AnotherWay,
    /// Asks under two keys at once, and pays whatever can be paid.
    Hastily,
    /// Pays when the time is over.
    Late,
    Never,
    /// Cancels with a payment open.
    Cancels,
    /// Cancels, and pays all the same.
    CancelsAndPays,
}

/// What one buyer does about one order.
struct Intent {
    product_id: Uuid,
    wish: Value,
    plan: Plan,
    methods: [&'static str; 3],
    code: &'static str,
    waits: Duration,
}

/// Places a storm's orders at its pace, and waits until every buyer is done; the attempts that are paid late.
pub(super) async fn shop(world: &World, products: &[Product], form: Form) -> Vec<Uuid> {
    let mut rng = randomness::stream(world.seed, 1);
    let mut buyers = JoinSet::new();
    let mut ticks = tokio::time::interval(Duration::from_secs_f64(1.0 / form.orders_per_s));
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let places = Arc::new(Semaphore::new(form.buyers_at_once));
    for _ in 0..form.orders {
        let product = &products[[0, 0, 1, 2][rng.random_range(0..4)]];
        let (intent, shopper) = (intent(&mut rng, product), world.shopper(product).patience(PATIENCE));
        let bank = world.bank.clone();
        ticks.tick().await;
        let place = Arc::clone(&places).acquire_owned().await.expect("never closed");
        buyers.spawn(async move {
            let _place = place;
            Payer { shopper, bank, intent }.act().await
        });
    }
    buyers.join_all().await.into_iter().flatten().collect()
}

/// Pays what can still be paid.
pub(super) fn pay_late(world: &World, attempts: &[Uuid]) {
    let paid = attempts.iter().filter(|attempt| world.bank.pay_late(attempt).is_ok()).count();
    world.note(&format!("{paid} of {} late payments are made", attempts.len()));
}

fn intent(rng: &mut StdRng, product: &Product) -> Intent {
    let plan = match rng.random_range(0..20) {
        0..6 => Plan::Pays,
        6..9 => Plan::Declined(rng.random_range(1..=2)),
        9..12 => Plan::AnotherWay,
        12 => Plan::Hastily,
        13..16 => Plan::Late,
        16 => Plan::Never,
        17 => Plan::Cancels,
        _ => Plan::CancelsAndPays,
    };
    let mut any = || METHODS[rng.random_range(0..METHODS.len())];
    let methods = [any(), any(), any()];
    Intent {
        product_id: product.described.id,
        wish: what(rng, product),
        plan,
        methods,
        code: CODES[rng.random_range(0..CODES.len())],
        waits: Duration::from_millis(rng.random_range(0..1_500)),
    }
}

/// Any numbers, or certain ones among few, so that what ran out is gone when its money comes, and others in their place.
fn what(rng: &mut StdRng, product: &Product) -> Value {
    let count = rng.random_range(1..=4);
    if rng.random_bool(0.5) {
        return wish(&[], count, "reject");
    }
    let range = product.described.range;
    let mut numbers: Vec<i32> = (0..count).map(|_| range.first + rng.random_range(0..range.count / 4)).collect();
    numbers.sort_unstable();
    numbers.dedup();
    wish(&numbers, 0, "replace")
}

struct Payer {
    shopper: Shopper,
    bank: tests::gateway::FakeGateway,
    intent: Intent,
}

impl Payer {
    /// Does it; the attempt that is to be paid late.
    async fn act(self) -> Option<Uuid> {
        let order = self.shopper.place(self.intent.product_id, &self.intent.wish).await?;
        let held = self.shopper.follow(order).await?;
        if held["state"] != "reserved" {
            return None;
        }
        match self.intent.plan {
            Plan::Never => return None,
            Plan::Pays => self.pay_by(order, 0).await,
            Plan::Late => return self.open(order, 0).await,
            Plan::Declined(times) => {
                for time in 0..times {
                    let attempt = self.open(order, time).await?;
                    let _ = self.bank.decline(attempt, self.intent.code);
                    self.wait().await;
                }
                self.pay_by(order, 2).await;
            }
            Plan::AnotherWay => {
                let first = self.open(order, 0).await;
                self.wait().await;
                self.pay_by(order, 1).await;
                // The first one is closed: some banks pay it all the same.
                let _ = first.map(|attempt| self.bank.pay_late(attempt));
            }
            Plan::Hastily => {
                let (first, second) = tokio::join!(self.open(order, 0), self.open(order, 1));
                for attempt in [first, second].into_iter().flatten() {
                    let _ = self.bank.pay(attempt);
                }
            }
            Plan::Cancels => {
                self.open(order, 0).await;
                self.shopper.cancel(order).await;
            }
            Plan::CancelsAndPays => {
                let attempt = self.open(order, 0).await?;
                let pay = async { self.bank.pay(attempt) };
                let _ = tokio::join!(self.shopper.cancel(order), pay);
            }
        }
        self.wait().await;
        self.shopper.read(order).await;
        None
    }

    /// Asks for the payment by one of the methods, under a key of its own; the attempt if there is something to pay.
    async fn open(&self, order: Uuid, which: usize) -> Option<Uuid> {
        self.shopper.pay(order, &format!("{which}"), self.intent.methods[which]).await
    }

    async fn pay_by(&self, order: Uuid, which: usize) {
        let attempt = self.open(order, which).await;
        self.wait().await;
        // What was closed in the meantime cannot be paid any more.
        let _ = attempt.map(|attempt| self.bank.pay(attempt));
    }

    async fn wait(&self) {
        sleep(self.intent.waits).await;
    }
}
