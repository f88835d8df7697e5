//! Fault 22: the gateway does not answer, or not truthfully. One charge, whatever the buyer does meanwhile.

use std::time::Duration;

use tests::gateway::{Call, Fault, Matcher};
use tests::seed::quick;
use tests::till::{Policy, Till};

#[tokio::test(flavor = "multi_thread")]
async fn without_an_answer_the_same_attempt_is_asked_for_again() {
    for fault in [Fault::NoEffectNoAnswer(0), Fault::EffectThenNoAnswer(0), Fault::Conflict409, Fault::RateLimited429] {
        let till = Till::open(Policy::default()).await;
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        till.gateway.script(Matcher::call(Call::Create), fault, 6);
        let first = till.pay(&buyer, order, "key", "checkout").await;
        assert!(matches!(first.status, 201 | 202), "{fault:?}: {}", first.text());
        till.is(order, "paying").await;
        till.gateway.heal();
        let again = till.pay(&buyer, order, "key", "checkout").await;
        assert_eq!(again.status, 201, "{fault:?}: {}", again.text());
        assert_eq!(again.json()["id"], first.json()["id"]);
        assert_eq!(till.gateway.ledger().payments.len(), 1, "{fault:?}");
        till.gateway.pay(again.json()["id"].as_str().unwrap()).unwrap();
        till.settle().await;
        till.is(order, "paid").await;
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_replayed_500_is_no_answer_and_the_payment_is_found() {
    for fault in [Fault::Error500, Fault::Error500AfterEffect] {
        let till = Till::open(Policy::default()).await;
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        // The gateway keeps the 500 with the key: asking again gets it again.
        till.gateway.script(Matcher::call(Call::Create), fault, 1);
        let first = till.pay(&buyer, order, "key", "card").await;
        assert_eq!(first.status, 202, "{fault:?}: {}", first.text());
        assert_eq!(till.pay(&buyer, order, "key", "card").await.status, 202);
        till.is(order, "paying").await;
        // Another key means another payment: the first must be known to be dead, by its reference.
        till.pass(Duration::from_secs(60)).await;
        let second = till.open_payment(&buyer, order, "other", "card").await;
        till.gateway.pay(second).unwrap();
        till.settle().await;
        till.is(order, "paid").await;
        assert_eq!(till.kept(order), 250);
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn another_way_is_not_opened_while_the_first_may_exist() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.gateway.script(Matcher::call(Call::Create), Fault::EffectThenNoAnswer(0), 6);
    assert_eq!(till.pay(&buyer, order, "first", "card").await.status, 202);
    let other = till.pay(&buyer, order, "other", "pix").await;
    assert_eq!(other.refusal().1, "payment-in-flight");
    till.gateway.heal();
    till.pass(Duration::from_secs(60)).await;
    let other = till.open_payment(&buyer, order, "other", "pix").await;
    till.gateway.pay(other).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    assert_eq!(till.kept(order), 250);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_that_is_never_heard_of_again_is_found_by_the_reconciler() {
    for (fault, ends) in [(Fault::EffectThenNoAnswer(0), 1), (Fault::NoEffectNoAnswer(0), 1)] {
        let till = Till::open(Policy::default()).await;
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        till.gateway.script(Matcher::call(Call::Create), fault, 6);
        let first = till.pay(&buyer, order, "first", "card").await;
        assert_eq!(first.status, 202);
        till.gateway.heal();
        till.pass(Duration::from_secs(60)).await;
        till.chain.reconcile().await;
        till.settle().await;
        let seen = till.seen(&buyer, order).await;
        assert_eq!((&seen["state"], &seen["payment"]["state"]), (&"paying".into(), &"open".into()), "{fault:?}");
        assert_eq!(till.gateway.ledger().payments.len(), ends);
        till.gateway.pay(first.json()["id"].as_str().unwrap()).unwrap();
        till.settle().await;
        till.is(order, "paid").await;
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_that_the_gateway_has_forgotten_is_not_sent_again() {
    let till = Till::sell(Policy::default(), |product| product.hold_seconds(100_000)).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.gateway.script(Matcher::call(Call::Create), Fault::EffectThenNoAnswer(0), 6);
    assert_eq!(till.pay(&buyer, order, "first", "card").await.status, 202);
    till.gateway.heal();
    till.pass(Duration::from_secs(25 * 3_600)).await;
    till.chain.reconcile().await;
    till.settle().await;
    assert_eq!(till.gateway.ledger().payments.len(), 1, "found by its reference, not made again");
    assert_eq!(till.seen(&buyer, order).await["payment"]["state"], "open");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_who_repeats_a_forgotten_key_gets_the_first_payment() {
    let till = Till::sell(Policy::default(), |product| product.hold_seconds(100_000)).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.gateway.script(Matcher::call(Call::Create), Fault::EffectThenNoAnswer(0), 6);
    let first = till.pay(&buyer, order, "first", "card").await;
    assert_eq!(first.status, 202);
    till.gateway.heal();
    till.pass(Duration::from_secs(25 * 3_600)).await;
    let again = till.pay(&buyer, order, "first", "card").await;
    assert_eq!((again.status, &again.json()["id"]), (202, &first.json()["id"]), "{}", again.text());
    till.rest().await;
    let found = till.pay(&buyer, order, "first", "card").await;
    assert_eq!((found.status, &found.json()["id"]), (201, &first.json()["id"]), "{}", found.text());
    assert_eq!(till.gateway.ledger().payments.len(), 1);
    till.finish().await;
}
