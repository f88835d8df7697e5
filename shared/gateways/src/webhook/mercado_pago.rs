//! Mercado Pago's signature, `x-signature: ts=…,v1=…`, over a manifest of the query's `data.id`, `x-request-id` and the
//! time; and its notifications.
//!
//! The body is not signed. The payment's id is therefore taken from the query, and what the body says besides decides
//! nothing. Notifications about QR codes in shops are not signed at all and not taken.

use secrecy::SecretString;
use serde::Deserialize;
use time::OffsetDateTime;

use super::{SignatureHeader, WebhookError, WebhookEvent, WebhookRequest, event, signature};

/// Times above it are in milliseconds: as seconds they would be in the year 5138.
const SECONDS_MAX: i64 = 100_000_000_000;

#[derive(Deserialize)]
struct Notification {
    id: Id,
    r#type: Option<String>,
    action: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
}

/// The signed text. Absent pairs are left out.
fn manifest(data_id: Option<&str>, request_id: Option<&str>, time: &str) -> String {
    let id = data_id.map(|id| format!("id:{id};")).unwrap_or_default();
    let request_id = request_id.map(|id| format!("request-id:{id};")).unwrap_or_default();
    format!("{id}{request_id}ts:{time};")
}

pub(super) fn verify(secrets: &[SecretString], request: &WebhookRequest<'_>) -> Result<WebhookEvent, WebhookError> {
    let header = SignatureHeader::read(request.headers, "x-signature", "ts")?;
    let request_id = request.headers.get("x-request-id").and_then(|value| value.to_str().ok()).map(str::trim);
    let request_id = request_id.filter(|id| !id.is_empty());
    let data_id = parameter(request.query, "data.id");
    // The documentation signs ids in lower case, their own library as received.
    let lower = data_id.as_ref().map(|id| id.to_lowercase()).filter(|lower| Some(lower) != data_id.as_ref());
    let is_signed = |id: Option<&str>| header.is_by(secrets, &[manifest(id, request_id, header.time).as_bytes()]);
    if !is_signed(data_id.as_deref()) && !lower.as_deref().is_some_and(|id| is_signed(Some(id))) {
        return Err(WebhookError::BadSignature);
    }
    let is_in_seconds = header.time.parse::<i64>().is_ok_and(|time| time <= SECONDS_MAX);
    header.check_time(if is_in_seconds { 1 } else { 1_000 }, request.now)?;
    let read: Notification = serde_json::from_slice(request.body).map_err(|_| WebhookError::Unreadable)?;
    let event_id = match read.id {
        Id::Number(number) => number.to_string(),
        Id::Text(text) => text,
    };
    let topic = read.r#type.or_else(|| parameter(request.query, "type")).ok_or(WebhookError::Unreadable)?;
    let payment_id = data_id.filter(|_| topic == "payment");
    event(event_id, read.action.unwrap_or(topic), payment_id)
}

/// A parameter of the query, decoded; none when it is empty.
fn parameter(query: &str, name: &str) -> Option<String> {
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    let value = pairs.find(|(key, _)| key == name).map(|(_, value)| value.trim().to_owned());
    value.filter(|value| !value.is_empty())
}

/// The value of `x-signature` for a notification sent at that time, in seconds.
#[must_use]
pub fn sign_mercado_pago(
    secret: &SecretString,
    at: OffsetDateTime,
    data_id: Option<&str>,
    request_id: Option<&str>,
) -> String {
    let time = at.unix_timestamp().to_string();
    let v1 = signature(secret, &[manifest(data_id, request_id, &time).as_bytes()]);
    format!("ts={time},v1={v1}")
}
