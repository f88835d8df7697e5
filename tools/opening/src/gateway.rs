//! The pretended gateway, from outside: its account for the sale, what goes wrong there, its ledger.

use std::collections::HashMap;
use std::error::Error;
use std::time::Duration;

use fake_gateway::{Call, Fault, Ledger, Matcher};
use reqwest::{Client, RequestBuilder, Response};
use serde::Deserialize;
use serde_json::{Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

/// The sale's account there. Good for nothing else.
pub(crate) const KEY: &str = "sk_test_opening";
/// What signs the events for it.
pub(crate) const WEBHOOK_SECRET: &str = "whsec_opening";

/// Longest wait for an answer.
const ANSWER_MAX: Duration = Duration::from_secs(5);

/// The gateway.
pub(crate) struct Gateway {
    http: Client,
    base: String,
    /// Deliveries that were made before the sale.
    earlier: usize,
}

/// What became of the events.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Webhooks {
    /// Neither delivered nor given up.
    pub(crate) pending: usize,
    /// Events that were taken.
    pub(crate) delivered: usize,
    /// Copies that were taken after the first.
    pub(crate) repeated: usize,
    /// Events that were given up, because the API was busy: what they said is found without them.
    pub(crate) lost: usize,
}

#[derive(Deserialize)]
struct Log {
    pending: usize,
    deliveries: Vec<Delivery>,
}

#[derive(Deserialize)]
struct Delivery {
    event_id: String,
    status: Option<u16>,
}

impl Gateway {
    /// Opens the sale's account, whose events go to the API.
    pub(crate) async fn open(sandbox_url: &str, webhook_url: &str) -> Outcome<Self> {
        let base = sandbox_url.trim_end_matches('/').trim_end_matches("/stripe").to_owned();
        let http = Client::builder().no_proxy().timeout(ANSWER_MAX).build()?;
        let mut gateway = Self { http, base, earlier: 0 };
        let account =
            json!({ "dialect": "stripe", "key": KEY, "webhook_url": webhook_url, "webhook_secret": WEBHOOK_SECRET });
        gateway.post("_accounts", &account).await?;
        gateway.earlier = gateway.log().await?.deliveries.len();
        Ok(gateway)
    }

    /// What a storefront's form sends when a card pays an attempt: 200, 404 while it is not made, 409 when it is over.
    pub(crate) fn pay_by_card(&self, attempt_id: &str) -> RequestBuilder {
        self.http.post(format!("{}/_buyer/pay", self.base)).json(&json!({ "payment": attempt_id }))
    }

    /// The payment of this order is made only after this time, when nobody listens any more.
    pub(crate) async fn fall_silent(&self, order_id: &str, time: Duration) -> Outcome<()> {
        let delay = Fault::Delay(u64::try_from(time.as_millis())?);
        self.script(&Matcher::call(Call::Create).about(order_id), delay, 1).await
    }

    /// The next events about sessions that were paid are sent twice.
    pub(crate) async fn repeat_events(&self, times: u32) -> Outcome<()> {
        self.script(&Matcher::event("checkout.session.completed"), Fault::Duplicate(1), times).await
    }

    /// Nothing more goes wrong from now on.
    pub(crate) async fn heal(&self) -> Outcome<()> {
        self.post("_faults", &json!({ "heal": {} })).await
    }

    /// What it knows about everybody's money.
    pub(crate) async fn ledger(&self) -> Outcome<Ledger> {
        Ok(self.get("_ledger").await?.json().await?)
    }

    /// What became of the sale's events.
    pub(crate) async fn webhooks(&self) -> Outcome<Webhooks> {
        let log = self.log().await?;
        let mut webhooks = Webhooks { pending: log.pending, ..Webhooks::default() };
        let mut taken: HashMap<&str, usize> = HashMap::new();
        for delivery in log.deliveries.iter().skip(self.earlier) {
            let copies = taken.entry(&delivery.event_id).or_default();
            *copies += usize::from(delivery.status.is_some_and(|status| (200..300).contains(&status)));
        }
        for copies in taken.into_values() {
            webhooks.delivered += copies.min(1);
            webhooks.repeated += copies.saturating_sub(1);
            webhooks.lost += usize::from(copies == 0);
        }
        Ok(webhooks)
    }

    async fn log(&self) -> Outcome<Log> {
        Ok(self.get("_webhooks").await?.json().await?)
    }

    async fn script(&self, matcher: &Matcher, fault: Fault, times: u32) -> Outcome<()> {
        self.post("_faults", &json!({ "script": { "matcher": matcher, "fault": fault, "times": times } })).await
    }

    async fn get(&self, path: &str) -> Outcome<Response> {
        Ok(self.http.get(format!("{}/{path}", self.base)).send().await?.error_for_status()?)
    }

    async fn post(&self, path: &str, body: &Value) -> Outcome<()> {
        self.http.post(format!("{}/{path}", self.base)).json(body).send().await?.error_for_status()?;
        Ok(())
    }
}
