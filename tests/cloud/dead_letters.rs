//! A message that nobody can read goes to the DLQ, alone, and comes back by the operator's hand.

use std::time::{Duration, Instant};

use domain::messages::OrderMessage;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::cloud::{Cloud, RELEASE_QUEUE, variable};
use crate::operator::tirada;

/// Twenty tries six minutes apart are two hours: for this test, three tries a second apart.
async fn set_patience(cloud: &Cloud, queue: &str, visibility: &str, policy: &str) {
    let attributes = json!({"VisibilityTimeout": visibility, "RedrivePolicy": policy});
    cloud.sqs("SetQueueAttributes", &json!({"QueueUrl": queue, "Attributes": attributes})).await;
}

async fn attributes(cloud: &Cloud, queue: &str) -> Value {
    cloud.sqs("GetQueueAttributes", &json!({"QueueUrl": queue, "AttributeNames": ["All"]})).await["Attributes"].clone()
}

async fn depth(cloud: &Cloud, queue: &str) -> u64 {
    attributes(cloud, queue).await["ApproximateNumberOfMessages"].as_str().unwrap().parse().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_poison_message_is_alone_in_the_dlq() {
    let cloud = Cloud::open().await;
    let _alone = RELEASE_QUEUE.lock().await;
    let (queue, dlq) = (variable("TIRADA_QUEUE_RELEASE_NUMBERS_URL"), variable("TIRADA_QUEUE_RELEASE_NUMBERS_DLQ_URL"));
    cloud.sqs("PurgeQueue", &json!({"QueueUrl": dlq})).await;
    let before = attributes(&cloud, &queue).await;
    let kept = (before["VisibilityTimeout"].as_str().unwrap(), before["RedrivePolicy"].as_str().unwrap());
    let mut policy: Value = serde_json::from_str(kept.1).unwrap();
    policy["maxReceiveCount"] = json!(3);
    set_patience(&cloud, &queue, "1", &policy.to_string()).await;

    // An order that is really to be released, and a message of a version that nobody knows, in one batch.
    let buyer = cloud.buyer();
    let id = cloud.place(&buyer, "k", &json!({"numbers": [5]})).await.order();
    cloud.until(&buyer, id, "reserved").await;
    let poison = OrderMessage::new(id, cloud.product_id(), cloud.tenant).body().replace("\"v\":1", "\"v\":99");
    let group = cloud.tenant.to_string();
    cloud.sqs("SendMessage", &json!({"QueueUrl": queue, "MessageBody": poison, "MessageGroupId": group})).await;
    assert_eq!(cloud.cancel(&buyer, id, "c").await.status, 202);
    cloud.until(&buyer, id, "cancelled").await;
    let started = Instant::now();
    while depth(&cloud, &dlq).await == 0 {
        assert!(started.elapsed() < Duration::from_secs(60), "it never came to the DLQ");
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    set_patience(&cloud, &queue, kept.0, kept.1).await;
    assert_eq!(depth(&cloud, &dlq).await, 1, "alone");

    // The operator sends it back; on a queue with its own patience it would take two hours to return.
    let moved = tirada(&["redrive", "release-numbers"]).await;
    assert_eq!(moved.1, json!({"queue": "release-numbers", "sent": 1, "not_sent": 0, "not_deleted": 0}));
    assert_eq!(depth(&cloud, &dlq).await, 0);
    cloud.sqs("PurgeQueue", &json!({"QueueUrl": queue})).await;
    cloud.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_about_an_order_that_does_not_exist_does_no_harm() {
    let cloud = Cloud::open().await;
    let queue = variable("TIRADA_QUEUE_RESERVE_NUMBERS_URL");
    let nobody = OrderMessage::new(Uuid::now_v7(), cloud.product_id(), cloud.tenant).body();
    cloud.sqs("SendMessage", &json!({"QueueUrl": queue, "MessageBody": nobody, "MessageGroupId": "x"})).await;
    let buyer = cloud.buyer();
    let id = cloud.place(&buyer, "k", &json!({"quantity": 1})).await.order();
    cloud.until(&buyer, id, "reserved").await;
    cloud.finish().await;
}
