//! Money back: in full and in part, here and in the gateway's dashboard, at once, later, or not at all.

use domain::Reason;
use domain::payments::RefundState;
use store::payments::{Refund, RefundAnswer, RefundRequest, record_refund, request_refund, retry_refund};
use tests::gateway::{Call, Fault, Matcher};
use tests::look::{count, order as look_at, taken};
use tests::seed::exact;
use tests::till::{Policy, Till};
use uuid::Uuid;

/// A paid order of five numbers, 1,250 in all.
async fn paid(till: &Till, method: &str) -> (tests::http::Buyer, Uuid, Uuid) {
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[1, 2, 3, 4, 5])).await;
    let attempt = till.open_payment(&buyer, order, "first", method).await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    (buyer, order, attempt)
}

async fn refund(till: &Till, order_id: Uuid, numbers: Option<&[i32]>) -> domain::Result<Refund> {
    let tenant_id = till.product.described.tenant_id;
    let request = RefundRequest { tenant_id, order_id, numbers, note: "as agreed", refund_id: Uuid::now_v7() };
    request_refund(&mut till.database.app_client().await, &request).await
}

fn rejected<T: std::fmt::Debug>(result: domain::Result<T>) -> Reason {
    match result {
        Err(domain::Error::Rejected(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn parts_and_then_the_rest() {
    for method in ["card", "pix"] {
        let till = Till::open(Policy::default()).await;
        let (buyer, order, _) = paid(&till, method).await;
        let first = refund(&till, order, Some(&[2, 4])).await.unwrap();
        assert_eq!(first.amount_minor, 500);
        assert_eq!(rejected(refund(&till, order, Some(&[4, 5])).await), Reason::NumbersTaken, "4 goes back already");
        till.rest().await;
        till.is(order, "paid").await;
        assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (750, 3));
        assert_eq!(till.seen(&buyer, order).await["given_up"], serde_json::json!([2, 4]));
        // They can be sold again.
        till.reserve(&till.buyer(), &exact(&[2, 4])).await;
        refund(&till, order, None).await.unwrap();
        till.rest().await;
        till.is(order, "refunded").await;
        assert_eq!(till.kept(order), 0);
        assert_eq!(rejected(refund(&till, order, None).await), Reason::WrongState);
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_request_again_is_the_same_refund() {
    let till = Till::open(Policy::default()).await;
    let (_, order, _) = paid(&till, "card").await;
    let tenant_id = till.product.described.tenant_id;
    let request =
        RefundRequest { tenant_id, order_id: order, numbers: Some(&[1]), note: "", refund_id: Uuid::now_v7() };
    let mut client = till.database.app_client().await;
    let first = request_refund(&mut client, &request).await.unwrap();
    assert_eq!(request_refund(&mut client, &request).await.unwrap().id, first.id);
    let stranger = RefundRequest { tenant_id: Uuid::now_v7(), refund_id: Uuid::now_v7(), ..request };
    assert_eq!(rejected(request_refund(&mut client, &stranger).await), Reason::NotFound);
    till.rest().await;
    assert_eq!(till.kept(order), 1_000);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_without_an_answer_is_made_once() {
    let faults = [
        Fault::EffectThenNoAnswer(0),
        Fault::NoEffectNoAnswer(0),
        Fault::Error500AfterEffect,
        Fault::Error500,
        Fault::Conflict409,
        Fault::RateLimited429,
    ];
    for fault in faults {
        let till = Till::open(Policy::default()).await;
        let (_, order, _) = paid(&till, "card").await;
        till.gateway.script(Matcher::call(Call::Refund), fault, 4);
        refund(&till, order, Some(&[1])).await.unwrap();
        till.chain.reconcile().await;
        till.settle().await;
        till.gateway.heal();
        till.rest().await;
        assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (1_000, 4), "{fault:?}");
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_accepted_refund_frees_the_numbers_at_once_and_one_that_fails_later_is_owed() {
    for fault in [Fault::PendingThenFailed(300), Fault::FailsLater(300)] {
        let till = Till::open(Policy::default()).await;
        let (_, order, _) = paid(&till, "card").await;
        till.gateway.script(Matcher::any(), fault, 1);
        let failed = refund(&till, order, None).await.unwrap();
        till.chain.reconcile().await;
        till.chain.settle().await;
        assert_eq!(taken(&till.database, &till.product).await, 0, "accepted is enough");
        till.rest().await;
        till.is(order, "refunding").await;
        assert_eq!(taken(&till.database, &till.product).await, 0, "they do not come back");
        assert_eq!(till.chain.reconcile().await.refunds_failed, 1, "the alarm");
        till.reserve(&till.buyer(), &exact(&[1, 2, 3, 4, 5])).await;
        let again = retry_refund(&mut till.database.app_client().await, order, failed.id).await.unwrap();
        assert_eq!((again.state, again.amount_minor, again.numbers.len()), (RefundState::Created, 1_250, 0));
        let twice = retry_refund(&mut till.database.app_client().await, order, failed.id).await;
        assert_eq!(rejected(twice), Reason::WrongState);
        till.rest().await;
        till.is(order, "refunded").await;
        assert_eq!(till.kept(order), 0);
        assert_eq!(till.chain.reconcile().await.refunds_failed, 0);
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_in_the_dashboard_is_followed() {
    let till = Till::open(Policy::default()).await;
    let (buyer, order, attempt) = paid(&till, "card").await;
    till.gateway.refund_in_dashboard(attempt, 500).unwrap();
    till.rest().await;
    till.is(order, "paid").await;
    assert_eq!(till.seen(&buyer, order).await["given_up"], serde_json::json!([4, 5]), "the highest that it paid for");
    till.gateway.refund_in_dashboard(attempt, None).unwrap();
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!(taken(&till.database, &till.product).await, 0);
    assert_eq!(till.seen(&buyer, order).await["refunds"][1]["cause"], "elsewhere");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_dispute_counts_as_refunded_and_a_won_one_does_not() {
    for (won, keeps, state, numbers) in
        [(true, false, "paid", 5), (false, false, "refunded", 0), (false, true, "paid", 5)]
    {
        let till = Till::open(Policy { keeps_disputed: keeps, ..Policy::default() }).await;
        let (_, order, attempt) = paid(&till, "card").await;
        till.gateway.dispute(attempt, None).unwrap();
        till.rest().await;
        till.is(order, "paid").await;
        till.gateway.close_dispute(attempt, won).unwrap();
        till.rest().await;
        till.is(order, state).await;
        assert_eq!(taken(&till.database, &till.product).await, numbers, "won {won}, keeps {keeps}");
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn two_refunds_at_once_never_exceed_the_money() {
    let till = Till::open(Policy::default()).await;
    let (_, order, _) = paid(&till, "card").await;
    let some = [&[1, 2, 3][..], &[3, 4, 5], &[1, 5], &[2], &[4]];
    let asked = futures::future::join_all(some.iter().map(|numbers| refund(&till, order, Some(numbers)))).await;
    assert!(asked.iter().any(Result::is_ok));
    till.rest().await;
    let back = 1_250 - till.kept(order);
    assert_eq!(back, 250 * (5 - taken(&till.database, &till.product).await));
    let given_up = look_at(&till.database, order).await.given_up;
    assert_eq!(i64::try_from(given_up.len()).unwrap() * 250, back);
    assert_eq!(count(&till.database, "select count(*) from refunds where state <> 'succeeded'").await, 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_another_refund_has_made_good_is_not_tried_again() {
    for numbers in [Some(&[1][..]), None] {
        let till = Till::open(Policy::default()).await;
        let (_, order, _) = paid(&till, "card").await;
        let failed = refund(&till, order, Some(&[1])).await.unwrap();
        let mut client = till.database.app_client().await;
        record_refund(&mut client, order, failed.id, RefundAnswer::Refused("no")).await.unwrap();
        assert_eq!(till.chain.reconcile().await.refunds_failed, 1);
        refund(&till, order, numbers).await.unwrap();
        till.rest().await;
        assert_eq!(rejected(retry_refund(&mut client, order, failed.id).await), Reason::WrongState);
        assert_eq!(till.chain.reconcile().await.refunds_failed, 0);
        assert_eq!(till.kept(order), if numbers.is_some() { 1_000 } else { 0 });
        till.finish().await;
    }
}
