use std::time::Duration;

use axum::Json;
use axum::body::{Body, to_bytes};
use axum::extract::FromRef;
use axum::http::header::{ALLOW, AUTHORIZATION, CONTENT_TYPE, RETRY_AFTER};
use axum::http::{HeaderMap, StatusCode};
use axum::routing::{get, post};
use domain::limits::BODY_BYTES_MAX;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tower::ServiceExt;

use super::*;
use crate::auth::{TokenKeys, development};
use crate::config::Stage;
use crate::telemetry::tests::Memory;

#[derive(Clone)]
struct State {
    keys: TokenKeys,
}

impl FromRef<State> for TokenKeys {
    fn from_ref(state: &State) -> Self {
        state.keys.clone()
    }
}

#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct Asked {
    quantity: i32,
    #[serde(default)]
    numbers: Vec<i32>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    limit: u8,
}

async fn panics() {
    panic!("on purpose")
}

fn app() -> Router {
    let keys = TokenKeys::from_jwks(development::JWKS, "tirada", Stage::Local).unwrap();
    service(
        Router::new()
            .route("/echo", post(|JsonBody(asked): JsonBody<Asked>| async { Json(asked) }))
            .route("/things/{id}", get(|PathParams(id): PathParams<Uuid>| async move { id.to_string() }))
            .route("/page", get(|QueryParams(page): QueryParams<Page>| async move { page.limit.to_string() }))
            .route("/keyed", post(|key: IdempotencyKey| async move { key.as_str().to_owned() }))
            .route("/me", get(|BuyerAuth(buyer): BuyerAuth| async move { buyer.buyer_id.to_string() }))
            .route("/cached", get(|headers: HeaderMap| async move { cacheable(&headers, "7", "max-age=9", "body") }))
            .route("/slow", get(|| tokio::time::sleep(Duration::from_secs(60))))
            .route("/panic", get(panics))
            .route("/fault", get(|| async { Problem::from(domain::Error::fault("secret detail")) }))
            .route("/unwritable", get(|| async { Json(std::collections::BTreeMap::from([((1, 2), 3)])) }))
            .route("/free", get(|| async { "ok" }))
            .with_state(State { keys }),
    )
}

async fn send(request: axum::http::request::Builder, body: impl Into<Body>) -> (StatusCode, HeaderMap, Vec<u8>) {
    let response = app().oneshot(request.body(body.into()).unwrap()).await.unwrap();
    let (parts, body) = response.into_parts();
    (parts.status, parts.headers, to_bytes(body, usize::MAX).await.unwrap().to_vec())
}

async fn status_and_code(request: axum::http::request::Builder, body: impl Into<Body>) -> (u16, String) {
    let (status, headers, body) = send(request, body).await;
    assert_eq!(headers[CONTENT_TYPE], "application/problem+json");
    let problem: Value = serde_json::from_slice(&body).unwrap();
    assert_eq!(problem["status"], status.as_u16());
    assert!(problem["instance"].as_str().unwrap().starts_with("urn:tirada:request:"));
    (status.as_u16(), problem["code"].as_str().unwrap().to_owned())
}

fn ask(method: &str, path: &str) -> axum::http::request::Builder {
    Request::builder().method(method).uri(path)
}

fn echo() -> axum::http::request::Builder {
    ask("POST", "/echo").header(CONTENT_TYPE, "application/json")
}

fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

#[tokio::test]
async fn every_answer_has_an_id_and_security_headers() {
    for path in ["/free", "/nowhere", "/panic", "/cached", "/unwritable"] {
        let (_, headers, _) = send(ask("GET", path), "").await;
        assert_eq!(headers[X_CONTENT_TYPE_OPTIONS], "nosniff", "{path}");
        assert!(!headers[REQUEST_ID].is_empty());
        assert_eq!(headers[CACHE_CONTROL], if path == "/cached" { "max-age=9" } else { "no-store" }, "{path}");
    }
    let mut request = ask("GET", "/nowhere").body(Body::empty()).unwrap();
    let mut context = Context::default();
    context.request_id = "from-lambda".into();
    request.extensions_mut().insert(context);
    let response = app().oneshot(request).await.unwrap();
    assert_eq!(response.headers()[REQUEST_ID], "from-lambda");
}

#[tokio::test]
async fn unknown_routes_and_methods_are_problems() {
    assert_eq!(status_and_code(ask("GET", "/nowhere"), "").await, is(404, "not-found"));
    assert_eq!(status_and_code(ask("DELETE", "/free"), "").await, is(405, "method-not-allowed"));
    let (_, headers, _) = send(ask("DELETE", "/free"), "").await;
    assert_eq!(headers[ALLOW], "GET,HEAD");
    let (status, _, body) = send(ask("HEAD", "/fault"), "").await;
    assert!(status == 500 && body.is_empty(), "an answer to HEAD has no body");
}

#[tokio::test]
async fn a_panic_is_an_opaque_500_and_the_next_request_works() {
    let (status, _, body) = send(ask("GET", "/panic"), "").await;
    assert_eq!(status, 500);
    assert!(!String::from_utf8(body).unwrap().contains("purpose"));
    assert_eq!(send(ask("GET", "/free"), "").await.0, 200);
}

#[tokio::test]
async fn an_answer_that_cannot_be_written_is_a_fault_like_any_other() {
    let memory = Memory::default();
    let guard = memory.capture("info");
    assert_eq!(status_and_code(ask("GET", "/unwritable"), "").await, is(500, "internal"));
    drop(guard);
    let lines = memory.lines();
    assert_eq!((lines.len(), &lines[0]["request.route"]), (1, &"/unwritable".into()), "{lines:?}");
}

#[tokio::test]
async fn a_fault_is_logged_once_with_its_cause_and_answered_without() {
    let memory = Memory::default();
    let guard = memory.capture("info");
    let (status, headers, body) = send(ask("GET", "/fault?phone=123").header("x-phone", "123"), "").await;
    assert_eq!(status_and_code(ask("GET", "/nowhere"), "").await, is(404, "not-found"));
    drop(guard);
    assert_eq!(status, 500);
    assert!(!String::from_utf8(body).unwrap().contains("secret detail"));
    let lines = memory.lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0]["error.message"], "fault: secret detail");
    assert_eq!((&lines[0]["level"], &lines[0]["request.route"]), (&"ERROR".into(), &"/fault".into()));
    assert_eq!(lines[0]["request.id"], headers[REQUEST_ID].to_str().unwrap());
    assert!(!lines[0].to_string().contains("123"), "nothing personal");
}

#[tokio::test(start_paused = true)]
async fn the_budget_ends_a_slow_request() {
    let started = tokio::time::Instant::now();
    let (status, headers, _) = send(ask("GET", "/slow"), "").await;
    assert_eq!(status, 503);
    assert_eq!(headers[RETRY_AFTER], "2");
    assert!(started.elapsed() < REQUEST_BUDGET + Duration::from_secs(1));
}

#[tokio::test]
async fn bodies_must_be_small_json() {
    assert_eq!(send(echo(), r#"{"quantity":2}"#).await.2, br#"{"quantity":2,"numbers":[]}"#);
    let utf8 = ask("POST", "/echo").header(CONTENT_TYPE, "Application/JSON; charset=UTF-8");
    assert_eq!(send(utf8, r#"{"quantity":2}"#).await.0, 200);
    for other in ["", "text/plain", "application/json; charset=latin1", "application/jsonp", "multipart/form-data"] {
        let request = ask("POST", "/echo").header(CONTENT_TYPE, other);
        assert_eq!(status_and_code(request, "{}").await, is(415, "unsupported-media-type"), "{other}");
    }
    assert_eq!(status_and_code(ask("POST", "/echo"), "{}").await, is(415, "unsupported-media-type"));
    let padded = format!(r#"{{"quantity":2}}{}"#, " ".repeat(BODY_BYTES_MAX));
    assert_eq!(status_and_code(echo(), padded).await, is(413, "too-large"));
    let announced = echo().header("content-length", "99999999999999999999");
    assert_eq!(status_and_code(announced.header("x", "y"), "{}").await.0, 422, "unreadable lengths are not trusted");
    let announced = echo().header("content-length", "10485760");
    assert_eq!(status_and_code(announced, "{}").await, is(413, "too-large"));
    let exact = format!(r#"{{"quantity":2}}{}"#, " ".repeat(BODY_BYTES_MAX - 14));
    assert_eq!(send(echo(), exact).await.0, 200);
}

#[tokio::test]
async fn what_is_not_json_is_400() {
    let deep = format!(r#"{{"quantity":{}1{}}}"#, "[".repeat(5_000), "]".repeat(5_000));
    let bodies: [&[u8]; 7] =
        [b"", b"{", b"nonsense", b"{\"quantity\":2} x", b"{\"quantity\":\"\xff\"}", b"{'quantity':2}", deep.as_bytes()];
    for body in bodies {
        let got = status_and_code(echo(), body.to_vec()).await;
        // Depth inside a field of another type is noticed as the wrong type.
        let expected = if body.len() > 100 { 422 } else { 400 };
        assert_eq!(got, is(expected, "invalid"), "{:?}", String::from_utf8_lossy(&body[..body.len().min(40)]));
    }
    for (body, said) in [
        ("{", "The body ends too early: see line 1, column "),
        ("{\n'quantity':2}", "The body cannot be read as the JSON of this request: see line 2, column "),
        (r#"{"quantity":2} x"#, "The body cannot be read as the JSON of this request: see line 1, column "),
    ] {
        let (_, _, bytes) = send(echo(), body).await;
        let problem: Value = serde_json::from_slice(&bytes).unwrap();
        assert!(problem["detail"].as_str().unwrap().starts_with(said), "{problem}");
    }
}

#[tokio::test]
async fn json_of_another_shape_is_422_with_the_field() {
    for (body, pointer) in [
        (r#"{"quantity":"2"}"#, "/quantity"),
        (r#"{"quantity":1.5}"#, "/quantity"),
        (r#"{"quantity":99999999999999999999}"#, "/quantity"),
        (r#"{"quantity":1,"numbers":[1,2,"x"]}"#, "/numbers/2"),
        (r#"{"quantity":1,"quantity":2}"#, ""),
        (r#"{"quantity":1,"price":0}"#, "/price"),
        (r#"{}"#, ""),
        (r#"[]"#, ""),
        ("null", ""),
    ] {
        let (status, _, bytes) = send(echo(), body).await;
        let problem: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!((status.as_u16(), &problem["code"]), (422, &Value::from("invalid")), "{body}");
        assert_eq!(problem["errors"][0]["pointer"], pointer, "{body}: {problem}");
        let detail = problem["errors"][0]["detail"].as_str().unwrap();
        assert!(detail.len() < 300);
        for word in ["struct", "i32", "u8", "expected", "column", "invalid", "Asked"] {
            assert!(!detail.contains(word), "{body}: {detail}");
        }
    }
}

#[tokio::test]
async fn paths_and_queries_that_do_not_parse() {
    assert_eq!(status_and_code(ask("GET", "/things/7"), "").await, is(404, "not-found"));
    assert_eq!(status_and_code(ask("GET", "/things/%ff"), "").await.1, "not-found");
    assert_eq!(send(ask("GET", &format!("/things/{}", Uuid::nil())), "").await.0, 200);
    assert_eq!(send(ask("GET", "/page?limit=5"), "").await.2, b"5");
    for query in ["", "limit=x", "limit=1&limit=2", "limit=1&offset=2"] {
        assert_eq!(status_and_code(ask("GET", &format!("/page?{query}")), "").await, is(422, "invalid"), "{query}");
    }
    for (query, said) in [
        ("", "The query must have `limit`."),
        ("limit=x", "The query's `limit` must be a whole number within bounds."),
        ("limit=1&limit=2", "The query has `limit` twice."),
        ("limit=1&offset=2", "A parameter of the query is not known here, only `limit`."),
        ("limit=1&%2B34600000000=2", "A parameter of the query is not known here, only `limit`."),
    ] {
        let (_, _, bytes) = send(ask("GET", &format!("/page?{query}")), "").await;
        let problem: Value = serde_json::from_slice(&bytes).unwrap();
        assert_eq!(problem["detail"], said, "{query}");
    }
}

#[tokio::test]
async fn idempotency_keys() {
    assert_eq!(status_and_code(ask("POST", "/keyed"), "").await, is(400, "key-missing"));
    let keyed = |value: &str| ask("POST", "/keyed").header(IDEMPOTENCY_KEY, value);
    assert_eq!(send(keyed("\"abc\""), "").await.2, b"abc");
    assert_eq!(send(keyed("abc"), "").await.2, b"abc");
    assert_eq!(status_and_code(keyed("a b"), "").await, is(400, "invalid"));
    assert_eq!(status_and_code(keyed("a").header(IDEMPOTENCY_KEY, "a"), "").await, is(400, "invalid"));
}

#[tokio::test]
async fn buyers_need_a_token() {
    let token =
        development::sign_buyer(Uuid::from_u128(2), Uuid::from_u128(1), "tirada", Duration::from_secs(60)).unwrap();
    let bearer = format!("Bearer {token}");
    let (status, _, body) = send(ask("GET", "/me").header(AUTHORIZATION, &bearer), "").await;
    assert_eq!((status.as_u16(), body), (200, Uuid::from_u128(1).to_string().into_bytes()));
    assert_eq!(status_and_code(ask("GET", "/me"), "").await, is(401, "unauthorized"));
    let twice = ask("GET", "/me").header(AUTHORIZATION, &bearer).header(AUTHORIZATION, &bearer);
    assert_eq!(status_and_code(twice, "").await, is(401, "unauthorized"));
}
