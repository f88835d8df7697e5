//! Faults of those who take money: killed around what they ask of the gateway, and overtaken by others.

mod expiry;
mod stalled;

use std::time::Duration;

use domain::messages::Queue;
use store::catalog::Product;
use store::payments::RefundRequest;
use tests::look;
use tests::operator;
use tests::simulator::{Setup, Shopper, World, wish};
use tests::till::Policy;
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(40);
const UNPROCESSED: &str = "select count(*) from inbox where processed_at is null";
pub(crate) const PAID_STEPS: &str = "select count(*) from order_events where to_state = 'paid'";
/// Until others than its own request may ask about an attempt, and until events and looks are owed again.
pub(crate) const OWED_AFTER: Duration = Duration::from_secs(31);

/// A world whose queues run so fast that a message of a dead worker comes back within seconds.
async fn world() -> (World, Product) {
    let world = World::start(Setup { scale: 240.0, duplicates: 0.0, ..Setup::default() }).await;
    let product = world.sell(1_000, Policy::default(), |product| product).await;
    world.mapping("reserve-numbers").start();
    (world, product)
}

/// A buyer, and an order of his that holds one number: 250 in all.
async fn held(world: &World, product: &Product) -> (Shopper, Uuid) {
    let shopper = world.shopper(product);
    let order = shopper.place(product.described.id, &wish(&[], 1, "reject")).await.unwrap();
    assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
    (shopper, order)
}

pub(crate) async fn until_state(world: &World, order: Uuid, state: &str) {
    let is_there = async || look::order(&world.database, order).await.state.word() == state;
    world.until(&format!("the order is {state}"), BOUND, is_there).await;
}

async fn until_crashed(world: &World, function: &str, times: u64) {
    world.until("it was killed", BOUND, async || world.function(function).counts().crashes == times).await;
}

pub(crate) fn kept(world: &World) -> i64 {
    world.bank.ledger().payments.iter().map(tests::gateway::PaymentEntry::kept_minor).sum()
}

pub(crate) async fn refund(world: &World, product: &Product, order_id: Uuid) {
    let tenant_id = product.described.tenant_id;
    let request = RefundRequest { tenant_id, order_id, numbers: None, note: "as agreed", refund_id: Uuid::now_v7() };
    operator::refund(&mut world.database.app_client().await, &request).await.unwrap();
}

/// Fault 22: `payments` is killed before it asks, between the gateway's answer and its record, and around its commit.
/// The buyer who asks again gets the same payment.
#[tokio::test(flavor = "multi_thread")]
async fn killed_around_the_making_of_a_payment() {
    let (world, product) = world().await;
    world.run();
    let mut made = 0;
    for failpoint in ["payment.before_create", "payment.after_create", "payment.before_commit", "payment.after_commit"]
    {
        for method in ["card", "checkout", "pix"] {
            let (shopper, order) = held(&world, &product).await;
            world.function("payments").arm(&format!("{failpoint}=kill"));
            assert_eq!(shopper.try_pay(order, "key", method).await.status, 502, "{failpoint}");
            let attempt = shopper.pay(order, "key", method).await.unwrap();
            world.bank.pay(attempt).unwrap();
            until_state(&world, order, "paid").await;
            made += 1;
            assert_eq!(world.bank.ledger().payments.len(), made, "{failpoint}: one payment for one attempt");
        }
    }
    assert_eq!(kept(&world), 12 * 250);
    world.finish(BOUND).await;
}

/// Fault 22: the same, and the buyer is never heard of again. The reconciler finds the attempt, and it is made once.
#[tokio::test(flavor = "multi_thread")]
async fn killed_and_never_asked_again() {
    let (world, product) = world().await;
    for (failpoint, made) in [("payment.before_create", 0), ("payment.after_create", 1)] {
        let (shopper, order) = held(&world, &product).await;
        let before = world.bank.ledger().payments.len();
        world.function("payments").arm(&format!("{failpoint}=kill"));
        assert_eq!(shopper.try_pay(order, "key", "card").await.status, 502);
        assert_eq!(world.bank.ledger().payments.len(), before + made, "{failpoint}");
        world.pass(OWED_AFTER).await;
        world.schedule("reconcile-orders").run_once().await.answer();
        world.mapping("settle-payment").start();
        let open = format!("select count(*) from payment_attempts where order_id = '{order}' and state = 'open'");
        world.until("the attempt is open", BOUND, async || look::count(&world.database, &open).await == 1).await;
        let payments = world.bank.ledger().payments;
        assert_eq!(payments.len(), before + 1, "{failpoint}");
        world.bank.pay(&payments[before].payment_id).unwrap();
        until_state(&world, order, "paid").await;
    }
    world.finish(BOUND).await;
}

/// Fault 22: `settle-payment` is killed between the gateway's answer and its commit, and after it; then around a refund.
/// Each has one effect.
#[tokio::test(flavor = "multi_thread")]
async fn the_settling_worker_is_killed() {
    let (world, product) = world().await;
    world.run();
    let settle = world.function("settle-payment");
    let mut killed = 0;
    let failpoints = [("payment.before_commit", "refund.before_call"), ("payment.after_commit", "refund.after_call")];
    for (position, (settling, refunding)) in (1..).zip(failpoints) {
        let (shopper, order) = held(&world, &product).await;
        let attempt = shopper.pay(order, "key", "card").await.unwrap();
        settle.arm(&format!("{settling}=kill"));
        world.bank.pay(attempt).unwrap();
        killed += 1;
        until_crashed(&world, "settle-payment", killed).await;
        until_state(&world, order, "paid").await;
        assert_eq!(look::count(&world.database, PAID_STEPS).await, position, "{settling}: paid once");
        world.until("the events are read", BOUND, async || look::count(&world.database, UNPROCESSED).await == 0).await;
        settle.arm(&format!("{refunding}=kill"));
        refund(&world, &product, order).await;
        killed += 1;
        until_crashed(&world, "settle-payment", killed).await;
        until_state(&world, order, "refunded").await;
        let payments = world.bank.ledger().payments;
        assert!(payments.iter().all(|payment| payment.refunds.len() == 1), "{refunding}: {payments:?}");
        assert_eq!((kept(&world), look::taken(&world.database, &product).await), (0, 0));
    }
    world.finish(BOUND).await;
}

/// Fault 23: `payment-webhook` is killed between the insert and the send, whenever the gateway tries. The event is owed
/// again by the inbox.
#[tokio::test(flavor = "multi_thread")]
async fn the_webhook_is_killed_after_its_insert() {
    let (world, product) = world().await;
    let (shopper, order) = held(&world, &product).await;
    let attempt = shopper.pay(order, "key", "card").await.unwrap();
    assert!(world.bank.settle().await);
    world.mapping("settle-payment").start();
    world.until("the queue is empty", BOUND, async || world.sqs.len(Queue::SettlePayment) == 0).await;
    world.mapping("settle-payment").stop();
    let webhook = world.function("payment-webhook");
    let kill = |settings: &mut tests::simulator::FunctionSettings| {
        settings.variables.insert("FAILPOINTS".into(), "webhook.received=kill".into());
    };
    webhook.set(kill);
    webhook.reap();
    world.bank.pay(attempt).unwrap();
    assert!(world.bank.settle().await, "the gateway gives up");
    webhook.set(|settings| drop(settings.variables.remove("FAILPOINTS")));
    assert!(webhook.counts().crashes > 1);
    let events = look::count(&world.database, UNPROCESSED).await;
    assert!(events > 0, "it was written down");
    assert_eq!(world.sqs.len(Queue::SettlePayment), 0, "and never sent");
    until_state(&world, order, "paying").await;
    world.pass(OWED_AFTER).await;
    let report = world.schedule("reconcile-orders").run_once().await.answer();
    assert_eq!(report["events"], events, "{report}");
    world.mapping("settle-payment").start();
    until_state(&world, order, "paid").await;
    world.until("the events are read", BOUND, async || look::count(&world.database, UNPROCESSED).await == 0).await;
    assert_eq!(look::count(&world.database, PAID_STEPS).await, 1);
    world.finish(BOUND).await;
}
