//! `http-*.json`: API Gateway's payload 2.0, read by the Lambda runtime's own code.

use domain::messages::Queue;
use domain::roles::Role;
use serde_json::Value;
use tests::chain::Chain;
use tests::gateway::signatures;
use tests::http::{self, Api, Buyer};
use tests::{look, randomness, staff};
use uuid::{Uuid, uuid};

use super::{BUYER, ORDERS, TENANT, WEBHOOK_SECRET, as_named, event, gateway, names};

/// Somebody of the store's staff, and their session.
const STAFF: Uuid = uuid!("01995b20-0000-7000-8000-000000000002");
const SESSION: Uuid = uuid!("01995b20-0000-7000-8000-000000000003");

/// The function behind a route, by the documents of the functions.
fn function_of(route: &str) -> &'static str {
    let (method, path) = route.split_once(' ').unwrap();
    let found: Vec<_> = crate::openapi::documents()
        .into_iter()
        .filter(|(_, document)| !document["paths"][path][method.to_lowercase()].is_null())
        .map(|(name, _)| name)
        .collect();
    assert_eq!(found.len(), 1, "{route} belongs to {found:?}");
    found[0]
}

/// As API Gateway would send it, with a real token or signature.
fn request(mut event: Value) -> lambda_http::Request {
    let headers = event["headers"].as_object_mut().unwrap();
    if let Some(token) = headers.get_mut("authorization") {
        *token = match token.as_str().unwrap() {
            "Bearer replace-with-a-token" => Buyer::with_id(TENANT, BUYER).bearer.into(),
            "Bearer replace-with-a-token-of-staff" => staff::bearer(TENANT, STAFF, SESSION).into(),
            other => panic!("{other} is no token to be replaced"),
        };
    }
    let mut request = lambda_http::request::from_str(&event.to_string()).unwrap();
    let body = String::from_utf8(request.body().as_ref().to_vec()).unwrap();
    if let Some(signature) = request.headers_mut().get_mut("stripe-signature") {
        assert_eq!(*signature, "replace-with-a-signature");
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        *signature = signatures::stripe(WEBHOOK_SECRET, now, &body).parse().unwrap();
    }
    request
}

/// What a function answers when all is well.
fn expected(function: &str, event: &Value) -> u16 {
    match function {
        "payments" => 201,
        "orders" => 202,
        "admin" if event["body"].is_string() => 202,
        "login" | "staff" if event["body"].is_string() => 202,
        _ if function == "payment-webhook" || event["requestContext"]["http"]["method"] == "GET" => 200,
        _ => panic!("{function} takes no POST"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn http_files_are_answered_by_their_function() {
    let (database, product) = as_named().await;
    let (_gateway, cashier) = gateway(&database).await;
    let chain = Chain::new(&database, 1, 10, randomness::seed()).with_cashier(cashier.clone());
    for id in ORDERS {
        chain.put(&product, id);
    }
    chain.run().await;
    let mailbox = staff::Mailbox::default();
    staff::hire_as(&database, TENANT, Role::Operator, STAFF, SESSION).await;
    let api = |name: &str| -> Api {
        match name {
            "orders" => http::orders(database.app(1), chain.queues.clone()),
            "order-status" => http::order_status(database.app(1)),
            "payments" => http::payments(database.app(1), cashier.clone()),
            "staff" => http::staff(database.app(1), staff::keys(), mailbox.post()),
            "admin" => http::admin(database.app(1)),
            "login" => http::login(database.app(1), tests::login::keys(), chain.queues.clone()),
            "payment-webhook" => http::payment_webhook(database.app(1), cashier.clone(), chain.queues.clone()),
            _ => http::catalog(database.app(1)),
        }
    };
    for name in names("http-") {
        let event = event(&name);
        let function = function_of(event["routeKey"].as_str().unwrap());
        let answer = api(function).call(request(event.clone())).await;
        assert_eq!(answer.status, expected(function, &event), "{name} at {function}: {}", answer.text());
        assert!(name != "http-list-orders" || answer.json()["orders"].as_array().unwrap().len() >= 3);
    }
    assert_eq!(
        look::count(&database, "select count(*) from orders").await,
        5,
        "the plain and the Base64 file are the same request under the same key; one is sold over the counter"
    );
    assert_eq!(chain.queues.len(Queue::SettlePayment), 2, "an event that is not processed is handed on again");
    assert_eq!(look::count(&database, "select count(*) from inbox").await, 1, "both webhooks are the same event");
    assert_eq!(chain.queues.len(Queue::SendLoginCode), 1, "a code was asked for");
    chain.run().await;
    chain.settle().await;
    database.owner().execute("update outbox set next_attempt_at = now()", &[]).await.unwrap();
    chain.reconcile().await;
    chain.run().await;
    database.finish().await;
}

#[test]
fn the_gateways_view_and_ours_agree() {
    for name in names("http-") {
        let event = event(&name);
        let request = request(event.clone());
        assert_eq!(request.uri().path(), event["rawPath"], "{name}: the stage adds nothing to the path");
        assert_eq!(request.method().as_str(), event["requestContext"]["http"]["method"]);
        assert_eq!(event["requestContext"]["stage"], "$default");
        assert_eq!(event["requestContext"]["routeKey"], event["routeKey"]);
        let mut path = event["routeKey"].as_str().unwrap().split_once(' ').unwrap().1.to_owned();
        for (parameter, value) in event["pathParameters"].as_object().into_iter().flatten() {
            path = path.replace(&format!("{{{parameter}}}"), value.as_str().unwrap());
        }
        assert_eq!(path, event["rawPath"], "{name}");
    }
}
