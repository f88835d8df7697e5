//! The webhook's handler before signatures of the gateways' libraries, as API Gateway delivers them: bodies as text
//! and in Base64, by the right store's secret and by another's.

use domain::payments::Gateway;
use edge::Stage;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys, context};
use serde_json::{Value, json};
use store::payments::save_account;
use tests::gateway::{Account, Dialect};
use tests::look::count;
use tests::till::{MERCADO_PAGO_SECRET, Policy, STRIPE_SECRET, Till};
use tests::{files, seed};

use crate::{OTHER_SECRET, sdk};

const AS_TEXT: &str = "http-receive-webhook";
const IN_BASE64: &str = "http-receive-webhook-base64";

/// `{"id": 7, "type": "payment", "data": {"id": "999"}}`, as text and in Base64.
const NOTIFICATION: &str = r#"{"id": 7, "type": "payment", "data": {"id": "999"}}"#;
const NOTIFICATION_BASE64: &str = "eyJpZCI6IDcsICJ0eXBlIjogInBheW1lbnQiLCAiZGF0YSI6IHsiaWQiOiAiOTk5In19";

fn now() -> i64 {
    time::OffsetDateTime::now_utc().unix_timestamp()
}

/// A file of `events/`, sent to another path with other headers.
fn event(name: &str, path: &str, query: &str, headers: &[(&str, &str)]) -> Value {
    let mut event: Value = serde_json::from_str(&files::read(format!("events/{name}.json"))).unwrap();
    event["rawPath"] = path.into();
    event["requestContext"]["http"]["path"] = path.into();
    event["rawQueryString"] = query.into();
    let sent = event["headers"].as_object_mut().unwrap();
    sent.remove("stripe-signature");
    sent.extend(headers.iter().map(|(name, value)| ((*name).to_owned(), Value::from(*value))));
    event
}

fn request(event: &Value) -> lambda_http::Request {
    lambda_http::request::from_str(&event.to_string()).unwrap()
}

/// A second store with accounts of its own; its paths, in the order of the dialects.
async fn another_store(till: &Till) -> [String; 2] {
    let client = till.database.another_owner().await;
    let tenant_id = seed::store(&client).await;
    let row = client.query_one("select slug from tenants where id = $1", &[&tenant_id]).await.unwrap();
    let slug: String = row.get(0);
    let keys = SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap();
    let accounts = [
        (Dialect::Stripe, Gateway::Stripe, "secret_key", "sk_test_other"),
        (Dialect::MercadoPago, Gateway::MercadoPago, "access_token", "TEST-other"),
    ];
    for (dialect, gateway, field, key) in accounts {
        let credentials = json!({ field: key, "webhook_secrets": [OTHER_SECRET] }).to_string();
        let sealed = keys.seal(&context(tenant_id, gateway), credentials.as_bytes()).unwrap();
        save_account(&till.database.app_client().await, tenant_id, gateway, &sealed).await.unwrap();
        till.gateway.add_account(Account {
            dialect,
            key: key.into(),
            webhook_url: String::new(),
            webhook_secret: OTHER_SECRET.into(),
        });
    }
    accounts.map(|(dialect, ..)| format!("/v1/webhooks/{}/{slug}", dialect.name()))
}

async fn heard(till: &Till) -> i64 {
    count(&till.database, "select count(*) from inbox").await
}

/// Sends each event; all are refused and nothing is written.
async fn refuses(till: &Till, events: &[(&str, Value)]) {
    for (name, event) in events {
        assert_eq!(till.webhook.call(request(event)).await.status, 400, "{name}");
    }
    assert_eq!(heard(till).await, 0);
}

/// Sends each event; all are taken, and they are one event at each of two stores.
async fn takes(till: &Till, events: &[(&str, Value)]) {
    for (name, event) in events {
        assert_eq!(till.webhook.call(request(event)).await.status, 200, "{name}");
    }
    assert_eq!(heard(till).await, 2);
}

/// A webhook to be signed by a gateway's library.
struct Row<'a> {
    name: &'static str,
    /// Of `events/`.
    file: &'static str,
    path: &'a str,
    secret: &'static str,
    /// In the unit of the gateway.
    at: i64,
    /// The body, or the id of Mercado Pago's payment.
    signed: Vec<u8>,
}

#[tokio::test(flavor = "multi_thread")]
async fn stripes_webhooks_are_checked_on_the_bytes_that_were_sent() {
    let till = Till::open(Policy::default()).await;
    let (path, [other_path, _], at) = (&till.webhook_path(Dialect::Stripe), &another_store(&till).await, now());
    let (mut bad, mut good) = (Vec::new(), Vec::new());
    for file in [AS_TEXT, IN_BASE64] {
        let signed = request(&event(file, path, "", &[])).body().to_vec();
        let this = || Row { name: "this store", file, path, secret: STRIPE_SECRET, at, signed: signed.clone() };
        bad.extend([
            Row { name: "another store's valid secret", secret: OTHER_SECRET, ..this() },
            Row { name: "this store's secret at another store", path: other_path, ..this() },
            Row { name: "an hour ago", at: at - 3_600, ..this() },
            Row { name: "another body", signed: [&signed, &b" "[..]].concat(), ..this() },
        ]);
        if file == IN_BASE64 {
            let delivered = event(file, path, "", &[])["body"].as_str().unwrap().into();
            bad.push(Row { name: "its Base64 is signed", signed: delivered, ..this() });
        }
        good.extend([this(), Row { name: "the other store", path: other_path, secret: OTHER_SECRET, ..this() }]);
    }
    let signed = |rows: &[Row<'_>]| -> Vec<(&str, Value)> {
        let questions = rows.iter().map(|row| sdk::stripe_sign(row.secret, row.at, &row.signed));
        let headers = sdk::sign(&questions.collect::<Vec<_>>());
        let event = |row: &Row<'_>, header: &str| event(row.file, row.path, "", &[("stripe-signature", header)]);
        rows.iter().zip(&headers).map(|(row, header)| (row.name, event(row, header))).collect()
    };
    refuses(&till, &signed(&bad)).await;
    takes(&till, &signed(&good)).await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mercado_pagos_notifications_are_checked_on_the_query() {
    let till = Till::open(Policy::default()).await;
    let (path, [_, other_path], at) = (&till.webhook_path(Dialect::MercadoPago), &another_store(&till).await, now());
    let (mut bad, mut good) = (Vec::new(), Vec::new());
    for file in [AS_TEXT, IN_BASE64] {
        let signed = b"999".to_vec();
        let this = || Row { name: "this store", file, path, secret: MERCADO_PAGO_SECRET, at, signed: signed.clone() };
        bad.extend([
            Row { name: "another store's valid secret", secret: OTHER_SECRET, ..this() },
            Row { name: "this store's secret at another store", path: other_path, ..this() },
            Row { name: "an hour ago", at: at - 3_600, ..this() },
            Row { name: "an hour ago, in milliseconds", at: (at - 3_600) * 1_000, ..this() },
            Row { name: "another payment", signed: b"998".to_vec(), ..this() },
        ]);
        good.extend([
            this(),
            Row { name: "in milliseconds", at: at * 1_000, ..this() },
            Row { name: "the other store", path: other_path, secret: OTHER_SECRET, ..this() },
        ]);
    }
    let signed = |rows: &[Row<'_>]| -> Vec<(&str, Value)> {
        let id = |row: &Row<'_>| String::from_utf8(row.signed.clone()).unwrap();
        let questions =
            rows.iter().map(|row| sdk::mercado_pago_sign(row.secret, row.at, Some(&id(row)), Some("req-1")));
        let headers = sdk::sign(&questions.collect::<Vec<_>>());
        let event = |row: &Row<'_>, header: &str| {
            let headers = [("x-signature", header), ("x-request-id", "req-1")];
            let mut event = event(row.file, row.path, "data.id=999&type=payment", &headers);
            event["body"] = if row.file == IN_BASE64 { NOTIFICATION_BASE64 } else { NOTIFICATION }.into();
            event
        };
        rows.iter().zip(&headers).map(|(row, header)| (row.name, event(row, header))).collect()
    };
    refuses(&till, &signed(&bad)).await;
    takes(&till, &signed(&good)).await;
    till.finish().await;
}
