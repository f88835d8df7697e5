//! Buyers, banks and staff; the page; and what another process may ask.

use reqwest::redirect::Policy;
use serde_json::{Value, json};

use super::{Merchant, intent, pix, session};
use tests::gateway::{Dialect, DisputeState, Ledger, NotDone, PaymentState};

#[tokio::test]
async fn a_refund_in_the_dashboard_has_no_reference_and_its_bounds_are_no_violation() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    intent(&merchant, "a-1", "").await;
    assert_eq!(merchant.gateway.pay("nobody"), Err(NotDone::NoSuchPayment));
    merchant.gateway.pay("a-1").unwrap();
    assert_eq!(merchant.gateway.pay("a-1"), Err(NotDone::NotNow));
    assert_eq!(merchant.gateway.pay_late("a-1"), Err(NotDone::NotNow), "cards are not paid late");
    merchant.gateway.refund_in_dashboard("a-1", 50).unwrap();
    assert_eq!(merchant.gateway.refund_in_dashboard("a-1", 1_001), Err(NotDone::NotNow));
    merchant.gateway.refund_in_dashboard("a-1", None).unwrap();
    let ledger = merchant.gateway.ledger();
    assert!(ledger.violations.is_empty());
    let refunds: Vec<(Option<&str>, i64)> =
        ledger.payments[0].refunds.iter().map(|one| (one.refund_id.as_deref(), one.amount_minor)).collect();
    assert_eq!(refunds, [(None, 50), (None, 1_000)]);
}

#[tokio::test]
async fn disputes_are_won_and_lost() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = intent(&merchant, "a-1", "").await;
    merchant.gateway.pay("a-1").unwrap();
    merchant.gateway.dispute("a-1", 50).unwrap();
    let refused = merchant.post("/v1/refunds", "r", &format!("payment_intent={id}")).await;
    assert_eq!(refused.body["error"]["code"], "charge_disputed");
    merchant.gateway.close_dispute("a-1", true).unwrap();
    merchant.gateway.dispute("a-1", None).unwrap();
    merchant.gateway.close_dispute("a-1", false).unwrap();
    let listed = merchant.get(&format!("/v1/disputes?payment_intent={id}")).await.body;
    assert_eq!(
        (listed["data"][0]["status"].as_str(), listed["data"][1]["status"].as_str()),
        (Some("lost"), Some("won"))
    );
    let payment = merchant.gateway.ledger().payments.remove(0);
    let states: Vec<DisputeState> = payment.disputes.iter().map(|one| one.state).collect();
    assert_eq!((states, payment.kept_minor()), (vec![DisputeState::Won, DisputeState::Lost], 0));
    let events = merchant.events().await;
    assert_eq!(events.iter().filter(|kind| *kind == "charge.dispute.closed").count(), 2);
}

#[tokio::test]
async fn a_person_pays_on_the_page_in_their_language() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = session(&merchant, "a-1", "").await;
    let url = merchant.get(&format!("/v1/checkout/sessions/{id}")).await.body["url"].as_str().unwrap().to_owned();
    let browser = reqwest::Client::builder().no_proxy().redirect(Policy::none()).build().unwrap();
    for (language, amount, button) in [
        ("pt-PT,pt;q=0.9", "BRL 10,50", "Recusar"),
        ("fr, es;q=0.8, en;q=0.5", "BRL 10,50", "Rechazar"),
        ("ja", "BRL 10.50", "Decline"),
    ] {
        let page = browser.get(&url).header("accept-language", language).send().await.unwrap().text().await.unwrap();
        assert!(page.contains(amount) && page.contains(button) && page.contains("Raffle"), "{page}");
    }
    let press = async |choice: &'static str| browser.post(&url).body(choice).send().await.unwrap();
    let declined = press("choice=decline").await;
    assert_eq!(declined.status().as_u16(), 200);
    assert!(declined.text().await.unwrap().contains("was declined"));
    let paid = press("choice=pay").await;
    assert_eq!(
        (paid.status().as_u16(), &paid.headers()["location"]),
        (303, &"https://shop.example.com/ok".parse().unwrap())
    );
    let twice = press("choice=pay").await;
    assert!(twice.text().await.unwrap().contains("Paid."));
    assert_eq!(merchant.gateway.ledger().payments[0].state, PaymentState::Captured);
}

#[tokio::test]
async fn a_page_shows_what_it_is_given_as_text() {
    let merchant = Merchant::new(Dialect::Stripe).await;
    let id = intent(&merchant, "a-1", "&description=<b>\"%26").await;
    let url = format!("{}/pay/{id}", merchant.gateway.address());
    let page = merchant.client.get(url).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("&lt;b&gt;&quot;&amp;") && !page.contains("<b>"), "{page}");
}

#[tokio::test]
async fn another_process_plays_the_buyers_and_reads_the_ledger() {
    let merchant = Merchant::new(Dialect::MercadoPago).await;
    let address = merchant.gateway.address();
    let post = async |path: &str, body: Value| {
        let answer = merchant.client.post(format!("{address}{path}")).body(body.to_string()).send().await.unwrap();
        answer.status().as_u16()
    };
    let fault = json!({ "script": { "matcher": { "call": "create" }, "fault": "rate-limited429", "times": 1 } });
    assert_eq!(post("/_faults", fault).await, 200);
    assert_eq!(merchant.post("/v1/payments", "k", super::PIX).await.status, 429);
    let chance = json!({ "random": { "seed": 1, "rates": { "calls": 0.0 } } });
    assert_eq!((post("/_faults", chance).await, post("/_faults", json!({ "heal": {} })).await), (200, 200));
    let never = json!({ "script": { "matcher": { "call": "create" }, "fault": "never" } });
    assert_eq!((post("/_faults", never).await, post("/_faults", json!({ "nonsense": {} })).await), (400, 400));
    pix(&merchant).await;
    assert_eq!(post("/_time", json!({ "seconds": 86_400 })).await, 200);
    assert_eq!(post("/_buyer/pay", json!({ "payment": "a-1" })).await, 409);
    assert_eq!(post("/_buyer/pay-late", json!({ "payment": "a-1" })).await, 200);
    assert_eq!(post("/_buyer/pay", json!({ "payment": "nobody" })).await, 404);
    assert_eq!(post("/_buyer/dispute", json!({ "payment": "a-1", "amount_minor": 5 })).await, 200);
    assert_eq!(post("/_buyer/close-dispute", json!({ "payment": "a-1", "is_won": true })).await, 200);
    let account = json!({ "dialect": "stripe", "key": "k", "webhook_url": "", "webhook_secret": "s" });
    assert_eq!(post("/_accounts", account).await, 200);
    let ledger: Ledger = merchant.client.get(format!("{address}/_ledger")).send().await.unwrap().json().await.unwrap();
    assert_eq!(ledger, merchant.gateway.ledger());
    assert_eq!(ledger.of_attempt("a-1").map(|payment| payment.captured_minor).collect::<Vec<_>>(), [1_050]);
}
