//! The local cloud as these tests use it: its API, its AWS endpoint and its database.

use std::time::{Duration, Instant};

use domain::roles::Role;
use edge::auth::StaffClaim;
use serde_json::{Value, json};
use store::catalog::Product;
use tests::auditor::{Expect, findings_in};
use tests::seed::{self, ProductBuilder};
use tokio_postgres::{Client, NoTls};
use uuid::Uuid;

/// The stack, as samconfig.toml names it.
const STACK: &str = "tirada-local";

/// Held by tests that use the release queue, because one of them changes its settings.
pub(crate) static RELEASE_QUEUE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

/// How long something that should happen may take.
const PATIENCE: Duration = Duration::from_secs(45);

/// Tries of one request while the gateway is busy.
const TRIES: u32 = 40;

/// The deployed stack, with a store and a product for one test.
pub(crate) struct Cloud {
    pub(crate) client: Client,
    pub(crate) tenant: Uuid,
    pub(crate) product: Product,
    http: reqwest::Client,
    api: String,
    aws: String,
}

/// An answer of the API.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Answer {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {}", String::from_utf8_lossy(&self.body)))
    }

    /// The order in an accepted answer.
    pub(crate) fn order(&self) -> Uuid {
        assert_eq!(self.status, 202, "{}", String::from_utf8_lossy(&self.body));
        self.json()["id"].as_str().unwrap().parse().unwrap()
    }

    /// Status and code of a refusal.
    pub(crate) fn refusal(&self) -> (u16, String) {
        assert_eq!(self.headers["content-type"], "application/problem+json", "{:?}", self.json());
        (self.status, self.json()["code"].as_str().unwrap().to_owned())
    }
}

/// A buyer with a token.
pub(crate) struct Buyer(String);

impl Buyer {
    pub(crate) fn with_token(token: String) -> Self {
        Self(token)
    }
}

impl Cloud {
    /// The local cloud, with a product of the test's own.
    pub(crate) async fn with(product: impl FnOnce(Uuid) -> ProductBuilder) -> Self {
        let (mut client, connection) =
            tokio_postgres::connect(&variable("TIRADA_OWNER_DATABASE_URL"), NoTls).await.unwrap();
        tokio::spawn(connection);
        let tenant = seed::store(&client).await;
        let product = product(tenant).insert(&mut client).await;
        let http = reqwest::Client::builder().no_proxy().timeout(PATIENCE).build().unwrap();
        Self { client, tenant, product, http, api: variable("TIRADA_API_URL"), aws: variable("AWS_ENDPOINT_URL") }
    }

    pub(crate) async fn open() -> Self {
        Self::with(|tenant| seed::product(tenant, 10_000)).await
    }

    /// Ends a test: whatever else is under way, nothing is wrong.
    pub(crate) async fn finish(mut self) {
        let findings = findings_in(&mut self.client, Expect::UnderWay).await;
        assert_eq!(findings, Vec::<String>::new());
    }

    pub(crate) fn buyer(&self) -> Buyer {
        let (issuer, hour) = (variable("TIRADA_TOKEN_ISSUER"), Duration::from_secs(3_600));
        let token = edge::auth::development::sign_buyer(self.tenant, Uuid::now_v7(), &issuer, hour).unwrap();
        Buyer(token)
    }

    pub(crate) fn product_id(&self) -> Uuid {
        self.product.described.id
    }

    /// Sends, and sends again where the gateway itself was busy, as every client must: its own answers have no problem
    /// document.
    async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        for _ in 0..TRIES {
            let answer = request.try_clone().unwrap().send().await.unwrap();
            let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
            let ours = headers.get("content-type").is_some_and(|kind| kind == "application/problem+json");
            if !matches!(status, 429 | 503) || ours {
                return Answer { status, headers, body: answer.bytes().await.unwrap().to_vec() };
            }
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        panic!("the gateway was busy {TRIES} times");
    }

    pub(crate) async fn get(&self, path: &str) -> Answer {
        self.send(self.http.get(format!("{}{path}", self.api))).await
    }

    /// Posts JSON, with a bearer token or without.
    pub(crate) async fn post(&self, path: &str, bearer: Option<&str>, body: &Value) -> Answer {
        let request = self.http.post(format!("{}{path}", self.api)).json(body);
        let request = match bearer {
            Some(token) => request.bearer_auth(token),
            None => request,
        };
        self.send(request).await
    }

    /// Somebody of the store's staff who has just proved who they are; their token.
    pub(crate) async fn hire(&self, role: Role) -> String {
        let (staff_id, session_id) = (Uuid::now_v7(), Uuid::now_v7());
        let email = format!("{}@example.org", staff_id.simple());
        let sql = "insert into staff (id, tenant_id, email, role, joined_at, totp)
            values ($1, $2, $3, $4, now(), decode(repeat('00', 32), 'hex'))";
        self.client.execute(sql, &[&staff_id, &self.tenant, &email, &role.word()]).await.unwrap();
        let sql = "insert into staff_sessions (id, tenant_id, staff_id, device_id, expires_at, fresh_until)
            values ($1, $2, $3, $1, now() + interval '1 hour', now() + interval '10 minutes')";
        self.client.execute(sql, &[&session_id, &self.tenant, &staff_id]).await.unwrap();
        let (issuer, hour) = (variable("TIRADA_TOKEN_ISSUER"), Duration::from_secs(3_600));
        let claim = StaffClaim { staff_id, tenant_id: self.tenant, session_id };
        edge::auth::development::sign_staff(claim, &issuer, hour).unwrap()
    }

    /// Posts as staff, under a key of its own, or reads without a body.
    pub(crate) async fn as_staff(&self, bearer: &str, path: &str, body: Option<&Value>) -> Answer {
        let url = format!("{}{path}", self.api);
        let request = match body {
            Some(body) => self.http.post(url).header("idempotency-key", Uuid::now_v7().to_string()).json(body),
            None => self.http.get(url),
        };
        self.send(request.bearer_auth(bearer)).await
    }

    /// Fetches an address, as somebody without any token.
    pub(crate) async fn fetch(&self, url: &str) -> Answer {
        self.send(self.http.get(url)).await
    }

    /// Sends a form with a file, as a browser does; the status.
    pub(crate) async fn send_form(&self, url: &str, fields: &[(String, String)], file: &[u8]) -> u16 {
        let mut body = Vec::new();
        for (name, value) in fields {
            let part = format!("--edge\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n");
            body.extend(part.into_bytes());
        }
        let head = "--edge\r\nContent-Disposition: form-data; name=\"file\"; filename=\"picture.png\"\r\n\r\n";
        body.extend([head.as_bytes(), file, b"\r\n--edge--\r\n"].concat());
        let request = self.http.post(url).header("content-type", "multipart/form-data; boundary=edge");
        self.send(request.body(body)).await.status
    }

    pub(crate) async fn place(&self, buyer: &Buyer, key: &str, body: &Value) -> Answer {
        let url = format!("{}/v1/products/{}/orders", self.api, self.product_id());
        self.send(self.http.post(url).bearer_auth(&buyer.0).header("idempotency-key", key).json(body)).await
    }

    pub(crate) async fn cancel(&self, buyer: &Buyer, order: Uuid, key: &str) -> Answer {
        let url = format!("{}/v1/orders/{order}/cancellations", self.api);
        self.send(self.http.post(url).bearer_auth(&buyer.0).header("idempotency-key", key)).await
    }

    pub(crate) async fn read(&self, buyer: &Buyer, order: Uuid) -> Answer {
        self.send(self.http.get(format!("{}/v1/orders/{order}", self.api)).bearer_auth(&buyer.0)).await
    }

    /// Polls as a client should, until the order is in this state.
    pub(crate) async fn until(&self, buyer: &Buyer, order: Uuid, state: &str) -> Value {
        let started = Instant::now();
        loop {
            let answer = self.read(buyer, order).await;
            if answer.status == 200 && answer.json()["state"] == state {
                return answer.json();
            }
            assert!(matches!(answer.status, 200 | 429), "{answer:?}");
            assert!(started.elapsed() < PATIENCE, "never {state}: {}", answer.json());
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    }

    /// Whether the public bitmap says that a number is taken.
    pub(crate) async fn is_taken(&self, number: i32) -> bool {
        let range = self.product.described.range;
        let (chunk, offset) = (range.chunk_of(number), range.chunk_first(range.chunk_of(number)));
        let answer = self.get(&format!("/v1/products/{}/availability/{chunk}", self.product_id())).await;
        assert_eq!((answer.status, answer.body.len()), (200, 1_024));
        let bit = usize::try_from(number - offset).unwrap();
        answer.body[bit / 8] & (1 << (bit % 8)) != 0
    }

    /// Runs a job now, by Lambda's API; its report.
    pub(crate) async fn invoke(&self, function: &str) -> Value {
        let url = format!("{}/2015-03-31/functions/{STACK}-{function}:live/invocations", self.aws);
        let answer = self.send(signed(self.http.post(url), "lambda").json(&json!({}))).await;
        assert_eq!(answer.status, 200, "{answer:?}");
        assert!(!answer.headers.contains_key("x-amz-function-error"), "{function}: {}", answer.json());
        answer.json()
    }

    /// Calls SQS.
    pub(crate) async fn sqs(&self, operation: &str, input: &Value) -> Value {
        let request = signed(self.http.post(&self.aws), "sqs")
            .header("x-amz-target", format!("AmazonSQS.{operation}"))
            .header("content-type", "application/x-amz-json-1.0");
        let answer = self.send(request.body(input.to_string())).await;
        assert_eq!(answer.status, 200, "{operation}: {answer:?}");
        serde_json::from_slice(&answer.body).unwrap_or_default()
    }
}

/// The emulator finds the service in the signature, and does not check it.
fn signed(request: reqwest::RequestBuilder, service: &str) -> reqwest::RequestBuilder {
    let credential = format!("test/20260101/us-east-1/{service}/aws4_request");
    request
        .header("authorization", format!("AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders=host, Signature=0"))
}

/// A variable that `python3 -m local slow` sets.
pub(crate) fn variable(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set"))
}
