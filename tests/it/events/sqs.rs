//! `sqs-*.json`: batches, good ones and poisoned ones.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::messages::{OrderMessage, Queue};
use domain::orders::State;
use edge::Deadline;
use edge::queue::{Delay, MessageQueue, Outgoing};
use futures::future::BoxFuture;
use tests::TestDatabase;
use tests::look;

use super::{BUYER, ORDERS, TENANT, as_named, event, names};

/// Accepts everything and keeps nothing: these messages are in no queue.
struct Nowhere;

impl MessageQueue for Nowhere {
    fn send<'a>(&'a self, _: Queue, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async { messages.iter().map(|_| Ok(())).collect() })
    }

    fn delay<'a>(&'a self, _: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async { delays.iter().map(|_| Ok(())).collect() })
    }
}

fn failed(response: SqsBatchResponse) -> BTreeSet<String> {
    response.batch_item_failures.into_iter().map(|failure| failure.item_identifier).collect()
}

/// Ids of the records that no worker can read.
fn unreadable(event: &SqsEvent) -> BTreeSet<String> {
    let bad = event.records.iter().filter(|record| OrderMessage::parse(record.body.as_deref().unwrap_or("")).is_err());
    bad.map(|record| record.message_id.clone().unwrap()).collect()
}

async fn run(database: &TestDatabase, queue: Queue, event: SqsEvent) -> BTreeSet<String> {
    let (app, deadline) = (database.app(1), Deadline::after(Duration::from_secs(20)));
    failed(match queue {
        Queue::ReserveNumbers => {
            reserve_numbers::handle(&reserve_numbers::State::new(app, Arc::new(Nowhere)), event, deadline)
                .await
                .unwrap()
        }
        Queue::ReleaseNumbers => {
            release_numbers::handle(&release_numbers::State::new(app, Arc::new(Nowhere)), event, deadline)
                .await
                .unwrap()
        }
    })
}

async fn cancel(database: &TestDatabase) {
    let mut client = database.app_client().await;
    for id in ORDERS {
        let key = id.to_string();
        let scope =
            store::idempotency::Scope { tenant_id: TENANT, subject_id: BUYER, route: "cancellations", key: &key };
        store::orders::cancel(&mut client, scope, id, uuid::Uuid::now_v7()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn sqs_files_are_served_and_only_the_bad_records_reported() {
    for queue in Queue::ALL {
        let mut served = BTreeSet::new();
        for name in names(&format!("sqs-{}", queue.name())) {
            let (database, _) = as_named().await;
            let good = serde_json::from_value(event("sqs-reserve-numbers")).unwrap();
            if queue == Queue::ReleaseNumbers {
                assert_eq!(run(&database, Queue::ReserveNumbers, good).await, BTreeSet::new());
                cancel(&database).await;
            }
            let event: SqsEvent = serde_json::from_value(event(&name)).unwrap();
            let bad = unreadable(&event);
            assert_eq!(bad.is_empty(), !name.ends_with("-poison"), "{name}");
            let readable = event.records.iter().filter_map(|record| OrderMessage::parse(record.body.as_deref()?).ok());
            let readable: Vec<OrderMessage> = readable.collect();
            assert!(readable.len() >= 2, "{name}: a bad record has neighbours");
            assert_eq!(run(&database, queue, event).await, bad, "{name}");
            let wanted = if queue == Queue::ReserveNumbers { State::Reserved } else { State::Cancelled };
            for message in readable {
                assert_eq!(
                    look::order(&database, message.order_id).await.state,
                    wanted,
                    "{name}: {}",
                    message.order_id
                );
                served.insert(message.order_id);
            }
            database.finish_under_way().await;
        }
        assert!(served.len() >= 2);
    }
}

#[test]
fn the_files_show_what_may_come() {
    for queue in Queue::ALL {
        let poison = event(&format!("sqs-{}-poison", queue.name()));
        let bodies: Vec<&str> =
            poison["Records"].as_array().unwrap().iter().filter_map(|r| r["body"].as_str()).collect();
        let with = |what: &str| bodies.iter().any(|body| body.contains(what));
        assert!(with("\"v\":9") && with("\"colour\"") && with("not-a-uuid") && bodies.contains(&""));
        for name in [format!("sqs-{}", queue.name()), format!("sqs-{}-poison", queue.name())] {
            for record in event(&name)["Records"].as_array().unwrap() {
                assert!(record["eventSourceARN"].as_str().unwrap().ends_with(&format!("-{}", queue.name())), "{name}");
                assert_eq!(
                    record["attributes"]["MessageGroupId"],
                    TENANT.to_string(),
                    "{name}: the group is the tenant"
                );
            }
        }
    }
}
