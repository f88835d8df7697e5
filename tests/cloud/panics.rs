//! Panics inside the real release bootstraps: `panic = "abort"` in the wrong place would end the process, and only
//! here would it be seen. Also what a bootstrap refuses to start with.

use std::collections::BTreeSet;

use domain::orders::State;
use serde_json::{Value, json};
use store::catalog::Product;
use tests::chain::{Chain, message};
use tests::http::Buyer;
use tests::runtime_api::{Bootstrap, is_built, refused};
use tests::seed::{buyers, exact, product, store};
use tests::{TestDatabase, files, look, seed};
use uuid::Uuid;

/// A database of this test's own, and the certainty that there are bootstraps to run.
async fn database() -> TestDatabase {
    assert!(is_built(), "there are no bootstraps in target/lambda (python3 -m local slow)");
    TestDatabase::new().await
}

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

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_one_record_of_a_batch() {
    for failpoint in ["sqs.record=1*panic", "reserve.decide=1*panic"] {
        let database = database().await;
        let mut client = database.another_owner().await;
        let product = product(store(&client).await, 100).insert(&mut client).await;
        let mut orders = Vec::new();
        for (number, buyer) in (1..).zip(buyers(3)) {
            orders.push(seed::order(&client, &product, buyer, &exact(&[number])).await);
        }
        let mut bootstrap = Bootstrap::start("reserve-numbers", &database, &[("FAILPOINTS", failpoint)]).await;
        let response = bootstrap.invoke(batch(&product, &orders)).await.unwrap();
        assert_eq!(failed(&response), ["message-0".to_owned()].into(), "{failpoint}");
        let states: Vec<State> = look::orders(&database, &orders).await.iter().map(|order| order.state).collect();
        assert_eq!(states, [State::Queued, State::Reserved, State::Reserved], "{failpoint}: the neighbours succeed");
        let delayed = bootstrap.sqs.take();
        assert_eq!(delayed.len(), 1, "{failpoint}: it comes again soon: {delayed:?}");
        assert_eq!(
            (delayed[0].0.as_str(), delayed[0].1["Entries"].as_array().unwrap().len()),
            ("ChangeMessageVisibilityBatch", 1)
        );

        let response = bootstrap.invoke(batch(&product, &orders[..1])).await.unwrap();
        assert_eq!(failed(&response), BTreeSet::new(), "{failpoint}");
        assert_eq!(look::order(&database, orders[0]).await.state, State::Reserved);
        assert!(bootstrap.is_alive(), "{failpoint}: the process lives");
        settle(&database).await;
        database.finish().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_panic_costs_one_request() {
    let database = database().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let mut event: Value = serde_json::from_str(&files::read("events/http-place-order.json")).unwrap();
    let path = format!("/v1/products/{}/orders", product.described.id);
    event["headers"]["authorization"] = Buyer::new(tenant).bearer.into();
    for pointer in ["/rawPath", "/requestContext/http/path"] {
        *event.pointer_mut(pointer).unwrap() = path.clone().into();
    }
    let mut bootstrap = Bootstrap::start("orders", &database, &[("FAILPOINTS", "http.request=1*panic")]).await;
    let first = bootstrap.invoke(event.clone()).await.unwrap();
    assert_eq!(
        (&first["statusCode"], &first["headers"]["content-type"]),
        (&json!(500), &json!("application/problem+json"))
    );
    let problem: Value = serde_json::from_str(first["body"].as_str().unwrap()).unwrap();
    assert_eq!(problem["code"], "internal");
    assert!(!problem.to_string().contains("failpoint"), "what happened stays inside: {problem}");
    assert_eq!(look::count(&database, "select count(*) from orders").await, 0);

    let second = bootstrap.invoke(event).await.unwrap();
    assert_eq!(second["statusCode"], 202, "{second}");
    assert!(bootstrap.is_alive(), "the process lives");
    let sent = bootstrap.sqs.take();
    assert_eq!((sent.len(), sent[0].0.as_str()), (1, "SendMessageBatch"));
    assert_eq!(sent[0].1["Entries"][0]["MessageGroupId"], tenant.to_string(), "the group is the tenant");
    settle(&database).await;
    database.finish().await;
}

/// Serves what is still owed.
async fn settle(database: &TestDatabase) {
    let chain = Chain::new(database, 1, 10, 1);
    database.owner().execute("update outbox set next_attempt_at = now()", &[]).await.unwrap();
    chain.reconcile().await;
    chain.run().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_belongs_on_developers_machines_only_stops_the_start() {
    let database = database().await;
    let dev = ("TIRADA_STAGE", "dev");
    for (variables, text) in [
        (vec![dev, ("FAILPOINTS", "http.request=panic"), ("TIRADA_TOKEN_KEYS", r#"{"keys":[]}"#)], "FAILPOINTS"),
        (vec![dev], "development signing key"),
        (vec![("TIRADA_FUNCTION_TIMEOUT_MS", "9000")], "timeouts must grow"),
        (vec![("TIRADA_TOKEN_KEYS", "")], "TIRADA_TOKEN_KEYS is not set"),
        (vec![("FAILPOINTS", "http.request=explode")], "FAILPOINTS"),
    ] {
        let (status, output) = refused("orders", &database, &variables).await;
        assert_eq!(status.code(), Some(1), "{variables:?}: {output}");
        assert!(output.contains(text), "{variables:?}: {output}");
        let secrets = ["a-test-password", "\"d\":"];
        assert!(secrets.iter().all(|secret| !output.contains(secret)), "{output}");
    }
    database.finish().await;
}
