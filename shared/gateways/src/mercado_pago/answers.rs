//! Mercado Pago's objects, as far as we read them, and what they mean in our words. A state that is not documented is
//! unknown, never guessed.

use std::fmt;

use domain::payments::{
    AttemptState, DisputeState, Instructions, Observed, ObservedDispute, ObservedRefund, RefundState,
};
use serde::Deserialize;
use serde_json::value::RawValue;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::Failure;
use crate::failure::code_word;
use crate::http_client::Answer;
use crate::money::{digits, minor};

/// An id: a number in their answers, a text in ours.
#[derive(Deserialize)]
#[serde(untagged)]
enum Id {
    Number(u64),
    Text(String),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Number(number) => number.fmt(f),
            Self::Text(text) => text.fmt(f),
        }
    }
}

#[derive(Deserialize)]
pub(super) struct Payment {
    id: Id,
    status: String,
    status_detail: Option<String>,
    transaction_amount: Box<RawValue>,
    transaction_amount_refunded: Option<Box<RawValue>>,
    currency_id: String,
    external_reference: Option<String>,
    date_of_expiration: Option<String>,
    point_of_interaction: Option<PointOfInteraction>,
    #[serde(default)]
    refunds: Vec<Refund>,
}

#[derive(Deserialize)]
struct PointOfInteraction {
    transaction_data: Option<TransactionData>,
}

#[derive(Deserialize)]
struct TransactionData {
    qr_code: Option<String>,
    qr_code_base64: Option<String>,
}

/// What a payment's state tells of a dispute: what it is called, and where it is.
type ImpliedDispute = Option<(&'static str, DisputeState)>;

fn state(status: &str, detail: Option<&str>) -> Result<(AttemptState, ImpliedDispute), Failure> {
    let captured = |name, dispute| (AttemptState::Captured, Some((name, dispute)));
    Ok(match (status, detail) {
        ("pending", _) => (AttemptState::Open, None),
        ("in_process", _) => (AttemptState::Processing, None),
        ("authorized", _) => (AttemptState::Authorised, None),
        ("approved" | "refunded", _) => (AttemptState::Captured, None),
        ("rejected", _) => (AttemptState::Declined, None),
        ("cancelled" | "expired", _) => (AttemptState::Cancelled, None),
        // The buyer complains, and they hold the money until they have decided.
        ("in_mediation", _) => captured("mediation", DisputeState::Open),
        ("charged_back", Some("in_process")) => captured("chargeback", DisputeState::Open),
        ("charged_back", Some("reimbursed")) => captured("chargeback", DisputeState::Won),
        ("charged_back", Some("settled")) => captured("chargeback", DisputeState::Lost),
        _ => return Err(Failure::unknown("an undocumented state of a payment")),
    })
}

fn amount(number: &RawValue, currency: &str) -> Result<i64, Failure> {
    minor(number.get(), digits(currency)).ok_or_else(|| Failure::unknown("an amount that cannot be one"))
}

impl Payment {
    pub(super) fn observed(self) -> Result<Observed, Failure> {
        let payment_id = self.id.to_string();
        let currency = self.currency_id.to_ascii_uppercase();
        let (state, dispute) = state(&self.status, self.status_detail.as_deref())?;
        let amount_minor = amount(&self.transaction_amount, &currency)?;
        let refunded = self.transaction_amount_refunded.as_ref().filter(|number| number.get() != "null");
        let refunded_minor = match refunded {
            Some(number) => amount(number, &currency)?,
            None if self.status == "refunded" => amount_minor,
            None => 0,
        };
        let expires_at = self.date_of_expiration.and_then(|text| OffsetDateTime::parse(&text, &Rfc3339).ok());
        let data = self.point_of_interaction.and_then(|point| point.transaction_data);
        let pix = data.filter(|_| state == AttemptState::Open).and_then(|data| {
            let qr_png = data.qr_code_base64;
            data.qr_code.map(|code| Instructions::Pix { code, qr_png, expires_at })
        });
        let disputes = dispute.map(|(name, state)| ObservedDispute {
            gateway_dispute_id: format!("{name}-{payment_id}"),
            amount_minor: amount_minor - refunded_minor,
            state,
        });
        let is_declined = state == AttemptState::Declined;
        Ok(Observed {
            attempt_id: self.external_reference.as_deref().and_then(|text| Uuid::parse_str(text).ok()),
            state,
            amount_minor,
            captured_minor: if state == AttemptState::Captured { amount_minor } else { 0 },
            refunded_minor,
            decline_code: is_declined.then(|| code_word(self.status_detail.as_deref())),
            instructions: pix,
            refunds: self.refunds.into_iter().map(|refund| refund.observed(&currency)).collect::<Result<_, _>>()?,
            disputes: disputes.into_iter().collect(),
            currency,
            payment_id,
        })
    }
}

#[derive(Deserialize)]
pub(super) struct Refund {
    id: Id,
    amount: Box<RawValue>,
    status: Option<String>,
}

impl Refund {
    pub(super) fn observed(self, currency: &str) -> Result<ObservedRefund, Failure> {
        let state = match self.status.as_deref() {
            Some("approved") => RefundState::Succeeded,
            Some("in_process" | "pending") => RefundState::Pending,
            Some("rejected" | "cancelled") => RefundState::Failed,
            _ => return Err(Failure::unknown("an undocumented state of a refund")),
        };
        let amount_minor = amount(&self.amount, &currency.to_ascii_uppercase())?;
        Ok(ObservedRefund { gateway_refund_id: self.id.to_string(), refund_id: None, amount_minor, state })
    }
}

/// A page of the search.
#[derive(Deserialize)]
pub(super) struct Found {
    results: Vec<FoundPayment>,
}

#[derive(Deserialize)]
struct FoundPayment {
    id: Id,
    status: String,
    status_detail: Option<String>,
    external_reference: Option<String>,
}

impl Found {
    /// The id of the payment with this reference whose state counts most.
    pub(super) fn best(self, reference: &str) -> Result<Option<String>, Failure> {
        let ours = self.results.into_iter().filter(|found| found.external_reference.as_deref() == Some(reference));
        let mut best: Option<(u8, String)> = None;
        for found in ours {
            let (state, _) = state(&found.status, found.status_detail.as_deref())?;
            if best.as_ref().is_none_or(|(rank, _)| state.rank() > *rank) {
                best = Some((state.rank(), found.id.to_string()));
            }
        }
        Ok(best.map(|(_, id)| id))
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct ErrorBody {
    error: Option<String>,
    message: Option<String>,
    cause: Vec<ErrorCause>,
}

#[derive(Deserialize)]
struct ErrorCause {
    code: Option<Id>,
}

/// What an answer that is no success means. A 404 that is not in their form may come from anybody on the way.
pub(super) fn failure(answer: &Answer) -> Failure {
    let body: Option<ErrorBody> = answer
        .json()
        .ok()
        .filter(|body: &ErrorBody| body.error.is_some() || body.message.is_some() || !body.cause.is_empty());
    let Some(body) = body.filter(|_| !answer.is_undecided()) else { return answer.as_unknown() };
    let cause = body.cause.into_iter().find_map(|cause| cause.code).map(|code| code.to_string());
    let code = code_word(cause.or(body.error).as_deref());
    match answer.status {
        404 => Failure::NotFound,
        status => Failure::Refused { status, code },
    }
}
