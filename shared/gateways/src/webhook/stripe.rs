//! Stripe's signature, `Stripe-Signature: t=…,v1=…`, over time, point and body; and its events.
//! <https://docs.stripe.com/webhooks#verify-manually>

use secrecy::SecretString;
use serde::Deserialize;
use serde_json::Value;
use time::OffsetDateTime;

use super::{SignatureHeader, WebhookError, WebhookEvent, WebhookRequest, event, signature};

#[derive(Deserialize)]
struct Event {
    id: String,
    r#type: String,
    data: Data,
}

#[derive(Deserialize)]
struct Data {
    object: Object,
}

#[derive(Deserialize)]
struct Object {
    object: Option<String>,
    id: Option<String>,
    payment_intent: Option<Value>,
}

impl Object {
    /// Charges, refunds and disputes name their intent, by id or in full.
    fn payment_id(self) -> Option<String> {
        match self.object.as_deref() {
            Some("payment_intent" | "checkout.session") => self.id,
            Some("charge" | "refund" | "dispute") => {
                let intent = self.payment_intent?;
                intent.as_str().or_else(|| intent["id"].as_str()).map(str::to_owned)
            }
            _ => None,
        }
    }
}

pub(super) fn verify(secrets: &[SecretString], request: &WebhookRequest<'_>) -> Result<WebhookEvent, WebhookError> {
    let header = SignatureHeader::read(request.headers, "stripe-signature", "t")?;
    if !header.is_by(secrets, &[header.time.as_bytes(), b".", request.body]) {
        return Err(WebhookError::BadSignature);
    }
    header.check_time(1, request.now)?;
    let read: Event = serde_json::from_slice(request.body).map_err(|_| WebhookError::Unreadable)?;
    event(read.id, read.r#type, read.data.object.payment_id())
}

/// The value of `Stripe-Signature` for a body sent at that time.
#[must_use]
pub fn sign_stripe(secret: &SecretString, at: OffsetDateTime, body: &[u8]) -> String {
    let time = at.unix_timestamp().to_string();
    let v1 = signature(secret, &[time.as_bytes(), b".", body]);
    format!("t={time},v1={v1}")
}
