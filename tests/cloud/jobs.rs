//! The jobs of the deployed stack.

use std::time::{Duration, Instant};

use serde_json::json;
use store::orders::{NewOrder, place};
use tests::seed::{exact, product};
use uuid::Uuid;

use crate::cloud::Cloud;

#[tokio::test(flavor = "multi_thread")]
async fn the_migration_ran_before_everything() {
    let cloud = Cloud::open().await;
    let sql = "select max(version) from refinery_schema_history";
    let version: i32 = cloud.client.query_one(sql, &[]).await.unwrap().get(0);
    assert_eq!(version, store::migrations::latest());
    let sql = "select rolconfig from pg_roles where rolname = 'tirada_app'";
    let settings: Vec<String> = cloud.client.query_one(sql, &[]).await.unwrap().get(0);
    assert!(settings.contains(&"lock_timeout=2000".to_owned()), "{settings:?}");
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn abandoned_holds_come_back() {
    let cloud = Cloud::with(|tenant| product(tenant, 100).hold_seconds(5)).await;
    let buyer = cloud.buyer();
    let id = cloud.place(&buyer, "k", &json!({"numbers": [42]})).await.order();
    cloud.until(&buyer, id, "reserved").await;
    let started = Instant::now();
    tokio::time::sleep(Duration::from_secs(5)).await;
    // Or the schedule does it: the result is the same.
    let report = cloud.invoke("expire-reservations").await;
    assert!(report["passes"].is_u64() && report["failed"] == 0, "{report}");
    cloud.until(&buyer, id, "expired").await;
    assert!(started.elapsed() < Duration::from_secs(30));
    assert!(!cloud.is_taken(42).await);
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_whose_message_was_lost_is_served_all_the_same() {
    let cloud = Cloud::open().await;
    // Recorded, but the function ended before it could send anything.
    let (id, request) = (Uuid::now_v7(), exact(&[5]));
    let (product_id, tenant_id, buyer_id) = (cloud.product_id(), cloud.tenant, Uuid::now_v7());
    let order = NewOrder { id, product_id, tenant_id, buyer_id, request: &request, key: "lost" };
    place(&cloud.client, &order, &[]).await.unwrap();
    cloud.client.execute("update outbox set next_attempt_at = now() where id = $1", &[&id]).await.unwrap();
    let report = cloud.invoke("reconcile-orders").await;
    assert_eq!(report["failed_steps"], json!([]), "{report}");
    let started = Instant::now();
    while store::orders::history(&cloud.client, id).await.unwrap().0.state != domain::orders::State::Reserved {
        assert!(started.elapsed() < Duration::from_secs(30), "nobody served it");
        tokio::time::sleep(Duration::from_millis(300)).await;
    }
    cloud.finish().await;
}
