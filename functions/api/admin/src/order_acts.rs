//! What staff do to an order: give it up for its buyer, give its buyer more time, give money back.

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::limits::{HOLD_EXTENSION_SECONDS_MAX, NUMBERS_PER_ORDER_MAX};
use domain::payments::RefundState;
use domain::roles::Action;
use domain::{Error, Reason};
use edge::Problem;
use edge::http::{IdempotencyKey, JsonBody, PathParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::Client;
use store::acts::Subject;
use store::orders::{extend as extend_hold, give_up, history_of};
use store::payments::{RefundRequest, list_payments, request_refund, withdraw};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::orders::StoreOrder;
use crate::switches::Because;
use crate::unfit;

/// More time to pay.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Extension {
    /// How much longer, at most a day at once.
    #[schema(minimum = 1, maximum = 86_400, example = 3_600)]
    seconds: i32,
    /// Why; kept in the audit log.
    #[schema(max_length = 200, example = "the bank was down")]
    reason: String,
}

/// Money to be given back.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderRefund {
    /// Numbers that go back to stock for it; without them all that are left, and all of the money.
    #[schema(max_items = 100)]
    numbers: Option<Vec<i32>>,
    /// Why; kept with the refund and in the audit log.
    #[schema(max_length = 200, example = "asked for")]
    reason: String,
}

fn accepted(order_id: Uuid) -> Response {
    (StatusCode::ACCEPTED, [(LOCATION, format!("/v1/admin/orders/{order_id}"))]).into_response()
}

/// Give an order up for its buyer.
///
/// A queued order is cancelled at once. Numbers that are held go back to stock within a minute, after what is open at a
/// gateway has been closed. Paid orders are refunded instead.
#[utoipa::path(
    post, path = "/v1/admin/orders/{order}/releases", tag = "admin", operation_id = "release_order",
    params(("order" = Uuid, Path, description = "The order"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per release")),
    request_body = Because,
    responses(
        (status = 202, description = "Given up, or about to be", headers(
            ("Location" = String, description = "The order"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "wrong-state, busy, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn release(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<Because>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::ReleaseOrder)?;
    let deed = staff.act(Subject::Order, id).because(&body.reason)?.under(&key, &body)?;
    give_up(&mut *state.database.client().await?, Uuid::now_v7(), &deed.act).await?;
    Ok(accepted(id))
}

/// Give a buyer more time to pay.
///
/// At most a day at once, and never beyond seven days after the order.
#[utoipa::path(
    post, path = "/v1/admin/orders/{order}/extensions", tag = "admin", operation_id = "extend_hold",
    params(("order" = Uuid, Path, description = "The order"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per extension")),
    request_body = Extension,
    responses(
        (status = 200, description = "The order with its hold's new end", body = StoreOrder),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "wrong-state, hold-expired, busy, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, limit-exceeded, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn extend(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<Extension>,
) -> Result<Json<StoreOrder>, Problem> {
    let staff = auth.may(Action::ExtendHold)?;
    if !(1..=HOLD_EXTENSION_SECONDS_MAX).contains(&body.seconds) {
        let detail = format!("must be 1 to {HOLD_EXTENSION_SECONDS_MAX}");
        return Err(Problem::new(Reason::Invalid).with_error("/seconds", detail));
    }
    let deed = staff.act(Subject::Order, id).with(&json!({ "seconds": body.seconds }));
    let deed = deed.because(&body.reason)?.under(&key, &body)?;
    let mut client = state.database.client().await?;
    extend_hold(&mut client, body.seconds, &deed.act).await?;
    let (order, _) = history_of(&client, staff.tenant_id, id).await?;
    Ok(Json(order.into()))
}

/// Give money back.
///
/// The gateway is asked within a minute; the order shows what became of it. Numbers of an order that cost nothing go
/// back to stock at once.
#[utoipa::path(
    post, path = "/v1/admin/orders/{order}/refunds", tag = "admin", operation_id = "refund_order",
    params(("order" = Uuid, Path, description = "The order"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per refund")),
    request_body = OrderRefund,
    responses(
        (status = 202, description = "Recorded", headers(
            ("Location" = String, description = "The order, which shows the refund"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "wrong-state, numbers-taken, reserving-halted, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn refund(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<OrderRefund>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::RefundOrder)?;
    let numbers = body.numbers.as_deref();
    let count = numbers.map(|numbers| i32::try_from(numbers.len()).unwrap_or(i32::MAX));
    if count.is_some_and(|count| !(1..=NUMBERS_PER_ORDER_MAX).contains(&count)) {
        let detail = format!("must be 1 to {NUMBERS_PER_ORDER_MAX} numbers, or absent");
        return Err(Problem::new(Reason::Invalid).with_error("/numbers", detail));
    }
    let deed = staff.act(Subject::Order, id).with(&json!({ "numbers": body.numbers }));
    let act = deed.because(&body.reason)?.under(&key, &body)?.act;
    let mut client = state.database.client().await?;
    let (order, _) = history_of(&client, staff.tenant_id, id).await?;
    let done = if order.total_minor == Some(0) {
        withdraw(&mut client, numbers, &act).await.map(drop)
    } else {
        let note = act.reason.as_deref().unwrap_or_default();
        let refund_id = staff.id_of(&key, id);
        let request = RefundRequest { tenant_id: staff.tenant_id, order_id: id, numbers, note, refund_id };
        request_refund(&mut client, &request, &act).await.map(drop)
    };
    match (done, numbers) {
        (Ok(()), _) => Ok(accepted(id)),
        (Err(Error::Rejected(Reason::NumbersTaken)), Some(numbers)) => {
            Err(not_its_own(&client, staff.tenant_id, id, numbers).await?)
        }
        (Err(error), _) => Err(error.into()),
    }
}

/// Refuses a refund, and says which of its numbers the order does not have any more, or never had.
async fn not_its_own(client: &Client, tenant_id: Uuid, id: Uuid, numbers: &[i32]) -> Result<Problem, Problem> {
    let (order, _) = history_of(client, tenant_id, id).await?;
    let (_, refunds) = list_payments(client, tenant_id, id).await?;
    let goes_back = |number: &i32| {
        refunds.iter().any(|refund| refund.state != RefundState::Failed && refund.numbers.contains(number))
    };
    let is_gone =
        |number: &i32| !order.numbers.contains(number) || order.given_up.contains(number) || goes_back(number);
    let gone: Vec<i32> = numbers.iter().copied().filter(is_gone).collect();
    Ok(unfit::refused("only numbers that the order still has can be refunded", &gone, order.padding))
}
