//! Buyers who place orders at once: the real handler of intake, each client with an environment and a connection of
//! its own, tokens and bodies as they come over the wire.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::{Duration, Instant};

use domain::orders::Request;
use rand::rngs::StdRng;
use serde_json::json;
use tests::http::{self, Api, Buyer};
use tokio::task::JoinSet;
use tokio::time::interval_at;
use uuid::Uuid;

use crate::run::median_ms;
use crate::settings::{CONNECTIONS, ORDERS_PER_BUYER, WARM_UP};
use crate::shop::{Mix, Shop, wishes};
use crate::workers::Recording;

/// What a crowd saw.
pub(crate) struct Seen {
    /// Whose orders were accepted.
    pub(crate) orders: Vec<(Buyer, Uuid)>,
    /// How long each answer took.
    latencies: Vec<Duration>,
    time: Duration,
}

impl Seen {
    /// What several crowds saw, one after the other.
    pub(crate) fn together(seen: Vec<Self>) -> Self {
        let time = seen.iter().map(|one| one.time).sum();
        let (mut orders, mut latencies) = (Vec::new(), Vec::new());
        for one in seen {
            orders.extend(one.orders);
            latencies.extend(one.latencies);
        }
        Self { orders, latencies, time }
    }

    pub(crate) fn per_second(&self) -> f64 {
        self.orders.len() as f64 / self.time.as_secs_f64()
    }

    pub(crate) fn p50_ms(&self) -> f64 {
        median_ms(&self.latencies)
    }
}

/// Clients with environments that are connected, and the buyers whose orders they will bring.
pub(crate) struct Crowd {
    clients: Vec<(Api, Vec<(Buyer, String)>)>,
    product_id: Uuid,
}

impl Crowd {
    /// Gets ready to place so many orders. Each environment has placed some before, so that its connection knows the
    /// plans, as the statements of the baseline are prepared.
    pub(crate) async fn gather(shop: &Shop, orders: usize, rng: &mut StdRng) -> Self {
        let described = &shop.product.described;
        let mut wishes = wishes(described.range.count, orders + CONNECTIONS * WARM_UP, Mix::Both, rng);
        let mut clients = Vec::new();
        for _ in 0..CONNECTIONS {
            let database = shop.database.app(1);
            let api = http::orders(database, Arc::new(Recording));
            for wish in wishes.drain(..WARM_UP) {
                let buyer = Buyer::new(described.tenant_id);
                buyer.place(&api, described.id, "warm-up", body(&wish)).await.accepted();
            }
            let bodies: Vec<String> = wishes.drain(..orders / CONNECTIONS).map(|wish| body(&wish)).collect();
            let buyers = bodies.chunks(ORDERS_PER_BUYER).flat_map(|bodies| {
                let buyer = Buyer::new(described.tenant_id);
                bodies.iter().map(move |body| (buyer.clone(), body.clone()))
            });
            clients.push((api, buyers.collect()));
        }
        Self { clients, product_id: described.id }
    }

    /// Places the orders, each client one after the other, until all are placed or it is time to stop: as fast as it
    /// goes, or so many a second together.
    pub(crate) async fn place(self, pace: Option<f64>, stop: &Arc<AtomicBool>) -> Seen {
        let product_id = self.product_id;
        let period = pace.map(|orders_per_s| Duration::from_secs_f64(self.clients.len() as f64 / orders_per_s));
        let started = Instant::now();
        let mut tasks = JoinSet::new();
        let count = self.clients.len();
        for (position, (api, wishes)) in self.clients.into_iter().enumerate() {
            let stop = Arc::clone(stop);
            tasks.spawn(async move {
                let mut seen = Vec::with_capacity(wishes.len());
                // Evenly spread, or all would come at once and wait for each other.
                let first = |period: Duration| period.mul_f64(position as f64 / count as f64);
                let mut turns = period.map(|period| interval_at(tokio::time::Instant::now() + first(period), period));
                for (buyer, body) in wishes {
                    if let Some(turns) = &mut turns {
                        turns.tick().await;
                    }
                    if stop.load(Relaxed) {
                        break;
                    }
                    let key = Uuid::now_v7().to_string();
                    let asked = Instant::now();
                    let answer = buyer.place(&api, product_id, &key, body).await;
                    seen.push((asked.elapsed(), buyer, answer));
                }
                seen
            });
        }
        let seen = tasks.join_all().await;
        let time = started.elapsed();
        let mut orders = Vec::new();
        let mut latencies = Vec::new();
        for (latency, buyer, answer) in seen.into_iter().flatten() {
            latencies.push(latency);
            orders.push((buyer, answer.accepted()));
        }
        Seen { orders, latencies, time }
    }

    /// As [`Self::place`], without an end before the last order.
    pub(crate) async fn place_all(self, pace: Option<f64>) -> Seen {
        self.place(pace, &Arc::new(AtomicBool::new(false))).await
    }
}

fn body(wish: &Request) -> String {
    json!({ "numbers": wish.numbers(), "quantity": wish.quantity(), "fallback": wish.fallback().word() }).to_string()
}
