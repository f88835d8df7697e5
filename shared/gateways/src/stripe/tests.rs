mod find;

use domain::payments::{CaptureMode, DisputeState, Instructions};
use secrecy::SecretString;
use serde_json::{Value, json};
use uuid::Uuid;

use super::*;
use crate::test_server::{ATTEMPT, Received, Reply, TestServer, new_payment};
use crate::{Credentials, GatewayClient, PaymentGateway, StripeCredentials};

fn client(server: &TestServer) -> GatewayClient {
    server.client(&credentials("sk_test_1"))
}

fn credentials(key: &str) -> Credentials {
    let secret = |text: &str| SecretString::from(text);
    Credentials::Stripe(StripeCredentials { secret_key: secret(key), webhook_secrets: vec![secret("whsec_1")] })
}

/// "The PaymentIntent object", as far as it is read and a little more.
fn intent(status: &str) -> Value {
    json!({ "id": "pi_1", "object": "payment_intent", "amount": 1050, "amount_received": 0, "currency": "brl",
        "client_secret": "pi_1_secret_x", "last_payment_error": null, "latest_charge": null, "livemode": false,
        "metadata": { "attempt_id": ATTEMPT.to_string(), "method": "card" }, "status": status })
}

fn captured(charge: Value) -> Value {
    let mut intent = intent("succeeded");
    intent["amount_received"] = json!(1050);
    intent["latest_charge"] = charge;
    intent
}

/// "The Checkout Session object".
fn session(status: &str, intent: Value) -> Value {
    json!({ "id": "cs_test_1", "object": "checkout.session", "amount_total": 1050, "currency": "brl",
        "client_reference_id": ATTEMPT.to_string(), "metadata": {}, "payment_intent": intent, "status": status,
        "url": if status == "open" { json!("https://checkout.example/c/pay/cs_test_1") } else { Value::Null } })
}

fn observed(value: Value) -> Result<Observed, Failure> {
    let seen = if value["object"] == "checkout.session" {
        serde_json::from_value::<Session>(value).unwrap().seen()
    } else {
        serde_json::from_value::<Intent>(value).unwrap().seen()
    };
    seen.map(|seen| seen.observed)
}

fn error(status: u16, r#type: &str, code: &str) -> Reply {
    Reply::error(status, &json!({ "error": { "type": r#type, "code": code, "message": "No: 'sk_test'" } }).to_string())
}

#[test]
fn states_of_an_intent() {
    for (status, expected) in [
        ("requires_payment_method", AttemptState::Open),
        ("requires_confirmation", AttemptState::Open),
        ("requires_action", AttemptState::Open),
        ("processing", AttemptState::Processing),
        ("requires_capture", AttemptState::Authorised),
        ("succeeded", AttemptState::Captured),
        ("canceled", AttemptState::Cancelled),
    ] {
        let observed = observed(intent(status)).unwrap();
        assert_eq!(observed.state, expected, "{status}");
        assert_eq!(observed.attempt_id, Some(ATTEMPT));
        assert_eq!((observed.amount_minor, observed.currency.as_str()), (1_050, "BRL"));
        assert_eq!(observed.instructions.is_some(), expected == AttemptState::Open);
    }
    assert!(matches!(observed(intent("on_the_moon")), Err(Failure::Unknown(_))));
}

#[test]
fn a_declined_try_is_told_while_the_intent_is_open() {
    let mut declined = intent("requires_payment_method");
    declined["last_payment_error"] = json!({ "code": "card_declined", "decline_code": "insufficient_funds" });
    assert_eq!(observed(declined.clone()).unwrap().decline_code.as_deref(), Some("insufficient_funds"));
    declined["last_payment_error"] = json!({ "code": "expired_card" });
    assert_eq!(observed(declined).unwrap().decline_code.as_deref(), Some("expired_card"));
}

#[test]
fn states_of_a_session() {
    for (status, intent_status, expected) in [
        ("open", None, AttemptState::Open),
        ("open", Some("requires_payment_method"), AttemptState::Open),
        ("open", Some("succeeded"), AttemptState::Captured),
        ("expired", None, AttemptState::Cancelled),
        ("expired", Some("canceled"), AttemptState::Cancelled),
        ("expired", Some("succeeded"), AttemptState::Captured),
        ("complete", Some("succeeded"), AttemptState::Captured),
        ("complete", Some("processing"), AttemptState::Processing),
        ("complete", Some("requires_capture"), AttemptState::Authorised),
        ("complete", Some("requires_payment_method"), AttemptState::Open),
    ] {
        let value = session(status, intent_status.map_or(Value::Null, intent));
        let observed = observed(value).unwrap();
        assert_eq!(observed.state, expected, "{status} {intent_status:?}");
        assert_eq!(observed.payment_id, "cs_test_1");
        assert_eq!(observed.attempt_id, Some(ATTEMPT));
        assert!(!matches!(observed.instructions, Some(Instructions::ClientSecret { .. })));
    }
    for value in [session("complete", Value::Null), session("?", Value::Null), session("open", json!("pi_1"))] {
        assert!(matches!(observed(value), Err(Failure::Unknown(_))));
    }
}

#[test]
fn a_released_authorisation_is_no_refund() {
    let mut cancelled = intent("canceled");
    cancelled["latest_charge"] = json!({ "amount_refunded": 1050, "disputed": false });
    assert_eq!(observed(cancelled).unwrap().refunded_minor, 0);
}

#[test]
fn the_same_attempt_gives_the_same_form() {
    let card = requests::intent(&new_payment(Method::Card));
    assert_eq!(card, requests::intent(&new_payment(Method::Card)));
    assert_eq!(
        card,
        "amount=1050&currency=brl&capture_method=automatic\
         &metadata%5Battempt_id%5D=01900000-0000-7000-8000-000000000001\
         &metadata%5Border_id%5D=00000000-0000-0000-0000-000000000002\
         &metadata%5Btenant_id%5D=00000000-0000-0000-0000-000000000003\
         &metadata%5Bmethod%5D=card&description=Numbers+7+%26+77"
    );
    let new = NewPayment { capture: CaptureMode::Manual, ..new_payment(Method::Checkout) };
    let form = requests::session(&new).unwrap();
    let pairs: Vec<(String, String)> = form_urlencoded::parse(form.as_bytes()).into_owned().collect();
    let get = |name: &str| pairs.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str());
    assert_eq!(get("expires_at"), Some("1896093060"), "31 minutes after the hold");
    assert_eq!(get("payment_intent_data[capture_method]"), Some("manual"));
    assert_eq!(get("payment_intent_data[metadata][attempt_id]"), Some(ATTEMPT.to_string().as_str()));
    assert_eq!(get("line_items[0][price_data][unit_amount]"), Some("1050"));
    assert_eq!(get("success_url"), new.return_url);
    let nowhere = NewPayment { return_url: None, ..new };
    assert!(matches!(requests::session(&nowhere), Err(Failure::Refused { .. })));
}

#[tokio::test]
async fn a_conflict_is_repeated_with_the_same_key_and_bytes() {
    let server = TestServer::start(|n, _| match n {
        0 => error(409, "idempotency_error", "idempotency_key_in_use"),
        1 => Reply::Close,
        _ => Reply::ok(intent("requires_payment_method").to_string()),
    });
    let server = server.await;
    let observed = client(&server).create(&new_payment(Method::Card)).await.unwrap();
    assert_eq!(observed.state, AttemptState::Open);
    assert_eq!(observed.instructions, Some(Instructions::ClientSecret { client_secret: "pi_1_secret_x".into() }));
    let received = server.received();
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|one| *one == received[0]), "{received:?}");
    assert_eq!(received[0].line, "POST /v1/payment_intents");
    assert_eq!(received[0].header("idempotency-key"), Some("pay-1"));
    assert_eq!(received[0].header("stripe-version"), Some("2026-02-25.clover"));
    assert_eq!(received[0].header("authorization"), Some("Bearer sk_test_1"));
}

#[tokio::test]
async fn what_is_not_answered_well_is_unknown_after_three_requests() {
    for (status, headers, requests) in [
        (500, &[][..], 3),
        (503, &[("stripe-should-retry", "false")][..], 1),
        (500, &[("idempotent-replayed", "true")][..], 1),
        (429, &[][..], 1),
        (429, &[("stripe-should-retry", "true")][..], 3),
        (302, &[("location", "/elsewhere")][..], 1),
    ] {
        let server = TestServer::start(move |_, _| Reply::Answer(status, headers, "{}".into())).await;
        let failure = client(&server).create(&new_payment(Method::Card)).await.unwrap_err();
        assert!(matches!(failure, Failure::Unknown(_)), "{failure:?}");
        assert_eq!(server.received().len(), requests, "{status} {headers:?}");
    }
}

#[tokio::test]
async fn silence_slowness_and_floods_end_in_time_as_unknown() {
    for reply in [|| Reply::Hang, || Reply::Slow, || Reply::Endless, || Reply::Close, || Reply::ok("{\"id\": \"pi")] {
        let server = TestServer::start(move |_, _| reply()).await;
        let started = std::time::Instant::now();
        let failure = client(&server).create(&new_payment(Method::Card)).await.unwrap_err();
        assert!(matches!(failure, Failure::Unknown(_)), "{failure:?}");
        assert!(started.elapsed().as_millis() < 2_000, "{:?}", started.elapsed());
        assert!(!format!("{failure:?} {failure}").contains("127.0.0.1"), "{failure:?}");
    }
}

#[tokio::test]
async fn a_flood_ends_at_its_bound_and_not_by_the_clock() {
    let server = TestServer::start(|_, _| Reply::Endless).await;
    let failure = client(&server).fetch("pi_1").await.unwrap_err();
    assert_eq!(failure.to_string(), "unknown: the answer is too large");
}

#[tokio::test]
async fn definite_answers_are_told_apart() {
    let ask = async |reply: fn() -> Reply| {
        let server = TestServer::start(move |_, _| reply()).await;
        let failure = client(&server).fetch("pi_1").await.unwrap_err();
        assert_eq!(server.received().len(), 1);
        format!("{failure:?}")
    };
    let declined = ask(|| error(402, "card_error", "card_declined")).await;
    assert_eq!(declined, r#"Declined { code: "card_declined" }"#);
    let refused = ask(|| error(400, "invalid_request_error", "parameter_unknown")).await;
    assert_eq!(refused, r#"Refused { status: 400, code: "parameter_unknown" }"#);
    assert_eq!(ask(|| error(404, "invalid_request_error", "resource_missing")).await, "NotFound");
    assert!(ask(|| error(400, "idempotency_error", "x")).await.starts_with("Unknown"), "of the key's first use");
    assert!(ask(|| Reply::error(404, "<html>")).await.starts_with("Unknown"), "somebody on the way");
}

#[tokio::test]
async fn a_payment_shows_its_refunds_and_disputes() {
    let server = TestServer::start(|_, request| {
        let refund = |id: &str, status: &str| json!({ "id": id, "amount": 50, "status": status, "metadata": {} });
        Reply::ok(match request.line.as_str() {
            line if line.contains("/v1/payment_intents/pi_1") => {
                let refunds = json!({ "data": [refund("re_2", "pending")], "has_more": true });
                captured(json!({ "amount_refunded": 100, "disputed": true, "refunds": refunds })).to_string()
            }
            line if line.contains("/v1/disputes") => {
                json!({ "data": [{ "id": "du_1", "amount": 1050, "status": "lost" }], "has_more": false }).to_string()
            }
            line if line.contains("starting_after=re_2") => {
                json!({ "data": [refund("re_1", "succeeded")], "has_more": false }).to_string()
            }
            _ => json!({ "data": [refund("re_2", "pending")], "has_more": true }).to_string(),
        })
    });
    let server = server.await;
    let observed = client(&server).fetch("pi_1").await.unwrap();
    assert_eq!((observed.captured_minor, observed.refunded_minor), (1_050, 100));
    let refunds: Vec<_> = observed.refunds.iter().map(|one| (one.gateway_refund_id.as_str(), one.state)).collect();
    assert_eq!(refunds, [("re_2", RefundState::Pending), ("re_1", RefundState::Succeeded)]);
    assert_eq!(observed.disputes[0].state, DisputeState::Lost);
    assert_eq!(server.received().len(), 4);
}

#[tokio::test]
async fn a_list_that_does_not_end_is_not_half_read() {
    let server = TestServer::start(|_, request| {
        let refund = json!({ "id": "re_1", "amount": 1, "status": "succeeded" });
        Reply::ok(match request.line.contains("payment_intents") {
            true => captured(json!({ "amount_refunded": 1, "disputed": false })).to_string(),
            false => json!({ "data": [refund], "has_more": true }).to_string(),
        })
    });
    let server = server.await;
    assert!(matches!(client(&server).fetch("pi_1").await, Err(Failure::Unknown(_))));
    assert_eq!(server.received().len(), 1 + PAGES_MAX);
}

#[tokio::test]
async fn ids_that_cannot_be_theirs_are_not_asked_for() {
    let server = TestServer::start(|_, _| Reply::Close).await;
    for id in ["", "../refunds", "pi_1?x=1", "cs_/", "pi 1"] {
        assert!(matches!(client(&server).fetch(id).await, Err(Failure::NotFound)), "{id}");
        assert!(matches!(client(&server).void(id, "k").await, Err(Failure::NotFound)), "{id}");
    }
    assert_eq!(server.received(), []);
}

fn is_post(request: &Received, end: &str) -> bool {
    request.line.starts_with("POST ") && request.line.ends_with(end)
}

#[tokio::test]
async fn voiding_what_was_paid_answers_how_it_is() {
    let server = TestServer::start(|_, request| match is_post(request, "/cancel") {
        true => error(400, "invalid_request_error", "payment_intent_unexpected_state"),
        false => Reply::ok(captured(json!({ "disputed": false, "refunds": { "data": [] } })).to_string()),
    });
    let server = server.await;
    assert_eq!(client(&server).void("pi_1", "void-1").await.unwrap().state, AttemptState::Captured);
}

#[tokio::test]
async fn a_stored_refusal_does_not_keep_a_payment_open() {
    let server = TestServer::start(|_, request| match request.header("idempotency-key") {
        Some(_) => Reply::Answer(500, &[("idempotent-replayed", "true")], "{}".into()),
        None if is_post(request, "/cancel") => Reply::ok(intent("canceled").to_string()),
        None => Reply::ok(intent("requires_payment_method").to_string()),
    });
    let server = server.await;
    assert_eq!(client(&server).void("pi_1", "void-1").await.unwrap().state, AttemptState::Cancelled);
    assert_eq!(server.received().len(), 3);
}

#[tokio::test]
async fn a_session_that_waits_for_a_capture_is_cancelled_by_its_intent() {
    let server = TestServer::start(|n, request| match request.line.as_str() {
        "POST /v1/checkout/sessions/cs_test_1/expire" => error(400, "invalid_request_error", "resource_invalid"),
        "POST /v1/payment_intents/pi_1/cancel" => Reply::ok(intent("canceled").to_string()),
        _ if n == 1 => Reply::ok(session("complete", intent("requires_capture")).to_string()),
        _ => Reply::ok(session("complete", intent("canceled")).to_string()),
    });
    let server = server.await;
    let observed = client(&server).void("cs_test_1", "void-1").await.unwrap();
    assert_eq!((observed.payment_id.as_str(), observed.state), ("cs_test_1", AttemptState::Cancelled));
    let keys: Vec<_> =
        server.received().iter().filter_map(|one| one.header("idempotency-key").map(str::to_owned)).collect();
    assert_eq!(keys, ["void-1", "void-1-cancel"]);
}

#[tokio::test]
async fn a_session_is_captured_and_refunded_by_its_intent() {
    let server = TestServer::start(|_, request| match request.line.as_str() {
        "POST /v1/refunds" => Reply::ok(
            json!({ "id": "re_1", "amount": 50, "status": "pending",
                "metadata": { "refund_id": Uuid::from_u128(9).to_string() } })
            .to_string(),
        ),
        "POST /v1/payment_intents/pi_1/capture" => Reply::ok(captured(Value::Null).to_string()),
        _ => Reply::ok(session("complete", captured(json!({ "refunds": { "data": [] } }))).to_string()),
    });
    let server = server.await;
    let observed = client(&server).capture("cs_test_1", 1_050, "capture-1").await.unwrap();
    assert_eq!((observed.payment_id.as_str(), observed.captured_minor), ("cs_test_1", 1_050));
    let refund = NewRefund { refund_id: Uuid::from_u128(9), amount_minor: 50, currency: "BRL", key: "refund-1" };
    let refunded = client(&server).refund("cs_test_1", &refund).await.unwrap();
    assert_eq!((refunded.refund_id, refunded.state), (Some(Uuid::from_u128(9)), RefundState::Pending));
    let received = server.received();
    assert!(received.last().unwrap().body.starts_with("payment_intent=pi_1&amount=50&metadata"));
}
