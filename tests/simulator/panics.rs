//! Panics inside the real bootstraps, and what a bootstrap refuses to start with.
//!
//! CI runs them on release bootstraps too: only there would `panic = "abort"` in the wrong place end the process.

use std::collections::BTreeSet;
use std::time::Duration;

use domain::orders::State;
use serde_json::{Value, json};
use store::catalog::Product;
use tests::chain::message;
use tests::seed::{self, buyers, exact};
use tests::simulator::{Outcome, Setup, World, code, wish};
use tests::{files, look};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(30);

fn batch(product: &Product, orders: &[Uuid]) -> Value {
    let mut event: Value = serde_json::from_str(&files::read("events/sqs-reserve-numbers.json")).unwrap();
    let template = event["Records"][0].clone();
    let record = |(position, id): (usize, &Uuid)| {
        let mut record = template.clone();
        record["messageId"] = format!("message-{position}").into();
        record["body"] = message(product, *id).body().into();
        record
    };
    event["Records"] = orders.iter().enumerate().map(record).collect();
    event
}

fn failed(response: &Value) -> BTreeSet<String> {
    let failures = response["batchItemFailures"].as_array().unwrap_or_else(|| panic!("{response}"));
    failures.iter().map(|one| one["itemIdentifier"].as_str().unwrap().to_owned()).collect()
}

/// One order panics in a batch: the others stay committed, and the process lives.
#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_one_record_of_a_batch() {
    for failpoint in ["sqs.record=1*panic", "reserve.decide=1*panic"] {
        let world = World::start(Setup::default()).await;
        let product = world.product(100).await;
        let mut orders = Vec::new();
        for (number, buyer) in (1..).zip(buyers(3)) {
            orders.push(seed::order(world.database.owner(), &product, buyer, &exact(&[number])).await);
        }
        let worker = world.function("reserve-numbers");
        worker.arm(failpoint);
        let response = worker.invoke(batch(&product, &orders)).await.answer();
        assert_eq!(failed(&response), ["message-0".to_owned()].into(), "{failpoint}");
        let states: Vec<State> = look::orders(&world.database, &orders).await.iter().map(|order| order.state).collect();
        assert_eq!(states, [State::Queued, State::Reserved, State::Reserved], "{failpoint}: the neighbours succeed");
        let delayed = world.sqs.take_calls();
        assert_eq!(delayed.len(), 1, "{failpoint}: it comes again soon: {delayed:?}");
        assert_eq!(
            (delayed[0].0.as_str(), delayed[0].1["Entries"].as_array().unwrap().len()),
            ("ChangeMessageVisibilityBatch", 1)
        );

        let response = worker.invoke(batch(&product, &orders[..1])).await.answer();
        assert_eq!(failed(&response), BTreeSet::new(), "{failpoint}");
        assert_eq!(look::order(&world.database, orders[0]).await.state, State::Reserved);
        assert_eq!(worker.counts().started, 1, "{failpoint}: the process lives");
        world.finish(BOUND).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_one_request() {
    let world = World::start(Setup::default()).await;
    let product = world.product(100).await;
    let (shopper, wish) = (world.shopper(&product), wish(&[7], 0, "reject"));
    world.function("orders").arm("http.request=1*panic");
    let first = shopper.try_place(product.described.id, "key", &wish).await;
    assert_eq!((first.status, code(&first).as_str()), (500, "internal"));
    assert_eq!(first.header("content-type"), "application/problem+json");
    assert!(!first.text().contains("failpoint"), "what happened stays inside: {}", first.text());
    assert_eq!(look::count(&world.database, "select count(*) from orders").await, 0);

    let second = shopper.try_place(product.described.id, "key", &wish).await;
    assert_eq!(second.status, 202, "{}", second.text());
    assert_eq!(world.function("orders").counts().started, 1, "the process lives");
    let sent = world.sqs.take_calls();
    assert_eq!((sent.len(), sent[0].0.as_str()), (1, "SendMessageBatch"));
    let tenant = json!(product.described.tenant_id);
    assert_eq!(sent[0].1["Entries"][0]["MessageGroupId"], tenant, "the group is the tenant");
    world.finish(BOUND).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_on_developers_machines_only_stops_the_start() {
    let dev = ("TIRADA_STAGE", "dev");
    for (variables, text) in [
        (vec![dev, ("FAILPOINTS", "http.request=panic"), ("TIRADA_TOKEN_KEYS", r#"{"keys":[]}"#)], "FAILPOINTS"),
        (vec![dev], "development signing key"),
        (vec![("TIRADA_FUNCTION_TIMEOUT_MS", "9000")], "timeouts must grow"),
        (vec![("TIRADA_TOKEN_KEYS", "")], "TIRADA_TOKEN_KEYS is not set"),
        (vec![("FAILPOINTS", "http.request=explode")], "FAILPOINTS"),
    ] {
        let world = World::start(Setup::default()).await;
        let orders = world.function("orders");
        orders.set(|settings| {
            settings.variables.extend(variables.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())));
        });
        assert_eq!(orders.invoke(json!({})).await, Outcome::Crashed, "{variables:?}");
        let ended = async || !orders.log().with(text).is_empty() && !orders.log().with("exit status: 1").is_empty();
        world.until("the process says why it ended", BOUND, ended).await;
        for secret in ["a-test-password", "\"d\":"] {
            assert_eq!(orders.log().with(secret), Vec::<String>::new());
        }
        world.finish(BOUND).await;
    }
}
