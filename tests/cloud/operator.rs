//! The operator's command line against the deployed stack.

use serde_json::{Value, json};
use tokio::process::Command;

use crate::cloud::Cloud;

/// Runs `tirada --json`; its exit status and what it printed.
pub(crate) async fn tirada(arguments: &[&str]) -> (i32, Value) {
    let program = std::env::var("TIRADA_PROGRAM").expect("TIRADA_PROGRAM is not set: python3 -m local slow sets it");
    let output = Command::new(program).arg("--json").args(arguments).output().await.unwrap();
    let text = if output.stdout.is_empty() { &output.stderr } else { &output.stdout };
    let text = String::from_utf8_lossy(text).into_owned();
    let printed = serde_json::from_str(&text).unwrap_or_else(|_| panic!("tirada {arguments:?} printed {text}"));
    (output.status.code().unwrap(), printed)
}

#[tokio::test(flavor = "multi_thread")]
async fn an_orders_history() {
    let cloud = Cloud::open().await;
    let buyer = cloud.buyer();
    let id = cloud.place(&buyer, "k", &json!({"numbers": [5]})).await.order();
    cloud.until(&buyer, id, "reserved").await;
    let (status, printed) = tirada(&["order", &id.to_string()]).await;
    assert_eq!(status, 0, "{printed}");
    let text = printed.to_string();
    assert!(text.contains(&id.to_string()) && text.contains("queued") && text.contains("reserved"), "{text}");
    assert_eq!(tirada(&["order", &uuid::Uuid::now_v7().to_string()]).await.0, 3, "there is no such order");
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn intake_is_paused_and_resumed() {
    let cloud = Cloud::open().await;
    let (buyer, product) = (cloud.buyer(), cloud.product_id().to_string());
    let switch = async |act: &str| tirada(&["intake", act, "--product", &product, "--reason", "a test"]).await;
    assert_eq!(switch("pause").await.0, 0);
    let refused = cloud.place(&buyer, "k", &json!({"quantity": 1})).await;
    assert_eq!(refused.refusal(), (503, "sales-paused".into()));
    assert!(refused.headers.contains_key("retry-after"));
    assert_eq!(switch("resume").await.0, 0);
    let id = cloud.place(&buyer, "k", &json!({"quantity": 1})).await.order();
    cloud.until(&buyer, id, "reserved").await;
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_product_waits_and_goes_on() {
    let cloud = Cloud::open().await;
    let (buyer, product) = (cloud.buyer(), cloud.product_id().to_string());
    let switch =
        async |act: &str| tirada(&["--yes", "reserving", act, "--product", &product, "--reason", "a test"]).await;
    assert_eq!(switch("halt").await.0, 0);
    let id = cloud.place(&buyer, "k", &json!({"numbers": [8]})).await.order();
    tokio::time::sleep(std::time::Duration::from_secs(4)).await;
    assert_eq!(cloud.until(&buyer, id, "queued").await["numbers"], json!([]), "accepted, and parked");
    assert_eq!(tirada(&["--yes", "rebuild", "--product", &product]).await.0, 0);
    assert_eq!(switch("resume").await.0, 0);
    cloud.client.execute("update outbox set next_attempt_at = now() where order_id = $1", &[&id]).await.unwrap();
    cloud.invoke("reconcile-orders").await;
    cloud.until(&buyer, id, "reserved").await;
    let (status, audit) = tirada(&["audit", "--product", &product]).await;
    assert_eq!(status, 0, "{audit}");
    cloud.finish().await;
}
