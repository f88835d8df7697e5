//! Mercado Pago: Pix, by `/v1/payments`.
//!
//! References: `mercadopago.com/developers/en/reference`, sections payments and refunds. The same `X-Idempotency-Key`
//! gets the payment that it had made.

mod answers;
mod requests;
#[cfg(test)]
mod tests;

use bytes::Bytes;
use domain::Result;
use domain::payments::{AttemptState, CaptureMode, Observed, ObservedRefund};
use http::header::CONTENT_TYPE;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use secrecy::SecretString;
use serde::de::DeserializeOwned;
use time::OffsetDateTime;
use uuid::Uuid;

use self::answers::{Found, Payment, Refund};
use crate::http_client::{Answer, Http, Operation, Request, bearer, encoded, is_id};
use crate::{Failure, NewPayment, NewRefund};

const KEY_HEADER: HeaderName = HeaderName::from_static("x-idempotency-key");
const JSON: HeaderValue = HeaderValue::from_static("application/json");

/// Without it a refund that is on its way is answered with a 400, which says nothing.
const SHOW_REFUNDS_IN_PROCESS: HeaderName = HeaderName::from_static("x-render-in-process-refunds");

/// Pix is in reais.
const PIX_CURRENCY: &str = "BRL";

/// An account at Mercado Pago.
#[derive(Debug, Clone)]
pub struct MercadoPagoClient {
    http: Http,
    base: String,
    headers: HeaderMap,
}

impl MercadoPagoClient {
    pub(crate) fn new(http: Http, base: &str, token: &SecretString) -> Result<Self> {
        let mut headers = bearer(token)?;
        headers.insert(CONTENT_TYPE, JSON);
        headers.insert(SHOW_REFUNDS_IN_PROCESS, HeaderValue::from_static("true"));
        Ok(Self { http, base: base.to_owned(), headers })
    }

    /// Their request names no currency: it is the account's. Another than Pix has would be charged as if it were reais.
    pub(crate) async fn create(&self, new: &NewPayment<'_>) -> Result<Observed, Failure> {
        if !new.currency.eq_ignore_ascii_case(PIX_CURRENCY) {
            return Err(Failure::refused("currency"));
        }
        if new.capture == CaptureMode::Manual {
            return Err(Failure::refused("capture"));
        }
        let body = requests::payment(new)?;
        let answer = self.ask(&self.http.begin(), Method::POST, "/v1/payments", body, Some(new.key)).await?;
        match read::<Payment>(&answer).and_then(Payment::observed) {
            // Nothing was named that could be missing.
            Err(Failure::NotFound) => Err(Failure::Refused { status: 404, code: "not_found".to_owned() }),
            result => result,
        }
    }

    pub(crate) async fn fetch(&self, payment_id: &str) -> Result<Observed, Failure> {
        self.look(&self.http.begin(), payment_id).await
    }

    /// The payment that names the attempt. If there should be several, the one whose state counts most.
    pub(crate) async fn find(&self, attempt_id: Uuid, _: OffsetDateTime) -> Result<Option<Observed>, Failure> {
        let operation = self.http.begin();
        let reference = attempt_id.to_string();
        let pairs = [("external_reference", reference.as_str()), ("sort", "date_created"), ("criteria", "desc")];
        let path = format!("/v1/payments/search?{}", encoded(&pairs));
        let answer = self.ask(&operation, Method::GET, &path, Bytes::new(), None).await?;
        let found: Found = read(&answer).map_err(|failure| match failure {
            Failure::NotFound => Failure::unknown("the search is not there"),
            failure => failure,
        })?;
        match found.best(&reference)? {
            Some(payment_id) => self.look(&operation, &payment_id).await.map(Some),
            None => Ok(None),
        }
    }

    pub(crate) async fn capture(&self, payment_id: &str, amount_minor: i64, key: &str) -> Result<Observed, Failure> {
        let body = requests::capture(amount_minor, PIX_CURRENCY)?;
        self.change(payment_id, body, key, |state| state == AttemptState::Authorised).await
    }

    pub(crate) async fn void(&self, payment_id: &str, key: &str) -> Result<Observed, Failure> {
        let is_undone = |state| matches!(state, AttemptState::Open | AttemptState::Authorised);
        self.change(payment_id, requests::cancel(), key, is_undone).await
    }

    pub(crate) async fn refund(&self, payment_id: &str, refund: &NewRefund<'_>) -> Result<ObservedRefund, Failure> {
        let path = format!("/v1/payments/{}/refunds", checked(payment_id)?);
        let body = requests::refund(refund)?;
        let answer = self.ask(&self.http.begin(), Method::POST, &path, body, Some(refund.key)).await?;
        let observed = read::<Refund>(&answer)?.observed(refund.currency)?;
        // Their refunds keep no reference; this one is known to be ours by its key.
        Ok(ObservedRefund { refund_id: Some(refund.refund_id), ..observed })
    }

    async fn look(&self, operation: &Operation<'_>, payment_id: &str) -> Result<Observed, Failure> {
        let path = format!("/v1/payments/{}", checked(payment_id)?);
        let answer = self.ask(operation, Method::GET, &path, Bytes::new(), None).await?;
        read::<Payment>(&answer)?.observed()
    }

    /// A change that does nothing the second time: what was refused is told by the payment's state.
    async fn change(
        &self,
        payment_id: &str,
        body: Bytes,
        key: &str,
        is_undone: impl Fn(AttemptState) -> bool,
    ) -> Result<Observed, Failure> {
        let operation = self.http.begin();
        let path = format!("/v1/payments/{}", checked(payment_id)?);
        let answer = self.ask(&operation, Method::PUT, &path, body, Some(key)).await?;
        match read::<Payment>(&answer).and_then(Payment::observed) {
            Err(failure @ Failure::Refused { status: 400, .. }) => {
                let observed = self.look(&operation, payment_id).await?;
                if is_undone(observed.state) { Err(failure) } else { Ok(observed) }
            }
            result => result,
        }
    }

    async fn ask(
        &self,
        operation: &Operation<'_>,
        method: Method,
        path: &str,
        body: Bytes,
        key: Option<&str>,
    ) -> Result<Answer, Failure> {
        let mut headers = self.headers.clone();
        if let Some(key) = key {
            headers.insert(KEY_HEADER, HeaderValue::try_from(key).map_err(|_| Failure::refused("key"))?);
        }
        operation.send(&Request { method, url: format!("{}{path}", self.base), headers, body }).await
    }
}

/// What is no id of theirs does not exist there.
fn checked(payment_id: &str) -> Result<&str, Failure> {
    if is_id(payment_id) { Ok(payment_id) } else { Err(Failure::NotFound) }
}

fn read<T: DeserializeOwned>(answer: &Answer) -> Result<T, Failure> {
    if answer.is_success() { answer.json() } else { Err(answers::failure(answer)) }
}
