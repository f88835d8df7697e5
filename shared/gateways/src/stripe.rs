//! Stripe: cards, by PaymentIntent in the storefront or by Checkout Session on a page of Stripe's.
//!
//! A payment's id is `pi_…` or `cs_…`, whichever was made; both can be asked for. References: `docs.stripe.com/api`
//! for the objects, `/api/idempotent_requests` and `/error-low-level` for what may be repeated.

mod answers;
mod crowds;
mod find;
mod requests;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use domain::Result;
use domain::payments::{AttemptState, Method, Observed, ObservedRefund, RefundState};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue};
use secrecy::SecretString;
use serde::de::DeserializeOwned;

use self::answers::{Dispute, Intent, List, Listed, Refund, Seen, Session};
use self::crowds::Crowd;
pub(crate) use self::crowds::Crowds;
use crate::http_client::{Answer, Http, Operation, Request, bearer, encoded, is_id};
use crate::{Failure, NewPayment, NewRefund};

/// The version whose documentation this was written by. Within a name ("clover") versions only add.
const VERSION: HeaderValue = HeaderValue::from_static("2026-02-25.clover");

const VERSION_HEADER: HeaderName = HeaderName::from_static("stripe-version");
const KEY_HEADER: HeaderName = HeaderName::from_static("idempotency-key");
const FORM: HeaderValue = HeaderValue::from_static("application/x-www-form-urlencoded");

/// Objects on a page of a list. The most that Stripe gives.
const PAGE: usize = 100;

/// Pages of refunds and of disputes that are read of one payment.
const PAGES_MAX: usize = 10;

/// An account at Stripe, or at the pretended gateway.
#[derive(Debug, Clone)]
pub struct StripeClient {
    http: Http,
    base: String,
    headers: HeaderMap,
    crowd: Crowd,
}

/// Why a change was not made, and whether that answer had been stored under its key.
struct Unchanged {
    failure: Failure,
    is_replay: bool,
}

impl StripeClient {
    pub(crate) fn new(http: Http, base: &str, key: &SecretString, crowds: &Crowds) -> Result<Self> {
        let mut headers = bearer(key)?;
        headers.insert(VERSION_HEADER, VERSION);
        Ok(Self { http, base: base.to_owned(), headers, crowd: crowds.of(key) })
    }

    pub(crate) async fn create(&self, new: &NewPayment<'_>) -> Result<Observed, Failure> {
        let operation = self.http.begin();
        let seen = match new.method {
            Method::Checkout => {
                let form = requests::session(new)?;
                self.change::<Session>(&operation, "/v1/checkout/sessions", form, Some(new.key)).await
            }
            _ => {
                let form = requests::intent(new);
                self.change::<Intent>(&operation, "/v1/payment_intents", form, Some(new.key)).await
            }
        };
        match seen {
            Ok(seen) => self.complete(&operation, seen).await,
            // Nothing was named that could be missing.
            Err(Unchanged { failure: Failure::NotFound, .. }) => {
                Err(Failure::Refused { status: 404, code: "not-found".to_owned() })
            }
            Err(unchanged) => Err(unchanged.failure),
        }
    }

    pub(crate) async fn fetch(&self, payment_id: &str) -> Result<Observed, Failure> {
        self.look_and_complete(&self.http.begin(), payment_id).await
    }

    pub(crate) async fn capture(&self, payment_id: &str, amount_minor: i64, key: &str) -> Result<Observed, Failure> {
        let operation = self.http.begin();
        let intent = self.intent_of(&operation, payment_id).await?;
        let path = format!("/v1/payment_intents/{intent}/capture");
        let amount = amount_minor.to_string();
        let form = encoded(&[("amount_to_capture", &amount), ("expand[0]", "latest_charge.refunds")]);
        let is_undone = |state| state == AttemptState::Authorised;
        let seen = self.change_once::<Intent>(&operation, &path, form, key, &intent, is_undone).await?;
        if intent == payment_id {
            self.complete(&operation, seen).await
        } else {
            self.look_and_complete(&operation, payment_id).await
        }
    }

    pub(crate) async fn void(&self, payment_id: &str, key: &str) -> Result<Observed, Failure> {
        let operation = self.http.begin();
        let seen = if is_session(payment_id) {
            self.void_session(&operation, payment_id, key).await?
        } else {
            self.void_intent(&operation, payment_id, key).await?
        };
        self.complete(&operation, seen).await
    }

    async fn void_intent(&self, operation: &Operation<'_>, intent: &str, key: &str) -> Result<Seen, Failure> {
        let path = format!("/v1/payment_intents/{}/cancel", checked(intent)?);
        let form = encoded(&[("expand[0]", "latest_charge.refunds")]);
        self.change_once::<Intent>(operation, &path, form, key, intent, can_be_voided).await
    }

    /// An open session is expired. One that is complete has an intent, which may still wait for a capture.
    async fn void_session(&self, operation: &Operation<'_>, session: &str, key: &str) -> Result<Seen, Failure> {
        let path = format!("/v1/checkout/sessions/{}/expire", checked(session)?);
        let form = encoded(&[("expand[0]", requests::SESSION_EXPANDS)]);
        let is_open = |state| state == AttemptState::Open;
        let seen = match self.change_once::<Session>(operation, &path, form, key, session, is_open).await {
            Ok(seen) => seen,
            Err(Failure::Refused { status, code }) if status == 400 => {
                let seen = self.look(operation, session).await?;
                if seen.intent.is_none() {
                    return Err(Failure::Refused { status, code });
                }
                seen
            }
            Err(failure) => return Err(failure),
        };
        match &seen.intent {
            Some(intent) if can_be_voided(seen.observed.state) => {
                self.void_intent(operation, intent, &format!("{key}-cancel")).await?;
                self.look(operation, session).await
            }
            _ => Ok(seen),
        }
    }

    pub(crate) async fn refund(&self, payment_id: &str, refund: &NewRefund<'_>) -> Result<ObservedRefund, Failure> {
        let operation = self.http.begin();
        let intent = self.intent_of(&operation, payment_id).await?;
        let (amount, refund_id) = (refund.amount_minor.to_string(), refund.refund_id.to_string());
        let form = encoded(&[("payment_intent", &intent), ("amount", &amount), ("metadata[refund_id]", &refund_id)]);
        let answer = self.post(&operation, "/v1/refunds", form, Some(refund.key)).await?;
        read::<Refund>(&answer)?.observed()
    }

    /// The intent behind a payment's id.
    async fn intent_of(&self, operation: &Operation<'_>, payment_id: &str) -> Result<String, Failure> {
        if !is_session(payment_id) {
            return checked(payment_id).map(str::to_owned);
        }
        let seen = self.look(operation, payment_id).await?;
        seen.intent.ok_or_else(|| Failure::refused("session_without_payment"))
    }

    async fn look(&self, operation: &Operation<'_>, payment_id: &str) -> Result<Seen, Failure> {
        let id = checked(payment_id)?;
        if is_session(id) {
            let query = [("expand[0]", requests::SESSION_EXPANDS)];
            self.get::<Session>(operation, &format!("/v1/checkout/sessions/{id}"), &query).await?.seen()
        } else {
            let query = [("expand[0]", "latest_charge.refunds")];
            self.get::<Intent>(operation, &format!("/v1/payment_intents/{id}"), &query).await?.seen()
        }
    }

    async fn look_and_complete(&self, operation: &Operation<'_>, payment_id: &str) -> Result<Observed, Failure> {
        let seen = self.look(operation, payment_id).await?;
        self.complete(operation, seen).await
    }

    /// Adds what the answer left out: refunds beyond the first ten, and disputes.
    async fn complete(&self, operation: &Operation<'_>, seen: Seen) -> Result<Observed, Failure> {
        let Seen { mut observed, intent, lists_refunds, is_disputed } = seen;
        let Some(intent) = intent.filter(|_| observed.captured_minor > 0) else { return Ok(observed) };
        let of_it = [("payment_intent", intent.as_str())];
        if !lists_refunds {
            let refunds = self.list::<Refund>(operation, "/v1/refunds", &of_it, PAGES_MAX, |_| false).await?;
            let refunds = refunds.ok_or_else(too_long)?;
            observed.refunds = refunds.into_iter().map(Refund::observed).collect::<Result<_, _>>()?;
            let given_back = observed.refunds.iter().filter(|refund| refund.state != RefundState::Failed);
            observed.refunded_minor = observed.refunded_minor.max(given_back.map(|refund| refund.amount_minor).sum());
        }
        if is_disputed {
            let disputes = self.list::<Dispute>(operation, "/v1/disputes", &of_it, PAGES_MAX, |_| false).await?;
            let disputes = disputes.ok_or_else(too_long)?;
            observed.disputes = disputes.into_iter().map(Dispute::observed).collect::<Result<_, _>>()?;
        }
        Ok(observed)
    }

    /// A change that does nothing the second time, so that its outcome can be read from the state.
    ///
    /// A result is stored under its key for a day, refusals and 5xx included. When the stored one is refuted by the
    /// state, the request is sent once more without the key.
    async fn change_once<T: Answered>(
        &self,
        operation: &Operation<'_>,
        path: &str,
        form: String,
        key: &str,
        payment_id: &str,
        is_undone: impl Fn(AttemptState) -> bool,
    ) -> Result<Seen, Failure> {
        let Unchanged { failure, is_replay } = match self.change::<T>(operation, path, form.clone(), Some(key)).await {
            Ok(seen) => return Ok(seen),
            Err(unchanged) => unchanged,
        };
        let is_answer = matches!(failure, Failure::Refused { status: 400, .. } | Failure::Declined { .. });
        if !is_answer && !is_replay {
            return Err(failure);
        }
        let seen = self.look(operation, payment_id).await?;
        if !is_undone(seen.observed.state) {
            return Ok(seen);
        }
        if !is_replay {
            return Err(failure);
        }
        self.change::<T>(operation, path, form, None).await.map_err(|unchanged| unchanged.failure)
    }

    async fn change<T: Answered>(
        &self,
        operation: &Operation<'_>,
        path: &str,
        form: String,
        key: Option<&str>,
    ) -> Result<Seen, Unchanged> {
        let lost = |failure| Unchanged { failure, is_replay: false };
        let answer = self.post(operation, path, form, key).await.map_err(lost)?;
        let is_replay = answer.is_replay;
        read::<T>(&answer).and_then(Answered::seen).map_err(|failure| Unchanged { failure, is_replay })
    }

    async fn post(
        &self,
        operation: &Operation<'_>,
        path: &str,
        form: String,
        key: Option<&str>,
    ) -> Result<Answer, Failure> {
        let mut headers = self.headers.clone();
        headers.insert(CONTENT_TYPE, FORM);
        if let Some(key) = key {
            headers.insert(KEY_HEADER, HeaderValue::try_from(key).map_err(|_| Failure::refused("key"))?);
        }
        let url = format!("{}{path}", self.base);
        operation.send(&Request { method: http::Method::POST, url, headers, body: Bytes::from(form) }).await
    }

    async fn get<T: DeserializeOwned>(
        &self,
        operation: &Operation<'_>,
        path: &str,
        query: &[(&str, &str)],
    ) -> Result<T, Failure> {
        let url = format!("{}{path}?{}", self.base, encoded(query));
        let headers = self.headers.clone();
        let request = Request { method: http::Method::GET, url, headers, body: Bytes::new() };
        read(&operation.send(&request).await?)
    }

    /// A list, newest first, page by page until one is found that is enough. None when it is longer than allowed: half a
    /// list would say that the rest does not exist.
    async fn list<T: Listed>(
        &self,
        operation: &Operation<'_>,
        path: &str,
        filter: &[(&str, &str)],
        pages_max: usize,
        is_enough: impl Fn(&T) -> bool,
    ) -> Result<Option<Vec<T>>, Failure> {
        let mut all: Vec<T> = Vec::new();
        for _ in 0..pages_max {
            let limit = PAGE.to_string();
            let mut query = [filter, &[("limit", limit.as_str())]].concat();
            if let Some(last) = all.last() {
                query.push(("starting_after", last.id()));
            }
            let page: List<T> = self.get(operation, path, &query).await?;
            let ends = !page.has_more || page.data.is_empty() || page.data.iter().any(&is_enough);
            all.extend(page.data);
            if ends {
                return Ok(Some(all));
            }
        }
        Ok(None)
    }
}

/// An object that says how a payment is.
trait Answered: DeserializeOwned {
    fn seen(self) -> Result<Seen, Failure>;
}

impl Answered for Intent {
    fn seen(self) -> Result<Seen, Failure> {
        Self::seen(self)
    }
}

impl Answered for Session {
    fn seen(self) -> Result<Seen, Failure> {
        Self::seen(self)
    }
}

fn too_long() -> Failure {
    Failure::unknown("more in a list than we look through")
}

fn is_session(payment_id: &str) -> bool {
    payment_id.starts_with("cs_")
}

/// What is no id of theirs does not exist there.
fn checked(payment_id: &str) -> Result<&str, Failure> {
    if is_id(payment_id) { Ok(payment_id) } else { Err(Failure::NotFound) }
}

fn can_be_voided(state: AttemptState) -> bool {
    matches!(state, AttemptState::Open | AttemptState::Authorised)
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Failure> {
    if answer.is_success() { answer.json() } else { Err(answers::failure(answer)) }
}
