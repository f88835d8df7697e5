//! Stripe's wire format and rules.

use std::time::Duration;

use time::OffsetDateTime;

use super::{Got, Merchant, intent, session};
use tests::gateway::{Dialect, PaymentState, ViolationKind};

fn code(got: &Got) -> (u16, &str) {
    (got.status, got.body["error"]["code"].as_str().unwrap_or_default())
}

#[tokio::test]
async fn an_intent_is_paid_and_shows_its_charge_when_that_is_expanded() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = intent(&merchant, "a-1", "").await;
    let path = format!("/v1/payment_intents/{id}");
    let open = merchant.get(&path).await.body;
    assert_eq!((open["status"].as_str(), open["latest_charge"].is_null()), (Some("requires_payment_method"), true));
    merchant.gateway.decline("a-1", "insufficient_funds").unwrap();
    let declined = merchant.get(&path).await.body;
    assert_eq!(declined["last_payment_error"]["decline_code"], "insufficient_funds");
    assert_eq!(declined["status"], "requires_payment_method");
    assert_eq!(merchant.gateway.pay(&id), Ok(id.clone()));
    let paid = merchant.get(&format!("{path}?expand[]=latest_charge.refunds")).await.body;
    assert_eq!((paid["status"].as_str(), paid["amount_received"].as_i64()), (Some("succeeded"), Some(1_050)));
    assert_eq!(paid["latest_charge"]["refunds"]["data"].as_array().unwrap().len(), 0);
    assert!(paid["last_payment_error"].is_null());
    assert_eq!(merchant.get(&format!("{path}?expand[]=customer")).await.status, 400);
    assert_eq!(code(&merchant.get("/v1/payment_intents/pi_1").await), (404, "resource_missing"));
    let events = ["payment_intent.payment_failed", "payment_intent.succeeded"];
    let mut arrived = merchant.events().await;
    arrived.sort_unstable();
    assert_eq!(arrived, events);
}

#[tokio::test]
async fn test_cards_pay_or_are_declined_on_the_spot() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let confirm = |card| format!("amount=100&currency=brl&confirm=true&payment_method={card}");
    let paid = merchant.post("/v1/payment_intents", "k-1", &confirm("pm_card_visa")).await;
    assert_eq!((paid.status, paid.body["status"].as_str()), (200, Some("succeeded")));
    let declined = merchant.post("/v1/payment_intents", "k-2", &confirm("pm_card_chargeDeclined")).await;
    assert_eq!(code(&declined), (402, "card_declined"));
    let error = &declined.body["error"];
    assert_eq!((error["type"].as_str(), error["decline_code"].as_str()), (Some("card_error"), Some("generic_decline")));
    assert_eq!(error["payment_intent"]["status"], "requires_payment_method");
}

#[tokio::test]
async fn authorised_money_is_captured_once_and_cancelled_only_before() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = intent(&merchant, "a-1", "&capture_method=manual").await;
    let capture = format!("/v1/payment_intents/{id}/capture");
    assert_eq!(code(&merchant.post(&capture, "c-0", "").await), (400, "payment_intent_unexpected_state"));
    merchant.gateway.pay("a-1").unwrap();
    assert_eq!(code(&merchant.post(&capture, "c-1", "amount_to_capture=1051").await), (400, "amount_too_large"));
    let captured = merchant.post(&capture, "c-2", "amount_to_capture=1000").await;
    assert_eq!((captured.status, captured.body["amount_received"].as_i64()), (200, Some(1_000)));
    assert!(merchant.gateway.ledger().violations.is_empty());
    assert_eq!(merchant.post(&capture, "c-3", "").await.status, 400);
    let cancel = merchant.post(&format!("/v1/payment_intents/{id}/cancel"), "v-1", "").await;
    assert_eq!(code(&cancel), (400, "payment_intent_unexpected_state"));
    assert_eq!(cancel.body["error"]["payment_intent"]["status"], "succeeded");
    let ledger = merchant.gateway.ledger();
    assert_eq!(ledger.violations[0].kind, ViolationKind::CapturedTwice);
    assert_eq!((ledger.payments[0].captures, ledger.payments[0].captured_minor), (1, 1_000));
    let events = merchant.events().await;
    assert_eq!(events.len(), 2);
    assert!(events.contains(&"payment_intent.amount_capturable_updated".to_owned()), "{events:?}");
}

#[tokio::test]
async fn authorised_money_that_nobody_takes_is_released_after_seven_days() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = intent(&merchant, "a-1", "&capture_method=manual").await;
    merchant.gateway.pay("a-1").unwrap();
    merchant.gateway.advance(Duration::from_secs(7 * 24 * 3_600 - 60));
    assert_eq!(merchant.gateway.ledger().payments[0].state, PaymentState::Authorised);
    merchant.gateway.advance(Duration::from_secs(60));
    let got = merchant.get(&format!("/v1/payment_intents/{id}")).await.body;
    assert_eq!((got["status"].as_str(), got["cancellation_reason"].as_str()), (Some("canceled"), Some("automatic")));
}

#[tokio::test]
async fn a_session_has_an_intent_only_from_the_first_try_and_expires_only_while_open() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = session(&merchant, "a-1", "").await;
    let path = format!("/v1/checkout/sessions/{id}");
    let open = merchant.get(&format!("{path}?expand[]=payment_intent.latest_charge")).await.body;
    assert_eq!((open["status"].as_str(), open["payment_intent"].is_null()), (Some("open"), true));
    assert_eq!(open["amount_total"], 1_050);
    let search = "/v1/payment_intents/search?query=metadata['attempt_id']:'a-1'";
    assert_eq!(merchant.get(search).await.body["data"].as_array().unwrap().len(), 0);
    merchant.gateway.decline("a-1", "generic_decline").unwrap();
    let found = merchant.get(search).await.body["data"][0]["id"].as_str().unwrap().to_owned();
    let cancel = merchant.post(&format!("/v1/payment_intents/{found}/cancel"), "v", "").await;
    assert_eq!(cancel.status, 400, "the session has to be expired instead");
    merchant.gateway.pay("a-1").unwrap();
    let paid = merchant.get(&format!("{path}?expand[]=payment_intent.latest_charge")).await.body;
    assert_eq!((paid["status"].as_str(), paid["payment_status"].as_str()), (Some("complete"), Some("paid")));
    assert_eq!(paid["payment_intent"]["latest_charge"]["paid"], true);
    assert_eq!(merchant.post(&format!("{path}/expire"), "e", "").await.status, 400);
    let other = session(&merchant, "a-2", "").await;
    let expired = merchant.post(&format!("/v1/checkout/sessions/{other}/expire"), "e-2", "").await;
    assert_eq!((expired.body["status"].as_str(), expired.body["url"].is_null()), (Some("expired"), true));
    assert!(merchant.gateway.pay("a-2").is_err());
    assert!(merchant.events().await.contains(&"checkout.session.expired".to_owned()));
}

#[tokio::test]
async fn a_session_runs_out_within_thirty_minutes_to_a_day() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let now = OffsetDateTime::now_utc().unix_timestamp();
    let id = session(&merchant, "a-1", &format!("&expires_at={}", now + 1_800)).await;
    for wrong in [now + 1_000, now + 86_500] {
        let body = format!(
            "mode=payment&success_url=https://a.example.com&expires_at={wrong}&line_items[0][quantity]=1\
             &line_items[0][price_data][currency]=brl&line_items[0][price_data][unit_amount]=5\
             &line_items[0][price_data][product_data][name]=R"
        );
        assert_eq!(merchant.post("/v1/checkout/sessions", &wrong.to_string(), &body).await.status, 400);
    }
    merchant.gateway.advance(Duration::from_secs(1_801));
    assert_eq!(merchant.get(&format!("/v1/checkout/sessions/{id}")).await.body["status"], "expired");
}

#[tokio::test]
async fn refunds_never_exceed_what_was_taken() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = intent(&merchant, "a-1", "").await;
    let refund = |amount: i64| format!("payment_intent={id}&amount={amount}&metadata[refund_id]=r-{amount}");
    assert_eq!(code(&merchant.post("/v1/refunds", "k-0", &refund(1)).await), (400, "payment_intent_unexpected_state"));
    merchant.gateway.pay("a-1").unwrap();
    let first = merchant.post("/v1/refunds", "k-1", &refund(1_000)).await;
    assert_eq!((first.status, first.body["status"].as_str()), (200, Some("succeeded")));
    assert_eq!(merchant.post("/v1/refunds", "k-2", &refund(51)).await.status, 400);
    assert_eq!(merchant.post("/v1/refunds", "k-3", &refund(50)).await.status, 200);
    assert_eq!(code(&merchant.post("/v1/refunds", "k-4", &refund(1)).await), (400, "charge_already_refunded"));
    let listed = merchant.get(&format!("/v1/refunds?payment_intent={id}")).await.body;
    assert_eq!(listed["data"][0]["amount"], 50, "newest first");
    assert_eq!(listed["data"][1]["metadata"]["refund_id"], "r-1000");
    let one = merchant.get(&format!("/v1/refunds/{}", first.body["id"].as_str().unwrap())).await.body;
    assert_eq!(one, first.body);
    let charge = merchant.get(&format!("/v1/charges?payment_intent={id}")).await.body["data"][0].clone();
    assert_eq!((charge["refunded"].as_bool(), charge["amount_refunded"].as_i64()), (Some(true), Some(1_050)));
    let ledger = merchant.gateway.ledger();
    let kinds: Vec<ViolationKind> = ledger.violations.iter().map(|one| one.kind).collect();
    assert_eq!(kinds, [ViolationKind::RefundOverCaptured; 2]);
    assert_eq!((ledger.payments[0].refunded_minor(), ledger.payments[0].kept_minor()), (1_050, 0));
    assert_eq!(ledger.payments[0].refunds[0].refund_id.as_deref(), Some("r-1000"));
    assert_eq!(ledger.payments[0].order_id.as_deref(), Some("o-1"));
}

#[tokio::test]
async fn accounts_see_only_their_own_and_strange_parameters_are_refused() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = intent(&merchant, "a-1", "").await;
    let other = "stripe:other::secret".parse().unwrap();
    assert_eq!(merchant.gateway.add_account(other), "acct_2");
    let url = format!("{}/v1/payment_intents/{id}", merchant.gateway.url(Dialect::Stripe));
    for (key, status) in [("other", 404), ("nobody", 401), ("key", 200)] {
        let got = merchant.client.get(&url).bearer_auth(key).send().await.unwrap();
        assert_eq!(got.status().as_u16(), status, "{key}");
    }
    let strange = merchant.post("/v1/payment_intents", "k", "amount=1&currency=brl&colour=red").await;
    assert_eq!(code(&strange), (400, "parameter_unknown"));
    assert_eq!(merchant.get("/v1/customers").await.status, 404);
}

#[tokio::test]
async fn lists_are_paged_newest_first() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let (first, second) = (session(&merchant, "a-1", "").await, session(&merchant, "a-2", "").await);
    let page = merchant.get("/v1/checkout/sessions?limit=1&status=open&created[gte]=0").await.body;
    assert_eq!((page["data"][0]["id"].as_str(), page["has_more"].as_bool()), (Some(&*second), Some(true)));
    let page = merchant.get(&format!("/v1/checkout/sessions?limit=1&starting_after={second}")).await.body;
    assert_eq!((page["data"][0]["id"].as_str(), page["has_more"].as_bool()), (Some(&*first), Some(false)));
    assert_eq!(page["data"][0]["client_reference_id"], "a-1");
    assert_eq!(merchant.get("/v1/payment_intents").await.body["data"].as_array().unwrap().len(), 0);
}
