//! Events: signatures, tries, and every fault once.

use super::{Merchant, SECRET, intent, pix};
use tests::gateway::{Dialect, Fault, Matcher, signatures};
use tests::server::Request;

fn header<'a>(request: &'a Request, name: &str) -> &'a str {
    &request.headers.iter().find(|(own, _)| own == name).unwrap_or_else(|| panic!("no {name}")).1
}

/// The part of a signature header with this name.
fn part(header: &str, name: &str) -> i64 {
    header.split(',').find_map(|part| part.strip_prefix(name)?.strip_prefix('=')).unwrap().parse().unwrap()
}

fn age(request: &Request) -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp() - part(header(request, "stripe-signature"), "t")
}

fn is_signed(request: &Request, secret: &str) -> bool {
    let (given, body) = (header(request, "stripe-signature"), std::str::from_utf8(&request.body).unwrap());
    given == signatures::stripe(secret, part(given, "t"), body)
}

/// A merchant whose PaymentIntent was paid with a fault for the event.
async fn paid(fault: Option<Fault>) -> Merchant {
    let merchant = Merchant::new(Dialect::Stripe).await;
    intent(&merchant, "a-1", "").await;
    if let Some(fault) = fault {
        merchant.gateway.script(Matcher::event("payment_intent.succeeded"), fault, 1);
    }
    merchant.gateway.pay("a-1").unwrap();
    assert!(merchant.gateway.settle().await);
    merchant
}

#[tokio::test]
async fn stripes_events_are_signed_over_time_and_body() {
    let merchant = paid(None).await;
    let inbox = merchant.inbox.lock().unwrap().clone();
    assert_eq!(inbox.len(), 1);
    assert!(is_signed(&inbox[0], SECRET) && !is_signed(&inbox[0], "another"));
    assert!((0..10).contains(&age(&inbox[0])));
    let event: serde_json::Value = serde_json::from_slice(&inbox[0].body).unwrap();
    assert_eq!(
        (event["object"].as_str(), event["data"]["object"]["status"].as_str()),
        (Some("event"), Some("succeeded"))
    );
}

#[tokio::test]
async fn mercado_pagos_events_are_signed_over_the_query_and_the_request_id() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let id = pix(&merchant).await;
    assert!(merchant.gateway.settle().await);
    let inbox = merchant.inbox.lock().unwrap().clone();
    assert_eq!(inbox[0].path, format!("/hooks?store=1&data.id={id}&type=payment"));
    let given = header(&inbox[0], "x-signature");
    let again = signatures::mercado_pago(SECRET, &id, header(&inbox[0], "x-request-id"), part(given, "ts"));
    assert_eq!(given, again);
}

#[tokio::test]
async fn an_event_that_is_not_taken_is_sent_again_and_then_given_up() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    intent(&merchant, "a-1", "").await;
    merchant.answers.lock().unwrap().extend([500, 302, 200]);
    merchant.gateway.pay("a-1").unwrap();
    assert!(merchant.gateway.settle().await);
    let statuses: Vec<Option<u16>> = merchant.gateway.deliveries().iter().map(|one| one.status).collect();
    assert_eq!(statuses, [Some(500), Some(302), Some(200)]);
    merchant.answers.lock().unwrap().extend([503; 20]);
    merchant.gateway.refund_in_dashboard("a-1", None).unwrap();
    assert!(merchant.gateway.settle().await);
    let last = merchant.gateway.deliveries().pop().unwrap();
    assert_eq!((last.attempt, last.status, last.kind.as_str()), (6, Some(503), "charge.refunded"));
    assert_eq!(merchant.gateway.webhooks_pending(), 0);
}

#[tokio::test]
async fn duplicates_are_the_same_event() {
    let merchant = paid(Some(Fault::Duplicate(2))).await;
    let inbox = merchant.inbox.lock().unwrap();
    assert!(inbox.len() == 3 && inbox.iter().all(|request| request.body == inbox[0].body));
}

#[tokio::test]
async fn an_event_may_be_late_or_never_come() {
    let began = std::time::Instant::now();
    let merchant = paid(Some(Fault::Late(200))).await;
    assert_eq!(merchant.inbox.lock().unwrap().len(), 1);
    assert!(began.elapsed().as_millis() >= 200);
    let merchant = paid(Some(Fault::Never)).await;
    assert!(merchant.inbox.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_event_may_let_another_one_pass() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    intent(&merchant, "a-1", "").await;
    merchant.gateway.script(Matcher::event("payment_intent.payment_failed"), Fault::Reordered, 1);
    merchant.gateway.decline("a-1", "generic_decline").unwrap();
    merchant.gateway.pay("a-1").unwrap();
    assert_eq!(merchant.events().await, ["payment_intent.succeeded", "payment_intent.payment_failed"]);
}

#[tokio::test]
async fn an_event_may_arrive_before_the_answer_of_its_call() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    merchant.gateway.script(Matcher::event("payment.created"), Fault::Early, 1);
    pix(&merchant).await;
    assert_eq!(merchant.inbox.lock().unwrap().len(), 1, "no waiting was needed");
}

#[tokio::test]
async fn an_event_may_be_badly_signed_or_old() {
    let merchant = paid(Some(Fault::BadlySigned)).await;
    assert!(!is_signed(&merchant.inbox.lock().unwrap()[0], SECRET));
    let merchant = paid(Some(Fault::OldTimestamp)).await;
    let inbox = merchant.inbox.lock().unwrap();
    assert!(is_signed(&inbox[0], SECRET) && age(&inbox[0]) >= 600);
}
