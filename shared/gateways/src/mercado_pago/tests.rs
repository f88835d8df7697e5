use domain::payments::{DisputeState, Instructions, Method as PayBy, RefundState};
use serde_json::{Value, json};
use time::macros::datetime;

use super::*;
use crate::test_server::{ATTEMPT, Reply, TestServer, new_payment};
use crate::{Credentials, GatewayClient, MercadoPagoCredentials, PaymentGateway};

fn client(server: &TestServer) -> GatewayClient {
    let secret = |text: &str| SecretString::from(text);
    server.client(&Credentials::MercadoPago(MercadoPagoCredentials {
        access_token: secret("APP_USR-1"),
        webhook_secrets: vec![secret("s")],
    }))
}

/// A payment as the reference shows it, as far as it is read and a little more.
fn payment(status: &str, detail: &str) -> String {
    with(status, detail, |_| {})
}

fn with(status: &str, detail: &str, change: impl FnOnce(&mut Value)) -> String {
    let mut payment = json!({ "id": 1234567890, "status": status, "status_detail": detail, "currency_id": "BRL",
        "transaction_amount": 10.5, "transaction_amount_refunded": 0, "payment_method_id": "pix",
        "external_reference": ATTEMPT.to_string(), "date_of_expiration": "2030-01-31T09:31:00.000-03:00",
        "point_of_interaction": { "type": "PIX", "transaction_data": { "qr_code": "000201", "qr_code_base64": "iVB" } },
        "refunds": [] });
    change(&mut payment);
    payment.to_string()
}

fn observed(text: &str) -> Result<Observed, Failure> {
    serde_json::from_str::<Payment>(text).unwrap().observed()
}

#[test]
fn states_of_a_payment() {
    for (status, detail, expected, dispute) in [
        ("pending", "pending_waiting_transfer", AttemptState::Open, None),
        ("in_process", "pending_contingency", AttemptState::Processing, None),
        ("authorized", "pending_capture", AttemptState::Authorised, None),
        ("approved", "accredited", AttemptState::Captured, None),
        ("refunded", "refunded", AttemptState::Captured, None),
        ("rejected", "cc_rejected_other_reason", AttemptState::Declined, None),
        ("cancelled", "expired", AttemptState::Cancelled, None),
        ("in_mediation", "pending", AttemptState::Captured, Some(DisputeState::Open)),
        ("charged_back", "in_process", AttemptState::Captured, Some(DisputeState::Open)),
        ("charged_back", "reimbursed", AttemptState::Captured, Some(DisputeState::Won)),
        ("charged_back", "settled", AttemptState::Captured, Some(DisputeState::Lost)),
    ] {
        let observed = observed(&payment(status, detail)).unwrap();
        assert_eq!(observed.state, expected, "{status}");
        assert_eq!(observed.disputes.first().map(|dispute| dispute.state), dispute, "{status} {detail}");
        assert_eq!(observed.attempt_id, Some(ATTEMPT));
        assert_eq!((observed.payment_id.as_str(), observed.amount_minor), ("1234567890", 1_050));
        let captured = if expected == AttemptState::Captured { 1_050 } else { 0 };
        assert_eq!(observed.captured_minor, captured);
        assert_eq!(observed.instructions.is_some(), expected == AttemptState::Open);
    }
    for (status, detail) in [("charged_back", "?"), ("lost", ""), ("", "")] {
        assert!(matches!(observed(&payment(status, detail)), Err(Failure::Unknown(_))), "{status} {detail}");
    }
    assert_eq!(observed(&payment("rejected", "by_bank")).unwrap().decline_code.as_deref(), Some("by_bank"));
}

#[test]
fn amounts_are_read_from_their_text() {
    for (text, expected) in
        [("10", 1_000), ("0.1", 10), ("1.2345678E7", 1_234_567_800), ("90071992547409.93", 9_007_199_254_740_993)]
    {
        let text = payment("approved", "accredited")
            .replace("\"transaction_amount\":10.5", &format!("\"transaction_amount\":{text}"));
        assert_eq!(observed(&text).unwrap().amount_minor, expected);
    }
    let odd = payment("approved", "accredited").replace("\"transaction_amount\":10.5", "\"transaction_amount\":10.505");
    assert!(matches!(observed(&odd), Err(Failure::Unknown(_))));
}

#[test]
fn refunds_are_counted_and_listed() {
    let text = with("approved", "partially_refunded", |payment| {
        payment["transaction_amount_refunded"] = json!(0.5);
        payment["refunds"] = json!([{ "id": 7, "amount": 0.5, "status": "approved" },
            { "id": 8, "amount": 1, "status": "in_process" }, { "id": 9, "amount": 2, "status": "rejected" }]);
    });
    let observed_one = observed(&text).unwrap();
    assert_eq!(observed_one.refunded_minor, 50);
    let refunds: Vec<_> = observed_one.refunds.iter().map(|refund| (refund.amount_minor, refund.state)).collect();
    let expected = [(50, RefundState::Succeeded), (100, RefundState::Pending), (200, RefundState::Failed)];
    assert_eq!(refunds, expected);
    let nothing_said = with("refunded", "refunded", |payment| payment["transaction_amount_refunded"] = Value::Null);
    assert_eq!(observed(&nothing_said).unwrap().refunded_minor, 1_050);
}

#[tokio::test]
async fn a_pix_is_made_with_the_same_bytes_every_time() {
    let server = TestServer::start(|n, _| match n {
        0 => Reply::error(500, "{}"),
        1 => Reply::Close,
        _ => Reply::Answer(201, &[], payment("pending", "pending_waiting_transfer")),
    });
    let server = server.await;
    let observed = client(&server).create(&new_payment(PayBy::Pix)).await.unwrap();
    assert_eq!(
        observed.instructions,
        Some(Instructions::Pix {
            code: "000201".into(),
            qr_png: Some("iVB".into()),
            expires_at: Some(datetime!(2030-01-31 12:31:00 UTC)),
        })
    );
    let received = server.received();
    assert_eq!(received.len(), 3);
    assert!(received.iter().all(|one| *one == received[0]), "{received:?}");
    assert_eq!(received[0].line, "POST /v1/payments");
    assert_eq!(received[0].header("x-idempotency-key"), Some("pay-1"));
    assert_eq!(
        received[0].body,
        "{\"transaction_amount\":10.50,\"description\":\"Numbers 7 & 77\",\"payment_method_id\":\"pix\",\
         \"external_reference\":\"01900000-0000-7000-8000-000000000001\",\
         \"date_of_expiration\":\"2030-01-31T12:31:00.000+00:00\",\
         \"metadata\":{\"attempt_id\":\"01900000-0000-7000-8000-000000000001\",\
         \"order_id\":\"00000000-0000-0000-0000-000000000002\",\
         \"tenant_id\":\"00000000-0000-0000-0000-000000000003\"},\
         \"payer\":{\"email\":\"01900000000070008000000000000001@example.com\"}}"
    );
}

#[tokio::test]
async fn what_pix_cannot_do_is_refused_before_asking() {
    let server = TestServer::start(|_, _| Reply::Close).await;
    let pix = new_payment(PayBy::Pix);
    for new in [
        NewPayment { currency: "USD", ..pix },
        NewPayment { capture: CaptureMode::Manual, ..pix },
        NewPayment { method: PayBy::Card, ..pix },
    ] {
        assert!(matches!(client(&server).create(&new).await, Err(Failure::Refused { .. })));
    }
    assert_eq!(server.received(), []);
}

#[tokio::test]
async fn voiding_what_was_paid_answers_how_it_is() {
    let server = TestServer::start(|_, request| match request.line.as_str() {
        "PUT /v1/payments/1" => Reply::error(400, r#"{"error":"bad_request","cause":[{"code":2063}]}"#),
        "GET /v1/payments/1" => Reply::ok(payment("approved", "accredited")),
        "PUT /v1/payments/2" => Reply::ok(payment("cancelled", "by_collector")),
        "PUT /v1/payments/3" => Reply::error(400, r#"{"error":"bad_request","cause":[{"code":2063}]}"#),
        _ => Reply::ok(payment("pending", "pending_waiting_transfer")),
    });
    let server = server.await;
    assert_eq!(client(&server).void("1", "k").await.unwrap().state, AttemptState::Captured);
    assert_eq!(client(&server).void("2", "k").await.unwrap().state, AttemptState::Cancelled);
    let failure = client(&server).void("3", "k").await.unwrap_err();
    assert_eq!(format!("{failure:?}"), r#"Refused { status: 400, code: "2063" }"#);
}

#[tokio::test]
async fn a_refund_is_sent_as_a_decimal_and_known_as_ours() {
    let server = TestServer::start(|_, _| {
        Reply::Answer(201, &[], r#"{"id":77,"payment_id":1,"amount":0.07,"status":"in_process"}"#.into())
    });
    let server = server.await;
    let refund = NewRefund { refund_id: Uuid::from_u128(9), amount_minor: 7, currency: "BRL", key: "refund-1" };
    let observed = client(&server).refund("1", &refund).await.unwrap();
    assert_eq!((observed.gateway_refund_id.as_str(), observed.refund_id), ("77", Some(Uuid::from_u128(9))));
    assert_eq!((observed.amount_minor, observed.state), (7, RefundState::Pending));
    let received = server.received();
    assert_eq!(received[0].body, r#"{"amount":0.07}"#);
    assert_eq!(received[0].header("x-render-in-process-refunds"), Some("true"));
}

#[tokio::test]
async fn of_several_payments_for_an_attempt_the_paid_one_is_found() {
    let server = TestServer::start(|_, request| {
        let one = |id: u64, status: &str, reference: &str| json!({ "id": id, "status": status, "status_detail": "", "external_reference": reference });
        let ours = ATTEMPT.to_string();
        Reply::ok(if request.line.contains("/search?external_reference=01900000-0000-7000-8000-000000000001&") {
            let results = [one(1, "cancelled", &ours), one(2, "approved", &ours), one(3, "approved", "another")];
            json!({ "paging": {}, "results": results }).to_string()
        } else if request.line.contains("/search?") {
            json!({ "results": [] }).to_string()
        } else {
            payment("approved", "accredited")
        })
    });
    let server = server.await;
    let long_ago = datetime!(2020-01-01 00:00:00 UTC);
    assert!(client(&server).find(ATTEMPT, long_ago).await.unwrap().is_some());
    assert_eq!(server.received()[1].line, "GET /v1/payments/2");
    assert_eq!(client(&server).find(Uuid::from_u128(4), long_ago).await.unwrap(), None);
}

#[tokio::test]
async fn only_their_own_404_is_not_found() {
    let server = TestServer::start(|_, request| match request.line.ends_with("/1") {
        true => Reply::error(404, r#"{"message":"Payment not found","error":"not_found","status":404,"cause":[]}"#),
        false => Reply::error(404, "<html>"),
    });
    let server = server.await;
    assert!(matches!(client(&server).fetch("1").await, Err(Failure::NotFound)));
    assert!(matches!(client(&server).fetch("2").await, Err(Failure::Unknown(_))));
}
