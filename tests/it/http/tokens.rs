//! Whoever has no valid token gets the same 401 everywhere.

use std::time::Duration;

use axum::http::request::Builder;
use edge::auth::development::sign_buyer;
use tests::http::{self, Api, ISSUER, ask, is};
use tests::writes::Writes;
use uuid::Uuid;

use super::Shop;

#[tokio::test(flavor = "multi_thread")]
async fn token_failures_look_the_same_on_every_route() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let order = shop.order(&buyer, r#"{"quantity":1}"#).await;
    let writes = Writes::watch(&shop.database).await;
    let status = http::order_status(shop.database.app(2));
    let routes: [(&Api, &str, String); 4] = [
        (&shop.orders, "POST", format!("/v1/products/{}/orders", shop.product_id())),
        (&shop.orders, "POST", format!("/v1/orders/{order}/cancellations")),
        (&status, "GET", format!("/v1/orders/{order}")),
        (&status, "GET", "/v1/orders".into()),
    ];
    let signed = |issuer: &str, seconds: u64| {
        format!("Bearer {}", sign_buyer(shop.tenant, buyer.id, issuer, Duration::from_secs(seconds)).unwrap())
    };
    let good = buyer.bearer.clone();
    let parts: Vec<&str> = good.split('.').collect();
    let other = signed(ISSUER, 60);
    let tokens = [
        String::new(),
        "Bearer".into(),
        "Bearer ".into(),
        "Bearer x".into(),
        "Bearer a.b.c".into(),
        good.replace("Bearer", "Basic"),
        good.replace("Bearer ", ""),
        format!("{good} "),
        format!("{good}x"),
        format!("{}.{}.", parts[0], parts[1]),
        // Header and signature of one token, claims of another.
        format!("{}.{}.{}", parts[0], other.split('.').nth(1).unwrap(), parts[2]),
        // {"alg":"none","kid":"development"}
        format!("Bearer eyJhbGciOiJub25lIiwia2lkIjoiZGV2ZWxvcG1lbnQifQ.{}.", parts[1]),
        signed("somebody-else", 60),
        signed(ISSUER, 8 * 24 * 3_600),
    ];
    for (api, method, path) in &routes {
        let complete = |request: Builder| {
            request.header("idempotency-key", Uuid::now_v7().to_string()).header("content-type", "application/json")
        };
        for token in &tokens {
            let request = complete(ask(method, path)).header("authorization", token);
            let answer = api.send(request, r#"{"quantity":1}"#).await;
            assert_eq!(answer.refusal(), is(401, "unauthorized"), "{method} {path} {token}");
            assert_eq!(answer.header("www-authenticate"), "Bearer");
            let mut problem = answer.json();
            problem.as_object_mut().unwrap().remove("instance");
            let expected = serde_json::json!({
                "type": "urn:tirada:problem:unauthorized", "title": "A valid token is required",
                "status": 401, "code": "unauthorized",
            });
            assert_eq!(problem, expected, "one shape, whatever is wrong");
        }
        let answer = api.send(complete(ask(method, path)), r#"{"quantity":1}"#).await;
        assert_eq!(answer.refusal(), is(401, "unauthorized"), "{method} {path} without a token");
        let twice = complete(ask(method, path)).header("authorization", &good).header("authorization", &good);
        assert_eq!(api.send(twice, r#"{"quantity":1}"#).await.refusal(), is(401, "unauthorized"));
    }
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
    shop.finish().await;
}
