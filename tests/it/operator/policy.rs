//! How a product may be paid: what cannot be served is refused when it is saved.

use domain::payments::{CaptureMode, Gateway, LateMoney};
use serde_json::json;
use store::payments::find_policy;
use tests::seed::{product, store};
use tests::till::{Policy, Till};

use super::Terminal;

fn line<'a>(product: &'a str, gateways: &'a str, capture: &'a str, late_money: &'a str) -> Vec<&'a str> {
    let rest = ["--gateways", gateways, "--capture", capture, "--late-money", late_money];
    ["product", "payments", "--product", product].into_iter().chain(rest).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_policy_is_saved_and_shown() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let id = till.product.described.id;
    let text = id.to_string();
    let mut line = line(&text, "manual,stripe", "automatic", "substitute");
    line.push("--keep-disputed");
    let printed = terminal.done(&line).await;
    assert_eq!(printed["before"]["gateways"], json!(["stripe", "mercado-pago", "manual"]));
    assert_eq!(printed["now"]["late_money"], "substitute");
    let saved = store::payments::Policy {
        gateways: vec![Gateway::Manual, Gateway::Stripe],
        capture: CaptureMode::Automatic,
        late_money: LateMoney::Substitute,
        keeps_disputed: true,
    };
    let kept = find_policy(&till.database.app_client().await, till.tenant_id(), id).await.unwrap();
    assert_eq!(kept, Some(saved));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_served_is_refused_with_the_reason() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let mut owner = till.database.another_owner().await;
    let short = product(till.product.described.tenant_id, 10).hold_seconds(30).insert(&mut owner).await;
    let elsewhere = product(store(&owner).await, 10).insert(&mut owner).await;
    let [short, elsewhere, id] = [&short, &elsewhere, &till.product].map(|product| product.described.id.to_string());
    for (product, gateways, capture, said) in [
        (&short, "manual,stripe", "automatic", "in less than 60 seconds; the product holds numbers for 30 seconds"),
        (&id, "stripe,mercado-pago", "manual", "mercado-pago takes money at once"),
        (&id, "stripe,sandbox", "automatic", "has no credentials at sandbox; first `tirada gateway set --store"),
        (&elsewhere, "stripe", "automatic", "has no credentials at stripe"),
        (&id, "stripe,stripe", "automatic", "named twice"),
    ] {
        let (code, text) = terminal.refused(&line(product, gateways, capture, "retake")).await;
        assert!(code == 3 && text.contains(said), "{code} {text}");
    }
    let unknown = uuid::Uuid::now_v7().to_string();
    assert_eq!(terminal.refused(&line(&unknown, "manual", "automatic", "retake")).await.0, 3);
    let client = till.database.app_client().await;
    let kept = find_policy(&client, till.tenant_id(), till.product.described.id).await.unwrap().unwrap();
    assert_eq!(kept.gateways, [Gateway::Stripe, Gateway::MercadoPago, Gateway::Manual], "nothing was changed");
    terminal.done(&line(&elsewhere, "manual", "automatic", "retake")).await;
    till.finish().await;
}
