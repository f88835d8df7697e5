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

async fn status(till: &Till, event: &Value) -> u16 {
    till.webhook.call(request(event)).await.status
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

#[tokio::test(flavor = "multi_thread")]
async fn stripes_webhooks_are_checked_on_the_bytes_that_were_sent() {
    let till = Till::open(Policy::default()).await;
    let (path, [other_path, _]) = (till.webhook_path(Dialect::Stripe), another_store(&till).await);
    for file in [AS_TEXT, IN_BASE64] {
        let as_signed = request(&event(file, &path, "", &[])).body().to_vec();
        let as_delivered = event(file, &path, "", &[])["body"].as_str().unwrap().as_bytes().to_vec();
        let mut changed = as_signed.clone();
        changed.push(b' ');
        let before = heard(&till).await;
        let refused = [
            ("another store's valid secret", &path, OTHER_SECRET, now(), &as_signed),
            ("this store's secret at another store", &other_path, STRIPE_SECRET, now(), &as_signed),
            ("an hour ago", &path, STRIPE_SECRET, now() - 3_600, &as_signed),
            ("another body", &path, STRIPE_SECRET, now(), &changed),
        ];
        for (name, path, secret, at, signed) in refused {
            let header = sdk::sign(&[sdk::stripe_sign(secret, at, signed)]).remove(0);
            let event = event(file, path, "", &[("stripe-signature", &header)]);
            assert_eq!(status(&till, &event).await, 400, "{file}: {name}");
        }
        if file == IN_BASE64 {
            let header = sdk::sign(&[sdk::stripe_sign(STRIPE_SECRET, now(), &as_delivered)]).remove(0);
            let event = event(file, &path, "", &[("stripe-signature", &header)]);
            assert_eq!(status(&till, &event).await, 400, "{file}: the Base64 is not what was signed");
        }
        assert_eq!(heard(&till).await, before, "nothing is written");
        for (path, secret) in [(&path, STRIPE_SECRET), (&other_path, OTHER_SECRET)] {
            let header = sdk::sign(&[sdk::stripe_sign(secret, now(), &as_signed)]).remove(0);
            let event = event(file, path, "", &[("stripe-signature", &header)]);
            assert_eq!(status(&till, &event).await, 200, "{file}");
        }
    }
    assert_eq!(heard(&till).await, 2, "both files are the same event, once for each store");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mercado_pagos_notifications_are_checked_on_the_query() {
    let till = Till::open(Policy::default()).await;
    let (path, [_, other_path]) = (till.webhook_path(Dialect::MercadoPago), another_store(&till).await);
    for (file, body) in [(AS_TEXT, NOTIFICATION), (IN_BASE64, NOTIFICATION_BASE64)] {
        let ask = async |path: &str, secret: &str, ts: i64, signed_id: &str, query: &str| {
            let header = sdk::sign(&[sdk::mercado_pago_sign(secret, ts, Some(signed_id), Some("req-1"))]).remove(0);
            let mut event = event(file, path, query, &[("x-signature", &header), ("x-request-id", "req-1")]);
            event["body"] = body.into();
            status(&till, &event).await
        };
        let before = heard(&till).await;
        let query = "data.id=999&type=payment";
        for (name, path, secret, ts, signed_id) in [
            ("another store's valid secret", &path, OTHER_SECRET, now(), "999"),
            ("this store's secret at another store", &other_path, MERCADO_PAGO_SECRET, now(), "999"),
            ("an hour ago", &path, MERCADO_PAGO_SECRET, now() - 3_600, "999"),
            ("an hour ago, in milliseconds", &path, MERCADO_PAGO_SECRET, (now() - 3_600) * 1_000, "999"),
            ("another payment", &path, MERCADO_PAGO_SECRET, now(), "998"),
        ] {
            assert_eq!(ask(path, secret, ts, signed_id, query).await, 400, "{file}: {name}");
        }
        assert_eq!(heard(&till).await, before, "nothing is written");
        assert_eq!(ask(&path, MERCADO_PAGO_SECRET, now(), "999", query).await, 200, "{file}");
        assert_eq!(ask(&path, MERCADO_PAGO_SECRET, now() * 1_000, "999", query).await, 200, "{file}: milliseconds");
        assert_eq!(ask(&other_path, OTHER_SECRET, now(), "999", query).await, 200, "{file}: the other store");
    }
    assert_eq!(heard(&till).await, 2, "the same event, once for each store");
    till.finish().await;
}
