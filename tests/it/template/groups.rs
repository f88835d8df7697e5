//! Messages leave with their tenant as the group, by the real client: fair queues work with nothing else.

use domain::messages::{Message, OrderMessage, Queue};
use edge::queue::{MessageQueue, Outgoing, SqsQueue};
use edge::{Config, Environment, Kind};
use serde_json::Value;
use tests::simulator::Sqs;
use uuid::Uuid;

fn environment(sqs: Sqs) -> Environment {
    Environment::from_lookup(move |name| {
        let value = match name {
            "TIRADA_STAGE" => "local".into(),
            "TIRADA_FUNCTION_TIMEOUT_MS" => "60000".into(),
            "TIRADA_DATABASE_URL" => "postgres://x@127.0.0.1/x".into(),
            "AWS_REGION" => "us-east-1".into(),
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => "test".into(),
            "AWS_ENDPOINT_URL" => sqs.endpoint(),
            "TIRADA_QUEUE_RESERVE_NUMBERS_URL" => sqs.url(Queue::ReserveNumbers),
            "TIRADA_QUEUE_RELEASE_NUMBERS_URL" => sqs.url(Queue::ReleaseNumbers),
            "TIRADA_QUEUE_SETTLE_PAYMENT_URL" => sqs.url(Queue::SettlePayment),
            "TIRADA_QUEUE_SEND_LOGIN_CODE_URL" => sqs.url(Queue::SendLoginCode),
            "TIRADA_QUEUE_SEND_NOTICE_URL" => sqs.url(Queue::SendNotice),
            "TIRADA_QUEUE_WRITE_EXPORTS_URL" => sqs.url(Queue::WriteExports),
            "TIRADA_QUEUE_CHECK_UPLOADS_URL" => sqs.url(Queue::CheckUploads),
            _ => return None,
        };
        Some(value)
    })
}

#[tokio::test]
async fn the_group_of_a_message_is_its_tenant() {
    let settings = Queue::ALL.map(|queue| (queue, tests::queue::Settings::default())).into();
    let sqs = Sqs::start(&settings, 1.0, 1).await;
    let environment = environment(sqs.clone());
    let config = Config::read(&environment, Kind::Worker).unwrap();
    let queue = SqsQueue::new(&config, &environment, &Queue::ALL).unwrap();
    for target in Queue::ALL {
        let messages: Vec<OrderMessage> = (0..25)
            .map(|n| OrderMessage::new(Uuid::from_u128(n), Uuid::from_u128(100), Uuid::from_u128(200 + n % 3)))
            .collect();
        let outgoing: Vec<Outgoing> = messages.iter().map(Outgoing::from).collect();
        assert!(queue.send(target, &outgoing).await.iter().all(Result::is_ok));
        let mut sent = Vec::new();
        for (operation, input) in sqs.take_calls() {
            assert_eq!(operation, "SendMessageBatch");
            assert_eq!(input["QueueUrl"], sqs.url(target));
            let entries = input["Entries"].as_array().unwrap();
            assert!(entries.len() <= 10);
            for entry in entries {
                let message = OrderMessage::parse(entry["MessageBody"].as_str().unwrap()).unwrap();
                assert_eq!(entry["MessageGroupId"], message.tenant_id.to_string());
                assert_eq!(entry["MessageDeduplicationId"], Value::Null, "standard queues know none");
                sent.push(message);
            }
        }
        assert_eq!(sqs.len(target), messages.len());
        sent.sort_by_key(|message| message.order_id);
        assert_eq!(sent, messages);
    }
}
