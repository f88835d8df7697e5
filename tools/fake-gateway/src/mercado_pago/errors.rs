//! Error answers: a message, the status, and numbered causes.

use serde_json::json;

use crate::calls::{Answer, Trouble};

fn error(status: u16, error: &str, message: &str, cause: Option<u32>) -> Answer {
    let causes: Vec<_> = cause.into_iter().map(|code| json!({ "code": code, "description": message })).collect();
    Answer::new(status, json!({ "message": message, "error": error, "status": status, "cause": causes }))
}

/// What may go wrong with any call.
pub(crate) fn trouble(trouble: &Trouble) -> Answer {
    match trouble {
        Trouble::NoAccount => error(401, "unauthorized", "Invalid token", Some(401)),
        Trouble::NoSuchRoute => no_such_route(),
        // Documented for orders, not for payments.
        Trouble::Conflict => error(409, "conflict", "A request with this key is in progress", None),
        Trouble::KeyWithOtherParameters => {
            error(409, "idempotency_key_already_used", "The key was used with a different body", None)
        }
        Trouble::BadKey => error(400, "bad_request", "Header X-Idempotency-Key can't be null", Some(4_292)),
        Trouble::TooMany => error(429, "too_many_requests", "Too many requests", None),
        Trouble::Internal => error(500, "internal_error", "Internal server error", None),
    }
}

pub(super) fn no_such_route() -> Answer {
    error(404, "not_found", "Resource not found", None)
}

pub(super) fn invalid(message: &str, cause: u32) -> Answer {
    error(400, "bad_request", message, Some(cause))
}

pub(super) fn no_payment() -> Answer {
    error(404, "not_found", "Payment not found", Some(2_000))
}

pub(super) fn no_refund() -> Answer {
    error(404, "not_found", "Refund not found", Some(2_032))
}

pub(super) fn wrong_state() -> Answer {
    invalid("The action requested is not valid for the current payment state", 2_063)
}
