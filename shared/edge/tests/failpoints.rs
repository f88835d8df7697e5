//! Failpoints inside the adapters. In a process of their own, because failpoints belong to the whole process.

#![allow(clippy::unwrap_used)]

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use axum::routing::get;
use axum::{Router, body};
use domain::messages::{OrderMessage, Queue};
use edge::queue::{Delay, MessageQueue, Outgoing};
use edge::sqs::{Outcome, run_batch};
use edge::{Deadline, Environment, Stage};
use futures::future::BoxFuture;
use tower::ServiceExt;
use uuid::Uuid;

fn arm(text: &'static str) {
    let environment = Environment::from_lookup(move |name| (name == "FAILPOINTS").then(|| text.to_owned()));
    edge::failpoints::init(&environment, Stage::Local).unwrap();
}

/// Accepts everything.
struct Accepting;

impl MessageQueue for Accepting {
    fn send<'a>(&'a self, _: Queue, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async { messages.iter().map(|_| Ok(())).collect() })
    }

    fn delay<'a>(&'a self, _: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async { delays.iter().map(|_| Ok(())).collect() })
    }
}

#[tokio::test]
async fn a_panic_costs_one_request_and_the_next_one_works() {
    arm("http.request=1*panic");
    let app = edge::http::service(Router::new().route("/", get(|| async { "fine" })));
    let ask = || app.clone().oneshot(Request::get("/").body(Body::empty()).unwrap());
    let failed = ask().await.unwrap();
    assert_eq!(failed.status(), 500);
    let text = body::to_bytes(failed.into_body(), 10_000).await.unwrap();
    assert!(text.starts_with(br#"{"type":"urn:tirada:problem:internal""#), "{text:?}");
    assert_eq!(ask().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_panic_costs_one_record_of_a_batch() {
    arm("sqs.record=1*off->1*panic");
    let body = OrderMessage::new(Uuid::nil(), Uuid::nil(), Uuid::nil()).body();
    let record = |id: &str| serde_json::json!({"messageId": id, "receiptHandle": id, "body": body, "attributes": {}});
    let event = serde_json::json!({ "Records": [record("a"), record("b"), record("c")] });
    let event = serde_json::from_value(event).unwrap();
    let deadline = Deadline::after(Duration::from_secs(10));
    let response = run_batch(
        &Accepting,
        Queue::ReserveNumbers,
        event,
        deadline,
        |records: Vec<edge::sqs::Record>, _| async move {
            assert_eq!(records.iter().map(|record| record.message_id.as_str()).collect::<Vec<_>>(), ["a", "c"]);
            vec![Outcome::Done; records.len()]
        },
    );
    let failures = response.await.unwrap().batch_item_failures;
    assert_eq!(failures.iter().map(|failure| failure.item_identifier.as_str()).collect::<Vec<_>>(), ["b"]);
}

/// Where the killed process of [`a_kill_ends_the_process_at_its_passage`] is told that it is the one.
const VICTIM: &str = "TIRADA_FAILPOINT_VICTIM";

#[test]
fn a_kill_ends_the_process_at_its_passage() {
    if std::env::var_os(VICTIM).is_some() {
        arm("edge.killed=1*off->kill");
        fail::fail_point!("edge.killed");
        println!("passed once");
        fail::fail_point!("edge.killed");
        println!("passed twice");
        return;
    }
    let name = "a_kill_ends_the_process_at_its_passage";
    let mut command = std::process::Command::new(std::env::current_exe().unwrap());
    let output = command.args(["--exact", name, "--nocapture"]).env(VICTIM, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(output.status.code(), None, "ended by a signal: {said}");
    assert!(said.contains("passed once") && !said.contains("passed twice"), "{said}");
}
