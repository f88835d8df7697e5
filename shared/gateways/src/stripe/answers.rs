//! Stripe's objects, as far as we read them, and what they mean in our words. A state that is not documented is
//! unknown, never guessed.

use domain::payments::{
    AttemptState, DisputeState, Instructions, Observed, ObservedDispute, ObservedRefund, RefundState,
};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use crate::Failure;
use crate::failure::code_word;
use crate::http_client::Answer;

/// A payment as an answer showed it, and what the answer left out.
pub(super) struct Seen {
    pub(super) observed: Observed,
    /// The intent that moves the money, once there is one.
    pub(super) intent: Option<String>,
    /// All refunds are in the answer.
    pub(super) lists_refunds: bool,
    /// There are disputes to ask for.
    pub(super) is_disputed: bool,
}

/// An object of a list.
pub(super) trait Listed: DeserializeOwned + Send {
    /// Its id, by which the next page is asked for.
    fn id(&self) -> &str;
}

#[derive(Deserialize)]
pub(super) struct List<T> {
    pub(super) data: Vec<T>,
    #[serde(default)]
    pub(super) has_more: bool,
}

/// Shown in full when it was asked for.
#[derive(Deserialize)]
#[serde(untagged)]
enum Expandable<T> {
    Object(Box<T>),
    #[expect(dead_code, reason = "only that it is a text matters")]
    Id(String),
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Metadata {
    attempt_id: Option<String>,
    refund_id: Option<String>,
    method: Option<String>,
}

fn uuid(text: Option<&String>) -> Option<Uuid> {
    text.and_then(|text| Uuid::parse_str(text).ok())
}

#[derive(Deserialize)]
pub(super) struct Intent {
    pub(super) id: String,
    status: String,
    amount: i64,
    currency: String,
    amount_received: Option<i64>,
    client_secret: Option<String>,
    metadata: Option<Metadata>,
    last_payment_error: Option<PaymentError>,
    latest_charge: Option<Expandable<Charge>>,
}

#[derive(Deserialize)]
struct PaymentError {
    code: Option<String>,
    decline_code: Option<String>,
}

#[derive(Deserialize)]
struct Charge {
    amount_refunded: Option<i64>,
    disputed: Option<bool>,
    refunds: Option<List<Refund>>,
}

impl Listed for Intent {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Intent {
    /// Which of our attempts it names.
    pub(super) fn attempt_id(&self) -> Option<Uuid> {
        uuid(self.metadata.as_ref().and_then(|metadata| metadata.attempt_id.as_ref()))
    }

    /// Whether it was made by a session.
    pub(super) fn is_of_session(&self) -> bool {
        self.metadata.as_ref().is_some_and(|metadata| metadata.method.as_deref() == Some("checkout"))
    }

    pub(super) fn state(&self) -> Result<AttemptState, Failure> {
        Ok(match self.status.as_str() {
            "requires_payment_method" | "requires_confirmation" | "requires_action" => AttemptState::Open,
            "processing" => AttemptState::Processing,
            "requires_capture" => AttemptState::Authorised,
            "succeeded" => AttemptState::Captured,
            "canceled" => AttemptState::Cancelled,
            _ => return Err(Failure::unknown("an undocumented state of a payment")),
        })
    }

    pub(super) fn seen(self) -> Result<Seen, Failure> {
        let state = self.state()?;
        let attempt_id = self.attempt_id();
        let is_open = state == AttemptState::Open;
        let decline = |error: PaymentError| code_word(error.decline_code.or(error.code).as_deref());
        let charge = match self.latest_charge {
            Some(Expandable::Object(charge)) => Some(*charge),
            Some(Expandable::Id(_)) | None => None,
        };
        let captured_minor = match state {
            AttemptState::Captured => self.amount_received.unwrap_or(self.amount),
            _ => self.amount_received.unwrap_or(0),
        };
        let client_secret = self.client_secret.filter(|_| is_open);
        // Without a charge in the answer, all that could be on it has to be asked for. What was never captured is not
        // given back either: releasing an authorisation looks like a refund there.
        let is_disputed = charge.as_ref().is_none_or(|charge| charge.disputed.unwrap_or(false));
        let (refunded_minor, refunds) = match charge {
            Some(charge) if captured_minor > 0 => (charge.amount_refunded.unwrap_or(0), charge.refunds),
            _ => (0, None),
        };
        let lists_refunds = refunds.as_ref().is_some_and(|list| !list.has_more);
        let refunds = refunds.map(|list| list.data).unwrap_or_default();
        let observed = Observed {
            payment_id: self.id.clone(),
            attempt_id,
            state,
            amount_minor: self.amount,
            currency: self.currency.to_ascii_uppercase(),
            captured_minor,
            refunded_minor,
            decline_code: self.last_payment_error.filter(|_| is_open).map(decline),
            instructions: client_secret.map(|client_secret| Instructions::ClientSecret { client_secret }),
            refunds: refunds.into_iter().map(Refund::observed).collect::<Result<_, _>>()?,
            disputes: Vec::new(),
        };
        Ok(Seen { observed, intent: Some(self.id), lists_refunds, is_disputed })
    }
}

#[derive(Deserialize)]
pub(super) struct Session {
    pub(super) id: String,
    status: Option<String>,
    amount_total: Option<i64>,
    currency: Option<String>,
    url: Option<String>,
    client_reference_id: Option<String>,
    metadata: Option<Metadata>,
    payment_intent: Option<Expandable<Intent>>,
}

impl Listed for Session {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Session {
    /// Which of our attempts it names.
    pub(super) fn attempt_id(&self) -> Option<Uuid> {
        let named = self.metadata.as_ref().and_then(|metadata| metadata.attempt_id.as_ref());
        uuid(named).or_else(|| uuid(self.client_reference_id.as_ref()))
    }

    /// The page's state, unless its intent is further: money outranks the page.
    pub(super) fn seen(self) -> Result<Seen, Failure> {
        let attempt_id = self.attempt_id();
        let intent = match self.payment_intent {
            Some(Expandable::Object(intent)) => Some(intent.seen()?),
            Some(Expandable::Id(_)) => return Err(Failure::unknown("a session did not show its payment")),
            None => None,
        };
        let of_intent = intent.as_ref().map(|seen| seen.observed.state);
        let state = match (self.status.as_deref(), of_intent) {
            (_, Some(state @ (AttemptState::Processing | AttemptState::Authorised | AttemptState::Captured))) => state,
            (Some("open"), _) => AttemptState::Open,
            (Some("expired"), _) => AttemptState::Cancelled,
            (Some("complete"), Some(state)) => state,
            _ => return Err(Failure::unknown("an undocumented state of a session")),
        };
        let (Some(amount_minor), Some(currency)) = (self.amount_total, self.currency) else {
            return Err(Failure::unknown("a session without an amount"));
        };
        let url = self.url.filter(|_| state == AttemptState::Open);
        let instructions = url.map(|url| Instructions::Redirect { url });
        let nothing = Seen {
            observed: Observed {
                payment_id: self.id.clone(),
                attempt_id,
                state,
                amount_minor,
                currency: currency.to_ascii_uppercase(),
                captured_minor: 0,
                refunded_minor: 0,
                decline_code: None,
                instructions: None,
                refunds: Vec::new(),
                disputes: Vec::new(),
            },
            intent: None,
            lists_refunds: true,
            is_disputed: false,
        };
        let mut seen = intent.unwrap_or(nothing);
        seen.observed = Observed {
            payment_id: self.id,
            attempt_id,
            state,
            amount_minor,
            currency: currency.to_ascii_uppercase(),
            instructions,
            ..seen.observed
        };
        Ok(seen)
    }
}

#[derive(Deserialize)]
pub(super) struct Refund {
    id: String,
    amount: i64,
    status: Option<String>,
    metadata: Option<Metadata>,
}

impl Listed for Refund {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Refund {
    pub(super) fn observed(self) -> Result<ObservedRefund, Failure> {
        let state = match self.status.as_deref() {
            Some("pending" | "requires_action") => RefundState::Pending,
            Some("succeeded") => RefundState::Succeeded,
            Some("failed" | "canceled") => RefundState::Failed,
            _ => return Err(Failure::unknown("an undocumented state of a refund")),
        };
        let refund_id = uuid(self.metadata.as_ref().and_then(|metadata| metadata.refund_id.as_ref()));
        Ok(ObservedRefund { gateway_refund_id: self.id, refund_id, amount_minor: self.amount, state })
    }
}

#[derive(Deserialize)]
pub(super) struct Dispute {
    id: String,
    amount: i64,
    status: String,
}

impl Listed for Dispute {
    fn id(&self) -> &str {
        &self.id
    }
}

impl Dispute {
    /// An inquiry ("warning") takes no money; one that was closed or prevented never will by itself.
    pub(super) fn observed(self) -> Result<ObservedDispute, Failure> {
        let state = match self.status.as_str() {
            "warning_needs_response" | "warning_under_review" | "needs_response" | "under_review" => DisputeState::Open,
            "won" | "warning_closed" | "prevented" => DisputeState::Won,
            "lost" => DisputeState::Lost,
            _ => return Err(Failure::unknown("an undocumented state of a dispute")),
        };
        Ok(ObservedDispute { gateway_dispute_id: self.id, amount_minor: self.amount, state })
    }
}

#[derive(Deserialize, Default)]
struct ErrorBody {
    #[serde(default)]
    error: ErrorObject,
}

#[derive(Deserialize, Default)]
struct ErrorObject {
    r#type: Option<String>,
    code: Option<String>,
    decline_code: Option<String>,
}

/// What an answer that is no success means.
///
/// Other parameters under a used key say nothing about what the key's first request has done, and a 404 that is not in
/// Stripe's form may come from anybody on the way.
pub(super) fn failure(answer: &Answer) -> Failure {
    let error = answer.json::<ErrorBody>().unwrap_or_default().error;
    let is_theirs = error.r#type.is_some();
    let is_reused_key = error.r#type.as_deref() == Some("idempotency_error");
    if answer.is_undecided() || is_reused_key || !is_theirs {
        return if is_reused_key { Failure::unknown("the key was used differently") } else { answer.as_unknown() };
    }
    let code = code_word(error.decline_code.or(error.code).or(error.r#type).as_deref());
    match answer.status {
        404 => Failure::NotFound,
        402 => Failure::Declined { code },
        status => Failure::Refused { status, code },
    }
}
