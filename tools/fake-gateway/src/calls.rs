//! A merchant's call from its arrival to its answer: who calls, what goes wrong, the idempotency key, the effect.

use std::sync::Arc;
use std::time::Duration;

use axum::http::HeaderMap;
use serde_json::Value;

use super::account::Dialect;
use super::books::Books;
use super::faults::{Call, Concern, Fault, Happening};
use super::keys::{Kept, Seen};
use super::ledger::ViolationKind;
use super::{Shared, mercado_pago, stripe, webhooks};

/// Longest wait for the events that arrive before their call's answer.
const EARLY_MAX: Duration = Duration::from_secs(3);

/// A call.
pub(super) struct Request {
    pub(super) dialect: Dialect,
    pub(super) method: String,
    /// Below the dialect's prefix.
    pub(super) path: String,
    pub(super) query: String,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

impl Request {
    pub(super) fn segments(&self) -> Vec<&str> {
        self.path.trim_matches('/').split('/').collect()
    }

    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    fn bearer(&self) -> Option<&str> {
        self.header("authorization")?.strip_prefix("Bearer ")
    }

    /// The idempotency key. Only what changes something has one.
    pub(super) fn key(&self) -> Option<&str> {
        let name = match self.dialect {
            Dialect::Stripe => "idempotency-key",
            Dialect::MercadoPago => "x-idempotency-key",
        };
        if self.method == "POST" { self.header(name) } else { None }
    }

    /// What a key stands for: the call with all its parameters, in any order. Where time passes because every moment of
    /// the database moves back, an end is meant by the clock that is so far ahead.
    fn fingerprint(&self, ahead: time::Duration) -> String {
        let body = String::from_utf8_lossy(&self.body).into_owned();
        let body = match self.dialect {
            Dialect::Stripe => {
                let end = |part: &str| part.strip_prefix("expires_at=").and_then(|text| text.parse::<i64>().ok());
                let meant = |part: &str| {
                    end(part).map_or_else(|| part.to_owned(), |at| format!("expires_at={}", at + ahead.whole_seconds()))
                };
                let mut parts: Vec<String> = body.split('&').map(meant).collect();
                parts.sort_unstable();
                parts.join("&")
            }
            Dialect::MercadoPago => serde_json::from_str::<Value>(&body).map_or(body, |value| value.to_string()),
        };
        format!("{} {} {body}", self.method, self.path)
    }

    fn call(&self) -> Option<Call> {
        match self.dialect {
            Dialect::Stripe => stripe::call(self),
            Dialect::MercadoPago => mercado_pago::call(self),
        }
    }

    fn act(&self, books: &mut Books, account: usize) -> Answer {
        match self.dialect {
            Dialect::Stripe => stripe::act(books, account, self),
            Dialect::MercadoPago => mercado_pago::act(books, account, self),
        }
    }

    /// A search that does not know yet of anything looks among nobody's payments. Lists are never behind.
    fn act_behind(&self, books: &mut Books, account: usize) -> Answer {
        self.act(books, if self.path.ends_with("/search") { usize::MAX } else { account })
    }

    fn trouble(&self, trouble: &Trouble) -> Answer {
        match self.dialect {
            Dialect::Stripe => stripe::trouble(trouble),
            Dialect::MercadoPago => mercado_pago::trouble(trouble),
        }
        .not_kept()
    }
}

/// What may go wrong with any call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Trouble {
    NoAccount,
    NoSuchRoute,
    Conflict,
    KeyWithOtherParameters,
    BadKey,
    TooMany,
    Internal,
}

/// An answer.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) body: Value,
    pub(super) headers: Vec<(&'static str, &'static str)>,
    is_kept: bool,
}

impl Answer {
    pub(super) const fn new(status: u16, body: Value) -> Self {
        Self { status, body, headers: Vec::new(), is_kept: true }
    }

    pub(super) const fn ok(body: Value) -> Self {
        Self::new(200, body)
    }

    pub(super) fn with(mut self, name: &'static str, value: &'static str) -> Self {
        self.headers.push((name, value));
        self
    }

    /// It leaves nothing under the key.
    pub(super) fn not_kept(self) -> Self {
        Self { is_kept: false, ..self }
    }

    fn kept(&self) -> Option<Kept> {
        self.is_kept.then(|| Kept { status: self.status, body: self.body.clone() })
    }
}

/// Answers a call, or does not: none means that the connection is closed.
pub(super) async fn answer(shared: &Arc<Shared>, request: &Request) -> Option<Answer> {
    let Some(call) = request.call() else { return Some(request.trouble(&Trouble::NoSuchRoute)) };
    let (account, fault) = {
        let mut books = shared.books();
        let account = request.bearer().and_then(|key| books.account(request.dialect, key));
        let Some(account) = account else { return Some(request.trouble(&Trouble::NoAccount)) };
        (account, fault_of(&mut books, request, call))
    };
    match fault {
        Some(Fault::RateLimited429) => return Some(request.trouble(&Trouble::TooMany)),
        Some(Fault::Conflict409) => return Some(request.trouble(&Trouble::Conflict)),
        Some(Fault::NoEffectNoAnswer(ms)) => {
            tokio::time::sleep(Duration::from_millis(ms)).await;
            return None;
        }
        Some(Fault::ForgetKeys) => shared.books().keys.forget(),
        _ => {}
    }
    let begun = begin(&mut shared.books(), account, request);
    if let Err(answer) = begun {
        return after(fault, answer).await;
    }
    if let Some(Fault::Delay(ms)) = fault {
        tokio::time::sleep(Duration::from_millis(ms)).await;
    }
    let (answer, waits) = {
        let mut books = shared.books();
        let answer = execute(&mut books, account, request, fault);
        (answer, webhooks::send(shared, books.take_events(), fault == Some(Fault::PaidEarly)))
    };
    // Whoever does not listen in time is not waited for.
    let _ = tokio::time::timeout(EARLY_MAX, futures::future::join_all(waits)).await;
    after(fault, answer).await
}

fn fault_of(books: &mut Books, request: &Request, call: Call) -> Option<Fault> {
    let mut references = match request.dialect {
        Dialect::Stripe => stripe::names(request),
        Dialect::MercadoPago => mercado_pago::names(request),
    };
    let known: Vec<usize> = references.iter().filter_map(|name| books.find_any(name)).collect();
    references.extend(known.into_iter().flat_map(|index| books.references(index)));
    let happening =
        Happening { concern: Concern::Call(call), event: None, gateway: request.dialect, references: &references };
    books.script.next(&happening)
}

/// Looks the key up: an error is the answer.
fn begin(books: &mut Books, account: usize, request: &Request) -> Result<(), Answer> {
    let is_needed = request.dialect == Dialect::MercadoPago && request.method == "POST";
    let Some(key) = request.key() else {
        return if is_needed { Err(request.trouble(&Trouble::BadKey)) } else { Ok(()) };
    };
    if key.is_empty() || key.len() > stripe::KEY_MAX {
        return Err(request.trouble(&Trouble::BadKey));
    }
    let now = books.now();
    match books.keys.begin(account, key, &request.fingerprint(books.ahead), now) {
        Seen::New => Ok(()),
        Seen::InProgress => Err(request.trouble(&Trouble::Conflict)),
        Seen::Different => {
            let detail = format!("key {key} came with {} {} and other parameters", request.method, request.path);
            books.violate(ViolationKind::KeyWithOtherParameters, detail);
            Err(request.trouble(&Trouble::KeyWithOtherParameters))
        }
        Seen::Before(kept) => Err(match request.dialect {
            Dialect::Stripe => {
                let answer = Answer::new(kept.status, kept.body).with("idempotent-replayed", "true");
                if kept.status >= 500 { answer.with("stripe-should-retry", "false") } else { answer }
            }
            Dialect::MercadoPago => mercado_pago::shown(request, mercado_pago::again(books, account, kept)),
        }),
    }
}

fn execute(books: &mut Books, account: usize, request: &Request, fault: Option<Fault>) -> Answer {
    let internal = Answer { is_kept: true, ..request.trouble(&Trouble::Internal) };
    books.tick();
    let before = books.payments.len();
    let done = match fault {
        Some(Fault::Error500) => None,
        Some(Fault::SearchBehind) => Some(request.act_behind(books, account)),
        _ => Some(request.act(books, account)),
    };
    if fault == Some(Fault::PaidEarly) && books.payments.len() > before {
        books.pay(before, false).expect("it is open");
    }
    let is_failed = matches!(fault, Some(Fault::Error500 | Fault::Error500AfterEffect));
    let kept = match (request.dialect, &done) {
        // "If the payment has already been created, its information is returned": what failed leaves nothing.
        (Dialect::MercadoPago, done) => done.as_ref().filter(|answer| answer.status < 300).and_then(Answer::kept),
        (Dialect::Stripe, _) if is_failed => internal.kept(),
        (Dialect::Stripe, done) => done.as_ref().and_then(Answer::kept),
    };
    if let Some(key) = request.key() {
        books.keys.finish(account, key, kept);
    }
    match (done, request.dialect) {
        (Some(answer), Dialect::MercadoPago) if !is_failed => mercado_pago::shown(request, answer),
        (Some(answer), Dialect::Stripe) if !is_failed => answer,
        _ => internal,
    }
}

async fn after(fault: Option<Fault>, answer: Answer) -> Option<Answer> {
    if let Some(Fault::EffectThenNoAnswer(ms)) = fault {
        tokio::time::sleep(Duration::from_millis(ms)).await;
        return None;
    }
    Some(answer)
}
