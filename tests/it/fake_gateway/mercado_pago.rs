//! Mercado Pago's wire format and rules.

use std::time::Duration;

use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;

use super::{Merchant, PIX, pix};
use tests::gateway::{Dialect, Fault, Matcher, PaymentState, RefundState};

#[tokio::test]
async fn a_pix_is_made_searched_and_paid() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let id = pix(&merchant).await;
    let found = merchant.get("/v1/payments/search?external_reference=a-1").await.body;
    assert_eq!((found["paging"]["total"].as_u64(), found["results"][0]["id"].to_string()), (Some(1), id.clone()));
    let none = merchant.get("/v1/payments/search?external_reference=a-2").await.body;
    assert_eq!(none["paging"]["total"], 0);
    let open = &found["results"][0];
    assert_eq!((open["status"].as_str(), open["transaction_amount"].as_f64()), (Some("pending"), Some(10.5)));
    let data = &open["point_of_interaction"]["transaction_data"];
    assert!(data["qr_code"].as_str().unwrap().starts_with("000201"), "{data}");
    merchant.gateway.pay("a-1").unwrap();
    let paid = merchant.get(&format!("/v1/payments/{id}")).await.body;
    assert_eq!((paid["status"].as_str(), paid["status_detail"].as_str()), (Some("approved"), Some("accredited")));
    let cancel = merchant.put(&format!("/v1/payments/{id}"), r#"{"status": "cancelled"}"#).await;
    assert_eq!((cancel.status, cancel.body["cause"][0]["code"].as_u64()), (400, Some(2_063)));
    assert_eq!(merchant.get("/v1/payments/1").await.body["cause"][0]["code"], 2_000);
    let mut events = merchant.events().await;
    events.sort_unstable();
    assert_eq!(events, ["payment.created", "payment.updated"]);
    let entry = merchant.gateway.ledger().payments.remove(0);
    assert_eq!((entry.amount_minor, entry.captured_minor, entry.currency.as_str()), (1_050, 1_050, "BRL"));
    assert_eq!((entry.attempt_id.as_deref(), entry.order_id.as_deref()), (Some("a-1"), Some("o-1")));
}

#[tokio::test]
async fn a_pix_can_be_paid_after_it_was_cancelled_or_ran_out() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let cancelled = pix(&merchant).await;
    let done = merchant.put(&format!("/v1/payments/{cancelled}"), r#"{"status": "cancelled"}"#).await;
    assert_eq!((done.status, done.body["status"].as_str()), (200, Some("cancelled")));
    assert!(merchant.gateway.pay(&cancelled).is_err());
    assert!(merchant.gateway.pay_late(&cancelled).is_ok());
    let ran_out = merchant.post("/v1/payments", "k-2", &PIX.replace("a-1", "a-2")).await.body["id"].to_string();
    merchant.gateway.advance(Duration::from_secs(24 * 3_600));
    let state = merchant.get(&format!("/v1/payments/{ran_out}")).await.body;
    assert_eq!((state["status"].as_str(), state["status_detail"].as_str()), (Some("cancelled"), Some("expired")));
    assert!(merchant.gateway.pay_late("a-2").is_ok());
    let states: Vec<PaymentState> = merchant.gateway.ledger().payments.iter().map(|one| one.state).collect();
    assert_eq!(states, [PaymentState::Captured; 2]);
}

#[tokio::test]
async fn a_time_to_expire_is_read_with_its_offset() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let with = |date: &str| PIX.replace(r#""metadata""#, &format!(r#""date_of_expiration": "{date}", "metadata""#));
    assert_eq!(merchant.post("/v1/payments", "k-2", &with("2020-01-01T00:00:00.000-03:00")).await.status, 400);
    assert_eq!(merchant.post("/v1/payments", "k-3", &with("tomorrow")).await.status, 400);
    assert_eq!(merchant.post("/v1/payments", "k-4", &with("2120-01-01T02:00:00.000Z")).await.status, 400);
    let in_an_hour = OffsetDateTime::now_utc().truncate_to_second() + Duration::from_secs(3_600);
    let written = in_an_hour.format(&Rfc3339).unwrap();
    let got = merchant.post("/v1/payments", "k-5", &with(&written)).await;
    let read = OffsetDateTime::parse(got.body["date_of_expiration"].as_str().unwrap(), &Rfc3339).unwrap();
    assert_eq!((read, read.offset().whole_hours()), (in_an_hour, -3), "{}", got.body);
}

#[tokio::test]
async fn refunds_are_partial_then_full_and_bounded() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let id = pix(&merchant).await;
    let path = format!("/v1/payments/{id}/refunds");
    assert_eq!(merchant.post(&path, "r-0", "{}").await.status, 400);
    merchant.gateway.pay(&id).unwrap();
    let first = merchant.post(&path, "r-1", r#"{"amount": 4.25}"#).await;
    assert_eq!((first.status, first.body["amount"].as_f64()), (201, Some(4.25)));
    let again = merchant.post(&path, "r-1", r#"{"amount": 4.25}"#).await;
    assert_eq!(again.body["id"], first.body["id"]);
    let state = merchant.get(&format!("/v1/payments/{id}")).await.body;
    assert_eq!(
        (state["status"].as_str(), state["status_detail"].as_str()),
        (Some("approved"), Some("partially_refunded"))
    );
    assert_eq!(merchant.post(&path, "r-2", r#"{"amount": 6.26}"#).await.status, 400);
    assert_eq!(merchant.post(&path, "r-3", "").await.body["amount"], 6.25);
    assert_eq!(merchant.get(&format!("/v1/payments/{id}")).await.body["status"], "refunded");
    assert_eq!(merchant.get(&path).await.body.as_array().unwrap().len(), 2);
    let ledger = merchant.gateway.ledger();
    assert_eq!((ledger.payments[0].kept_minor(), ledger.violations.len()), (0, 1));
    assert_eq!(ledger.payments[0].refunds[0].key.as_deref(), Some("r-1"));
}

#[tokio::test]
async fn a_refund_in_process_is_shown_only_to_who_asks_for_it() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let id = pix(&merchant).await;
    merchant.gateway.pay(&id).unwrap();
    merchant.gateway.script(Matcher::any(), Fault::PendingThenSucceeded(200), 1);
    let path = format!("/v1/payments/{id}/refunds");
    assert_eq!(merchant.post(&path, "r-1", "{}").await.status, 400);
    let request = merchant.request(reqwest::Method::POST, &path).body("{}").header("x-idempotency-key", "r-1");
    let shown = super::read(request.header("x-render-in-process-refunds", "true")).await.unwrap();
    assert_eq!(shown.body["status"], "in_process");
    assert!(merchant.gateway.settle().await);
    assert_eq!(merchant.post(&path, "r-1", "{}").await.body["status"], "approved");
    let ledger = merchant.gateway.ledger();
    assert_eq!((ledger.payments[0].refunds.len(), ledger.payments[0].refunds[0].state), (1, RefundState::Succeeded));
}
