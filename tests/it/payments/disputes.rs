//! Fault 27: money that a bank takes back, wholly or in part, and refunds of the same money.

use domain::Reason;
use store::payments::retry_refund;
use tests::gateway::{Call, Fault, Matcher};
use tests::look::taken;
use tests::till::{Policy, Till};

use super::{owed_refund, paid, refund};

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_after_a_partly_lost_dispute_is_of_the_rest() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    till.gateway.dispute(attempt, 500).unwrap();
    till.rest().await;
    till.gateway.close_dispute(attempt, false).unwrap();
    till.rest().await;
    till.is(order, "paid").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (750, 3));
    assert_eq!(refund(&till, order, None).await.unwrap().amount_minor, 750);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_failed_is_not_owed_once_the_bank_has_given_all_of_it_back() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    let all = refund(&till, order, None).await.unwrap();
    till.gateway.dispute(attempt, None).unwrap();
    till.rest().await;
    assert_eq!(owed_refund(&till).await, all.id);
    till.gateway.close_dispute(attempt, false).unwrap();
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!(till.chain.reconcile().await.refunds_failed, 0);
    let retried = retry_refund(&mut till.database.app_client().await, till.tenant_id(), order, all.id).await;
    assert!(matches!(retried, Err(domain::Error::Rejected(Reason::WrongState))), "{retried:?}");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_dispute_takes_no_more_numbers_than_its_money_paid_for() {
    let till = Till::open(Policy::default()).await;
    let (buyer, order, attempt) = paid(&till, "card").await;
    till.gateway.dispute(attempt, 250).unwrap();
    till.rest().await;
    // The gateway makes no refund of a disputed payment.
    refund(&till, order, Some(&[5])).await.unwrap();
    till.rest().await;
    till.gateway.close_dispute(attempt, false).unwrap();
    till.rest().await;
    assert_eq!(till.kept(order), 1_000);
    assert_eq!(till.seen(&buyer, order).await["given_up"].as_array().unwrap().len(), 1);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_number_does_not_stand_for_a_refund_and_a_dispute_at_once() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    // Made at the gateway, but nobody tells us before the dispute is lost as well.
    till.gateway.script(Matcher::call(Call::Refund), Fault::EffectThenNoAnswer(0), 3);
    till.gateway.script(Matcher::call(Call::Fetch), Fault::RateLimited429, u32::MAX);
    refund(&till, order, Some(&[5])).await.unwrap();
    till.chain.reconcile().await;
    till.settle().await;
    till.gateway.dispute(attempt, 250).unwrap();
    till.gateway.close_dispute(attempt, false).unwrap();
    till.gateway.heal();
    till.rest().await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (750, 3));
    till.finish().await;
}
