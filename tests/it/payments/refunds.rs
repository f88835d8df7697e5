//! Money back: in full and in part, here and in the gateway's dashboard, at once, later, or not at all.

use std::time::Duration;

use domain::Reason;
use domain::payments::{RefundState, key};
use store::payments::{RefundAnswer, RefundRequest, find_attempt, record_refund, retry_refund};
use tests::gateway::{Call, Fault, Matcher, ViolationKind};
use tests::look::{count, order as look_at, taken};
use tests::operator;
use tests::seed::exact;
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::{paid, refund};

/// Time after which a captured payment is looked at again, and a margin.
const A_LOOK: Duration = Duration::from_secs(25 * 3_600);

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
    let first = operator::refund(&mut client, &request).await.unwrap();
    assert_eq!(operator::refund(&mut client, &request).await.unwrap().id, first.id);
    let stranger = RefundRequest { tenant_id: Uuid::now_v7(), refund_id: Uuid::now_v7(), ..request };
    assert_eq!(rejected(operator::refund(&mut client, &stranger).await), Reason::NotFound);
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
        let again = retry_refund(&mut till.database.app_client().await, till.tenant_id(), order, failed.id).await;
        let again = again.unwrap();
        assert_eq!((again.state, again.amount_minor, again.numbers.len()), (RefundState::Created, 1_250, 0));
        let twice = retry_refund(&mut till.database.app_client().await, till.tenant_id(), order, failed.id).await;
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
        let refused = RefundAnswer::Refused("no");
        record_refund(&mut client, till.tenant_id(), order, failed.id, refused).await.unwrap();
        assert_eq!(till.chain.reconcile().await.refunds_failed, 1);
        refund(&till, order, numbers).await.unwrap();
        till.rest().await;
        let again = retry_refund(&mut client, till.tenant_id(), order, failed.id).await;
        assert_eq!(rejected(again), Reason::WrongState);
        assert_eq!(till.chain.reconcile().await.refunds_failed, 0);
        assert_eq!(till.kept(order), if numbers.is_some() { 1_000 } else { 0 });
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_equal_refunds_without_an_answer_both_reach_the_buyer() {
    let till = Till::open(Policy::default()).await;
    let (_, order, _) = paid(&till, "pix").await;
    refund(&till, order, Some(&[1])).await.unwrap();
    refund(&till, order, Some(&[2])).await.unwrap();
    // The gateway keeps no reference of ours: which of the two was made cannot be told from its list.
    till.gateway.script(Matcher::call(Call::Refund), Fault::NoEffectNoAnswer(0), 3);
    till.gateway.script(Matcher::call(Call::Refund), Fault::EffectThenNoAnswer(0), 3);
    till.chain.put_settle(&till.product, order);
    till.chain.settle().await;
    till.gateway.heal();
    till.rest().await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (750, 3));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_amount_in_the_dashboard_is_another_refund() {
    for method in ["pix", "card"] {
        let till = Till::open(Policy::default()).await;
        let (_, order, attempt) = paid(&till, method).await;
        refund(&till, order, Some(&[1])).await.unwrap();
        till.gateway.script(Matcher::call(Call::Refund), Fault::EffectThenNoAnswer(0), 3);
        till.gateway.script(Matcher::call(Call::Fetch), Fault::RateLimited429, 20);
        till.chain.put_settle(&till.product, order);
        till.chain.settle().await;
        till.gateway.refund_in_dashboard(attempt, 250).unwrap();
        till.gateway.heal();
        till.rest().await;
        let back = "select sum(amount_minor)::int8 from refunds where state = 'succeeded'";
        assert_eq!((count(&till.database, back).await, till.kept(order)), (500, 750), "{method}");
        refund(&till, order, None).await.unwrap();
        till.rest().await;
        till.is(order, "refunded").await;
        assert_eq!(till.kept(order), 0, "{method}");
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_dashboard_has_left_of_a_refund_of_all_can_be_given_back() {
    for method in ["card", "pix"] {
        let till = Till::open(Policy::default()).await;
        let (_, order, attempt) = paid(&till, method).await;
        till.gateway.refund_in_dashboard(attempt, 500).unwrap();
        // Nobody here has heard of it yet.
        assert_eq!(refund(&till, order, None).await.unwrap().amount_minor, 1_250);
        till.rest().await;
        till.pass(A_LOOK).await;
        till.rest().await;
        assert_eq!(till.chain.reconcile().await.refunds_failed, 1, "{method}");
        assert_eq!(refund(&till, order, None).await.unwrap().amount_minor, 750, "{method}");
        till.rest().await;
        till.is(order, "refunded").await;
        assert_eq!(till.chain.reconcile().await.refunds_failed, 0, "{method}");
        assert_eq!(till.kept(order), 0, "{method}");
        till.finish_despite(&[ViolationKind::RefundOverCaptured]).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_refund_that_the_dashboard_makes_good_is_not_owed() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    till.gateway.refund_in_dashboard(attempt, 500).unwrap();
    let all = refund(&till, order, None).await.unwrap();
    till.rest().await;
    assert_eq!(till.chain.reconcile().await.refunds_failed, 1);
    till.gateway.refund_in_dashboard(attempt, None).unwrap();
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!(till.chain.reconcile().await.refunds_failed, 0, "nobody is owed anything");
    let retried = retry_refund(&mut till.database.app_client().await, till.tenant_id(), order, all.id).await;
    assert_eq!(rejected(retried), Reason::WrongState);
    till.finish_despite(&[ViolationKind::RefundOverCaptured]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_is_still_under_way_is_not_made_under_another_key() {
    let till = Till::open(Policy::default()).await;
    let (_, order, _) = paid(&till, "card").await;
    let asked = refund(&till, order, Some(&[1])).await.unwrap();
    // Looks that no worker comes to are no requests.
    for _ in 0..4 {
        till.pass(Duration::from_secs(150)).await;
        till.chain.reconcile().await;
    }
    till.gateway.script(Matcher::call(Call::Refund), Fault::Delay(11_000), 1);
    let first_key = key(asked.tenant_id, order, "refund", &format!("{}/1", asked.id));
    let is_made = || {
        let payments = till.gateway.ledger().payments;
        payments.iter().flat_map(|payment| &payment.refunds).any(|made| made.key.as_ref() == Some(&first_key))
    };
    let looks = async {
        while !is_made() {
            till.chain.settle().await;
            let soon = "update refunds set look_at = now() where look_at is not null";
            till.database.owner().execute(soon, &[]).await.unwrap();
            till.chain.reconcile().await;
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), looks).await.expect("the first request's effect");
    till.rest().await;
    assert_eq!(till.kept(order), 1_000, "one number's money goes back once");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_whose_key_the_gateway_has_forgotten_is_looked_for_first() {
    for method in ["card", "pix"] {
        let till = Till::open(Policy::default()).await;
        let (_, order, _) = paid(&till, method).await;
        refund(&till, order, Some(&[1])).await.unwrap();
        // It is made, and nobody hears of it for a day.
        till.gateway.script(Matcher::call(Call::Refund), Fault::EffectThenNoAnswer(0), 3);
        till.gateway.script(Matcher::call(Call::Fetch), Fault::RateLimited429, u32::MAX);
        till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
        till.chain.put_settle(&till.product, order);
        till.chain.settle().await;
        assert_eq!(till.kept(order), 1_000, "{method}");
        till.gateway.heal();
        till.pass(A_LOOK).await;
        till.rest().await;
        assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (1_000, 4), "{method}");
        assert_eq!(count(&till.database, "select count(*) from refunds").await, 1, "{method}");
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_stood_still_asks_for_no_refund_that_has_failed_meanwhile() {
    for method in ["card", "pix"] {
        let till = Till::open(Policy::default()).await;
        let (_, order, attempt) = paid(&till, method).await;
        let read_before = refund(&till, order, Some(&[1])).await.unwrap();
        let mut client = till.database.app_client().await;
        record_refund(&mut client, till.tenant_id(), order, read_before.id, RefundAnswer::Refused("no")).await.unwrap();
        let attempt = find_attempt(&client, till.tenant_id(), attempt).await.unwrap().unwrap();
        till.cashier.refund(&read_before, &attempt).await.unwrap();
        assert_eq!(till.kept(order), 1_250, "{method}: staff may be about to try again");
        retry_refund(&mut client, till.tenant_id(), order, read_before.id).await.unwrap();
        till.rest().await;
        assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (1_000, 4), "{method}");
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sellers_goodwill_takes_no_number_and_is_no_finding() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    till.gateway.refund_in_dashboard(attempt, 100).unwrap();
    till.rest().await;
    till.is(order, "paid").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (1_150, 5));
    till.gateway.refund_in_dashboard(attempt, 300).unwrap();
    till.rest().await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (850, 4));
    assert_eq!(refund(&till, order, None).await.unwrap().amount_minor, 850);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_was_refused_for_a_dispute_is_made_after_it_is_won() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    till.gateway.dispute(attempt, None).unwrap();
    till.rest().await;
    refund(&till, order, None).await.unwrap();
    till.rest().await;
    let owed = super::owed_refund(&till).await;
    till.gateway.close_dispute(attempt, true).unwrap();
    till.rest().await;
    till.is(order, "refunding").await;
    assert_eq!(till.chain.reconcile().await.refunds_failed, 1, "the alarm says so");
    store::payments::retry_refund(&mut till.database.app_client().await, till.tenant_id(), order, owed).await.unwrap();
    till.rest().await;
    till.is(order, "refunded").await;
    assert_eq!((till.kept(order), taken(&till.database, &till.product).await), (0, 0));
    till.finish().await;
}
