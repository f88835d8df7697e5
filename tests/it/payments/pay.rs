//! Paying, and not being able to.

use serde_json::{Value, json};
use tests::gateway::{Fault, Matcher};
use tests::http::is;
use tests::look::{self, count};
use tests::seed::{exact, quick};
use tests::till::{Policy, Till};

#[tokio::test(flavor = "multi_thread")]
async fn each_method_gets_its_instructions_and_is_paid_by_the_gateways_event() {
    let till = Till::open(Policy::default()).await;
    for (method, kind) in [("card", "client-secret"), ("checkout", "redirect"), ("pix", "pix")] {
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(2)).await;
        let answer = till.pay(&buyer, order, "first", method).await;
        assert_eq!(answer.status, 201, "{}", answer.text());
        assert_eq!(answer.json()["instructions"]["kind"], kind);
        till.is(order, "paying").await;
        assert_eq!(till.seen(&buyer, order).await["payment"]["instructions"]["kind"], kind);
        let attempt = answer.json()["id"].as_str().unwrap().to_owned();
        till.gateway.pay(&attempt).unwrap();
        till.settle().await;
        till.is(order, "paid").await;
        let seen = till.seen(&buyer, order).await;
        assert_eq!((&seen["payment"]["state"], &seen["payment"]["used"]), (&json!("captured"), &json!("payment")));
        assert_eq!((&seen["payment"]["instructions"], &seen["poll_after"]), (&Value::Null, &Value::Null));
        assert_eq!(till.kept(order), 500);
    }
    assert_eq!(count(&till.database, "select sum(paid)::int8 from number_chunks").await, 6);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hold_longer_than_a_gateways_page_may_last_can_be_paid() {
    let till = Till::open(Policy::default()).await;
    for method in ["checkout", "card", "pix"] {
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        // Staff have given its buyer a day more.
        let longer = "update orders set expires_at = now() + interval '24 hours 15 minutes',
            sweep_at = now() + interval '24 hours 15 minutes'";
        look::change(&till.database, &format!("{longer} where id = '{order}'"), 1).await;
        let attempt = till.open_payment(&buyer, order, "first", method).await;
        till.gateway.pay(attempt).unwrap();
        till.settle().await;
        till.is(order, "paid").await;
    }
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_repeated_request_is_the_same_payment_and_another_body_is_refused() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let first = till.pay(&buyer, order, "key", "checkout").await;
    let again = till.pay(&buyer, order, "key", "checkout").await;
    assert!(again.is_replay() && !first.is_replay());
    assert_eq!(first.json(), again.json());
    assert_eq!(till.pay(&buyer, order, "key", "card").await.refusal(), is(422, "key-reused"));
    assert_eq!(till.gateway.ledger().payments.len(), 1);
    till.gateway.pay(first.json()["id"].as_str().unwrap()).unwrap();
    till.settle().await;
    let paid = till.pay(&buyer, order, "key", "checkout").await;
    assert_eq!((paid.status, &paid.json()["state"]), (201, &json!("captured")));
    assert_eq!(till.pay(&buyer, order, "other", "checkout").await.refusal(), is(409, "wrong-state"));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_requests_at_once_make_one_payment() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let same = (0..10).map(|_| till.pay(&buyer, order, "key", "checkout"));
    let answers = futures::future::join_all(same).await;
    assert!(answers.iter().all(|answer| matches!(answer.status, 201 | 202)), "{answers:?}");
    assert_eq!(till.gateway.ledger().payments.len(), 1);
    till.gateway.pay(answers[0].json()["id"].as_str().unwrap()).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn after_a_decline_the_buyer_may_try_again_while_the_hold_lasts() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[7])).await;
    let first = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.decline(first, "insufficient_funds").unwrap();
    till.settle().await;
    till.is(order, "reserved").await;
    let seen = till.seen(&buyer, order).await;
    assert_eq!(seen["payment"]["decline_code"], "insufficient_funds");
    assert_eq!(seen["payment"]["state"], "declined");
    let second = till.open_payment(&buyer, order, "second", "card").await;
    assert_ne!(first, second);
    till.gateway.pay(second).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    assert!(till.gateway.pay(first).is_err(), "the declined payment was closed at the gateway");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paying_another_way_closes_the_first_payment() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let first = till.open_payment(&buyer, order, "first", "checkout").await;
    let second = till.open_payment(&buyer, order, "second", "pix").await;
    till.is(order, "paying").await;
    assert!(till.gateway.pay(first).is_err());
    till.gateway.pay(second).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn paying_another_way_finds_that_the_first_was_paid() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let first = till.open_payment(&buyer, order, "first", "checkout").await;
    till.gateway.script(Matcher::event("checkout.session.completed"), Fault::Never, u32::MAX);
    till.gateway.script(Matcher::event("payment_intent.succeeded"), Fault::Never, u32::MAX);
    till.gateway.pay(first).unwrap();
    assert_eq!(till.pay(&buyer, order, "second", "pix").await.refusal(), is(409, "wrong-state"));
    till.is(order, "paid").await;
    assert_eq!(till.gateway.ledger().payments.len(), 1);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_authorised_payment_is_captured_when_the_order_still_holds_its_numbers() {
    let till = Till::open(Policy { capture: "manual", ..Policy::default() }).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    assert_eq!(till.kept(order), 250);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_costs_nothing_is_paid_without_a_gateway() {
    let till = Till::open(Policy::default()).await;
    let sql = format!("update products set price_minor = 0 where id = '{}'", till.product.described.id);
    till.database.owner().execute(&sql, &[]).await.unwrap();
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(3)).await;
    assert_eq!(till.pay(&buyer, order, "first", "checkout").await.status, 204);
    till.is(order, "paid").await;
    assert_eq!(till.pay(&buyer, order, "first", "checkout").await.status, 204, "the answer may have been lost");
    assert_eq!(count(&till.database, "select count(*) from order_events where to_state = 'paid'").await, 1);
    assert_eq!(count(&till.database, "select count(*) from payment_attempts").await, 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_paid_is_refused_and_changes_nothing() {
    let till = Till::open(Policy::default()).await;
    let (buyer, other) = (till.buyer(), till.buyer());
    let order = till.reserve(&buyer, &quick(1)).await;
    let pay = async |body: &str| buyer.pay(&till.payments, order, "key", body.to_owned()).await.refusal();
    assert_eq!(pay(r#"{"method":"manual"}"#).await, is(422, "invalid"));
    for body in [r#"{"method":"PIX"}"#, r#"{"method":"manual"}"#] {
        let said = buyer.pay(&till.payments, order, "key", body.to_owned()).await.json()["errors"][0].clone();
        assert_eq!((&said["pointer"], &said["detail"]), (&"/method".into(), &"must be card, checkout or pix".into()));
    }
    assert_eq!(pay(r#"{"method":7}"#).await, is(422, "invalid"));
    assert_eq!(pay(r#"{"method":"checkout"}"#).await, is(422, "invalid"), "nobody knows where to go afterwards");
    assert_eq!(pay(r#"{"method":"card","amount":1}"#).await, is(422, "invalid"));
    assert_eq!(pay(r#"{"method":"checkout","return_url":"http://evil.example/"}"#).await, is(422, "invalid"));
    assert_eq!(till.pay(&other, order, "key", "card").await.refusal(), is(404, "not-found"));
    till.database.owner().batch_execute("update products set gateways = '{manual}'").await.unwrap();
    assert_eq!(till.pay(&buyer, order, "key", "card").await.refusal(), is(422, "method-unavailable"));
    till.database
        .owner()
        .batch_execute("update products set gateways = '{mercado-pago}'; update orders set currency = 'EUR'")
        .await
        .unwrap();
    assert_eq!(till.pay(&buyer, order, "key", "pix").await.refusal(), is(422, "method-unavailable"), "not in euros");
    till.database
        .owner()
        .batch_execute("update products set gateways = '{stripe}'; update orders set currency = 'BRL'")
        .await
        .unwrap();
    let short = format!("update orders set expires_at = now() + interval '5 s' where id = '{order}'");
    look::change(&till.database, &short, 1).await;
    assert_eq!(till.pay(&buyer, order, "key", "card").await.refusal(), is(409, "hold-expired"));
    assert_eq!(count(&till.database, "select count(*) from payment_attempts").await, 0);
    assert!(till.gateway.ledger().payments.is_empty());
    till.is(order, "reserved").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_refuses_us_leaves_the_order_as_it_was() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    // Nobody there knows the store's key any more.
    let keys = edge::sealing::SealingKeys::from_json(edge::sealing::DEVELOPMENT_KEYS, edge::Stage::Local).unwrap();
    let stripe = domain::payments::Gateway::Stripe;
    let tenant_id = till.product.described.tenant_id;
    let wrong = br#"{"secret_key":"sk_wrong","webhook_secrets":["whsec_till"]}"#;
    let sealed = keys.seal(&edge::sealing::context(tenant_id, stripe), wrong).unwrap();
    store::payments::save_account(&till.database.app_client().await, tenant_id, stripe, &sealed).await.unwrap();
    assert_eq!(till.pay(&buyer, order, "first", "card").await.refusal(), is(503, "gateway-unavailable"));
    assert_eq!(till.pay(&buyer, order, "first", "card").await.refusal(), is(409, "payment-ended"));
    till.is(order, "reserved").await;
    let pix = till.open_payment(&buyer, order, "second", "pix").await;
    till.gateway.pay(pix).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_number_of_tries_is_bounded() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    for number in 0..domain::limits::ATTEMPTS_PER_ORDER_MAX {
        till.open_payment(&buyer, order, &format!("key-{number}"), "card").await;
    }
    assert_eq!(till.pay(&buyer, order, "one-more", "card").await.refusal(), is(409, "too-many-attempts"));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_without_an_account_has_asked_nobody_for_money() {
    let till = Till::open(Policy::default()).await.restart_workers();
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.database.owner().execute("delete from gateway_accounts where gateway = 'stripe'", &[]).await.unwrap();
    assert_eq!(till.pay(&buyer, order, "first", "card").await.refusal(), is(503, "gateway-unavailable"));
    till.is(order, "reserved").await;
    let pix = till.open_payment(&buyer, order, "second", "pix").await;
    till.gateway.pay(pix).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    till.finish().await;
}
