//! Error objects: "Errors" and "Error codes" in Stripe's reference.

use serde_json::{Value, json};

use crate::calls::{Answer, Request, Trouble};
use crate::payments::{Payment, Refusal};

/// What may go wrong with any call.
pub(crate) fn trouble(trouble: &Trouble) -> Answer {
    let (status, kind, code, message) = match trouble {
        Trouble::NoAccount => (401, "invalid_request_error", None, "Invalid API Key provided".to_owned()),
        Trouble::NoSuchRoute => (404, "invalid_request_error", None, "Unrecognized request URL".into()),
        Trouble::Conflict => (
            409,
            "idempotency_error",
            Some("idempotency_key_in_use"),
            "There is currently another in-progress request using this Idempotent Key".into(),
        ),
        Trouble::KeyWithOtherParameters => (
            400,
            "idempotency_error",
            None,
            "Keys for idempotent requests can only be used with the same parameters they were first used with".into(),
        ),
        Trouble::BadKey => (400, "invalid_request_error", None, "Idempotency keys have 1 to 255 characters".into()),
        Trouble::TooMany => (429, "invalid_request_error", Some("rate_limit"), "Request rate limit exceeded".into()),
        Trouble::Internal => (500, "api_error", None, "An unknown error occurred".into()),
    };
    let answer = error(status, kind, code, &message);
    if status == 409 { answer.with("stripe-should-retry", "true") } else { answer }
}

fn error(status: u16, kind: &str, code: Option<&str>, message: &str) -> Answer {
    Answer::new(status, json!({ "error": { "type": kind, "code": code, "message": message } }))
}

/// Parameters that are not valid leave nothing under the key.
fn not_valid(code: &str, name: &str, message: &str) -> Answer {
    let mut answer = error(400, "invalid_request_error", Some(code), message).not_kept();
    answer.body["error"]["param"] = name.into();
    answer
}

pub(super) fn missing(name: &str) -> Answer {
    not_valid("parameter_missing", name, &format!("Missing required param: {name}."))
}

pub(super) fn unknown(name: &str) -> Answer {
    not_valid("parameter_unknown", name, &format!("Received unknown parameter: {name}"))
}

pub(super) fn invalid(name: &str, code: &str, message: &str) -> Answer {
    not_valid(code, name, &format!("{message}: {name}"))
}

pub(super) fn not_expandable(path: &str) -> Answer {
    let message = format!("This property cannot be expanded ({path}).");
    error(400, "invalid_request_error", None, &message).not_kept()
}

pub(super) fn no_such(what: &str, id: &str) -> Answer {
    let mut answer =
        error(404, "invalid_request_error", Some("resource_missing"), &format!("No such {what}: '{id}'")).not_kept();
    answer.body["error"]["param"] = what.into();
    answer
}

pub(super) fn unknown_url(request: &Request) -> Answer {
    let message = format!("Unrecognized request URL ({} {})", request.method, request.path);
    error(404, "invalid_request_error", None, &message).not_kept()
}

/// The PaymentIntent is not in a state for this.
pub(super) fn unexpected_state(message: &str, intent: Value) -> Answer {
    let mut answer = error(400, "invalid_request_error", Some("payment_intent_unexpected_state"), message);
    answer.body["error"]["payment_intent"] = intent;
    answer
}

/// The session is not open.
pub(super) fn not_open(status: &str) -> Answer {
    let message = format!(
        "Only Checkout Sessions with a status in [\"open\"] can be expired. This Checkout Session has a status of \
         {status}."
    );
    error(400, "invalid_request_error", None, &message)
}

pub(super) fn card_declined(decline_code: &str, intent: Value) -> Answer {
    let mut answer = error(402, "card_error", Some("card_declined"), "Your card was declined.");
    answer.body["error"]["decline_code"] = decline_code.into();
    answer.body["error"]["payment_intent"] = intent;
    answer
}

pub(super) fn not_refundable(payment: &Payment, refusal: Refusal) -> Answer {
    let charge = payment.charge_id().unwrap_or_default();
    let (code, message) = match refusal {
        Refusal::AlreadyRefunded => {
            (Some("charge_already_refunded"), format!("Charge {charge} has already been refunded."))
        }
        Refusal::Disputed => (Some("charge_disputed"), format!("Charge {charge} has been charged back.")),
        Refusal::TooMuch => (None, format!("Refund amount is greater than unrefunded amount on charge ({charge})")),
        Refusal::State => (
            Some("payment_intent_unexpected_state"),
            format!("This PaymentIntent ({}) does not have a successful charge to refund.", payment.id()),
        ),
    };
    error(400, "invalid_request_error", code, &message)
}
