//! How buyers pay: on the gateway's page, as a browser would. At once, after a refusal, late, or never.

use std::ops::Range;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rand::RngExt;
use reqwest::header::CONTENT_TYPE;
use reqwest::{RequestBuilder, StatusCode};
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::{Buyer, NOT_OURS, TRIES, code_of, retry_after};
use crate::counts::Counts;

/// How long after the end of its hold, or a little later, a payment is made that the gateway was silent about. By then
/// the sweep, once a minute, has been there.
const SILENCE: Duration = Duration::from_secs(75);
/// Longest wait for such a payment when its order has expired.
const SILENCE_MAX: Duration = Duration::from_secs(120);
/// How long a buyer reads before pressing the button.
const READING: Range<Duration> = Duration::from_millis(500)..Duration::from_secs(6);
/// States of an order that was paid.
const PAID: [&str; 3] = ["paid", "refunding", "refunded"];
/// How long after the end of its hold a buyer presses the button, before the sweep comes.
const JUST_LATE: Duration = Duration::from_millis(500);

/// What a buyer does who holds numbers.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Habit {
    AtOnce,
    DeclinedFirst,
    JustLate,
    TooLate,
    Never,
    /// Pays by card, and gets no answer.
    Unanswered,
}

/// When a buyer comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    /// At once: it is paid, and shall be seen so.
    Paid,
    /// When the hold has run out.
    HoldOver(OffsetDateTime),
    /// When the order has expired.
    Expired,
    /// When the order has expired and the gateway, silent before, knows of the payment. Its numbers may be sold again
    /// before that.
    Silence { is_resold: bool },
}

/// Where a buyer pays.
enum Till {
    /// On this page of the gateway.
    Page(String),
    /// In the storefront's form, by card, for this attempt.
    Card(String),
}

/// A payment that its buyer comes back to.
pub(super) struct Later {
    location: String,
    till: Till,
    back: Back,
}

/// What trying to pay came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pressed {
    Paid,
    NotPaid,
    NotThere,
}

impl Buyer {
    /// Pays a reserved order, or not; what is left for later.
    pub(super) async fn pay_for(&mut self, location: &str, order: &Value) -> Option<Later> {
        let is_silent = |left: u32| left.checked_sub(1);
        let habit = match self.rng.random_range(0..100) {
            _ if self.shop.silences.fetch_update(Relaxed, Relaxed, is_silent).is_ok() => Habit::Unanswered,
            0..62 => Habit::AtOnce,
            62..76 => Habit::DeclinedFirst,
            76..82 => Habit::JustLate,
            82..88 => Habit::TooLate,
            _ => Habit::Never,
        };
        if habit == Habit::Never {
            Counts::add(&self.counts.payments.never, 1);
            return None;
        }
        let later = |till, back| Some(Later { location: location.to_owned(), till, back });
        let method = if habit == Habit::Unanswered { "card" } else { "checkout" };
        if habit == Habit::Unanswered {
            self.silence(location).await;
        }
        let mut till = match self.ask_to_pay(location, method).await {
            Ok(till) => till,
            Err(later) => return later,
        };
        match habit {
            Habit::JustLate => {
                let hold_ends = order["expires_at"].as_str().and_then(|at| OffsetDateTime::parse(at, &Rfc3339).ok());
                return later(till, hold_ends.map_or(Back::Expired, Back::HoldOver));
            }
            Habit::TooLate => return later(till, Back::Expired),
            Habit::DeclinedFirst => {
                self.decline(&till).await;
                till = match self.ask_to_pay(location, method).await {
                    Ok(till) => till,
                    Err(later) => return later,
                };
            }
            Habit::AtOnce | Habit::Never | Habit::Unanswered => {}
        }
        if self.pay_in_time(&till).await { later(till, Back::Paid) } else { None }
    }

    /// Reads the page and pays.
    async fn pay_in_time(&mut self, till: &Till) -> bool {
        tokio::time::sleep(self.rng.random_range(READING)).await;
        let is_paid = self.press(till).await == Pressed::Paid;
        if !is_paid {
            // So slow that the hold ran out on the way.
            Counts::add(&self.counts.payments.refused, 1);
        }
        is_paid
    }

    /// Money that came in time buys the numbers, whatever becomes of the events. Staff may have given it back since.
    async fn see_paid(&mut self, location: &str) {
        let is_end = |order: &Value| PAID.iter().any(|state| order["state"] == *state);
        if self.poll(location, is_end).await.is_some() {
            Counts::add(&self.counts.payments.in_time, 1);
        }
    }

    /// Lets the gateway be silent about this order.
    async fn silence(&self, location: &str) {
        let order_id = location.rsplit('/').next().unwrap_or_default();
        if let Err(error) = self.shop.gateway.fall_silent(order_id, self.shop.hold + SILENCE).await {
            self.counts.lose(format!("the gateway takes no faults: {error}"));
        }
    }

    /// Asks to pay until there is a definite answer: where, or what is left for later.
    async fn ask_to_pay(&mut self, location: &str, method: &str) -> Result<Till, Option<Later>> {
        let url = format!("{}{location}/payments", self.shop.api_url);
        let body = json!({ "method": method, "return_url": self.shop.product_url });
        let mut key = Uuid::now_v7();
        for _ in 0..TRIES {
            let request = self.shop.http.post(&url).bearer_auth(&self.token).header("Idempotency-Key", key.to_string());
            let Ok(answer) = request.json(&body).send().await else {
                self.pause(1.0).await;
                continue;
            };
            let (status, wait) = (answer.status(), retry_after(&answer));
            let body: Value = answer.json().await.unwrap_or_default();
            match (status, body["instructions"]["url"].as_str(), body["id"].as_str()) {
                (StatusCode::CREATED, Some(page), _) => return Ok(Till::Page(page.to_owned())),
                (StatusCode::CREATED, None, Some(attempt_id)) => return Ok(Till::Card(attempt_id.to_owned())),
                (StatusCode::ACCEPTED, _, Some(attempt_id)) => {
                    let is_resold = self.counts.payments.unanswered.fetch_add(1, Relaxed) % 2 == 1;
                    let (location, till) = (location.to_owned(), Till::Card(attempt_id.to_owned()));
                    return Err(Some(Later { location, till, back: Back::Silence { is_resold } }));
                }
                _ => {}
            }
            let code = code_of(body);
            self.counts.refuse(&format!("payment: {code}"));
            match code.as_str() {
                "gateway-unavailable" => key = Uuid::now_v7(),
                "busy" | "key-in-flight" | "payment-in-flight" | "unavailable" | NOT_OURS => {}
                _ => return Err(None),
            }
            self.pause(wait.unwrap_or(1.0)).await;
        }
        self.counts.lose(format!("{location} could not be paid in many tries"));
        Err(None)
    }

    /// A button of a page, as a browser presses it.
    fn button(&self, page: &str, choice: &str) -> RequestBuilder {
        let request = self.shop.http.post(page).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
        request.body(format!("choice={choice}"))
    }

    /// The buyer's bank refuses. A page that does not answer has declined nothing, which the next try finds out.
    async fn decline(&self, till: &Till) {
        if let Till::Page(page) = till
            && self.button(page, "decline").send().await.is_ok()
        {
            Counts::add(&self.counts.payments.declined, 1);
        }
    }

    /// Tries to pay. A page sends the buyer back to the store when it has the money.
    async fn press(&mut self, till: &Till) -> Pressed {
        for _ in 0..TRIES {
            let (request, paid) = match till {
                Till::Page(page) => (self.button(page, "pay"), StatusCode::SEE_OTHER),
                Till::Card(attempt_id) => (self.shop.gateway.pay_by_card(attempt_id), StatusCode::OK),
            };
            match request.send().await.map(|answer| answer.status()) {
                Ok(status) if status == paid => return Pressed::Paid,
                Ok(StatusCode::NOT_FOUND) => return Pressed::NotThere,
                Ok(_) => return Pressed::NotPaid,
                Err(_) => self.pause(1.0).await,
            }
        }
        self.counts.lose("the gateway does not answer a buyer".into());
        Pressed::NotThere
    }

    /// Comes back to a payment when its time is over, and waits for what becomes of it.
    pub(super) async fn come_back(&mut self, later: Later) {
        let Later { location, till, back } = later;
        if back == Back::Paid {
            return self.see_paid(&location).await;
        }
        if let Back::HoldOver(hold_ends) = back {
            let left = (hold_ends - OffsetDateTime::now_utc()).try_into().unwrap_or(Duration::ZERO);
            tokio::time::sleep(left + JUST_LATE).await;
        } else {
            let Some(order) = self.poll(&location, |order| order["state"] == "expired").await else { return };
            if back == (Back::Silence { is_resold: true }) {
                self.lose_numbers(&order["numbers"]).await;
            }
        }
        let pressed = self.press_once_there(&till, back).await;
        let payments = &self.counts.payments;
        match pressed {
            Pressed::Paid => {
                let is_end = |order: &Value| order["state"] == "paid" || order["state"] == "refunded";
                let Some(order) = self.poll(&location, is_end).await else { return };
                let payments = &self.counts.payments;
                let counter = match (back, order["state"] == "paid") {
                    (_, false) => &payments.returned,
                    (Back::HoldOver(_), true) => &payments.just_late,
                    (_, true) => &payments.retaken,
                };
                Counts::add(counter, 1);
            }
            // Closed, or the gateway did not want to make it so late.
            Pressed::NotPaid | Pressed::NotThere => Counts::add(&payments.refused, 1),
        }
    }

    /// A payment that the gateway had been silent about is there some time.
    async fn press_once_there(&mut self, till: &Till, back: Back) -> Pressed {
        let started = Instant::now();
        loop {
            let pressed = self.press(till).await;
            let may_come = matches!(back, Back::Silence { .. }) && started.elapsed() < SILENCE_MAX;
            if pressed != Pressed::NotThere || !may_come {
                return pressed;
            }
            self.pause(1.0).await;
        }
    }

    /// Somebody else buys the numbers that this buyer had.
    async fn lose_numbers(&mut self, numbers: &Value) {
        let Some(mut other) = Self::new(&self.shop, &self.counts, self.rng.random()) else { return };
        let Some(location) = other.buy(&json!({ "numbers": numbers })).await else { return };
        let reserved = other.follow(&location).await.is_some_and(|order| order["state"] == "reserved");
        if reserved
            && let Ok(till) = other.ask_to_pay(&location, "checkout").await
            && other.pay_in_time(&till).await
        {
            other.see_paid(&location).await;
        }
    }
}
