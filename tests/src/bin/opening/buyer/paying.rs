//! How buyers pay: on the gateway's page, as a browser would. At once, after a refusal, late, or never.

use std::time::{Duration, Instant};

use rand::RngExt;
use reqwest::StatusCode;
use reqwest::header::CONTENT_TYPE;
use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::{Buyer, NOT_OURS, TRIES, code_of, retry_after};
use crate::counts::Counts;

/// Longest wait for a payment that the gateway had been silent about.
const SILENCE_MAX: Duration = Duration::from_secs(240);
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
}

/// When a late buyer comes back.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Back {
    /// When the hold has run out.
    HoldOver(OffsetDateTime),
    /// When the order has expired.
    Expired,
    /// When the order has expired and the gateway, silent before, knows of the payment.
    Silence,
}

/// A payment that its buyer comes back to.
pub(super) struct Later {
    location: String,
    page: String,
    back: Back,
}

/// What came of asking to pay.
enum Asked {
    Page(String),
    /// The gateway has not answered: the attempt.
    Silence(String),
    Refused,
}

/// What pressing a button of the page came to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pressed {
    Paid,
    NotPaid,
    NoPage,
}

impl Buyer {
    /// Pays a reserved order, or not; what is left for later.
    pub(super) async fn pay_for(&mut self, location: &str, order: &Value) -> Option<Later> {
        let habit = match self.rng.random_range(0..100) {
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
        let later = |page, back| Some(Later { location: location.to_owned(), page, back });
        let mut page = match self.ask_to_pay(location).await {
            Asked::Page(page) => page,
            Asked::Silence(attempt_id) => return later(self.shop.gateway.page(&attempt_id), Back::Silence),
            Asked::Refused => return None,
        };
        match habit {
            Habit::JustLate => {
                let hold_ends = order["expires_at"].as_str().and_then(|at| OffsetDateTime::parse(at, &Rfc3339).ok());
                return later(page, hold_ends.map_or(Back::Expired, Back::HoldOver));
            }
            Habit::TooLate => return later(page, Back::Expired),
            Habit::DeclinedFirst => {
                self.press(&page, "decline").await;
                Counts::add(&self.counts.payments.declined, 1);
                page = match self.ask_to_pay(location).await {
                    Asked::Page(page) => page,
                    Asked::Silence(attempt_id) => return later(self.shop.gateway.page(&attempt_id), Back::Silence),
                    Asked::Refused => return None,
                };
            }
            Habit::AtOnce | Habit::Never => {}
        }
        self.pay_in_time(location, &page).await;
        None
    }

    async fn pay_in_time(&mut self, location: &str, page: &str) {
        if self.press(page, "pay").await != Pressed::Paid {
            // So slow that the hold ran out on the way.
            Counts::add(&self.counts.payments.refused, 1);
            return;
        }
        if self.poll(location, |order| order["state"] == "paid").await.is_some() {
            Counts::add(&self.counts.payments.in_time, 1);
        }
    }

    /// Asks for a page to pay on, each time as another payment, until there is a definite answer.
    async fn ask_to_pay(&mut self, location: &str) -> Asked {
        let url = format!("{}{location}/payments", self.shop.api_url);
        let body = json!({ "method": "checkout", "return_url": self.shop.product_url });
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
                (StatusCode::CREATED, Some(page), _) => return Asked::Page(page.to_owned()),
                (StatusCode::ACCEPTED, _, Some(attempt_id)) => {
                    Counts::add(&self.counts.payments.unanswered, 1);
                    return Asked::Silence(attempt_id.to_owned());
                }
                _ => {}
            }
            let code = code_of(body);
            self.counts.refuse(&format!("payment: {code}"));
            match code.as_str() {
                "gateway-unavailable" => key = Uuid::now_v7(),
                "busy" | "key-in-flight" | "payment-in-flight" | "unavailable" | NOT_OURS => {}
                _ => return Asked::Refused,
            }
            self.pause(wait.unwrap_or(1.0)).await;
        }
        self.counts.lose(format!("{location} could not be paid in many tries"));
        Asked::Refused
    }

    /// Presses a button of the page.
    async fn press(&mut self, page: &str, choice: &str) -> Pressed {
        for _ in 0..TRIES {
            let request = self.shop.http.post(page).header(CONTENT_TYPE, "application/x-www-form-urlencoded");
            match request.body(format!("choice={choice}")).send().await.map(|answer| answer.status()) {
                Ok(StatusCode::SEE_OTHER) => return Pressed::Paid,
                Ok(StatusCode::NOT_FOUND) => return Pressed::NoPage,
                Ok(_) => return Pressed::NotPaid,
                Err(_) => self.pause(1.0).await,
            }
        }
        self.counts.lose(format!("{page} does not answer"));
        Pressed::NoPage
    }

    /// Comes back to a payment when its time is over, and waits for what becomes of it.
    pub(super) async fn come_back(&mut self, later: Later) {
        let Later { location, page, back } = later;
        if let Back::HoldOver(hold_ends) = back {
            let left = (hold_ends - OffsetDateTime::now_utc()).try_into().unwrap_or(Duration::ZERO);
            tokio::time::sleep(left + JUST_LATE).await;
        } else {
            let Some(order) = self.poll(&location, |order| order["state"] == "expired").await else { return };
            if back == Back::Silence && self.rng.random_bool(0.5) {
                self.lose_numbers(&order["numbers"]).await;
            }
        }
        let pressed = self.press_once_there(&page, back).await;
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
            Pressed::NotPaid => Counts::add(&payments.refused, 1),
            Pressed::NoPage => self.counts.lose(format!("{location}: the gateway never made its payment")),
        }
    }

    /// A payment that the gateway had been silent about is there some time.
    async fn press_once_there(&mut self, page: &str, back: Back) -> Pressed {
        let started = Instant::now();
        loop {
            let pressed = self.press(page, "pay").await;
            if pressed != Pressed::NoPage || back != Back::Silence || started.elapsed() > SILENCE_MAX {
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
        if reserved && let Asked::Page(page) = other.ask_to_pay(&location).await {
            other.pay_in_time(&location, &page).await;
        }
    }
}
