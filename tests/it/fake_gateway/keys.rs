//! Idempotency keys over HTTP.

use super::{Merchant, PIX, intent, pix};
use tests::gateway::{Call, Dialect, Fault, Matcher, ViolationKind};

const BODY: &str = "amount=1050&currency=brl&metadata[attempt_id]=a-1";

#[tokio::test]
async fn the_first_result_is_given_again_and_other_parameters_are_a_violation() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let first = merchant.post("/v1/payment_intents", "k", BODY).await;
    assert!(first.status == 200 && first.headers.get("idempotent-replayed").is_none());
    let again = merchant.post("/v1/payment_intents", "k", "metadata[attempt_id]=a-1&currency=brl&amount=1050").await;
    assert_eq!((again.status, &again.headers["idempotent-replayed"]), (200, &"true".parse().unwrap()));
    assert_eq!(first.body, again.body);
    let other = merchant.post("/v1/payment_intents", "k", "amount=1051&currency=brl").await;
    assert_eq!((other.status, other.body["error"]["type"].as_str()), (400, Some("idempotency_error")));
    let ledger = merchant.gateway.ledger();
    assert_eq!(ledger.payments.len(), 1);
    assert_eq!(ledger.violations.len(), 1);
    assert_eq!(ledger.violations[0].kind, ViolationKind::KeyWithOtherParameters);
}

#[tokio::test]
async fn a_500_is_kept_with_its_key_and_given_again() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    for (fault, payments) in [(Fault::Error500, 0), (Fault::Error500AfterEffect, 1)] {
        merchant.gateway.script(Matcher::call(Call::Create), fault, 1);
        let key = format!("{fault:?}");
        assert_eq!(merchant.post("/v1/payment_intents", &key, BODY).await.status, 500);
        let again = merchant.post("/v1/payment_intents", &key, BODY).await;
        assert_eq!((again.status, &again.headers["idempotent-replayed"]), (500, &"true".parse().unwrap()));
        assert_eq!(again.headers["stripe-should-retry"], "false");
        assert_eq!(merchant.gateway.ledger().payments.len(), payments);
    }
    assert_eq!(merchant.post("/v1/payment_intents", "another", BODY).await.status, 200);
    assert_eq!(merchant.gateway.ledger().violations[0].kind, ViolationKind::TwoLivePayments);
}

#[tokio::test]
async fn parameters_that_are_not_valid_leave_nothing_under_the_key() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let refused = merchant.post("/v1/payment_intents", "k", "amount=-1&currency=brl").await;
    assert_eq!((refused.status, refused.body["error"]["param"].as_str()), (400, Some("amount")));
    assert_eq!(merchant.post("/v1/payment_intents", "k", BODY).await.status, 200);
    assert!(merchant.gateway.ledger().violations.is_empty());
}

#[tokio::test]
async fn keys_are_forgotten_after_a_day_or_by_the_script() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let first = intent(&merchant, "a-1", "").await;
    merchant.gateway.advance(std::time::Duration::from_secs(23 * 3_600));
    assert_eq!(intent(&merchant, "a-1", "").await, first);
    merchant.gateway.advance(std::time::Duration::from_secs(3_601));
    let second = intent(&merchant, "a-1", "").await;
    assert_ne!(second, first);
    merchant.gateway.script(Matcher::call(Call::Create).about("a-1"), Fault::ForgetKeys, 1);
    assert_ne!(intent(&merchant, "a-1", "").await, second);
}

#[tokio::test]
async fn mercado_pago_gives_what_the_payment_has_become_and_keeps_no_failure() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let without = merchant.post("/v1/payments", "", PIX).await;
    assert_eq!((without.status, without.body["cause"][0]["code"].as_u64()), (400, Some(4_292)));
    merchant.gateway.script(Matcher::call(Call::Create), Fault::Error500, 1);
    assert_eq!(merchant.post("/v1/payments", "k-1", PIX).await.status, 500);
    let id = pix(&merchant).await;
    merchant.gateway.pay(&id).unwrap();
    let again = merchant.post("/v1/payments", "k-1", PIX).await;
    assert_eq!((again.body["id"].to_string(), again.body["status"].as_str()), (id, Some("approved")));
    let other = merchant.post("/v1/payments", "k-1", &PIX.replace("10.5", "11")).await;
    assert_eq!(other.status, 409);
    assert_eq!(merchant.gateway.ledger().violations.len(), 1);
}
