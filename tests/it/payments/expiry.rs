//! Fault 20: holds that end while money is on its way. Exactly one wins, and the loser is refunded.

use std::time::Duration;

use domain::payments::Method;
use store::payments::{NewAttempt, start};
use tests::gateway::{Account, Call, Dialect, Fault, Matcher};
use tests::http::is;
use tests::look::{count, taken};
use tests::seed::{exact, quick};
use tests::till::{Policy, STRIPE_SECRET, Till};
use uuid::Uuid;

const HOLD: Duration = Duration::from_secs(901);

#[tokio::test(flavor = "multi_thread")]
async fn an_open_payment_is_closed_before_its_numbers_go_back() {
    for method in ["card", "checkout", "pix"] {
        let till = Till::open(Policy::default()).await;
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(2)).await;
        let attempt = till.open_payment(&buyer, order, "first", method).await;
        till.pass(HOLD).await;
        assert_eq!(till.pay(&buyer, order, "second", "pix").await.refusal(), is(409, "hold-expired"));
        let swept = till.chain.expire().await;
        assert_eq!(swept.orders, 0, "the gateway is asked first");
        assert_eq!(taken(&till.database, &till.product).await, 2);
        till.chain.reconcile().await;
        till.settle().await;
        till.is(order, "expired").await;
        assert_eq!(taken(&till.database, &till.product).await, 0);
        assert!(till.gateway.pay(attempt).is_err(), "nobody can pay any more");
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_succeeded_before_the_void_wins() {
    for method in ["card", "checkout", "pix"] {
        let till = Till::open(Policy::default()).await;
        till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(2)).await;
        let attempt = till.open_payment(&buyer, order, "first", method).await;
        till.gateway.pay(attempt).unwrap();
        till.pass(HOLD).await;
        till.chain.expire().await;
        till.chain.reconcile().await;
        till.settle().await;
        till.is(order, "paid").await;
        assert_eq!(till.kept(order), 500);
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_are_kept_while_the_gateway_cannot_be_asked() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.open_payment(&buyer, order, "first", "card").await;
    till.pass(HOLD).await;
    till.gateway.script(Matcher::call(Call::Void), Fault::Error500, u32::MAX);
    for _ in 0..3 {
        till.chain.expire().await;
        till.chain.reconcile().await;
        till.settle().await;
        till.is(order, "paying").await;
        till.pass(Duration::from_secs(400)).await;
    }
    assert_eq!(taken(&till.database, &till.product).await, 1);
    till.gateway.heal();
    till.rest().await;
    till.pass(Duration::from_secs(400)).await;
    till.rest().await;
    till.is(order, "expired").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_was_never_made_is_abandoned_and_its_key_never_sent_again() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.gateway.script(Matcher::call(Call::Create), Fault::NoEffectNoAnswer(0), 6);
    assert_eq!(till.pay(&buyer, order, "first", "card").await.status, 202);
    till.gateway.heal();
    till.pass(HOLD).await;
    till.chain.expire().await;
    till.chain.reconcile().await;
    till.settle().await;
    till.is(order, "expired").await;
    let state = "select count(*) from payment_attempts where state = 'abandoned'";
    assert_eq!(count(&till.database, state).await, 1);
    let again = till.pay(&buyer, order, "first", "card").await;
    assert_eq!(again.refusal(), is(409, "payment-ended"));
    assert!(till.gateway.ledger().payments.is_empty());
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_closes_the_payment_first() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[5])).await;
    let attempt = till.open_payment(&buyer, order, "first", "checkout").await;
    assert_eq!(buyer.cancel(&till.orders, order, "cancel").await.status, 202);
    assert_eq!(till.pay(&buyer, order, "second", "pix").await.refusal(), is(409, "wrong-state"));
    till.is(order, "paying").await;
    till.settle().await;
    till.is(order, "cancelled").await;
    assert!(till.gateway.pay(attempt).is_err());
    assert_eq!(taken(&till.database, &till.product).await, 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_that_comes_after_the_money_gives_it_back() {
    let till = Till::open(Policy::default()).await;
    till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[5])).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.pay(attempt).unwrap();
    assert_eq!(buyer.cancel(&till.orders, order, "cancel").await.status, 202);
    till.settle().await;
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (0, 0));
    let seen = till.seen(&buyer, order).await;
    assert_eq!(seen["refunds"][0]["cause"], "cancelled");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sweepers_and_settlers_at_once_end_each_order_once() {
    let till = Till::open(Policy::default()).await;
    let mut orders = Vec::new();
    for position in 0..12 {
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(2)).await;
        let attempt = till.open_payment(&buyer, order, "first", ["card", "checkout", "pix"][position % 3]).await;
        orders.push((order, attempt));
    }
    till.pass(HOLD).await;
    for (_, attempt) in orders.iter().step_by(2) {
        till.gateway.pay_late(*attempt).or_else(|_| till.gateway.pay(*attempt)).ok();
    }
    let work = async {
        for _ in 0..4 {
            till.chain.expire().await;
            till.chain.reconcile().await;
            till.chain.settle().await;
        }
    };
    let other = async {
        for _ in 0..4 {
            till.chain.settle().await;
            till.chain.reconcile().await;
            till.chain.expire().await;
        }
    };
    tokio::join!(work, other);
    till.rest().await;
    let open = count(&till.database, "select count(*) from orders where state not in ('paid', 'expired', 'refunded')");
    assert_eq!(open.await, 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_that_staff_never_finished_ends_with_the_hold() {
    let till = Till::open(Policy::default()).await;
    let order = till.reserve(&till.buyer(), &quick(1)).await;
    let new = NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: till.product.described.tenant_id,
        buyer_id: None,
        order_id: order,
        method: Method::Manual,
        return_url: None,
        key: "cash",
    };
    start(&mut till.database.app_client().await, &new).await.unwrap();
    till.pass(HOLD).await;
    till.rest().await;
    till.is(order, "expired").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_the_stores_new_account_does_not_know_ends_with_the_hold() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.open_payment(&buyer, order, "first", "card").await;
    till.settle().await;
    let other = Account {
        dialect: Dialect::Stripe,
        key: "sk_test_other".into(),
        webhook_url: String::new(),
        webhook_secret: STRIPE_SECRET.into(),
    };
    till.save_stripe(&other.key, &[STRIPE_SECRET]).await;
    till.gateway.add_account(other);
    let till = till.restart_workers();
    till.pass(HOLD).await;
    till.rest().await;
    till.is(order, "expired").await;
    assert_eq!(taken(&till.database, &till.product).await, 0);
    till.finish().await;
}
