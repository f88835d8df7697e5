//! The Stripe adapter before localstripe, which somebody else wrote to stand in for Stripe. It has neither idempotency
//! keys nor Checkout Sessions, and serves no list of payments to find one in; those are tested on the fake gateway.

use std::time::Duration;

use domain::payments::{AttemptState, CaptureMode, Gateway, Instructions, Method, Observed, RefundState};
use gateways::{Credentials, Endpoints, Failure, GatewayClient, Gateways, NewPayment, NewRefund, PaymentGateway};
use serde_json::{Value, json};
use tests::gateway::Dialect;
use tests::look::count;
use tests::till::{Policy, STRIPE_SECRET, Till};
use time::OffsetDateTime;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

const KEY: &str = "sk_test_oracles";
const CARD: &str = "4242424242424242";
/// Declined when it is charged, not before.
const DECLINED_CARD: &str = "4000000000000341";
const AMOUNT: i64 = 1_050;

/// localstripe sends an event after a second.
const EVENT_WITHIN: Duration = Duration::from_secs(15);

fn url() -> String {
    crate::told("TIRADA_TEST_LOCALSTRIPE_URL")
}

fn client(key: &str) -> GatewayClient {
    let account = json!({ "secret_key": key, "webhook_secrets": ["whsec_1"] }).to_string();
    let account = Credentials::parse(Gateway::Stripe, account.as_bytes()).unwrap();
    Gateways::new(Endpoints { stripe: url(), ..Endpoints::default() }).unwrap().client(&account).unwrap()
}

async fn create(client: &GatewayClient, attempt_id: Uuid, capture: CaptureMode) -> Observed {
    let new = NewPayment {
        attempt_id,
        order_id: Uuid::now_v7(),
        tenant_id: Uuid::now_v7(),
        key: &attempt_id.to_string(),
        amount_minor: AMOUNT,
        currency: "BRL",
        method: Method::Card,
        capture,
        expires_at: OffsetDateTime::now_utc() + time::Duration::minutes(15),
        // It refuses payments that have one.
        description: "",
        return_url: None,
        payer_email: None,
    };
    client.create(&new).await.unwrap()
}

async fn refund(client: &GatewayClient, payment_id: &str, amount_minor: i64) -> Uuid {
    let refund_id = Uuid::now_v7();
    let new = NewRefund { refund_id, amount_minor, currency: "BRL", key: &refund_id.to_string() };
    let seen = client.refund(payment_id, &new).await.unwrap();
    assert_eq!(
        (seen.refund_id, seen.amount_minor, seen.state),
        (Some(refund_id), amount_minor, RefundState::Succeeded)
    );
    refund_id
}

/// What a buyer's browser and the store's settings do there, which the adapter has no part in.
async fn post(path: &str, form: &[(&str, &str)]) -> (u16, Value) {
    let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(form).finish();
    let http = reqwest::Client::builder().no_proxy().timeout(EVENT_WITHIN).build().unwrap();
    let request = http.post(format!("{}{path}", url())).bearer_auth(KEY).body(body);
    let answer = request.header("content-type", "application/x-www-form-urlencoded").send().await.unwrap();
    let status = answer.status().as_u16();
    (status, serde_json::from_str(&answer.text().await.unwrap()).unwrap_or_default())
}

/// The buyer pays with a card. The status of the answer.
async fn pay(payment_id: &str, number: &str) -> u16 {
    let card = [("card[exp_month]", "12"), ("card[exp_year]", "2090"), ("card[cvc]", "123")];
    let form = [[("type", "card"), ("card[number]", number)].as_slice(), card.as_slice()].concat();
    let (status, method) = post("/v1/payment_methods", &form).await;
    assert_eq!(status, 200, "{method}");
    let path = format!("/v1/payment_intents/{payment_id}");
    let (status, intent) = post(&path, &[("payment_method", method["id"].as_str().unwrap())]).await;
    assert_eq!(status, 200, "{intent}");
    post(&format!("{path}/confirm"), &[]).await.0
}

fn is(seen: &Observed, state: AttemptState, captured_minor: i64, refunded_minor: i64) {
    assert_eq!(
        (seen.state, seen.captured_minor, seen.refunded_minor),
        (state, captured_minor, refunded_minor),
        "{seen:?}"
    );
    assert_eq!((seen.amount_minor, seen.currency.as_str()), (AMOUNT, "BRL"));
}

#[tokio::test]
async fn a_payment_is_made_paid_and_given_back_in_parts() {
    let (client, attempt_id) = (client(KEY), Uuid::now_v7());
    let made = create(&client, attempt_id, CaptureMode::Automatic).await;
    is(&made, AttemptState::Open, 0, 0);
    assert_eq!(made.attempt_id, Some(attempt_id));
    assert!(matches!(made.instructions, Some(Instructions::ClientSecret { .. })), "{made:?}");
    assert_eq!(client.fetch(&made.payment_id).await.unwrap(), made);

    assert_eq!(pay(&made.payment_id, CARD).await, 200);
    let paid = client.fetch(&made.payment_id).await.unwrap();
    is(&paid, AttemptState::Captured, AMOUNT, 0);
    assert_eq!((paid.attempt_id, paid.instructions, paid.refunds), (Some(attempt_id), None, vec![]));

    let first = refund(&client, &made.payment_id, 400).await;
    is(&client.fetch(&made.payment_id).await.unwrap(), AttemptState::Captured, AMOUNT, 400);
    let rest = refund(&client, &made.payment_id, AMOUNT - 400).await;
    let seen = client.fetch(&made.payment_id).await.unwrap();
    is(&seen, AttemptState::Captured, AMOUNT, AMOUNT);
    let mut refunds: Vec<_> = seen.refunds.iter().map(|refund| (refund.refund_id, refund.amount_minor)).collect();
    refunds.sort();
    assert_eq!(refunds, [(Some(first), 400), (Some(rest), AMOUNT - 400)]);

    let voided = client.void(&made.payment_id, "void-paid").await.unwrap();
    is(&voided, AttemptState::Captured, AMOUNT, AMOUNT);
}

#[tokio::test]
async fn authorised_money_is_taken_once() {
    let client = client(KEY);
    let made = create(&client, Uuid::now_v7(), CaptureMode::Manual).await;
    assert_eq!(pay(&made.payment_id, CARD).await, 200);
    is(&client.fetch(&made.payment_id).await.unwrap(), AttemptState::Authorised, 0, 0);
    for key in ["capture", "capture-again"] {
        is(&client.capture(&made.payment_id, AMOUNT, key).await.unwrap(), AttemptState::Captured, AMOUNT, 0);
    }
    refund(&client, &made.payment_id, AMOUNT).await;
    is(&client.fetch(&made.payment_id).await.unwrap(), AttemptState::Captured, AMOUNT, AMOUNT);
}

#[tokio::test]
async fn what_is_called_off_is_never_paid() {
    let client = client(KEY);
    for is_authorised in [false, true] {
        let made = create(&client, Uuid::now_v7(), CaptureMode::Manual).await;
        if is_authorised {
            assert_eq!(pay(&made.payment_id, CARD).await, 200);
        }
        for key in ["void", "void-again"] {
            is(&client.void(&made.payment_id, key).await.unwrap(), AttemptState::Cancelled, 0, 0);
        }
        is(&client.fetch(&made.payment_id).await.unwrap(), AttemptState::Cancelled, 0, 0);
        let (status, _) = post(&format!("/v1/payment_intents/{}/confirm", made.payment_id), &[]).await;
        assert_eq!(status, 400, "{is_authorised}");
    }
}

#[tokio::test]
async fn a_declined_card_leaves_the_payment_open() {
    let client = client(KEY);
    let made = create(&client, Uuid::now_v7(), CaptureMode::Automatic).await;
    assert_eq!(pay(&made.payment_id, DECLINED_CARD).await, 402);
    let seen = client.fetch(&made.payment_id).await.unwrap();
    is(&seen, AttemptState::Open, 0, 0);
    assert_eq!(seen.decline_code.as_deref(), Some("card_declined"));
    is(&client.void(&made.payment_id, "void").await.unwrap(), AttemptState::Cancelled, 0, 0);
}

#[tokio::test]
async fn refusals_are_definite() {
    let unknown = client(KEY).fetch("pi_unknown").await;
    assert!(matches!(unknown, Err(Failure::NotFound)), "{unknown:?}");
    let stranger = client("pk_test_oracles").fetch("pi_unknown").await;
    assert!(matches!(stranger, Err(Failure::Refused { status: 401, .. })), "{stranger:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn its_events_are_taken_by_our_webhook() {
    let till = Till::open(Policy::default()).await;
    let serving = till.webhook.serve().await;
    let to = format!("http://{}{}", serving.address, till.webhook_path(Dialect::Stripe));
    let form = [("url", to.as_str()), ("secret", STRIPE_SECRET), ("events[]", "payment_intent.succeeded")];
    let (status, _) = post(&format!("/_config/webhooks/{}", Uuid::now_v7()), &form).await;
    assert_eq!(status, 200);

    let client = client(KEY);
    let made = create(&client, Uuid::now_v7(), CaptureMode::Automatic).await;
    assert_eq!(pay(&made.payment_id, CARD).await, 200);
    let heard = format!("select count(*) from inbox where payment_id = '{}'", made.payment_id);
    let deadline = Instant::now() + EVENT_WITHIN;
    while count(&till.database, &heard).await == 0 {
        assert!(Instant::now() < deadline, "no event of {} in {EVENT_WITHIN:?}", made.payment_id);
        sleep(Duration::from_millis(50)).await;
    }
    till.finish().await;
}
