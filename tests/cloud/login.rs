//! A person logs in at the deployed stack with a code that the local cloud shows.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tests::login::Phones;

use crate::cloud::{Buyer, Cloud, variable};

const PATIENCE: Duration = Duration::from_secs(30);

/// The code that a phone gets.
async fn code(phones: &Phones, phone: &str) -> String {
    let began = Instant::now();
    while !phones.messages().iter().any(|(to, _)| to == phone) {
        assert!(began.elapsed() < PATIENCE, "no code came");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    phones.code(phone)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_leads_to_an_order() {
    let cloud = Cloud::open().await;
    let phones = Phones::at(variable("TIRADA_PHONES_FILE"));
    let sql = "select slug, (extract(epoch from now()) * 1000)::int8 % 1000000000 from tenants where id = $1";
    let row = cloud.client.query_one(sql, &[&cloud.tenant]).await.unwrap();
    let (store, digits): (String, i64) = (row.get(0), row.get(1));
    let phone = format!("+34{digits:09}");
    let asked = cloud.post(&format!("/v1/stores/{store}/login-codes"), None, &json!({ "phone": phone })).await;
    assert_eq!(asked.status, 202, "{asked:?}");
    let body = json!({ "asking_session": asked.json()["asking_session"], "code": code(&phones, &phone).await });
    let path = format!("/v1/stores/{store}/sessions");
    let session = cloud.post(&path, None, &body).await;
    assert_eq!((session.status, &session.headers["cache-control"]), (201, &"no-store".parse().unwrap()));
    assert_eq!(cloud.post(&path, None, &body).await.refusal(), (422, "code-wrong".into()));

    let session = session.json();
    let text = |session: &Value, name: &str| session[name].as_str().unwrap().to_owned();
    let buyer = Buyer::with_token(text(&session, "access_token"));
    let order = cloud.place(&buyer, "first", &json!({ "quantity": 1 })).await.order();
    cloud.until(&buyer, order, "reserved").await;
    let refresh = text(&session, "refresh_token");
    let device = json!({ "device": session["device"] });
    let next = cloud.post("/v1/sessions/refresh", Some(&refresh), &device).await;
    assert_eq!(next.status, 200, "{next:?}");
    let buyer = Buyer::with_token(text(&next.json(), "access_token"));
    cloud.until(&buyer, order, "reserved").await;
    let keys = cloud.get("/.well-known/jwks.json").await;
    assert_eq!((keys.status, &keys.json()["keys"][0]["kty"]), (200, &json!("EC")));
    cloud.finish().await;
}
