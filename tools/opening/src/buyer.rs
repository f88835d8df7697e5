//! Virtual buyers: some come too early, some press twice, some hang up, some change their mind; most want the same
//! few numbers. Most of those who get some pay.

mod paying;

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::{Duration, Instant};

use edge::auth::development::sign_buyer;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use reqwest::redirect::Policy;
use reqwest::{Client, RequestBuilder, StatusCode};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use uuid::Uuid;

use crate::Options;
use crate::counts::Counts;
use crate::gateway::Gateway;
use crate::sale::Sale;
use paying::Later;

/// Numbers that everybody wants.
const POPULAR: i32 = 50;
/// Tries of one request, with the same key, before a buyer gives up.
const TRIES: u32 = 60;
/// What stands for a code where the gateway itself answered: it has no problem document.
const NOT_OURS: &str = "gateway busy";
/// Longest wait for an answer, above what a function may take.
const ANSWER_MAX: Duration = Duration::from_secs(12);
/// Longest that a buyer follows one order.
const PATIENCE: Duration = Duration::from_secs(600);
/// How long a buyer's token is valid.
const TOKEN_LIFETIME: Duration = Duration::from_secs(3_600);

/// Where to buy.
pub(crate) struct Shop {
    http: Client,
    product_url: String,
    orders_url: String,
    api_url: String,
    gateway: Arc<Gateway>,
    hold: Duration,
    /// Payments that the gateway has yet to be silent about.
    silences: AtomicU32,
    opens: Instant,
    numbers: i32,
    tenant_id: Uuid,
    issuer: String,
}

impl Shop {
    pub(crate) fn new(options: &Options, sale: &Sale, gateway: &Arc<Gateway>) -> Result<Self, Box<dyn Error>> {
        let api_url = options.api_url.trim_end_matches('/').to_owned();
        let product_url = format!("{api_url}/v1/products/{}", sale.product_id());
        Ok(Self {
            // Where a page sends its buyer is an answer, not somewhere to go.
            http: Client::builder().timeout(ANSWER_MAX).pool_max_idle_per_host(64).redirect(Policy::none()).build()?,
            orders_url: format!("{product_url}/orders"),
            product_url,
            api_url,
            gateway: Arc::clone(gateway),
            hold: Duration::from_secs(options.hold.into()),
            silences: AtomicU32::new((options.buyers / 100).clamp(2, 4)),
            opens: sale.opens(),
            numbers: options.numbers,
            tenant_id: sale.tenant_id(),
            issuer: options.issuer.clone(),
        })
    }
}

/// One buyer.
struct Buyer {
    shop: Arc<Shop>,
    counts: Arc<Counts>,
    rng: StdRng,
    token: String,
}

/// Sends the crowd off; each buyer is a task, which ends when a late one has come back.
pub(crate) fn crowd(shop: &Arc<Shop>, counts: &Arc<Counts>, seed: u64, options: &Options) -> Vec<JoinHandle<()>> {
    (0..options.buyers)
        .map(|n| {
            let (shop, counts) = (Arc::clone(shop), Arc::clone(counts));
            tokio::spawn(async move {
                let buyer = Buyer::new(&shop, &counts, seed.wrapping_add(u64::from(n)));
                let Some(mut buyer) = buyer else { return Counts::add(&counts.finished, 1) };
                let later = buyer.visit().await;
                Counts::add(&counts.finished, 1);
                if let Some(later) = later {
                    buyer.come_back(later).await;
                }
            })
        })
        .collect()
}

impl Buyer {
    /// A new buyer; none without a token, which is a loss.
    fn new(shop: &Arc<Shop>, counts: &Arc<Counts>, seed: u64) -> Option<Self> {
        match sign_buyer(shop.tenant_id, Uuid::now_v7(), &shop.issuer, TOKEN_LIFETIME) {
            Ok(token) => Some(Self {
                shop: Arc::clone(shop),
                counts: Arc::clone(counts),
                rng: StdRng::seed_from_u64(seed),
                token,
            }),
            Err(error) => {
                counts.lose(format!("no token: {error}"));
                None
            }
        }
    }

    /// Comes, orders and pays; what is left for later.
    async fn visit(&mut self) -> Option<Later> {
        if self.rng.random_bool(0.15) {
            tokio::time::sleep_until(
                (self.shop.opens - Duration::from_millis(self.rng.random_range(300..1_500))).into(),
            )
            .await;
            self.ask_too_early().await;
        }
        tokio::time::sleep_until((self.shop.opens + Duration::from_millis(self.rng.random_range(0..1_000))).into())
            .await;
        let wish = self.wish();
        let mut location = self.buy(&wish).await?;
        if self.rng.random_bool(0.08) {
            self.cancel(&location).await;
        }
        let mut end = self.follow(&location).await?;
        if end["state"] == "rejected" && end["suggestions"].as_array().is_some_and(|s| !s.is_empty()) {
            let second = json!({ "numbers": [end["suggestions"][0]], "fallback": "replace" });
            location = self.buy(&second).await?;
            end = self.follow(&location).await?;
        }
        if end["state"] != "reserved" || end["cancel_requested"] == true {
            return None;
        }
        self.pay_for(&location, &end).await
    }

    /// Most want popular numbers; the others take what comes.
    fn wish(&mut self) -> Value {
        let many = self.rng.random_range(1..=5);
        if self.rng.random_bool(0.4) {
            return json!({ "quantity": many });
        }
        let mut numbers: Vec<i32> =
            (0..many).map(|_| self.rng.random_range(0..POPULAR.min(self.shop.numbers))).collect();
        numbers.sort_unstable();
        numbers.dedup();
        let fallback = ["reject", "drop", "replace"][self.rng.random_range(0..3)];
        json!({ "numbers": numbers, "quantity": i32::from(self.rng.random_bool(0.2)), "fallback": fallback })
    }

    async fn ask_too_early(&mut self) {
        Counts::add(&self.counts.asked, 1);
        let wish = json!({ "quantity": 1 });
        if let Ok(answer) = self.place(&wish, &Uuid::now_v7().to_string()).send().await {
            let status = answer.status();
            let code = code_of(answer.json().await.unwrap_or_default());
            if status == StatusCode::ACCEPTED {
                self.counts.lose("an order was accepted before the opening".into());
            } else {
                self.counts.refuse(&code);
            }
        }
    }

    fn place(&self, wish: &Value, key: &str) -> RequestBuilder {
        self.shop
            .http
            .post(&self.shop.orders_url)
            .bearer_auth(&self.token)
            .header("Idempotency-Key", format!("\"{key}\""))
            .json(wish)
    }

    /// Places one order, whatever happens on the way: the key stays the same, so it is one order.
    async fn buy(&mut self, wish: &Value) -> Option<String> {
        let key = Uuid::now_v7().to_string();
        if self.rng.random_bool(0.05) {
            // Hangs up while the answer is on its way, and comes back later.
            Counts::add(&self.counts.asked, 1);
            let hung_up = tokio::time::timeout(
                Duration::from_millis(self.rng.random_range(5..80)),
                self.place(wish, &key).send(),
            )
            .await;
            if hung_up.is_err() {
                Counts::add(&self.counts.disconnected, 1);
            }
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
        let twice = self.rng.random_bool(0.1);
        let first = self.insist(wish, &key).await?;
        if twice {
            let second = self.insist(wish, &key).await;
            if second.as_ref() != Some(&first) {
                self.counts.lose(format!("one key, two answers: {first} and {second:?}"));
            }
        }
        Some(first)
    }

    /// Sends until there is a definite answer: the order's location, or none when it was refused.
    async fn insist(&mut self, wish: &Value, key: &str) -> Option<String> {
        for _ in 0..TRIES {
            Counts::add(&self.counts.asked, 1);
            let started = Instant::now();
            let answer = match self.place(wish, key).send().await {
                Ok(answer) => answer,
                Err(error) => {
                    self.counts.refuse(if error.is_timeout() { "no answer in time" } else { "connection lost" });
                    self.pause(1.0).await;
                    continue;
                }
            };
            let (status, replayed) = (answer.status(), answer.headers().contains_key("idempotency-replayed"));
            let wait = retry_after(&answer);
            let body: Value = answer.json().await.unwrap_or_default();
            if status == StatusCode::ACCEPTED {
                self.counts.time_intake(started.elapsed());
                Counts::add(if replayed { &self.counts.replayed } else { &self.counts.accepted }, 1);
                return body["location"].as_str().map(str::to_owned);
            }
            let code = code_of(body);
            self.counts.refuse(&code);
            let again = status.is_server_error()
                || status == StatusCode::TOO_MANY_REQUESTS
                || code == "not-open"
                || code == "key-in-flight";
            if !again {
                return None;
            }
            self.pause(wait.unwrap_or(1.0)).await;
        }
        self.counts.lose("no definite answer in many tries".into());
        None
    }

    async fn pause(&mut self, seconds: f64) {
        let jittered = seconds * self.rng.random_range(0.8..1.3);
        tokio::time::sleep(Duration::from_secs_f64(jittered.clamp(0.05, 30.0))).await;
    }

    async fn cancel(&mut self, location: &str) {
        let key = Uuid::now_v7().to_string();
        for _ in 0..TRIES {
            let url = format!("{}{location}/cancellations", self.shop.api_url);
            let request = self.shop.http.post(url).bearer_auth(&self.token).header("Idempotency-Key", &key);
            if let Ok(answer) = request.send().await {
                let status = answer.status();
                let code = code_of(answer.json().await.unwrap_or_default());
                // Too late to cancel is an answer; only busy is worth another try.
                let again = ["busy", "key-in-flight", "unavailable", NOT_OURS].contains(&code.as_str());
                if status == StatusCode::ACCEPTED || !again {
                    return;
                }
            }
            self.pause(1.0).await;
        }
    }

    /// Polls until the order has its numbers or has ended, and counts that.
    async fn follow(&mut self, location: &str) -> Option<Value> {
        let decided = ["reserved", "rejected", "cancelled", "expired"];
        let end = self.poll(location, |order| decided.iter().any(|state| order["state"] == *state)).await?;
        self.saw(&end);
        Some(end)
    }

    /// Polls as often as asked to, until the order is as wanted.
    async fn poll(&mut self, location: &str, is_end: impl Fn(&Value) -> bool) -> Option<Value> {
        let started = Instant::now();
        let mut wait = 2.0;
        let mut last = Value::Null;
        while started.elapsed() < PATIENCE {
            self.pause(wait).await;
            let url = format!("{}{location}", self.shop.api_url);
            let Ok(answer) = self.shop.http.get(url).bearer_auth(&self.token).send().await else { continue };
            let status = answer.status();
            wait = retry_after(&answer).unwrap_or(2.0);
            let Ok(order) = answer.json::<Value>().await else { continue };
            match status {
                StatusCode::OK if is_end(&order) => return Some(order),
                StatusCode::OK => last = order["state"].clone(),
                StatusCode::NOT_FOUND => {
                    self.counts.lose(format!("{location} was accepted and is gone"));
                    return None;
                }
                _ => {}
            }
        }
        self.counts.lose(format!("{location} was still {last} after {} s", PATIENCE.as_secs()));
        None
    }

    fn saw(&self, order: &Value) {
        match order["state"].as_str() {
            Some("reserved") => {
                Counts::add(&self.counts.reserved, 1);
                let substitutes = order["substitutes"].as_array().map_or(0, Vec::len);
                Counts::add(&self.counts.substituted, substitutes as u64);
            }
            Some("rejected") => {
                if order["reason"]["code"] == "numbers-taken" {
                    Counts::add(&self.counts.contended, 1);
                }
                self.counts.refuse(&format!("rejected: {}", order["reason"]["code"].as_str().unwrap_or("?")));
            }
            Some("cancelled") => Counts::add(&self.counts.cancelled, 1),
            _ => {}
        }
    }
}

fn code_of(body: Value) -> String {
    body["code"].as_str().unwrap_or(NOT_OURS).to_owned()
}

fn retry_after(answer: &reqwest::Response) -> Option<f64> {
    answer.headers().get("retry-after")?.to_str().ok()?.parse().ok()
}
