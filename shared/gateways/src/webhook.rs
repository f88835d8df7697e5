//! Webhooks: who sent one, and what it is about.
//!
//! Pure: the caller brings the raw request and the time. A signature is checked on the bytes as received, in constant
//! time, against every secret that is valid; only then is the body read. What it says is a hint. The payment that it
//! names has to be fetched with the store's own account.

mod mercado_pago;
mod stripe;
#[cfg(test)]
mod tests;

use domain::limits::WEBHOOK_BYTES_MAX;
use hmac::{Hmac, KeyInit, Mac};
use http::HeaderMap;
use secrecy::{ExposeSecret, SecretString};
use sha2::Sha256;
use time::{Duration, OffsetDateTime};

pub use mercado_pago::sign_mercado_pago;
pub use stripe::sign_stripe;

use crate::Credentials;
use crate::http_client::is_id;

/// How far a signature's time may be from ours, in either direction.
const TOLERANCE: Duration = Duration::seconds(300);

/// Longest signature header, in bytes, and most signatures in one: two versions under two secrets are four.
const HEADER_BYTES_MAX: usize = 2_048;
const SIGNATURES_MAX: usize = 16;

const EVENT_ID_BYTES_MAX: usize = 255;
const KIND_BYTES_MAX: usize = 100;

/// A request as it came in.
#[derive(Clone, Copy)]
pub struct WebhookRequest<'a> {
    /// All headers.
    pub headers: &'a HeaderMap,
    /// The query string, percent-encoded, without `?`.
    pub query: &'a str,
    /// The body, decoded if the transport had it in base64.
    pub body: &'a [u8],
    /// Now.
    pub now: OffsetDateTime,
}

/// An event whose sender is known.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WebhookEvent {
    /// The gateway's id of it, at most 255 bytes. The same event may come several times.
    pub event_id: String,
    /// The gateway's word for what happened, at most 100 bytes.
    pub kind: String,
    /// The payment to fetch, at most 255 bytes; none when it is not about one.
    pub payment_id: Option<String>,
}

/// Why a webhook is not taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WebhookError {
    /// It is not signed.
    #[error("the signature is missing")]
    Missing,
    /// No valid secret made this signature of these bytes.
    #[error("the signature is wrong")]
    BadSignature,
    /// Well signed, but more than 300 s ago or ahead.
    #[error("the signature is stale")]
    Stale,
    /// Too large, or well signed and not an event.
    #[error("the event cannot be read")]
    Unreadable,
}

/// Checks who sent a webhook and reads what it is about.
///
/// # Errors
/// [`WebhookError`]; nothing of the request may be used then.
pub fn verify(credentials: &Credentials, request: &WebhookRequest<'_>) -> Result<WebhookEvent, WebhookError> {
    if request.body.len() > WEBHOOK_BYTES_MAX {
        return Err(WebhookError::Unreadable);
    }
    match credentials {
        Credentials::Stripe(account) | Credentials::Sandbox(account) => {
            stripe::verify(&account.webhook_secrets, request)
        }
        Credentials::MercadoPago(account) => mercado_pago::verify(&account.webhook_secrets, request),
        Credentials::Manual => Err(WebhookError::Missing),
    }
}

/// A signature header of the form `<time name>=<digits>,v1=<hex>[,v1=<hex>]`, in any order, with other pairs ignored.
struct SignatureHeader<'a> {
    /// As received, because it is signed as text.
    time: &'a str,
    signatures: Vec<[u8; 32]>,
}

impl<'a> SignatureHeader<'a> {
    fn read(headers: &'a HeaderMap, name: &str, time_name: &str) -> Result<Self, WebhookError> {
        let text = headers.get(name).ok_or(WebhookError::Missing)?.to_str().map_err(|_| WebhookError::BadSignature)?;
        if text.len() > HEADER_BYTES_MAX {
            return Err(WebhookError::BadSignature);
        }
        let mut time = None;
        let mut signatures = Vec::new();
        for (key, value) in text.split(',').filter_map(|pair| pair.trim().split_once('=')) {
            if key == time_name {
                time = Some(value);
            } else if key == "v1" && signatures.len() < SIGNATURES_MAX {
                let mut signature = [0; 32];
                // One that is no hash cannot match; another may.
                if hex::decode_to_slice(value, &mut signature).is_ok() {
                    signatures.push(signature);
                }
            }
        }
        match time {
            Some(time) if is_digits(time) && !signatures.is_empty() => Ok(Self { time, signatures }),
            _ => Err(WebhookError::BadSignature),
        }
    }

    /// Whether one of the secrets has signed the message, given in parts.
    fn is_by(&self, secrets: &[SecretString], message: &[&[u8]]) -> bool {
        secrets
            .iter()
            .any(|secret| self.signatures.iter().any(|signature| mac(secret, message).verify_slice(signature).is_ok()))
    }

    fn check_time(&self, unit: i64, now: OffsetDateTime) -> Result<(), WebhookError> {
        let at = self.time.parse::<i64>().ok().map(|time| time / unit);
        let at = at.and_then(|seconds| OffsetDateTime::from_unix_timestamp(seconds).ok());
        match at {
            Some(at) if (now - at).abs() <= TOLERANCE => Ok(()),
            _ => Err(WebhookError::Stale),
        }
    }
}

fn is_digits(text: &str) -> bool {
    (1..=19).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn mac(secret: &SecretString, message: &[&[u8]]) -> Hmac<Sha256> {
    let key = secret.expose_secret().as_bytes();
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("HMAC takes keys of any length");
    message.iter().for_each(|part| mac.update(part));
    mac
}

fn signature(secret: &SecretString, message: &[&[u8]]) -> String {
    hex::encode(mac(secret, message).finalize().into_bytes())
}

/// An event within its bounds.
fn event(event_id: String, kind: String, payment_id: Option<String>) -> Result<WebhookEvent, WebhookError> {
    let is_bounded = |text: &str, max| (1..=max).contains(&text.len()) && !text.contains('\0');
    if !is_bounded(&event_id, EVENT_ID_BYTES_MAX) || !is_bounded(&kind, KIND_BYTES_MAX) {
        return Err(WebhookError::Unreadable);
    }
    Ok(WebhookEvent { event_id, kind, payment_id: payment_id.filter(|id| is_id(id)) })
}
