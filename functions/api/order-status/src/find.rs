//! `GET /v1/orders/{order}`

use std::time::SystemTime;

use axum::extract::State as Shared;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use domain::Reason;
use domain::orders::State;
use edge::Problem;
use edge::auth::Buyer;
use edge::http::{BuyerAuth, PathParams, cacheable_json};
use uuid::Uuid;

use crate::PRIVATE;
use crate::resource::OrderStatus;

/// Read an order.
///
/// Ask again after `poll_after` seconds, with the ETag; whoever keeps asking earlier than half of it gets 429. Once
/// `poll_after` is null the order has ended.
#[utoipa::path(
    get, path = "/v1/orders/{order}", tag = "orders",
    params(("order" = Uuid, Path, description = "The order")),
    responses(
        (status = 200, description = "The order", body = OrderStatus, headers(
            ("Retry-After" = u32, description = "Seconds to wait before the next look; absent once it has ended"))),
        (status = 304, description = "Unchanged"),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 429, description = "too-early", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("buyer" = []))
)]
pub(crate) async fn read_order(
    Shared(state): Shared<crate::State>,
    BuyerAuth(buyer): BuyerAuth,
    PathParams(id): PathParams<Uuid>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let poll = (buyer.buyer_id, id);
    if let Some(wait) = state.polls.wait(poll, SystemTime::now()) {
        return Err(Problem::new(Reason::TooEarly).with_retry_after(wait));
    }
    let status = read(&state, buyer, id).await?;
    state.polls.remember(poll, status.poll_after(), SystemTime::now());
    answer(&headers, &status)
}

async fn read(shared: &crate::State, buyer: Buyer, id: Uuid) -> domain::Result<OrderStatus> {
    let client = shared.database.client().await?;
    let found = store::orders::find(&client, buyer.tenant_id, buyer.buyer_id, id).await?;
    let (order, place) = found.ok_or(Reason::NotFound)?;
    if matches!(order.state, State::Queued | State::Rejected) {
        return Ok(OrderStatus::new(order, place));
    }
    let (payment, refunds) = store::payments::list_payments(&client, buyer.tenant_id, id).await?;
    Ok(OrderStatus::new(order, place).with_money(payment, refunds))
}

fn answer(headers: &HeaderMap, status: &OrderStatus) -> Result<Response, Problem> {
    let mut response = cacheable_json(headers, PRIVATE, status)?;
    if let Some(seconds) = status.poll_after() {
        response.headers_mut().insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    Ok(response)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::resource::tests::order;
    use axum::http::header::{CACHE_CONTROL, ETAG, IF_NONE_MATCH};

    #[test]
    fn an_unchanged_order_is_304_and_still_says_when_to_come_back() {
        let status = OrderStatus::new(order(State::Queued), None);
        let first = answer(&HeaderMap::new(), &status).unwrap();
        assert_eq!((first.status().as_u16(), &first.headers()[RETRY_AFTER]), (200, &HeaderValue::from(2)));
        assert_eq!(first.headers()[CACHE_CONTROL], "private, no-cache");
        let asking = HeaderMap::from_iter([(IF_NONE_MATCH, first.headers()[ETAG].clone())]);
        let second = answer(&asking, &status).unwrap();
        assert_eq!((second.status().as_u16(), &second.headers()[RETRY_AFTER]), (304, &HeaderValue::from(2)));
        let paid = OrderStatus::new(order(State::Paid), None);
        let third = answer(&asking, &paid).unwrap();
        assert_eq!((third.status().as_u16(), third.headers().get(RETRY_AFTER)), (200, None));
    }
}
