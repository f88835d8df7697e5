//! A buyer behind the gateway, who behaves as our storefront does: the same key until there is an answer.

use std::time::Duration;

use rand::RngExt;
use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::gateway::{Gateway, HttpRequest};
use super::ledger::{Acceptance, Ledger};
use crate::http::{Answer, Buyer};

/// Shortest and longest wait before another try. A client on the street waits for seconds; here time is short.
const WAIT_MIN: Duration = Duration::from_millis(50);
const WAIT_MAX: Duration = Duration::from_millis(400);

/// A buyer.
#[derive(Clone)]
pub struct Shopper {
    /// Who it is.
    pub buyer: Buyer,
    gateway: Gateway,
    ledger: Ledger,
    patience: Duration,
}

/// What a buyer wants.
#[must_use]
pub fn wish(numbers: &[i32], quantity: i32, fallback: &str) -> Value {
    json!({ "numbers": numbers, "quantity": quantity, "fallback": fallback })
}

impl Shopper {
    /// A new buyer of a store.
    #[must_use]
    pub fn new(tenant_id: Uuid, gateway: Gateway, ledger: Ledger) -> Self {
        Self { buyer: Buyer::new(tenant_id), gateway, ledger, patience: Duration::from_secs(60) }
    }

    /// How long it keeps trying.
    #[must_use]
    pub const fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Sends an order once, under a key.
    pub async fn try_place(&self, product_id: Uuid, key: &str, wish: &Value) -> Answer {
        let path = format!("/v1/products/{product_id}/orders");
        let body = wish.to_string();
        let answer = self.send("POST", path, Some(key), body.clone()).await;
        if answer.status == 202 {
            let (key, bearer) = (key.to_owned(), self.buyer.bearer.clone());
            self.ledger.accepted(Acceptance { order_id: answer.accepted(), key, bearer, product_id, body });
        }
        answer
    }

    /// Places an order under a key of its own and repeats it until there is an answer for good: the order, or none if
    /// it was refused or patience ran out.
    pub async fn place(&self, product_id: Uuid, wish: &Value) -> Option<Uuid> {
        self.place_under(product_id, &Uuid::now_v7().to_string(), wish).await
    }

    /// As [`Self::place`], under a key.
    pub async fn place_under(&self, product_id: Uuid, key: &str, wish: &Value) -> Option<Uuid> {
        let answer = self.until_final(|| self.try_place(product_id, key, wish), |_| false).await?;
        (answer.status == 202).then(|| answer.accepted())
    }

    /// Cancels an order, repeated until there is an answer for good; whether it was accepted.
    pub async fn cancel(&self, order_id: Uuid) -> bool {
        let key = Uuid::now_v7().to_string();
        let path = format!("/v1/orders/{order_id}/cancellations");
        let answer = self.until_final(|| self.send("POST", path.clone(), Some(&key), "{}".into()), |_| false).await;
        answer.is_some_and(|answer| answer.status == 202)
    }

    /// Asks once to pay an order, under a key.
    pub async fn try_pay(&self, order_id: Uuid, key: &str, method: &str) -> Answer {
        let body = json!({ "method": method, "return_url": "https://store.example/orders" }).to_string();
        let answer = self.send("POST", format!("/v1/orders/{order_id}/payments"), Some(key), body).await;
        if matches!(answer.status, 201 | 202) {
            self.ledger.paying(order_id, key, attempt(&answer));
        }
        answer
    }

    /// Asks to pay, and repeats it until there is an answer for good: the attempt if there are instructions to follow.
    pub async fn pay(&self, order_id: Uuid, key: &str, method: &str) -> Option<Uuid> {
        let answer = self.until_final(|| self.try_pay(order_id, key, method), |answer| answer.status == 202).await?;
        (answer.status == 201).then(|| attempt(&answer))
    }

    /// Looks at an order once; none if there was no answer to remember.
    pub async fn read(&self, order_id: Uuid) -> Option<Value> {
        let answer = self.send("GET", format!("/v1/orders/{order_id}"), None, String::new()).await;
        let order = (answer.status == 200).then(|| answer.json())?;
        self.ledger.saw(order_id, &order);
        Some(order)
    }

    /// Looks at an order until it is no longer queued, or patience runs out.
    pub async fn follow(&self, order_id: Uuid) -> Option<Value> {
        let began = Instant::now();
        while began.elapsed() < self.patience {
            match self.read(order_id).await {
                Some(order) if order["state"] != "queued" => return Some(order),
                _ => tokio::time::sleep(WAIT_MAX).await,
            }
        }
        None
    }

    async fn until_final<F: Future<Output = Answer>>(
        &self,
        attempt: impl Fn() -> F,
        is_pending: impl Fn(&Answer) -> bool,
    ) -> Option<Answer> {
        let began = Instant::now();
        let mut wait = WAIT_MIN;
        loop {
            let answer = attempt().await;
            let code = code(&answer);
            let again = answer.status >= 500
                || answer.status == 429
                || matches!(code.as_str(), "key-in-flight" | "payment-in-flight" | "busy")
                || is_pending(&answer);
            if !again {
                if answer.status >= 400 {
                    self.ledger.refused(&code);
                }
                return Some(answer);
            }
            self.ledger.retried(answer.status, &code);
            if began.elapsed() >= self.patience {
                return None;
            }
            // With jitter, or all who were refused together come back together. Which of them comes first decides nothing.
            let jitter = rand::rng().random_range(0.5..1.5);
            tokio::time::sleep(wait.mul_f64(jitter)).await;
            wait = (wait * 2).min(WAIT_MAX);
        }
    }

    async fn send(&self, method: &'static str, path: String, key: Option<&str>, body: String) -> Answer {
        let mut request = HttpRequest { method, path, body, ..HttpRequest::default() };
        request.headers.insert("authorization".into(), self.buyer.bearer.clone());
        if let Some(key) = key {
            request.headers.insert("idempotency-key".into(), key.to_owned());
            request.headers.insert("content-type".into(), "application/json".into());
        }
        self.gateway.send(request).await
    }
}

fn attempt(answer: &Answer) -> Uuid {
    answer.json()["id"].as_str().unwrap_or_default().parse().expect("an attempt's id")
}

/// The code of a refusal; empty if the answer has none, as those of API Gateway itself.
#[must_use]
pub fn code(answer: &Answer) -> String {
    let problem: Value = serde_json::from_slice(&answer.body).unwrap_or_default();
    problem["code"].as_str().unwrap_or_default().to_owned()
}
