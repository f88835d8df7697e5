//! What no gateway should do and one may do all the same: money that grows, a payment made twice, a sale too big to look
//! through, a dispute that vanishes.

use std::time::Duration;

use domain::payments::{
    AttemptState, CaptureMode, DisputeState, Gateway, Method, Observed, ObservedDispute, ObservedRefund, RefundState,
};
use gateways::{Credentials, Endpoints, Gateways, NewPayment, PaymentGateway};
use store::payments::{Answer, RefundAnswer, find_attempt, find_overview, note_refund_asked, record, record_refund};
use tests::gateway::{Call, Dialect, Fault, Matcher};
use tests::look::{change, count, taken};
use tests::seed::exact;
use tests::till::{Policy, STRIPE_KEY, Till};
use uuid::Uuid;

use super::{paid, refund};

/// Payments that are listed when one is looked for, and a few more.
const MORE_THAN_LISTED: usize = 305;

async fn payment_id(till: &Till, attempt: Uuid) -> String {
    let client = till.database.app_client().await;
    find_attempt(&client, till.tenant_id(), attempt).await.unwrap().unwrap().payment_id.unwrap()
}

fn captured(attempt: Uuid, payment_id: &str, captured_minor: i64) -> Observed {
    Observed {
        payment_id: payment_id.to_owned(),
        attempt_id: Some(attempt),
        state: AttemptState::Captured,
        amount_minor: 1_250,
        currency: "BRL".into(),
        captured_minor,
        refunded_minor: 0,
        decline_code: None,
        instructions: None,
        refunds: Vec::new(),
        disputes: Vec::new(),
    }
}

async fn hear(till: &Till, attempt: Uuid, observed: &Observed) {
    let mut client = till.database.app_client().await;
    record(&mut client, till.tenant_id(), attempt, Answer::Observed(observed)).await.unwrap();
}

/// Refunds of an order: amounts, and whether any gives up numbers.
async fn refunds(till: &Till, order: Uuid) -> (Vec<i64>, bool) {
    let overview = find_overview(&till.database.app_client().await, till.tenant_id(), order).await.unwrap();
    let amounts = overview.refunds.iter().map(|entry| entry.refund.amount_minor).collect();
    (amounts, overview.refunds.iter().any(|entry| !entry.refund.numbers.is_empty()))
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_goes_back_and_grows_goes_back_in_full() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[1, 2, 3, 4, 5])).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    let id = payment_id(&till, attempt).await;
    for amount in [500, 1_250, 1_250, 500] {
        hear(&till, attempt, &captured(attempt, &id, amount)).await;
    }
    assert_eq!(refunds(&till, order).await, (vec![500, 750], false));
    till.is(order, "reserved").await;
    let open = store::findings::count_open(&till.database.app_client().await).await.unwrap();
    assert_eq!(open, 0, "it goes back: there is nothing for an operator to do");
    till.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_taken_beyond_the_price_goes_back_and_the_order_stays_paid() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    let id = payment_id(&till, attempt).await;
    for amount in [1_300, 1_300, 1_400, 1_300] {
        hear(&till, attempt, &captured(attempt, &id, amount)).await;
    }
    assert_eq!(refunds(&till, order).await, (vec![50, 100], false));
    till.is(order, "paid").await;
    assert_eq!(taken(&till.database, &till.product).await, 5);
    // One that fails waits for staff and is not made again by itself.
    let failed = "update refunds set state = 'failed' where amount_minor = 100";
    till.database.owner().execute(failed, &[]).await.unwrap();
    hear(&till, attempt, &captured(attempt, &id, 1_400)).await;
    assert_eq!(refunds(&till, order).await.0, [50, 100]);
    till.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_payment_of_one_attempt_is_told_once_until_a_person_closes_it() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "card").await;
    let id = payment_id(&till, attempt).await;
    let mut client = till.database.app_client().await;
    for _ in 0..3 {
        hear(&till, attempt, &captured(attempt, "pi_again", 1_250)).await;
    }
    let open = store::findings::list_open(&client, None, 10).await.unwrap();
    assert_eq!(open.len(), 1, "{open:?}");
    assert!(open[0].detail.contains("pi_again") && open[0].invariant == "I6", "{open:?}");
    assert_eq!((payment_id(&till, attempt).await, refunds(&till, order).await.0.len()), (id, 0));
    assert!(store::findings::close(&mut client, open[0].id, "given back by hand").await.unwrap());
    assert!(!store::findings::close(&mut client, open[0].id, "again").await.unwrap());
    let logged = "select count(*) from audit_log where action = 'close_finding' and subject = 'product'
        and reason = 'given back by hand'";
    assert_eq!(count(&till.database, logged).await, 1);
    // Given back there: nothing to tell any more.
    let given_back = Observed { refunded_minor: 1_250, ..captured(attempt, "pi_again", 1_250) };
    hear(&till, attempt, &given_back).await;
    assert_eq!(store::findings::count_open(&client).await.unwrap(), 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_payments_the_one_that_took_money_pays() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[1, 2, 3, 4, 5])).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    let first = payment_id(&till, attempt).await;
    hear(&till, attempt, &captured(attempt, "pi_other", 1_250)).await;
    till.is(order, "paid").await;
    assert_eq!(payment_id(&till, attempt).await, "pi_other");
    // Now the first is the one too many.
    hear(&till, attempt, &captured(attempt, &first, 1_250)).await;
    let open = store::findings::list_open(&till.database.app_client().await, None, 10).await.unwrap();
    assert!(open.len() == 1 && open[0].detail.contains(&first), "{open:?}");
    assert_eq!(count(&till.database, "select count(*) from refunds").await, 0);
    till.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_in_a_sale_too_big_to_look_through_is_settled_by_its_key() {
    // Of the last two an error is kept under the key.
    for (fault, made) in [
        (Fault::NoEffectNoAnswer(0), 1),
        (Fault::EffectThenNoAnswer(0), 1),
        (Fault::Error500, 0),
        (Fault::Error500AfterEffect, 1),
    ] {
        let till = Till::open(Policy::default()).await;
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &exact(&[7])).await;
        till.gateway.script(Matcher::call(Call::Create), fault, 6);
        assert_eq!(till.pay(&buyer, order, "first", "card").await.status, 202);
        till.gateway.heal();
        till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
        others_pay(&till).await;
        till.gateway.heal();
        till.pass(Duration::from_secs(901)).await;
        for _ in 0..3 {
            till.chain.expire().await;
            till.chain.reconcile().await;
            till.settle().await;
            till.pass(Duration::from_secs(60)).await;
        }
        till.is(order, "expired").await;
        let ours = till.gateway.ledger().payments.into_iter().filter(|p| p.order_id == Some(order.to_string()));
        assert_eq!(ours.map(|payment| payment.captured_minor).collect::<Vec<_>>(), vec![0; made], "{fault:?}");
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_attempt_that_can_neither_be_asked_for_nor_looked_for_any_more_is_given_up() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[7])).await;
    till.gateway.script(Matcher::call(Call::Create), Fault::NoEffectNoAnswer(0), 6);
    assert_eq!(till.pay(&buyer, order, "first", "card").await.status, 202);
    till.gateway.heal();
    // Nobody could be asked for so long that the key may be forgotten, and the account has sold much since.
    till.pass(domain::limits::KEY_KEPT_FOR + Duration::from_secs(600)).await;
    till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
    others_pay(&till).await;
    till.gateway.heal();
    till.chain.expire().await;
    till.chain.reconcile().await;
    till.settle().await;
    till.is(order, "expired").await;
    assert_eq!(taken(&till.database, &till.product).await, 0);
    till.finish().await;
}

/// Payments of others on the same account.
async fn others_pay(till: &Till) {
    let endpoints = Endpoints { stripe: till.gateway.url(Dialect::Stripe), ..Endpoints::default() };
    let account = format!(r#"{{"secret_key": "{STRIPE_KEY}", "webhook_secrets": ["whsec_till"]}}"#);
    let credentials = Credentials::parse(Gateway::Stripe, account.as_bytes()).unwrap();
    let client = &Gateways::new(endpoints).unwrap().client(&credentials).unwrap();
    let one = |_| async move {
        let id = Uuid::now_v7();
        let new = NewPayment {
            attempt_id: id,
            order_id: id,
            tenant_id: id,
            key: &id.to_string(),
            amount_minor: 250,
            currency: "BRL",
            method: Method::Card,
            capture: CaptureMode::Automatic,
            expires_at: time::OffsetDateTime::now_utc(),
            description: "another sale",
            return_url: None,
            payer_email: None,
        };
        client.create(&new).await.unwrap();
    };
    use futures::StreamExt;
    futures::stream::iter(0..MORE_THAN_LISTED).map(one).buffer_unordered(16).collect::<Vec<()>>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_second_answer_to_a_refund_is_about_a_second_refund() {
    for (state, back) in [(RefundState::Failed, 250), (RefundState::Succeeded, 500)] {
        let till = Till::open(Policy::default()).await;
        let (_, order, attempt) = paid(&till, "pix").await;
        let id = payment_id(&till, attempt).await;
        let mut client = till.database.app_client().await;
        let asked = refund(&till, order, Some(&[1])).await.unwrap();
        note_refund_asked(&client, &asked).await.unwrap();
        let made = |gateway_refund_id: &str, refund_id, state| ObservedRefund {
            gateway_refund_id: gateway_refund_id.into(),
            refund_id,
            amount_minor: 250,
            state,
        };
        // Made in the dashboard, and taken for ours, because this gateway keeps no reference.
        let listed = vec![made("1", None, RefundState::Succeeded)];
        hear(&till, attempt, &Observed { refunds: listed, refunded_minor: 250, ..captured(attempt, &id, 1_250) }).await;
        let ours = made("2", Some(asked.id), state);
        record_refund(&mut client, till.tenant_id(), order, asked.id, RefundAnswer::Observed(&ours)).await.unwrap();
        let succeeded = "select sum(amount_minor)::int8 from refunds where state = 'succeeded'";
        assert_eq!(count(&till.database, succeeded).await, back, "{state:?}");
        assert_eq!(taken(&till.database, &till.product).await, 5 - back / 250, "{state:?}");
        till.database.finish_under_way().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_a_lost_dispute_will_give_up_stand_for_no_refund_as_well() {
    let till = Till::open(Policy::default()).await;
    let (_, _, attempt) = paid(&till, "card").await;
    let id = payment_id(&till, attempt).await;
    let lost = ObservedDispute { gateway_dispute_id: "dp_1".into(), amount_minor: 500, state: DisputeState::Lost };
    let back = ObservedRefund {
        gateway_refund_id: "re_1".into(),
        refund_id: None,
        amount_minor: 500,
        state: RefundState::Succeeded,
    };
    let disputed = Observed { disputes: vec![lost], ..captured(attempt, &id, 1_250) };
    // What it takes away stays until the product's numbers may change again; meanwhile the seller gives money back.
    change(&till.database, "update products set reserving = 'halted'", 1).await;
    hear(&till, attempt, &disputed).await;
    hear(&till, attempt, &Observed { refunds: vec![back], refunded_minor: 500, ..disputed }).await;
    assert_eq!(taken(&till.database, &till.product).await, 5);
    change(&till.database, "update products set reserving = 'on'", 1).await;
    record(&mut till.database.app_client().await, till.tenant_id(), attempt, Answer::Nothing).await.unwrap();
    assert_eq!(taken(&till.database, &till.product).await, 1, "250 of 1,250 are left");
    till.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_mediation_that_is_gone_has_ended() {
    let till = Till::open(Policy::default()).await;
    let (_, order, attempt) = paid(&till, "pix").await;
    let id = payment_id(&till, attempt).await;
    let mediation = ObservedDispute {
        gateway_dispute_id: format!("mediation-{id}"),
        amount_minor: 1_250,
        state: DisputeState::Open,
    };
    let quiet = captured(attempt, &id, 1_250);
    let disputed = Observed { disputes: vec![mediation], ..quiet.clone() };
    let client = till.database.app_client().await;
    let state = async || find_overview(&client, till.tenant_id(), order).await.unwrap().disputes[0].state;
    hear(&till, attempt, &disputed).await;
    hear(&till, attempt, &quiet).await;
    assert_eq!(state().await, DisputeState::Open, "that answer may be older than the mediation");
    till.pass(Duration::from_secs(2 * 3_600)).await;
    hear(&till, attempt, &quiet).await;
    assert_eq!(state().await, DisputeState::Won);
    hear(&till, attempt, &disputed).await;
    assert_eq!(state().await, DisputeState::Won);
    till.is(order, "paid").await;
    assert_eq!(count(&till.database, "select count(*) from refunds").await, 0);
    till.finish().await;
}
