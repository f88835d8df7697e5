//! Fault 24: money for numbers that went back to stock. The policy is applied once; the buyer sees which.

use std::time::Duration;

use domain::orders::{Fallback, Request};
use store::payments::retry_refund;
use tests::gateway::{Call, Fault, Matcher, ViolationKind};
use tests::http::Buyer;
use tests::look::{order as look_at, taken};
use tests::seed::{exact, quick};
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::owed_refund;

const HOLD: Duration = Duration::from_secs(901);

/// An expired order with a Pix code that was never paid, and its attempt.
async fn expired(till: &Till, buyer: &Buyer, request: &Request) -> (Uuid, Uuid) {
    let order = till.reserve(buyer, request).await;
    let attempt = till.open_payment(buyer, order, "first", "pix").await;
    till.pass(HOLD).await;
    till.chain.expire().await;
    till.chain.reconcile().await;
    till.settle().await;
    till.is(order, "expired").await;
    (order, attempt)
}

/// An expired order whose Pix code is paid afterwards; `meanwhile` happens in between.
async fn paid_late(policy: Policy, request: &Request, meanwhile: impl AsyncFnOnce(&Till)) -> (Till, Buyer, Uuid) {
    let till = Till::open(policy).await;
    let buyer = till.buyer();
    let (order, attempt) = expired(&till, &buyer, request).await;
    meanwhile(&till).await;
    till.gateway.pay_late(attempt).unwrap();
    till.rest().await;
    (till, buyer, order)
}

async fn somebody_takes_it(till: &Till) {
    till.reserve(&till.buyer(), &exact(&[7])).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_numbers_are_taken_again_if_they_are_free() {
    let (till, buyer, order) = paid_late(Policy::default(), &exact(&[7, 8]), async |_| ()).await;
    till.is(order, "paid").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (500, 2));
    assert_eq!(till.seen(&buyer, order).await["numbers"], serde_json::json!([7, 8]));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_money_goes_back_if_one_of_them_is_gone() {
    let (till, buyer, order) = paid_late(Policy::default(), &exact(&[7, 8]), somebody_takes_it).await;
    till.is(order, "refunded").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (0, 1));
    let seen = till.seen(&buyer, order).await;
    assert_eq!((&seen["refunds"][0]["cause"], &seen["payment"]["used"]), (&"late".into(), &"return".into()));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn substitutes_are_for_buyers_who_allowed_them() {
    let policy = Policy { late_money: "substitute", ..Policy::default() };
    let replace = Request::new(vec![7, 8], 0, Fallback::Replace).unwrap();
    let (till, _, order) = paid_late(policy, &replace, somebody_takes_it).await;
    till.is(order, "paid").await;
    let numbers = look_at(&till.database, order).await.numbers;
    assert!(numbers.len() == 2 && numbers.contains(&8) && !numbers.contains(&7), "{numbers:?}");
    assert_eq!(till.kept(order), 500);
    till.finish().await;
    let (till, _, order) = paid_late(policy, &exact(&[7, 8]), somebody_takes_it).await;
    till.is(order, "refunded").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_may_always_give_late_money_back() {
    let policy = Policy { late_money: "refund", ..Policy::default() };
    let (till, _, order) = paid_late(policy, &exact(&[7]), async |_| ()).await;
    till.is(order, "refunded").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (0, 0));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_over_the_limit_gets_the_money_back() {
    let till = Till::sell(Policy::default(), |product| product.per_buyer(2)).await;
    let buyer = till.buyer();
    let (order, attempt) = expired(&till, &buyer, &exact(&[7, 8])).await;
    till.reserve(&buyer, &exact(&[9])).await;
    till.gateway.pay_late(attempt).unwrap();
    till.rest().await;
    till.is(order, "refunded").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_for_two_attempts_pays_once_and_comes_back_once() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let first = till.open_payment(&buyer, order, "first", "pix").await;
    let second = till.open_payment(&buyer, order, "second", "pix").await;
    // The first code was cancelled; some bank pays it all the same.
    till.gateway.pay_late(first).unwrap();
    till.gateway.pay(second).unwrap();
    till.rest().await;
    till.is(order, "paid").await;
    assert_eq!(till.kept(order), 250);
    let seen = till.seen(&buyer, order).await;
    assert_eq!(seen["refunds"].as_array().unwrap().len(), 1);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_of_an_abandoned_call_follows_the_policy() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[7])).await;
    // Made at the gateway, but neither its answer nor a search told us.
    till.gateway.script(Matcher::call(Call::Create), Fault::EffectThenNoAnswer(0), 6);
    till.gateway.script(Matcher::call(Call::Find), Fault::SearchBehind, u32::MAX);
    let attempt = till.pay(&buyer, order, "first", "pix").await.json()["id"].as_str().unwrap().to_owned();
    till.pass(HOLD).await;
    till.chain.expire().await;
    till.chain.reconcile().await;
    till.settle().await;
    till.is(order, "expired").await;
    somebody_takes_it(&till).await;
    till.gateway.pay_late(&attempt).unwrap();
    till.gateway.heal();
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!(till.kept(order), 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_taken_again_after_the_sale() {
    let close = "update products set closes_at = now() - interval '1 minute'";
    let (till, _, order) = paid_late(Policy::default(), &exact(&[7]), async |till: &Till| {
        assert_eq!(till.database.owner().execute(close, &[]).await.unwrap(), 1);
    })
    .await;
    till.is(order, "refunded").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (0, 0));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn late_money_of_which_the_dashboard_gave_a_part_back_comes_back_in_full() {
    let till = Till::open(Policy { late_money: "refund", ..Policy::default() }).await;
    let (order, attempt) = expired(&till, &till.buyer(), &exact(&[7, 8])).await;
    till.gateway.script(Matcher::call(Call::Refund), Fault::RateLimited429, u32::MAX);
    till.gateway.pay_late(attempt).unwrap();
    till.settle().await;
    till.is(order, "refunding").await;
    till.gateway.refund_in_dashboard(attempt, 300).unwrap();
    till.gateway.heal();
    till.rest().await;
    // The part is heard of with the next look.
    till.pass(Duration::from_secs(25 * 3_600)).await;
    till.rest().await;
    let owed = owed_refund(&till).await;
    let again = retry_refund(&mut till.database.app_client().await, till.tenant_id(), order, owed).await.unwrap();
    assert_eq!(again.amount_minor, 200);
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!(till.kept(order), 0);
    till.finish_despite(&[ViolationKind::RefundOverCaptured]).await;
}
