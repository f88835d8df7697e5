//! Two at once about one payment: one stands still with the gateway's answer in its hands, the other hears a newer one.
//! The older answer is written last, and changes nothing.

use tests::chain::message;
use tests::gateway::{Fault, Matcher};
use tests::look;
use tests::simulator::World;
use uuid::Uuid;

use super::{BOUND, OWED_AFTER, PAID_STEPS, held, kept, refund, until_state, world};

/// Longer than the other one needs, shorter than any timeout.
const STALL: &str = "1*sleep(4000)";

async fn until_made(world: &World) -> String {
    world.until("the payment is made", BOUND, async || world.bank.ledger().payments.len() == 1).await;
    world.bank.ledger().payments[0].payment_id.clone()
}

async fn until_idle(world: &World, function: &str) {
    world.until("it has gone on", BOUND, async || world.function(function).busy() == 0).await;
}

async fn states(world: &World, table: &str) -> Vec<String> {
    let sql = format!("select state from {table}");
    world.database.owner().query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
}

/// Fault 22: the request that made the payment knows only that it is open.
#[tokio::test(flavor = "multi_thread")]
async fn the_request_is_overtaken_by_the_event() {
    for method in ["card", "checkout", "pix"] {
        let (world, product) = world().await;
        let (shopper, order) = held(&world, &product).await;
        world.mapping("settle-payment").start();
        world.function("payments").arm(&format!("payment.after_create={STALL}"));
        let asking = tokio::spawn(async move { shopper.try_pay(order, "key", method).await });
        let payment = until_made(&world).await;
        world.bank.pay(payment).unwrap();
        until_state(&world, order, "paid").await;
        assert!(!asking.is_finished(), "the request stands still");
        let answer = asking.await.unwrap();
        assert_eq!((answer.status, &answer.json()["state"]), (201, &"captured".into()), "{}", answer.text());
        ends_paid_once(world, order).await;
    }
}

/// Fault 22: two settling workers. One has made the payment and knows that it is open, the other hears that it is paid.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_is_overtaken_by_another() {
    let (world, product) = world().await;
    let (shopper, order) = held(&world, &product).await;
    world.function("payments").arm("payment.before_create=kill");
    assert_eq!(shopper.try_pay(order, "key", "card").await.status, 502);
    world.pass(OWED_AFTER).await;
    world.function("settle-payment").arm(&format!("payment.after_create={STALL}"));
    world.sqs.put(domain::messages::Queue::SettlePayment, &message(&product, order));
    world.mapping("settle-payment").start();
    let payment = until_made(&world).await;
    world.bank.pay(payment).unwrap();
    until_state(&world, order, "paid").await;
    assert!(world.function("settle-payment").busy() > 0, "one of them stands still");
    until_idle(&world, "settle-payment").await;
    ends_paid_once(world, order).await;
}

async fn ends_paid_once(world: World, order: Uuid) {
    until_state(&world, order, "paid").await;
    assert_eq!(states(&world, "payment_attempts").await, ["captured"]);
    assert_eq!((look::count(&world.database, PAID_STEPS).await, kept(&world)), (1, 250));
    world.finish(BOUND).await;
}

/// The same with a refund: one has the answer that it is on its way, the other hears that it has arrived, or failed.
#[tokio::test(flavor = "multi_thread")]
async fn a_refunding_worker_is_overtaken_by_another() {
    for (course, refund_state, order_state) in [
        (Fault::PendingThenSucceeded(500), "succeeded", "refunded"),
        (Fault::PendingThenFailed(500), "failed", "refunding"),
    ] {
        let (world, product) = world().await;
        let (shopper, order) = held(&world, &product).await;
        let attempt = shopper.pay(order, "key", "card").await.unwrap();
        world.run();
        world.bank.pay(attempt).unwrap();
        until_state(&world, order, "paid").await;
        world.until("the worker is idle", BOUND, async || world.function("settle-payment").busy() == 0).await;
        world.bank.script(Matcher::any(), course, 1);
        world.function("settle-payment").arm(&format!("refund.after_call={STALL}"));
        refund(&world, &product, order).await;
        let decided = async || states(&world, "refunds").await == [refund_state];
        world.until("the newer answer is written", BOUND, decided).await;
        assert!(world.function("settle-payment").busy() > 0, "one of them stands still");
        until_idle(&world, "settle-payment").await;
        assert_eq!(states(&world, "refunds").await, [refund_state]);
        until_state(&world, order, order_state).await;
        assert_eq!(look::taken(&world.database, &product).await, 0);
        world.finish(BOUND).await;
    }
}
