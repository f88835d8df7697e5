//! `POST /v1/orders/{order}/payments`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use cashier::Asked;
use domain::Reason;
use domain::limits::{GATEWAY_BUDGET, KEY_KEPT_FOR, RETURN_URL_BYTES_MAX};
use domain::payments::{AttemptState, Gateway, Instructions, Method, Step, next_step};
use edge::Problem;
use edge::auth::Buyer;
use edge::http::{BuyerAuth, IDEMPOTENCY_REPLAYED, IdempotencyKey, JsonBody, PathParams};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use store::payments::{Attempt, NewAttempt, Started, find_payable, start};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// Attempts that one request may close before it makes its own. There is at most one open.
const TURNS: usize = 3;
/// Steps that close an attempt: finding it, closing it.
const STEPS_TO_CLOSE: usize = 2;
/// Seconds after which a request without an answer may be repeated.
const AGAIN_AFTER: u32 = 5;

/// How to pay.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PaymentRequest {
    /// `card` (a form in the storefront), `checkout` (a page of the gateway) or `pix`.
    #[schema(value_type = String, pattern = "^(card|checkout|pix)$", example = "checkout")]
    #[serde(deserialize_with = "of_buyers")]
    method: Method,
    /// Where the gateway's page sends the buyer afterwards: an https address, or http on localhost. Required for
    /// `checkout`.
    #[schema(max_length = 500, example = "https://store.example/orders/1")]
    return_url: Option<String>,
}

/// What staff book is no method of buyers.
fn of_buyers<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Method, D::Error> {
    let method = Method::from_word(&String::deserialize(deserializer)?);
    let method = method.filter(|method| *method != Method::Manual);
    method.ok_or_else(|| D::Error::custom("must be card, checkout or pix"))
}

/// A payment under way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Payment {
    /// The attempt.
    id: Uuid,
    /// Where it is: created (the gateway has not answered yet), open, processing, authorised, captured.
    #[schema(value_type = String, example = "open")]
    state: AttemptState,
    /// With whom.
    #[schema(value_type = String, example = "stripe")]
    gateway: Gateway,
    /// How.
    #[schema(value_type = String, example = "checkout")]
    method: Method,
    /// What to do now; null while the gateway has not answered.
    #[schema(value_type = Option<Object>, example = json!({"kind": "redirect", "url": "https://pay.example/1"}))]
    instructions: Option<Instructions>,
}

impl From<Attempt> for Payment {
    fn from(attempt: Attempt) -> Self {
        Self {
            id: attempt.id,
            state: attempt.state,
            gateway: attempt.gateway,
            method: attempt.method,
            instructions: attempt.instructions,
        }
    }
}

/// Pay an order.
///
/// Repeat the request with the same key as often as you like: it is the same payment. With another key an open payment
/// is closed at its gateway first ("pay another way"). An order that costs nothing is paid at once.
#[utoipa::path(
    post, path = "/v1/orders/{order}/payments", tag = "payments", operation_id = "pay_order",
    params(("order" = Uuid, Path, description = "The order"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per payment, at most 128 characters")),
    request_body = PaymentRequest,
    responses(
        (status = 201, description = "What to do to pay", body = Payment, headers(
            ("Location" = String, description = "The order"),
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 202, description = "The gateway has not answered yet: ask again with the same key", body = Payment, headers(
            ("Location" = String, description = "The order"),
            ("Retry-After" = u32, description = "Seconds to wait before asking again"))),
        (status = 204, description = "The order costs nothing and is paid"),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 402, description = "payment-declined", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "wrong-state, hold-expired, payment-in-flight, payment-ended, too-many-attempts, reserving-halted, busy", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, method-unavailable, key-reused", body = Problem),
        (status = 503, description = "gateway-unavailable, unavailable", body = Problem)),
    security(("buyer" = []))
)]
pub(crate) async fn pay(
    Shared(state): Shared<State>,
    BuyerAuth(buyer): BuyerAuth,
    PathParams(order_id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<PaymentRequest>,
) -> Result<Response, Problem> {
    if body.return_url.as_deref().is_some_and(|url| !is_return_url(url)) {
        return Err(Problem::new(Reason::Invalid).with_error("/return_url", "must be an https address"));
    }
    if body.method == Method::Checkout && body.return_url.is_none() {
        return Err(Problem::new(Reason::Invalid).with_error("/return_url", "is required for checkout"));
    }
    for _ in 0..TURNS {
        match begin(&state, buyer, order_id, key.as_str(), &body).await? {
            Started::Free => return Ok(StatusCode::NO_CONTENT.into_response()),
            Started::New(attempt) => return answer(ask(&state, attempt).await?, false),
            Started::Known(attempt) => return answer(again(&state, attempt).await?, true),
            Started::Close(open) => close(&state, open).await?,
        }
    }
    Err(in_flight())
}

async fn begin(
    state: &State,
    buyer: Buyer,
    order_id: Uuid,
    key: &str,
    body: &PaymentRequest,
) -> domain::Result<Started> {
    let new = NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: buyer.tenant_id,
        buyer_id: Some(buyer.buyer_id),
        order_id,
        method: body.method,
        return_url: body.return_url.as_deref(),
        key,
    };
    start(&mut *state.database.client().await?, &new).await
}

/// Asks the gateway to make the payment. An answer that comes too late is found by the reconciler.
async fn ask(state: &State, attempt: Attempt) -> domain::Result<Attempt> {
    step(state, attempt, Step::Create).await
}

/// A repeated request: what is not answered is asked again, with the same key and the same parameters, as long as
/// somebody wants it.
async fn again(state: &State, attempt: Attempt) -> domain::Result<Attempt> {
    let order = {
        let client = state.database.client().await?;
        find_payable(&client, attempt.tenant_id, attempt.order_id).await?.ok_or(Reason::NotFound)?.order
    };
    let is_known_there = attempt.age < KEY_KEPT_FOR;
    let wanted = !order.hold_over && !order.cancel_requested && !attempt.is_given_up && is_known_there;
    if attempt.state == AttemptState::Created && wanted {
        return step(state, attempt, Step::Create).await;
    }
    Ok(attempt)
}

/// Closes an attempt that stands in the way of another. What turns out to be paid needs no other.
async fn close(state: &State, open: Attempt) -> Result<(), Problem> {
    let order = {
        let client = state.database.client().await?;
        find_payable(&client, open.tenant_id, open.order_id).await?.ok_or(Reason::NotFound)?.order
    };
    let mut attempt = open;
    for _ in 0..STEPS_TO_CLOSE {
        let wanted = next_step(order, attempt.view());
        if wanted == Step::Wait {
            break;
        }
        attempt = step(state, attempt, wanted).await?;
        if !attempt.state.is_open() {
            return Ok(());
        }
    }
    Err(in_flight())
}

async fn step(state: &State, attempt: Attempt, step: Step) -> domain::Result<Attempt> {
    let description = {
        let client = state.database.client().await?;
        find_payable(&client, attempt.tenant_id, attempt.order_id).await?.ok_or(Reason::NotFound)?.description
    };
    match tokio::time::timeout(GATEWAY_BUDGET, state.cashier.take(step, &attempt, &description)).await {
        Ok(asked) => match asked? {
            Asked::Answered(attempt) => Ok(*attempt),
            Asked::Unanswered | Asked::NotThere => Ok(attempt),
        },
        Err(_) => Ok(attempt),
    }
}

fn answer(attempt: Attempt, replayed: bool) -> Result<Response, Problem> {
    let location = (LOCATION, format!("/v1/orders/{}", attempt.order_id));
    let marked = replayed.then_some([(IDEMPOTENCY_REPLAYED, "true")]);
    match attempt.state {
        AttemptState::Declined => Err(Problem::new(Reason::PaymentDeclined)),
        // Refused just now. Its key is used up, as a repetition is told.
        AttemptState::Abandoned if !replayed => Err(Problem::new(Reason::GatewayUnavailable)),
        AttemptState::Cancelled | AttemptState::Abandoned => Err(Problem::new(Reason::PaymentEnded)),
        AttemptState::Created => {
            let headers = [location, (RETRY_AFTER, AGAIN_AFTER.to_string())];
            Ok((StatusCode::ACCEPTED, headers, Json(Payment::from(attempt))).into_response())
        }
        _ => Ok((StatusCode::CREATED, marked, [location], Json(Payment::from(attempt))).into_response()),
    }
}

fn in_flight() -> Problem {
    Problem::new(Reason::PaymentInFlight).with_retry_after(AGAIN_AFTER)
}

/// An absolute address without credentials, so that nobody is sent somewhere unreadable.
fn is_return_url(url: &str) -> bool {
    let Ok(parsed) = url.parse::<axum::http::Uri>() else { return false };
    let Some(authority) = parsed.authority() else { return false };
    let local = matches!(authority.host(), "localhost" | "127.0.0.1");
    let secure = parsed.scheme_str() == Some("https") || (local && parsed.scheme_str() == Some("http"));
    secure && url.len() <= RETURN_URL_BYTES_MAX && !authority.as_str().contains('@')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn return_addresses_are_absolute_and_secure() {
        for good in ["https://store.example/orders/1?a=b", "http://localhost:3000/", "http://127.0.0.1:4567/x"] {
            assert!(is_return_url(good), "{good}");
        }
        let long = format!("https://store.example/{}", "a".repeat(RETURN_URL_BYTES_MAX));
        for bad in ["", "/orders", "http://store.example/", "javascript:alert(1)", "https://a@store.example/", &long] {
            assert!(!is_return_url(bad), "{bad}");
        }
    }
}
