//! What can be said without a database: who may ask, what is refused before any look, and the documentation.

use std::time::{Duration, SystemTime};

use axum::body::{Body, to_bytes};
use axum::http::header::{AUTHORIZATION, RETRY_AFTER};
use axum::http::{HeaderMap, Request};
use edge::Stage;
use edge::auth::development;
use serde_json::Value;
use store::Settings;
use tower::ServiceExt;
use uuid::Uuid;

use super::*;

const BUYER: Uuid = Uuid::from_u128(1);
const TENANT: Uuid = Uuid::from_u128(2);

/// The state of a function whose database nobody listens for.
fn state() -> State {
    let mut settings = Settings::from_url("postgres://nobody@127.0.0.1:1/none").unwrap();
    settings.borrow_timeout = Duration::from_millis(200);
    let keys = TokenKeys::from_jwks(development::JWKS, "tirada", Stage::Local).unwrap();
    State::new(Database::new(settings).unwrap(), keys)
}

async fn ask(state: &State, path: &str, token: bool) -> (u16, HeaderMap, Value) {
    let mut request = Request::get(path);
    if token {
        let token = development::sign_buyer(TENANT, BUYER, "tirada", Duration::from_secs(60)).unwrap();
        request = request.header(AUTHORIZATION, format!("Bearer {token}"));
    }
    let service = edge::http::service(router(state.clone()));
    let (parts, body) = service.oneshot(request.body(Body::empty()).unwrap()).await.unwrap().into_parts();
    let body = to_bytes(body, usize::MAX).await.unwrap();
    (parts.status.as_u16(), parts.headers, serde_json::from_slice(&body).unwrap())
}

#[tokio::test]
async fn what_cannot_be_ours_is_refused_before_any_database_work() {
    let order = format!("/v1/orders/{}", Uuid::nil());
    for (path, token, status, code) in [
        (order.as_str(), false, 401, "unauthorized"),
        ("/v1/orders", false, 401, "unauthorized"),
        ("/v1/orders/7", true, 404, "not-found"),
        ("/v1/orders?limit=0", true, 422, "invalid"),
        ("/v1/orders?limit=101", true, 422, "invalid"),
        ("/v1/orders?cursor=x", true, 422, "invalid"),
        ("/v1/orders?state=paid", true, 422, "invalid"),
        (order.as_str(), true, 503, "unavailable"),
        ("/v1/orders", true, 503, "unavailable"),
    ] {
        let (got, _, problem) = ask(&state(), path, token).await;
        assert_eq!((got, &problem["code"]), (status, &Value::from(code)), "{path}: {problem}");
    }
}

#[tokio::test]
async fn an_early_poll_is_answered_without_the_database() {
    let state = state();
    let id = Uuid::from_u128(9);
    state.polls.remember((BUYER, id), Some(30), SystemTime::now());
    assert_eq!(ask(&state, &format!("/v1/orders/{id}"), true).await.0, 503, "the first early one is let through");
    let (status, headers, problem) = ask(&state, &format!("/v1/orders/{id}"), true).await;
    assert_eq!((status, &problem["code"]), (429, &Value::from("too-early")));
    assert_eq!((&problem["retry_after"], headers[RETRY_AFTER].to_str().unwrap()), (&Value::from(30), "30"));
    assert_eq!(ask(&state, &format!("/v1/orders/{id}"), false).await.0, 401, "a token comes first");
    assert_eq!(ask(&state, &format!("/v1/orders/{}", Uuid::nil()), true).await.0, 503, "another order is looked up");
}

#[test]
fn every_route_is_documented() {
    let documentation = serde_json::to_value(routes().to_openapi()).unwrap();
    let paths: Vec<_> = documentation["paths"].as_object().unwrap().keys().cloned().collect();
    assert_eq!(paths, ["/v1/orders", "/v1/orders/{order}"]);
    for name in ["Order", "OrderStatus", "Orders", "Place", "Problem"] {
        assert!(documentation["components"]["schemas"][name].is_object(), "{name}");
    }
}
