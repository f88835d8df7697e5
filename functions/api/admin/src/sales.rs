//! Selling over the counter: an order in a buyer's name, and the money for it.

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::Reason;
use domain::limits::NAME_CHARS_MAX;
use domain::login::Phone;
use domain::orders::{Fallback, Request};
use domain::people::Name;
use domain::roles::Action;
use edge::Problem;
use edge::http::{IDEMPOTENCY_REPLAYED, IdempotencyKey, JsonBody, PathParams, limited};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::acts::Subject;
use store::orders::{NewSale, Placed, Sold, sell as sell_to};
use store::payments::book as book_cash;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::orders::StoreOrder;
use crate::switches::Because;

/// Who buys over the counter, and what.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SaleRequest {
    /// The buyer's phone in E.164. Nobody proves it: whoever logs in with it finds the order, and is told of it.
    #[schema(pattern = r"^\+[1-9][0-9]{7,14}$", example = "+34600000000")]
    phone: String,
    /// The buyer's name, in place of what is known.
    #[schema(max_length = 80)]
    name: Option<String>,
    /// Exact numbers.
    #[serde(default)]
    #[schema(max_items = 100, example = json!([7, 77]))]
    numbers: Vec<i32>,
    /// Random numbers besides.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 100, example = 1)]
    quantity: i32,
    /// When exact numbers are taken by others: `reject` the order, `drop` them, or `replace` them with random ones.
    #[serde(default)]
    #[schema(value_type = String, pattern = "^(reject|drop|replace)$", example = "reject")]
    fallback: Fallback,
}

/// What tells two sales under one key apart, beside their buyers. Nothing personal, because it is kept.
#[derive(Serialize)]
struct Terms<'a> {
    numbers: &'a [i32],
    quantity: i32,
    fallback: &'static str,
}

impl SaleRequest {
    fn buyer(&self) -> Result<(Phone, Option<Name>), Problem> {
        let wrong = |pointer: &str, detail: String| Problem::new(Reason::Invalid).with_error(pointer, detail);
        let phone = Phone::parse(&self.phone);
        let phone = phone.ok_or_else(|| wrong("/phone", "must be a plus sign and 8 to 15 digits".to_owned()))?;
        let Some(name) = &self.name else { return Ok((phone, None)) };
        let detail = || format!("must have 1 to {NAME_CHARS_MAX} characters on one line, none of them hidden");
        let name = Name::parse(name).ok_or_else(|| wrong("/name", detail()))?;
        Ok((phone, Some(name)))
    }
}

/// The order was recorded and waits for its numbers.
#[derive(Serialize, ToSchema)]
pub(crate) struct SaleAccepted {
    /// The order.
    id: Uuid,
    /// No number was free when it was accepted: it gets some only if holds run out in time.
    only_held_stock: bool,
}

fn accepted(id: Uuid, only_held_stock: bool) -> impl IntoResponse {
    let location = [(LOCATION, format!("/v1/admin/orders/{id}"))];
    (StatusCode::ACCEPTED, location, Json(SaleAccepted { id, only_held_stock }))
}

/// Sell numbers over the counter.
///
/// An order in the buyer's name, which gets its numbers within a minute like every other: read it until it is
/// `reserved`, then book what was paid. The rules of the sale hold for it as well: nothing is sold while it is paused
/// or closed, and the buyer's limits count. The product must be payable in cash. Who sells a long list waits as they are
/// told.
#[utoipa::path(
    post, path = "/v1/admin/products/{product}/sales", tag = "admin", operation_id = "sell_numbers",
    params(("product" = Uuid, Path, description = "The product"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per sale")),
    request_body = SaleRequest,
    responses(
        (status = 202, description = "Recorded", body = SaleAccepted, headers(
            ("Location" = String, description = "The order"),
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "not-open, sale-closed, sold-out, too-many-open-orders, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, out-of-range, limit-exceeded, method-unavailable, key-reused", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem, headers(
            ("Retry-After" = u32, description = "Seconds to wait"),
            ("RateLimit" = String, description = "The limit that is used up: member or store"),
            ("RateLimit-Policy" = String, description = "What it allows"))),
        (status = 503, description = "sales-paused, unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn sell(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(product_id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<SaleRequest>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::SellNumbers)?;
    let (phone, name) = body.buyer()?;
    let request = Request::new(body.numbers, body.quantity, body.fallback).map_err(Problem::from)?;
    let (numbers, quantity, fallback) = (request.numbers(), request.quantity(), request.fallback().word());
    let detail = json!({ "product": product_id, "numbers": numbers, "quantity": quantity });
    let terms = Terms { numbers, quantity, fallback };
    let act = staff.act(Subject::Product, product_id).with(&detail).under(&key, &terms)?.act;
    let (order_id, buyer_id) = (Uuid::now_v7(), Uuid::now_v7());
    let sale = NewSale { order_id, product_id, buyer_id, phone: &phone, name: name.as_ref(), request: &request };
    match sell_to(&mut *state.database.client().await?, &sale, &act).await? {
        Sold::Placed(Placed::Accepted { only_held_stock, .. }) => {
            Ok(accepted(order_id, only_held_stock).into_response())
        }
        Sold::Placed(Placed::Replayed { id, only_held_stock }) => {
            Ok(([(IDEMPOTENCY_REPLAYED, "true")], accepted(id, only_held_stock)).into_response())
        }
        Sold::Placed(Placed::Refused { reason, retry_after }) => Err(Problem::refused(reason, retry_after)),
        Sold::Limited(empty) => Ok(limited(empty.name, Some(empty.share), empty.wait)),
    }
}

/// Book cash or a transfer that has paid for an order.
///
/// The order must hold its numbers, and its product be payable in cash. It is booked once, however often it is said. A
/// payment that its buyer has begun elsewhere is called off first: `payment-in-flight` until it is, within a minute.
#[utoipa::path(
    post, path = "/v1/admin/orders/{order}/bookings", tag = "admin", operation_id = "book_payment",
    params(("order" = Uuid, Path, description = "The order"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per booking")),
    request_body = Because,
    responses(
        (status = 200, description = "The order: paid, or still `paying` while its numbers must not change", body = StoreOrder),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "wrong-state, hold-expired, payment-in-flight, too-many-attempts, reserving-halted, busy, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, method-unavailable, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn book(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<Because>,
) -> Result<Json<StoreOrder>, Problem> {
    let staff = auth.may(Action::BookPayment)?;
    let deed = staff.act(Subject::Order, id).because(&body.reason)?.under(&key, &body)?;
    let mut client = state.database.client().await?;
    book_cash(&mut client, &deed.act).await?;
    let (order, _) = store::orders::history_of(&client, staff.tenant_id, id).await?;
    Ok(Json(order.into()))
}
