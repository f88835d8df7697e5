//! The fake gateway keeps to the wire formats, the idempotency rules and the faults that tests script.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use reqwest::header::HeaderMap;
use serde_json::Value;

use tests::gateway::{Account, Dialect, FakeGateway};
use tests::server::{Reply, Request, Server};

mod buyers;
mod faults;
mod keys;
mod mercado_pago;
mod stripe;
mod webhooks;

const SECRET: &str = "whsec_merchant";

/// A merchant: its account, its client, and where its events arrive.
struct Merchant {
    gateway: FakeGateway,
    client: reqwest::Client,
    dialect: Dialect,
    inbox: Arc<Mutex<Vec<Request>>>,
    /// Statuses of the next answers to events; 200 afterwards.
    answers: Arc<Mutex<VecDeque<u16>>>,
    _server: Server,
}

struct Got {
    status: u16,
    headers: HeaderMap,
    body: Value,
}

impl Merchant {
    async fn new(dialect: Dialect) -> Self {
        let inbox: Arc<Mutex<Vec<Request>>> = Arc::default();
        let answers: Arc<Mutex<VecDeque<u16>>> = Arc::default();
        let (taken, next) = (Arc::clone(&inbox), Arc::clone(&answers));
        let server = Server::start(move |request| {
            taken.lock().unwrap().push(request);
            let status = next.lock().unwrap().pop_front().unwrap_or(200);
            async move { Reply { status, ..Reply::default() } }
        })
        .await;
        let gateway = FakeGateway::start().await;
        gateway.add_account(Account {
            dialect,
            key: "key".into(),
            webhook_url: format!("http://{}/hooks?store=1", server.address()),
            webhook_secret: SECRET.into(),
        });
        let client = reqwest::Client::builder().no_proxy().build().unwrap();
        Self { gateway, client, dialect, inbox, answers, _server: server }
    }

    fn request(&self, method: reqwest::Method, path: &str) -> reqwest::RequestBuilder {
        self.client.request(method, format!("{}{path}", self.gateway.url(self.dialect))).bearer_auth("key")
    }

    /// A call in its wire format; none when the connection ends without an answer.
    async fn try_post(&self, path: &str, key: &str, body: &str) -> Option<Got> {
        let (name, kind) = match self.dialect {
            Dialect::Stripe => ("Idempotency-Key", "application/x-www-form-urlencoded"),
            Dialect::MercadoPago => ("X-Idempotency-Key", "application/json"),
        };
        let request = self.request(reqwest::Method::POST, path).header("content-type", kind).body(body.to_owned());
        read(if key.is_empty() { request } else { request.header(name, key) }).await
    }

    async fn post(&self, path: &str, key: &str, body: &str) -> Got {
        self.try_post(path, key, body).await.expect("an answer")
    }

    async fn get(&self, path: &str) -> Got {
        read(self.request(reqwest::Method::GET, path)).await.expect("an answer")
    }

    async fn put(&self, path: &str, body: &str) -> Got {
        read(self.request(reqwest::Method::PUT, path).body(body.to_owned())).await.expect("an answer")
    }

    /// Types of the events that arrived, once all have; each delivery counts.
    async fn events(&self) -> Vec<String> {
        assert!(self.gateway.settle().await);
        let inbox = self.inbox.lock().unwrap();
        let body = |request: &Request| -> Value { serde_json::from_slice(&request.body).unwrap() };
        let kind = |body: Value| body["action"].as_str().or(body["type"].as_str()).unwrap().to_owned();
        inbox.iter().map(|request| kind(body(request))).collect()
    }
}

async fn read(request: reqwest::RequestBuilder) -> Option<Got> {
    let answer = request.send().await.ok()?;
    let (status, headers) = (answer.status().as_u16(), answer.headers().clone());
    Some(Got { status, headers, body: answer.json().await.unwrap() })
}

/// A PaymentIntent of 10.50; its id.
async fn intent(merchant: &Merchant, attempt: &str, more: &str) -> String {
    let body = format!("amount=1050&currency=brl&metadata[attempt_id]={attempt}&metadata[order_id]=o-1{more}");
    let got = merchant.post("/v1/payment_intents", attempt, &body).await;
    assert_eq!(got.status, 200, "{}", got.body);
    got.body["id"].as_str().unwrap().to_owned()
}

/// A Checkout Session of 2 × 5.25; its id.
async fn session(merchant: &Merchant, attempt: &str, more: &str) -> String {
    let body = format!(
        "mode=payment&success_url=https://shop.example.com/ok&client_reference_id={attempt}\
         &line_items[0][quantity]=2&line_items[0][price_data][currency]=brl\
         &line_items[0][price_data][unit_amount]=525&line_items[0][price_data][product_data][name]=Raffle\
         &payment_intent_data[metadata][attempt_id]={attempt}{more}"
    );
    let got = merchant.post("/v1/checkout/sessions", attempt, &body).await;
    assert_eq!(got.status, 200, "{}", got.body);
    got.body["id"].as_str().unwrap().to_owned()
}

const PIX: &str = r#"{"transaction_amount": 10.5, "payment_method_id": "pix", "payer": {"email": "a@example.com"},
    "external_reference": "a-1", "metadata": {"order_id": "o-1"}}"#;

/// A payment with Pix of 10.50 for attempt `a-1`; its id.
async fn pix(merchant: &Merchant) -> String {
    let got = merchant.post("/v1/payments", "k-1", PIX).await;
    assert_eq!(got.status, 201, "{}", got.body);
    got.body["id"].to_string()
}
