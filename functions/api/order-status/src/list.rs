//! `GET /v1/orders`

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::limits::PAGE_MAX;
use edge::Problem;
use edge::http::{BuyerAuth, QueryParams, cacheable_json, cut};
use serde::Serialize;
use store::orders::Page;
use utoipa::ToSchema;

use crate::resource::OrderBody;
use crate::{PRIVATE, State};

/// A page of a buyer's orders, newest first.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Orders {
    /// The orders.
    orders: Vec<OrderBody>,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

/// List your orders.
///
/// Newest first. For an order's place in the queue read the order itself.
#[utoipa::path(
    get, path = "/v1/orders", tag = "orders", params(edge::http::Page),
    responses(
        (status = 200, description = "A page of orders", body = Orders),
        (status = 304, description = "Unchanged"),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("buyer" = []))
)]
pub(crate) async fn list_orders(
    Shared(state): Shared<State>,
    BuyerAuth(buyer): BuyerAuth,
    QueryParams(page): QueryParams<edge::http::Page>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (limit, after) = page.bounds()?;
    let client = state.database.client().await?;
    let one_more = Page { after, limit: i64::try_from(limit + 1).unwrap_or(PAGE_MAX) };
    let mut found = store::orders::list(&client, buyer.tenant_id, buyer.buyer_id, one_more).await?;
    let next_cursor = cut(&mut found, limit, |order| order.id);
    let orders = found.into_iter().map(OrderBody::from).collect();
    cacheable_json(&headers, PRIVATE, &Orders { orders, next_cursor })
}
