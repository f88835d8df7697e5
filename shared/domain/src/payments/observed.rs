//! A gateway's answer about a payment, in our words.

use serde::{Deserialize, Serialize};
use time::OffsetDateTime;
use uuid::Uuid;

use super::{AttemptState, DisputeState, RefundState};

/// A payment as a gateway described it at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Observed {
    /// The gateway's id.
    pub payment_id: String,
    /// The attempt that it names as its reference; none when it is not ours.
    pub attempt_id: Option<Uuid>,
    /// Where it is.
    pub state: AttemptState,
    /// What it is about, minor units.
    pub amount_minor: i64,
    /// ISO 4217 code, upper case.
    pub currency: String,
    /// Money taken so far, minor units.
    pub captured_minor: i64,
    /// Money given back so far, minor units, however that came about.
    pub refunded_minor: i64,
    /// The gateway's word for why the last try was refused. An open payment with one will not be tried again by us.
    pub decline_code: Option<String>,
    /// What the buyer has to do; not every answer repeats it.
    pub instructions: Option<Instructions>,
    /// Refunds that the gateway lists.
    pub refunds: Vec<ObservedRefund>,
    /// Disputes that the gateway lists.
    pub disputes: Vec<ObservedDispute>,
}

impl Observed {
    /// What staff say of an attempt that was paid in cash or by a transfer: all of it was taken.
    #[must_use]
    pub fn booked_by_staff(attempt_id: Uuid, amount_minor: i64, currency: &str) -> Self {
        Self {
            payment_id: format!("manual-{attempt_id}"),
            attempt_id: Some(attempt_id),
            state: AttemptState::Captured,
            amount_minor,
            currency: currency.to_ascii_uppercase(),
            captured_minor: amount_minor,
            refunded_minor: 0,
            decline_code: None,
            instructions: None,
            refunds: Vec::new(),
            disputes: Vec::new(),
        }
    }
}

/// A refund as a gateway described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedRefund {
    /// The gateway's id.
    pub gateway_refund_id: String,
    /// Our refund, when the gateway keeps a reference to it.
    pub refund_id: Option<Uuid>,
    /// Minor units.
    pub amount_minor: i64,
    /// Where it is.
    pub state: RefundState,
}

/// A dispute as a gateway described it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedDispute {
    /// The gateway's id.
    pub gateway_dispute_id: String,
    /// Minor units.
    pub amount_minor: i64,
    /// Where it is.
    pub state: DisputeState,
}

/// What a buyer has to do to pay. Kept with the attempt, so that a repeated request gets the same.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
pub enum Instructions {
    /// Go to this address.
    Redirect {
        /// A page of the gateway.
        url: String,
    },
    /// Complete the payment in the storefront with this secret.
    ClientSecret {
        /// For the gateway's script only.
        client_secret: String,
    },
    /// Pay with a Pix code.
    Pix {
        /// The text to copy.
        code: String,
        /// A QR code of it, a PNG in base64.
        qr_png: Option<String>,
        /// Until when the gateway takes it.
        #[serde(with = "time::serde::rfc3339::option")]
        expires_at: Option<OffsetDateTime>,
    },
}

// Secrets do not belong into logs.
impl std::fmt::Debug for Instructions {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Redirect { .. } => "Redirect",
            Self::ClientSecret { .. } => "ClientSecret",
            Self::Pix { .. } => "Pix",
        })
    }
}
