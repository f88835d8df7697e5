//! Faults 23 and 28: events that come twice, at once, early, late, out of order, forged, or never.

use std::time::Duration;

use domain::messages::Queue;
use futures::future::join_all;
use tests::gateway::{Call, Dialect, Fault, Matcher, signatures};
use tests::http::{ask, is};
use tests::look::{self, count};
use tests::seed::quick;
use tests::till::{Policy, STRIPE_KEY, STRIPE_SECRET, Till};

const UNREAD: &str = "select count(*) from inbox where processed_at is null";

fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

fn event(id: &str, payment_id: &str) -> String {
    format!(
        r#"{{"id":"{id}","object":"event","type":"payment_intent.succeeded","data":{{"object":{{"id":"{payment_id}","object":"payment_intent"}}}}}}"#
    )
}

async fn post(till: &Till, body: &str, signature: &str) -> tests::http::Answer {
    let request = ask("POST", &till.webhook_path(Dialect::Stripe)).header("stripe-signature", signature);
    till.webhook.send(request, body.to_owned()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_copies_at_once_have_one_effect() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.script(Matcher::event("payment_intent.succeeded"), Fault::Never, u32::MAX);
    let payment = till.gateway.pay(attempt).unwrap();
    let body = event("evt_same", &payment);
    let signature = signatures::stripe(STRIPE_SECRET, now(), &body);
    let answers = join_all((0..100).map(|_| post(&till, &body, &signature))).await;
    assert!(answers.iter().all(|answer| answer.status == 200), "{:?}", answers[0].text());
    assert_eq!(count(&till.database, "select count(*) from inbox where event_id = 'evt_same'").await, 1);
    till.settle().await;
    till.is(order, "paid").await;
    assert_eq!(count(&till.database, "select count(*) from order_events where to_state = 'paid'").await, 1);
    let late = post(&till, &body, &signature).await;
    assert_eq!(late.status, 200, "the gateway may repeat it for days");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_signed_by_this_stores_gateway_is_refused_and_not_written() {
    let till = Till::open(Policy::default()).await;
    let body = event("evt_1", "pi_1");
    let good = signatures::stripe(STRIPE_SECRET, now(), &body);
    let other = signatures::stripe("whsec_of_another_store", now(), &body);
    let old = signatures::stripe(STRIPE_SECRET, now() - 3_600, &body);
    for bad in ["", "t=1", other.as_str(), old.as_str(), good.replace("v1=", "v0=").as_str()] {
        assert_eq!(post(&till, &body, bad).await.refusal(), is(400, "bad-signature"), "{bad}");
    }
    let changed = body.replace("pi_1", "pi_2");
    assert_eq!(post(&till, &changed, &good).await.refusal(), is(400, "bad-signature"));
    let huge = format!("{body}{}", " ".repeat(70_000));
    let signed = signatures::stripe(STRIPE_SECRET, now(), &huge);
    assert_eq!(post(&till, &huge, &signed).await.refusal(), is(413, "too-large"));
    for store in ["no-such-store", "%00", "A%20store"] {
        let unknown = ask("POST", &format!("/v1/webhooks/stripe/{store}")).header("stripe-signature", &good);
        assert_eq!(till.webhook.send(unknown, body.clone()).await.refusal(), is(404, "not-found"), "{store}");
    }
    let manual = till.webhook_path(Dialect::Stripe).replace("stripe", "manual");
    assert_eq!(till.webhook.send(ask("POST", &manual), body.clone()).await.refusal(), is(404, "not-found"));
    assert_eq!(count(&till.database, "select count(*) from inbox").await, 0);
    assert_eq!(post(&till, &body, &good).await.status, 200);
    assert_eq!(count(&till.database, "select count(*) from inbox").await, 1);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twice_reordered_late_and_badly_signed_events_change_nothing() {
    let faults = [Fault::Duplicate(5), Fault::Reordered, Fault::Late(300), Fault::BadlySigned, Fault::OldTimestamp];
    for fault in faults {
        let till = Till::open(Policy::default()).await;
        till.gateway.script(Matcher::any(), fault, u32::MAX);
        for method in ["card", "checkout", "pix"] {
            let buyer = till.buyer();
            let order = till.reserve(&buyer, &quick(1)).await;
            let attempt = till.open_payment(&buyer, order, "first", method).await;
            till.gateway.pay(attempt).unwrap();
            till.rest().await;
            till.is(order, "paid").await;
        }
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_never_comes_is_made_up_for_by_looking() {
    let till = Till::open(Policy::default()).await;
    till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let attempt = till.open_payment(&buyer, order, "first", "checkout").await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    till.is(order, "paying").await;
    till.pass(Duration::from_secs(45)).await;
    till.chain.reconcile().await;
    till.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_that_comes_before_our_own_answer_finds_the_attempt() {
    for method in ["card", "pix"] {
        let till = Till::open(Policy::default()).await;
        till.gateway.script(Matcher::call(Call::Create), Fault::PaidEarly, 1);
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        let answer = till.pay(&buyer, order, "first", method).await;
        assert!(matches!(answer.status, 201 | 202), "{}", answer.text());
        till.settle().await;
        till.is(order, "paid").await;
        till.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_whose_message_was_lost_is_owed_again() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let attempt = till.open_payment(&buyer, order, "first", "pix").await;
    till.chain.queues.refuse_every(1);
    till.gateway.pay(attempt).unwrap();
    assert!(till.gateway.settle().await);
    till.chain.queues.refuse_every(0);
    assert_eq!(till.chain.reconcile().await.events, 0, "it has its time");
    till.pass(Duration::from_secs(31)).await;
    assert!(till.chain.reconcile().await.events > 0);
    till.chain.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_of_nobody_and_of_another_store_changes_nothing() {
    let till = Till::open(Policy::default()).await;
    for (id, payment) in [("evt_unknown", "pi_unknown"), ("evt_odd", "")] {
        let body = event(id, payment);
        assert_eq!(post(&till, &body, &signatures::stripe(STRIPE_SECRET, now(), &body)).await.status, 200);
    }
    till.settle().await;
    assert_eq!(count(&till.database, UNREAD).await, 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_rotated_during_a_sale_without_a_refusal() {
    let till = Till::open(Policy::default()).await;
    let body = |number: i32| event(&format!("evt_{number}"), "pi_1");
    let send = async |number: i32, secret: &str| {
        let body = body(number);
        post(&till, &body, &signatures::stripe(secret, now(), &body)).await.status
    };
    assert_eq!(send(1, STRIPE_SECRET).await, 200);
    till.save_stripe(STRIPE_KEY, &["whsec_new", STRIPE_SECRET]).await;
    // The memory is a moment old; whoever guesses does not make us read all the time.
    tokio::time::sleep(domain::limits::ACCOUNTS_READ_AGAIN_AFTER).await;
    assert_eq!((send(2, "whsec_new").await, send(3, STRIPE_SECRET).await), (200, 200), "both are valid");
    till.save_stripe(STRIPE_KEY, &["whsec_new"]).await;
    tokio::time::sleep(domain::limits::ACCOUNTS_READ_AGAIN_AFTER).await;
    assert_eq!(send(4, "whsec_unknown").await, 400);
    assert_eq!((send(5, STRIPE_SECRET).await, send(6, "whsec_new").await), (400, 200), "the old one is over");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_event_about_a_payment_that_the_gateway_does_not_know_any_more_is_over() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.open_payment(&buyer, order, "first", "card").await;
    till.settle().await;
    look::change(&till.database, "update payment_attempts set payment_id = 'pi_gone'", 1).await;
    let body = event("evt_gone", "pi_gone");
    assert_eq!(post(&till, &body, &signatures::stripe(STRIPE_SECRET, now(), &body)).await.status, 200);
    till.settle().await;
    assert_eq!(count(&till.database, UNREAD).await, 0);
    assert!(till.chain.queues.dead(Queue::SettlePayment).is_empty());
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_names_another_attempt_pays_for_that_one() {
    let till = Till::open(Policy::default()).await;
    let mut attempts = Vec::new();
    for _ in 0..2 {
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        attempts.push((order, till.open_payment(&buyer, order, "first", "card").await));
    }
    let [(named, attempt), (other, mistaken)] = attempts[..] else { unreachable!() };
    let ids = "select payment_id from payment_attempts where id = $1";
    let id_of = async |id| till.database.owner().query_one(ids, &[&id]).await.unwrap().get::<_, String>(0);
    let (right, kept) = (id_of(attempt).await, id_of(mistaken).await);
    let put = async |attempt, id: &str| {
        let sql = format!("update payment_attempts set payment_id = '{id}' where id = '{attempt}'");
        look::change(&till.database, &sql, 1).await;
    };
    put(attempt, "pi_mistaken").await;
    put(mistaken, &right).await;
    till.gateway.pay(attempt).unwrap();
    till.rest().await;
    assert_eq!(count(&till.database, UNREAD).await, 0);
    assert!(till.chain.queues.dead(Queue::SettlePayment).is_empty());
    till.is(named, "paid").await;
    till.is(other, "paying").await;
    put(mistaken, &kept).await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn events_that_came_before_a_look_ask_nobody() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
    let payment = till.gateway.pay(attempt).unwrap();
    let tell = async |id: &str| {
        let body = event(id, &payment);
        assert_eq!(post(&till, &body, &signatures::stripe(STRIPE_SECRET, now(), &body)).await.status, 200);
    };
    for number in 0..5 {
        tell(&format!("evt_{number}")).await;
    }
    let client = till.database.app_client().await;
    let known = store::payments::find_attempt(&client, till.tenant_id(), attempt).await.unwrap().unwrap();
    till.cashier.hear(&known, &payment).await.unwrap();
    till.is(order, "paid").await;
    till.gateway.script(Matcher::call(Call::Fetch), Fault::NoEffectNoAnswer(0), u32::MAX);
    till.settle().await;
    assert_eq!(count(&till.database, UNREAD).await, 0);
    tell("evt_later").await;
    till.settle().await;
    assert_eq!(count(&till.database, UNREAD).await, 1, "it may be about what came after the look");
    till.gateway.heal();
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_that_the_gateway_had_kept_is_no_look() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.gateway.script(Matcher::any(), Fault::Never, u32::MAX);
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    let payment = till.gateway.pay(attempt).unwrap();
    let body = event("evt_paid", &payment);
    assert_eq!(post(&till, &body, &signatures::stripe(STRIPE_SECRET, now(), &body)).await.status, 200);
    // Asked for once more, the gateway answers as it did when the payment was open.
    look::change(&till.database, "update payment_attempts set state = 'created'", 1).await;
    assert_eq!(till.pay(&buyer, order, "first", "card").await.status, 201);
    till.is(order, "paying").await;
    till.chain.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}
