//! Messages leave with their tenant as the group, by the real client: fair queues work with nothing else.

use domain::messages::{OrderMessage, Queue};
use edge::queue::{MessageQueue, Outgoing, SqsQueue};
use edge::{Config, Environment, Kind};
use serde_json::Value;
use tests::runtime_api::FakeSqs;
use tests::server::Server;
use uuid::Uuid;

fn environment(address: String) -> Environment {
    Environment::from_lookup(move |name| {
        let value = match name {
            "TIRADA_STAGE" => "local".into(),
            "TIRADA_FUNCTION_TIMEOUT_MS" => "60000".into(),
            "TIRADA_DATABASE_URL" => "postgres://x@127.0.0.1/x".into(),
            "AWS_REGION" => "us-east-1".into(),
            "AWS_ACCESS_KEY_ID" | "AWS_SECRET_ACCESS_KEY" => "test".into(),
            "AWS_ENDPOINT_URL" => format!("http://{address}"),
            name if name.starts_with("TIRADA_QUEUE_") => format!("http://{address}/{name}"),
            _ => return None,
        };
        Some(value)
    })
}

#[tokio::test]
async fn the_group_of_a_message_is_its_tenant() {
    let sqs = FakeSqs::default();
    let calls = sqs.clone();
    let server = Server::start(move |request| {
        let reply = calls.answer(&request);
        async move { reply }
    })
    .await;
    let environment = environment(server.address());
    let config = Config::read(&environment, Kind::Worker).unwrap();
    let queue = SqsQueue::new(&config, &environment, &Queue::ALL).unwrap();
    for target in Queue::ALL {
        let messages: Vec<OrderMessage> = (0..25)
            .map(|n| OrderMessage::new(Uuid::from_u128(n), Uuid::from_u128(100), Uuid::from_u128(200 + n % 3)))
            .collect();
        let outgoing: Vec<Outgoing> = messages.iter().map(Outgoing::from).collect();
        assert!(queue.send(target, &outgoing).await.iter().all(Result::is_ok));
        let mut sent = Vec::new();
        for (operation, input) in sqs.take() {
            assert_eq!(operation, "SendMessageBatch");
            let variable = format!("TIRADA_QUEUE_{}_URL", target.name().to_uppercase().replace('-', "_"));
            assert!(input["QueueUrl"].as_str().unwrap().ends_with(&variable));
            let entries = input["Entries"].as_array().unwrap();
            assert!(entries.len() <= 10);
            for entry in entries {
                let message = OrderMessage::parse(entry["MessageBody"].as_str().unwrap()).unwrap();
                assert_eq!(entry["MessageGroupId"], message.tenant_id.to_string());
                assert_eq!(entry["MessageDeduplicationId"], Value::Null, "standard queues know none");
                sent.push(message);
            }
        }
        sent.sort_by_key(|message| message.order_id);
        assert_eq!(sent, messages);
    }
}
