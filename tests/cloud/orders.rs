//! Buyers of the deployed stack.

use serde_json::json;
use tests::seed::product;
use uuid::Uuid;

use crate::cloud::{Cloud, RELEASE_QUEUE};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_gets_its_numbers_and_gives_them_back() {
    let cloud = Cloud::open().await;
    let buyer = cloud.buyer();
    let placed = cloud.place(&buyer, "one", &json!({"numbers": [7, 9000], "quantity": 1})).await;
    let id = placed.order();
    assert_eq!(placed.headers["location"], format!("/v1/orders/{id}"));
    assert!(placed.headers.contains_key("retry-after"));
    let again = cloud.place(&buyer, "one", &json!({"quantity": 1, "numbers": [9000, 7]})).await;
    assert_eq!((again.order(), &again.headers["idempotency-replayed"]), (id, &"true".parse().unwrap()));
    assert_eq!(cloud.place(&buyer, "one", &json!({"quantity": 2})).await.refusal(), (422, "key-reused".into()));

    let order = cloud.until(&buyer, id, "reserved").await;
    let numbers: Vec<i32> = serde_json::from_value(order["numbers"].clone()).unwrap();
    assert!(numbers.len() == 3 && numbers.contains(&7) && numbers.contains(&9_000), "{numbers:?}");
    for number in &numbers {
        assert!(cloud.is_taken(*number).await, "{number}");
    }

    let _alone = RELEASE_QUEUE.lock().await;
    assert_eq!(cloud.cancel(&buyer, id, "enough").await.status, 202);
    let order = cloud.until(&buyer, id, "cancelled").await;
    assert_eq!(order["poll_after"], json!(null));
    for number in &numbers {
        assert!(!cloud.is_taken(*number).await, "{number}");
    }
    let history = store::orders::history(&cloud.client, id).await.unwrap().1;
    assert_eq!(
        history.iter().map(|event| event.to_state.word()).collect::<Vec<_>>(),
        ["queued", "reserved", "cancelled"]
    );
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_after_the_same_numbers() {
    let cloud = Cloud::with(|tenant| product(tenant, 20)).await;
    let buyers: Vec<_> = (0..60).map(|_| cloud.buyer()).collect();
    let wish = json!({"numbers": [1, 2, 3], "fallback": "replace"});
    let placed = futures::future::join_all(buyers.iter().map(|buyer| cloud.place(buyer, "k", &wish))).await;
    let mut owned = std::collections::BTreeSet::new();
    let mut orders = 0;
    for (buyer, answer) in buyers.iter().zip(&placed) {
        let id = answer.order();
        let state = loop {
            let answer = cloud.read(buyer, id).await;
            if answer.status == 200 && answer.json()["state"] != "queued" {
                break answer.json();
            }
            tokio::time::sleep(std::time::Duration::from_millis(500)).await;
        };
        if state["state"] == "reserved" {
            orders += 1;
            let numbers: Vec<i32> = serde_json::from_value(state["numbers"].clone()).unwrap();
            for number in numbers {
                assert!(owned.insert(number), "{number} was sold twice");
            }
        } else {
            assert!(matches!(state["reason"]["code"].as_str(), Some("sold-out" | "numbers-taken")), "{state}");
        }
    }
    assert!((6..=20).contains(&orders) && owned.len() >= 18, "{orders} orders, {owned:?}");
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_reach_the_client_as_they_are() {
    let now = time::OffsetDateTime::now_utc();
    let hour = std::time::Duration::from_secs(3_600);
    let cloud = Cloud::with(|tenant| product(tenant, 10).window(now + hour, now + hour * 2)).await;
    let buyer = cloud.buyer();
    let early = cloud.place(&buyer, "k", &json!({"quantity": 1})).await;
    assert_eq!(early.refusal(), (409, "not-open".into()));
    let wait: u64 = early.headers["retry-after"].to_str().unwrap().parse().unwrap();
    assert!((3_500..=3_601).contains(&wait), "{wait}");
    assert_eq!(cloud.place(&buyer, "k", &json!({"quantity": -1})).await.refusal(), (422, "invalid".into()));
    assert_eq!(cloud.place(&buyer, "a,b", &json!({"quantity": 1})).await.refusal(), (400, "invalid".into()));
    let large = json!({"quantity": 1, "numbers": vec![1; 100_000]});
    assert_eq!(cloud.place(&buyer, "k", &large).await.refusal(), (413, "too-large".into()));
    assert_eq!(cloud.read(&buyer, Uuid::now_v7()).await.refusal(), (404, "not-found".into()));
    assert_eq!(cloud.get("/v1/orders").await.refusal(), (401, "unauthorized".into()));
    for path in ["/v1/nowhere", "/", "/v1/products"] {
        assert_eq!(cloud.get(path).await.status, 404, "{path}: routes are explicit");
    }
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_catalog_answers() {
    let cloud = Cloud::open().await;
    assert!(cloud.get("/v1/time").await.json()["now"].is_string());
    let answer = cloud.get(&format!("/v1/products/{}", cloud.product_id())).await;
    assert_eq!(answer.json()["counters"]["available"], 10_000);
    assert!(answer.headers.contains_key("etag") && answer.headers.contains_key("cache-control"));
    let summary = cloud.get(&format!("/v1/products/{}/availability", cloud.product_id())).await;
    assert_eq!(summary.json()["chunk_count"], 2);
    assert!(!cloud.is_taken(10_000).await);
    cloud.finish().await;
}
