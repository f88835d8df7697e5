//! Every fault of a call once.

use std::time::{Duration, Instant};

use super::{Merchant, PIX, intent};
use tests::gateway::{Call, Dialect, Fault, Matcher, Rates, RefundState};

const BODY: &str = "amount=1050&currency=brl&metadata[attempt_id]=a-1";

async fn with(fault: Fault) -> Merchant {
    let merchant = Merchant::new(Dialect::Stripe).await;
    merchant.gateway.script(Matcher::call(Call::Create).about("a-1").of(Dialect::Stripe), fault, 1);
    merchant
}

#[tokio::test]
async fn a_connection_is_closed_with_and_without_effect() {
    for (fault, payments) in [(Fault::NoEffectNoAnswer(0), 0), (Fault::EffectThenNoAnswer(0), 1)] {
        let merchant = with(fault).await;
        assert!(merchant.try_post("/v1/payment_intents", "k", BODY).await.is_none(), "{fault:?}");
        assert_eq!(merchant.gateway.ledger().payments.len(), payments, "{fault:?}");
        assert_eq!(merchant.post("/v1/payment_intents", "k", BODY).await.status, 200);
        assert_eq!(merchant.gateway.ledger().payments.len(), 1, "{fault:?}");
    }
}

#[tokio::test]
async fn a_connection_is_held_open_past_the_callers_patience() {
    let merchant = with(Fault::NoEffectNoAnswer(2_000)).await;
    let url = format!("{}/v1/payment_intents", merchant.gateway.url(Dialect::Stripe));
    let request = merchant.client.post(url).bearer_auth("key").body(BODY).timeout(Duration::from_millis(100));
    assert!(request.send().await.unwrap_err().is_timeout());
    assert!(merchant.gateway.ledger().payments.is_empty());
}

#[tokio::test]
async fn a_delayed_call_holds_its_key_and_is_done_even_if_nobody_waits() {
    let merchant = with(Fault::Delay(300)).await;
    let url = format!("{}/v1/payment_intents", merchant.gateway.url(Dialect::Stripe));
    let request = merchant.client.post(url).bearer_auth("key").header("Idempotency-Key", "k").body(BODY);
    assert!(request.timeout(Duration::from_millis(100)).send().await.is_err());
    let meanwhile = merchant.post("/v1/payment_intents", "k", BODY).await;
    assert_eq!((meanwhile.status, &meanwhile.headers["stripe-should-retry"]), (409, &"true".parse().unwrap()));
    let began = Instant::now();
    while merchant.gateway.ledger().payments.is_empty() {
        assert!(began.elapsed() < Duration::from_secs(5), "it was never done");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let again = merchant.post("/v1/payment_intents", "k", BODY).await;
    assert_eq!((again.status, &again.headers["idempotent-replayed"]), (200, &"true".parse().unwrap()));
}

#[tokio::test]
async fn conflicts_and_rate_limits_do_nothing_and_leave_the_key_free() {
    for (fault, status, code) in
        [(Fault::Conflict409, 409, "idempotency_key_in_use"), (Fault::RateLimited429, 429, "rate_limit")]
    {
        let merchant = with(fault).await;
        let refused = merchant.post("/v1/payment_intents", "k", BODY).await;
        assert_eq!((refused.status, refused.body["error"]["code"].as_str()), (status, Some(code)));
        assert!(merchant.gateway.ledger().payments.is_empty());
        let done = merchant.post("/v1/payment_intents", "k", BODY).await;
        assert!(done.status == 200 && done.headers.get("idempotent-replayed").is_none());
    }
}

#[tokio::test]
async fn a_payment_is_paid_and_its_event_arrives_before_the_answer() {
    let merchant = with(Fault::PaidEarly).await;
    let answer = merchant.post("/v1/payment_intents", "k", BODY).await;
    assert_eq!(answer.body["status"], "requires_payment_method", "the answer is from before");
    assert_eq!(merchant.inbox.lock().unwrap().len(), 1, "no waiting was needed");
    assert_eq!(merchant.events().await, ["payment_intent.succeeded"]);
}

#[tokio::test]
async fn a_search_may_be_behind_but_a_list_is_not() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    intent(&merchant, "a-1", "").await;
    merchant.gateway.script(Matcher::call(Call::Find), Fault::SearchBehind, 2);
    let search = "/v1/payment_intents/search?query=metadata[\"attempt_id\"]:\"a-1\"";
    let count = async |path: &str| merchant.get(path).await.body["data"].as_array().unwrap().len();
    assert_eq!((count(search).await, count("/v1/payment_intents").await, count(search).await), (0, 1, 1));
}

#[tokio::test]
async fn refunds_take_their_time_and_may_fail() {
    for (fault, at_first, at_last) in [
        (Fault::PendingThenSucceeded(50), RefundState::Pending, RefundState::Succeeded),
        (Fault::PendingThenFailed(50), RefundState::Pending, RefundState::Failed),
        (Fault::FailsLater(50), RefundState::Succeeded, RefundState::Failed),
    ] {
        let merchant = Merchant::new(Dialect::Stripe).await;
        let id = intent(&merchant, "a-1", "").await;
        merchant.gateway.pay("a-1").unwrap();
        merchant.gateway.script(Matcher::any().about("a-1"), fault, 1);
        let made = merchant.post("/v1/refunds", "r", &format!("payment_intent={id}")).await.body;
        let word = serde_json::to_value(at_first).unwrap();
        assert_eq!(made["status"], word, "{fault:?}");
        let events = merchant.events().await;
        assert!(events.contains(&"refund.updated".to_owned()), "{events:?}");
        assert_eq!(events.contains(&"refund.failed".to_owned()), at_last == RefundState::Failed, "{events:?}");
        let payment = merchant.gateway.ledger().payments.remove(0);
        assert_eq!(payment.refunds[0].state, at_last);
        let refunded_minor = if at_last == RefundState::Failed { 0 } else { 1_050 };
        assert_eq!(payment.refunded_minor(), refunded_minor, "{fault:?}");
    }
}

#[tokio::test]
async fn chance_strikes_until_it_is_healed_and_no_retry_makes_a_second_payment() {
    for dialect in [Dialect::Stripe, Dialect::MercadoPago] {
        let merchant = Merchant::new(dialect).await;
        let rates = Rates { calls: 0.7, events: 0.5, delay_ms_max: 5, ..Rates::default() };
        merchant.gateway.random(11, rates);
        let (path, body) =
            if dialect == Dialect::Stripe { ("/v1/payment_intents", BODY) } else { ("/v1/payments", PIX) };
        let mut struck = 0;
        for _ in 0..20 {
            let got = merchant.try_post(path, "k", body).await;
            struck += usize::from(got.is_none_or(|got| got.status >= 400));
        }
        assert!(struck > 0);
        merchant.gateway.heal();
        assert!(merchant.try_post(path, "k", body).await.is_some());
        let ledger = merchant.gateway.ledger();
        assert!(ledger.payments.len() <= 1 && ledger.violations.is_empty(), "{ledger:?}");
    }
}
