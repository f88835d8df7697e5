//! `POST /v1/orders/{order}/cancellations`

use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::messages::OrderMessage;
use edge::Problem;
use edge::http::{BuyerAuth, IDEMPOTENCY_REPLAYED, IdempotencyKey, PathParams};
use store::idempotency::Scope;
use store::orders::Cancelled;
use uuid::Uuid;

use crate::State;

/// Cancel an order.
///
/// A queued order is cancelled at once. Numbers that are held go back to stock shortly after; look at the order to see it happen.
#[utoipa::path(
    post, path = "/v1/orders/{order}/cancellations", tag = "orders", operation_id = "cancel_order",
    params(("order" = Uuid, Path, description = "The order"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per cancellation")),
    responses(
        (status = 202, description = "Cancelled, or about to be", headers(
            ("Location" = String, description = "The order"),
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "wrong-state, busy, key-in-flight", body = Problem),
        (status = 422, description = "key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("buyer" = []))
)]
pub(crate) async fn cancel(
    Shared(state): Shared<State>,
    BuyerAuth(buyer): BuyerAuth,
    PathParams(order_id): PathParams<Uuid>,
    key: IdempotencyKey,
) -> Result<Response, Problem> {
    let scope =
        Scope { tenant_id: buyer.tenant_id, subject_id: buyer.buyer_id, route: "cancellations", key: key.as_str() };
    let mut client = state.database.client().await?;
    let done = store::orders::cancel(&mut client, scope, order_id, Uuid::now_v7()).await?;
    drop(client);
    if let Cancelled::Requested { queue, outbox_id, product_id } = done {
        let message = OrderMessage::new(order_id, product_id, buyer.tenant_id);
        state.publish(queue, outbox_id, message).await;
    }
    let answer = (StatusCode::ACCEPTED, [(LOCATION, format!("/v1/orders/{order_id}"))]);
    if done == Cancelled::Replayed {
        return Ok(([(IDEMPOTENCY_REPLAYED, "true")], answer).into_response());
    }
    Ok(answer.into_response())
}
