//! `POST /v1/products/{product}/orders`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::{LOCATION, RETRY_AFTER};
use axum::response::{IntoResponse, Response};
use domain::Reason;
use domain::limits::POLL_AFTER_MIN;
use domain::messages::{OrderMessage, Queue};
use domain::orders::{Fallback, Request};
use edge::http::{BuyerAuth, IDEMPOTENCY_REPLAYED, IdempotencyKey, JsonBody, PathParams};
use edge::{Problem, metrics};
use serde::{Deserialize, Serialize};
use store::orders::{NewOrder, Placed};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// Numbers wanted: exact ones, a quick pick, or both.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderRequest {
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
    #[schema(value_type = String, pattern = "^(reject|drop|replace)$", example = "replace")]
    fallback: Fallback,
}

/// The order was recorded and waits for its numbers.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OrderAccepted {
    /// The order.
    id: Uuid,
    /// Where to follow it.
    location: String,
    /// Seconds to wait before the first look.
    poll_after: u64,
    /// No number was free when the order was accepted: it gets some only if holds run out in time.
    only_held_stock: bool,
}

/// Place an order.
///
/// Records the order and answers at once; numbers are reserved afterwards. Repeat the request with the same key as
/// often as you like: it is recorded once.
#[utoipa::path(
    post, path = "/v1/products/{product}/orders", tag = "orders", operation_id = "place_order",
    params(("product" = Uuid, Path, description = "The product"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per order, at most 128 characters")),
    request_body = OrderRequest,
    responses(
        (status = 202, description = "Recorded", body = OrderAccepted, headers(
            ("Location" = String, description = "The order"),
            ("Retry-After" = u64, description = "Seconds to wait before the first look"),
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "not-open, sale-closed, sold-out, too-many-open-orders, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, out-of-range, limit-exceeded, key-reused", body = Problem),
        (status = 503, description = "sales-paused, queue-full, unavailable", body = Problem)),
    security(("buyer" = []))
)]
pub(crate) async fn place(
    Shared(state): Shared<State>,
    BuyerAuth(buyer): BuyerAuth,
    PathParams(product_id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<OrderRequest>,
) -> Result<Response, Problem> {
    let request = Request::new(body.numbers, body.quantity, body.fallback).map_err(Problem::from)?;
    let (tenant_id, buyer_id) = (buyer.tenant_id, buyer.buyer_id);
    let order = NewOrder { id: Uuid::now_v7(), product_id, tenant_id, buyer_id, request: &request, key: key.as_str() };
    match record(&state, &order).await? {
        Placed::Accepted { only_held_stock, .. } => {
            metrics::count("orders_accepted", &[]);
            state.publish(Queue::ReserveNumbers, order.id, OrderMessage::new(order.id, product_id, tenant_id)).await;
            Ok(accepted(order.id, only_held_stock))
        }
        Placed::Replayed { id, only_held_stock } => {
            Ok(([(IDEMPOTENCY_REPLAYED, "true")], accepted(id, only_held_stock)).into_response())
        }
        Placed::Refused { reason, retry_after } => Err(Problem::refused(reason, retry_after)),
    }
}

/// One commit, unless too much waits already; a replay is answered even then.
async fn record(state: &State, order: &NewOrder<'_>) -> domain::Result<Placed> {
    let client = state.database.client().await?;
    if state.health.is_overloaded(&client, order.product_id).await? {
        let replay = store::orders::replay(&client, order).await?;
        return Ok(replay.unwrap_or(Placed::Refused { reason: Reason::QueueFull, retry_after: None }));
    }
    let published = state.published.next();
    fail::fail_point!("place.before_commit");
    let placed = store::orders::place(&client, order, &published).await?;
    if matches!(placed, Placed::Accepted { .. }) {
        state.published.forget(&published);
    }
    Ok(placed)
}

fn accepted(id: Uuid, only_held_stock: bool) -> Response {
    let location = format!("/v1/orders/{id}");
    let poll_after = POLL_AFTER_MIN.as_secs();
    let headers = [(LOCATION, location.clone()), (RETRY_AFTER, poll_after.to_string())];
    (StatusCode::ACCEPTED, headers, Json(OrderAccepted { id, location, poll_after, only_held_stock })).into_response()
}
