//! Requests to gateways: bounded in time and size, repeated byte for byte where their rules allow it.

use std::time::Duration;

use bytes::Bytes;
use domain::{Error, Result};
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue, Method, StatusCode};
use rand::rngs::{StdRng, SysRng};
use rand::{RngExt, SeedableRng};
use secrecy::{ExposeSecret, SecretString};
use serde::de::DeserializeOwned;
use tokio::time::{Instant, sleep};

use crate::Failure;

/// Repetitions of one request, at most.
const RETRIES_MAX: u32 = 2;

/// Largest answer that is read, in bytes. A page of a hundred payments has about a third of it.
const ANSWER_BYTES_MAX: usize = 1_024 * 1_024;

/// Connections kept open for the next request. Gateways close idle ones after about a minute.
const IDLE_FOR: Duration = Duration::from_secs(30);

/// How long things may take, from the inside out.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Timing {
    /// Until a connection stands.
    pub(crate) connect: Duration,
    /// One request with its answer.
    pub(crate) attempt: Duration,
    /// Everything that one call of ours needs, repetitions included.
    pub(crate) operation: Duration,
    /// Before the first repetition; twice that before the second.
    pub(crate) backoff: Duration,
}

impl Default for Timing {
    /// An operation stays inside the 9 s that a request of ours may take.
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(2),
            attempt: Duration::from_secs(5),
            operation: Duration::from_secs(8),
            backoff: Duration::from_millis(300),
        }
    }
}

/// The client that all gateways share.
#[derive(Debug, Clone)]
pub(crate) struct Http {
    client: reqwest::Client,
    timing: Timing,
}

/// A request as it is sent, each time the same.
#[derive(Clone)]
pub(crate) struct Request {
    pub(crate) method: Method,
    pub(crate) url: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// An answer, whatever it says.
pub(crate) struct Answer {
    pub(crate) status: u16,
    /// It is what the gateway had answered to the key's first request.
    pub(crate) is_replay: bool,
    /// What the gateway says about trying again.
    should_retry: Option<bool>,
    body: Vec<u8>,
}

impl Http {
    /// A client that goes where it is told: no redirects, which could take credentials elsewhere, and no proxy of the
    /// environment.
    pub(crate) fn new(timing: Timing) -> Result<Self> {
        let client = reqwest::Client::builder()
            .connect_timeout(timing.connect)
            .pool_idle_timeout(IDLE_FOR)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .build()
            .map_err(|error| Error::Fault(Box::new(error)))?;
        Ok(Self { client, timing })
    }

    /// Starts the clock of one operation.
    pub(crate) fn begin(&self) -> Operation<'_> {
        Operation { http: self, deadline: Instant::now() + self.timing.operation }
    }
}

/// One operation: requests that share a deadline.
pub(crate) struct Operation<'a> {
    http: &'a Http,
    deadline: Instant,
}

impl Operation<'_> {
    /// Sends a request, and the same again after a lost connection, a 409 or a 5xx, unless the gateway says otherwise.
    /// Only for requests that may be repeated: reads, those with a key, and those that do nothing the second time.
    pub(crate) async fn send(&self, request: &Request) -> Result<Answer, Failure> {
        let mut backoff = self.http.timing.backoff;
        let mut retries = 0;
        loop {
            let sent = self.attempt(request).await;
            let wait = backoff.mul_f64(rng().random_range(0.5..=1.0));
            let is_last = retries == RETRIES_MAX || wait >= self.remaining();
            if is_last || sent.as_ref().is_ok_and(|answer| !answer.invites_another_try()) {
                return sent;
            }
            sleep(wait).await;
            retries += 1;
            backoff *= 2;
        }
    }

    fn remaining(&self) -> Duration {
        self.deadline.saturating_duration_since(Instant::now())
    }

    async fn attempt(&self, request: &Request) -> Result<Answer, Failure> {
        let timeout = self.remaining().min(self.http.timing.attempt);
        if timeout.is_zero() {
            return Err(Failure::unknown("no time left to ask"));
        }
        let sent = self.http.client.request(request.method.clone(), &request.url).headers(request.headers.clone());
        let mut response = sent.body(request.body.clone()).timeout(timeout).send().await.map_err(lost)?;
        let header = |name| response.headers().get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let mut answer = Answer {
            status: response.status().as_u16(),
            is_replay: header("idempotent-replayed") == Some("true"),
            should_retry: header("stripe-should-retry").and_then(|text| text.parse().ok()),
            body: Vec::new(),
        };
        while let Some(chunk) = response.chunk().await.map_err(lost)? {
            if answer.body.len() + chunk.len() > ANSWER_BYTES_MAX {
                return Err(Failure::unknown("the answer is too large"));
            }
            answer.body.extend_from_slice(&chunk);
        }
        Ok(answer)
    }
}

/// An address can name a payment or a reference, and does not belong into a log.
fn lost(error: reqwest::Error) -> Failure {
    Failure::Unknown(Box::new(error.without_url()))
}

fn rng() -> StdRng {
    // Without randomness from the system the jitter is the same every time, which is still a backoff.
    StdRng::try_from_rng(&mut SysRng).unwrap_or_else(|_| StdRng::seed_from_u64(0))
}

impl Answer {
    pub(crate) fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Whether it leaves open if the thing was done. Redirects do too: nobody follows them.
    pub(crate) fn is_undecided(&self) -> bool {
        self.status < 400 || self.status >= 500 || matches!(self.status, 408 | 409 | 423 | 425 | 429)
    }

    /// A stored 5xx comes back for as long as its key is kept.
    fn invites_another_try(&self) -> bool {
        let by_status = self.status == 409 || self.status >= 500;
        !self.is_success() && self.should_retry.unwrap_or(by_status && !self.is_replay)
    }

    /// The body as the documented structure.
    pub(crate) fn json<T: DeserializeOwned>(&self) -> Result<T, Failure> {
        // The parser's own message can quote the body.
        serde_json::from_slice(&self.body).map_err(|error| {
            let (line, column) = (error.line(), error.column());
            Failure::unknown(format_args!("the answer {} is not as documented, {line}:{column}", self.status))
        })
    }

    /// Why it is not what was asked for, as unknown.
    pub(crate) fn as_unknown(&self) -> Failure {
        let replay = if self.is_replay { ", as before" } else { "" };
        let reason = StatusCode::from_u16(self.status).ok().and_then(|status| status.canonical_reason());
        Failure::unknown(format_args!("answered {} {}{replay}", self.status, reason.unwrap_or_default()))
    }
}

/// `Authorization: Bearer`, marked so that nobody prints it.
///
/// # Errors
/// [`Error::Fault`] for a secret that cannot be in a header.
pub(crate) fn bearer(secret: &SecretString) -> Result<HeaderMap> {
    let mut value = HeaderValue::try_from(format!("Bearer {}", secret.expose_secret()))
        .map_err(|_| Error::fault("the gateway's key cannot be in a header"))?;
    value.set_sensitive(true);
    Ok(HeaderMap::from_iter([(AUTHORIZATION, value)]))
}

/// Whether a text can be a gateway's id: it becomes part of a path.
pub(crate) fn is_id(text: &str) -> bool {
    (1..=255).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
}

/// Pairs as a form or a query.
pub(crate) fn encoded(pairs: &[(&str, &str)]) -> String {
    form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}
