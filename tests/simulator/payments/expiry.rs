//! Fault 20: a payment succeeds in each gap of the expiry protocol, and nobody tells us. Exactly one wins.

use std::time::Duration;

use tests::gateway::{Fault, Matcher};
use tests::look;

use super::{BOUND, held, kept, until_crashed, until_state, world};

const HOLD: Duration = Duration::from_secs(901);
const CLOSED: &str = "select count(*) from payment_attempts where state = 'cancelled'";

/// When the buyer pays.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Gap {
    /// The hold is over, the sweep has not seen it.
    BeforeSweep,
    /// The sweep has marked the order, the gateway was not asked to close the payment.
    BeforeVoid,
    /// The payment was closed, and the worker died before it gave the numbers back.
    BeforeRelease,
    /// The numbers are back in stock.
    AfterRelease,
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_succeeds_before_the_sweep() {
    each_method(Gap::BeforeSweep).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_succeeds_between_the_mark_and_the_void() {
    each_method(Gap::BeforeVoid).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_succeeds_between_the_void_and_the_release() {
    each_method(Gap::BeforeRelease).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_succeeds_after_the_release() {
    each_method(Gap::AfterRelease).await;
}

async fn each_method(gap: Gap) {
    for method in ["card", "checkout", "pix"] {
        pays(gap, method).await;
    }
}

async fn pays(gap: Gap, method: &str) {
    let (world, product) = world().await;
    let (shopper, order) = held(&world, &product).await;
    let attempt = shopper.pay(order, "key", method).await.unwrap();
    world.bank.script(Matcher::any(), Fault::Never, u32::MAX);
    world.pass(HOLD).await;
    let mut is_paid = false;
    let mut at = |now: Gap| {
        if now == gap {
            is_paid = world.bank.pay_late(attempt).is_ok();
        }
    };
    at(Gap::BeforeSweep);
    world.schedule("expire-reservations").run_once().await.answer();
    until_state(&world, order, "paying").await;
    at(Gap::BeforeVoid);
    if gap == Gap::BeforeRelease {
        world.function("settle-payment").arm("payment.after_commit=kill");
    }
    world.schedule("reconcile-orders").run_once().await.answer();
    world.mapping("settle-payment").start();
    match gap {
        Gap::BeforeSweep | Gap::BeforeVoid => until_state(&world, order, "paid").await,
        Gap::BeforeRelease => {
            until_crashed(&world, "settle-payment", 1).await;
            assert_eq!(
                (look::count(&world.database, CLOSED).await, look::taken(&world.database, &product).await),
                (1, 1)
            );
            until_state(&world, order, "reserved").await;
        }
        Gap::AfterRelease => until_state(&world, order, "expired").await,
    }
    at(Gap::BeforeRelease);
    at(Gap::AfterRelease);
    // What was closed can be paid by Pix only.
    assert_eq!(is_paid, method == "pix" || matches!(gap, Gap::BeforeSweep | Gap::BeforeVoid), "{gap:?} {method}");
    world.drain(BOUND).await;
    let (state, money, taken) = if is_paid { ("paid", 250, 1) } else { ("expired", 0, 0) };
    until_state(&world, order, state).await;
    assert_eq!((kept(&world), look::taken(&world.database, &product).await), (money, taken), "{gap:?} {method}");
    world.finish(BOUND).await;
}
