//! The HTTP functions in this process, as they run in production: the router with everything around it.

use std::sync::Arc;
use std::time::Duration;

use aws_credential_types::Credentials;
use axum::Router;
use axum::body::{Body, Bytes, HttpBody, to_bytes};
use axum::http::header::{AUTHORIZATION, CACHE_CONTROL, CONTENT_TYPE};
use axum::http::request::Builder;
use axum::http::{HeaderMap, Request};
use cashier::Cashier;
use edge::Stage;
use edge::auth::{TokenKeys, development};
use edge::http::{IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED};
use edge::queue::MessageQueue;
use edge::storage::Bucket;
use serde_json::Value;
use store::Database;
use tower::ServiceExt;
use uuid::Uuid;

/// Who issues the tokens of these tests.
pub const ISSUER: &str = "tirada-tests";

const HOUR: Duration = Duration::from_secs(3_600);

/// One execution environment of an HTTP function.
#[derive(Clone)]
pub struct Api(Router);

/// An environment of `orders`.
#[must_use]
pub fn orders(database: Database, queue: Arc<dyn MessageQueue>) -> Api {
    Api(edge::http::service(orders::router(orders::State::new(database, keys(), queue))))
}

/// An environment of `payments`.
#[must_use]
pub fn payments(database: Database, cashier: Cashier) -> Api {
    Api(edge::http::service(payments::router(payments::State::new(database, keys(), cashier))))
}

/// An environment of `login`.
#[must_use]
pub fn login(database: Database, keys: login::Keys, queue: Arc<dyn MessageQueue>) -> Api {
    Api(edge::http::service(login::router(login::State::new(database, keys, queue))))
}

/// An environment of `staff`.
#[must_use]
pub fn staff(database: Database, keys: staff::Keys, post: staff::Post) -> Api {
    Api(edge::http::service(staff::router(staff::State::new(database, keys, post))))
}

/// An environment of `admin`.
#[must_use]
pub fn admin(database: Database) -> Api {
    // Links to nowhere: who fetches files has a bucket of their own.
    admin_with(database, "http://127.0.0.1:9")
}

/// As [`admin`], with files at an address.
#[must_use]
pub fn admin_with(database: Database, endpoint_url: &str) -> Api {
    let bucket = |name| Bucket::new(name, "us-east-1", Some(endpoint_url.to_owned()), storage_keys());
    let state = admin::State::new(database, keys(), bucket(BUCKET), bucket(BUCKET));
    Api(edge::http::service(admin::router(state)))
}

/// The bucket of these tests, for files of all kinds.
pub const BUCKET: &str = "files";

/// What links are signed with.
#[must_use]
pub fn storage_keys() -> Credentials {
    Credentials::new("test", "test", None, None, "tests")
}

/// An environment of `payment-webhook`.
#[must_use]
pub fn payment_webhook(database: Database, cashier: Cashier, queue: Arc<dyn MessageQueue>) -> Api {
    let state = payment_webhook::State::new(database, cashier, queue);
    Api(edge::http::service(payment_webhook::router(state)))
}

/// An environment of `order-status`.
#[must_use]
pub fn order_status(database: Database) -> Api {
    order_status_with(database, keys())
}

/// As [`order_status`], with other keys to check tokens with.
#[must_use]
pub fn order_status_with(database: Database, keys: TokenKeys) -> Api {
    Api(edge::http::service(order_status::router(order_status::State::new(database, keys))))
}

/// An environment of `catalog`.
#[must_use]
pub fn catalog(database: Database) -> Api {
    Api(edge::http::service(catalog::router(catalog::State::new(database))))
}

fn keys() -> TokenKeys {
    TokenKeys::from_jwks(development::JWKS, ISSUER, Stage::Local).unwrap()
}

impl Api {
    /// Sends a request as it is.
    pub async fn call<B>(&self, request: Request<B>) -> Answer
    where
        B: HttpBody<Data = Bytes> + Send + 'static,
        B::Error: Into<axum::BoxError>,
    {
        let response = self.0.clone().oneshot(request).await.unwrap();
        let (parts, body) = response.into_parts();
        let body = to_bytes(body, usize::MAX).await.unwrap().to_vec();
        Answer { status: parts.status.as_u16(), headers: parts.headers, body }
    }

    /// Serves on a free port of the loopback interface, for those who come from outside this process.
    pub async fn serve(&self) -> Serving {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let router = self.0.clone();
        let task = tokio::spawn(async move { axum::serve(listener, router).await.unwrap() });
        Serving { address, task }
    }

    /// Completes a request and sends it.
    pub async fn send(&self, request: Builder, body: impl Into<Body>) -> Answer {
        self.call(request.body(body.into()).unwrap()).await
    }

    /// GET without a token.
    pub async fn get(&self, path: &str) -> Answer {
        self.send(ask("GET", path), "").await
    }
}

/// A server, until it is dropped.
pub struct Serving {
    /// `127.0.0.1` and the port.
    pub address: String,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Serving {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// The start of a request.
#[must_use]
pub fn ask(method: &str, path: &str) -> Builder {
    Request::builder().method(method).uri(path)
}

/// What came back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The status.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body.
    pub body: Vec<u8>,
}

impl Answer {
    /// The body as JSON.
    #[must_use]
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("{} is not JSON", self.text()))
    }

    /// The body as JSON, null if there is none.
    #[must_use]
    pub fn json_or_null(&self) -> Value {
        if self.body.is_empty() { Value::Null } else { self.json() }
    }

    /// The body as text.
    #[must_use]
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    /// A header, empty if it is absent.
    #[must_use]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    /// Seconds in `Retry-After`.
    #[must_use]
    pub fn retry_after(&self) -> Option<u64> {
        self.header("retry-after").parse().ok()
    }

    /// Whether this is the answer to an earlier request.
    #[must_use]
    pub fn is_replay(&self) -> bool {
        self.header(IDEMPOTENCY_REPLAYED.as_str()) == "true"
    }

    /// The order in an accepted answer, which must be complete.
    #[allow(clippy::must_use_candidate, reason = "often called for its checks")]
    pub fn accepted(&self) -> Uuid {
        assert_eq!(self.status, 202, "{}", self.text());
        let body = self.json();
        let id = body["id"].as_str().unwrap().parse().unwrap();
        assert_eq!(body["location"], format!("/v1/orders/{id}"));
        assert_eq!(self.header("location"), body["location"]);
        assert_eq!(self.retry_after(), body["poll_after"].as_u64());
        id
    }

    /// Status and code of a refusal, which must be a complete problem document.
    #[must_use]
    pub fn refusal(&self) -> (u16, String) {
        assert_eq!(self.headers.get(CONTENT_TYPE).unwrap(), "application/problem+json", "{}", self.text());
        assert_eq!(self.headers.get(CACHE_CONTROL).unwrap(), "no-store");
        let problem = self.json();
        let text = |name: &str| problem[name].as_str().unwrap_or_else(|| panic!("no {name} in {problem}")).to_owned();
        let code = text("code");
        assert_eq!(problem["status"], self.status);
        assert_eq!(text("type"), format!("urn:tirada:problem:{code}"));
        assert!(text("instance").starts_with("urn:tirada:request:") && !text("title").is_empty());
        assert_eq!(problem.get("retry_after").and_then(Value::as_u64), self.retry_after());
        (self.status, code)
    }
}

/// What [`Answer::refusal`] should be.
#[must_use]
pub fn is(status: u16, code: &str) -> (u16, String) {
    (status, code.to_owned())
}

/// A buyer with a token.
#[derive(Debug, Clone)]
pub struct Buyer {
    /// The buyer.
    pub id: Uuid,
    /// The value of their `Authorization` header.
    pub bearer: String,
}

impl Buyer {
    /// A new buyer of a store.
    #[must_use]
    pub fn new(tenant_id: Uuid) -> Self {
        Self::with_id(tenant_id, Uuid::now_v7())
    }

    /// A buyer of a store.
    #[must_use]
    pub fn with_id(tenant_id: Uuid, id: Uuid) -> Self {
        let token = development::sign_buyer(tenant_id, id, ISSUER, HOUR).unwrap();
        Self { id, bearer: format!("Bearer {token}") }
    }

    /// The start of a request that bears the token.
    pub fn ask(&self, method: &str, path: &str) -> Builder {
        ask(method, path).header(AUTHORIZATION, &self.bearer)
    }

    /// Places an order under a key.
    pub async fn place(&self, api: &Api, product_id: Uuid, key: &str, body: impl Into<Body>) -> Answer {
        let request = self.ask("POST", &format!("/v1/products/{product_id}/orders"));
        api.send(request.header(IDEMPOTENCY_KEY, key).header(CONTENT_TYPE, "application/json"), body).await
    }

    /// Cancels an order under a key.
    pub async fn cancel(&self, api: &Api, order_id: Uuid, key: &str) -> Answer {
        let request = self.ask("POST", &format!("/v1/orders/{order_id}/cancellations"));
        api.send(request.header(IDEMPOTENCY_KEY, key), "").await
    }

    /// Pays an order under a key.
    pub async fn pay(&self, api: &Api, order_id: Uuid, key: &str, body: impl Into<Body>) -> Answer {
        let request = self.ask("POST", &format!("/v1/orders/{order_id}/payments"));
        api.send(request.header(IDEMPOTENCY_KEY, key).header(CONTENT_TYPE, "application/json"), body).await
    }

    /// Reads an order.
    pub async fn read(&self, api: &Api, order_id: Uuid) -> Answer {
        api.send(self.ask("GET", &format!("/v1/orders/{order_id}")), "").await
    }
}
