//! `GET /v1/orders`

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use axum::response::Response;
use domain::limits::PAGE_MAX;
use domain::{Error, Reason};
use edge::Problem;
use edge::http::{BuyerAuth, QueryParams, cacheable};
use serde::{Deserialize, Serialize};
use store::orders::{Order, Page};
use utoipa::{IntoParams, ToSchema};
use uuid::Uuid;

use crate::resource::OrderBody;
use crate::{PRIVATE, State, tag};

/// Orders of a page when nobody says otherwise.
const PAGE_DEFAULT: i64 = 20;

/// Which page of the list.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListParams {
    /// Orders at most, 1 to 100.
    #[param(minimum = 1, maximum = 100, default = 20)]
    limit: Option<i64>,
    /// `next_cursor` of the page before. Opaque: what is in it may change.
    cursor: Option<String>,
}

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
    get, path = "/v1/orders", tag = "orders", params(ListParams),
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
    QueryParams(params): QueryParams<ListParams>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let page = params.page()?;
    let client = state.database.client().await?;
    let one_more = Page { limit: page.limit + 1, ..page };
    let orders = store::orders::list(&client, buyer.tenant_id, buyer.buyer_id, one_more).await?;
    let body = serde_json::to_vec(&Orders::cut(orders, page.limit)).map_err(Error::fault)?;
    let tag = tag(&body);
    Ok(cacheable(&headers, &tag, PRIVATE, ([(CONTENT_TYPE, "application/json")], body)))
}

impl ListParams {
    fn page(&self) -> Result<Page, Problem> {
        let invalid = |detail: String| Problem::new(Reason::Invalid).with_detail(detail);
        let limit = self.limit.unwrap_or(PAGE_DEFAULT);
        if !(1..=PAGE_MAX).contains(&limit) {
            return Err(invalid(format!("limit must be 1 to {PAGE_MAX}")));
        }
        let after = self.cursor.as_deref().map(Uuid::try_parse).transpose();
        let after = after.map_err(|_| invalid("cursor is not one of ours".into()))?;
        Ok(Page { after, limit })
    }
}

impl Orders {
    /// A page of what was read one order too long.
    fn cut(orders: Vec<Order>, limit: i64) -> Self {
        let limit = usize::try_from(limit).unwrap_or(0);
        let more = orders.len() > limit;
        let orders: Vec<_> = orders.into_iter().take(limit).map(OrderBody::from).collect();
        let next_cursor = orders.last().filter(|_| more).map(|last| last.id().simple().to_string());
        Self { orders, next_cursor }
    }
}

#[cfg(test)]
mod tests {
    use domain::orders::State;

    use super::*;
    use crate::resource::tests::order;

    #[test]
    fn a_page_is_bounded_and_its_cursor_is_checked() {
        let page = |limit, cursor: Option<&str>| ListParams { limit, cursor: cursor.map(str::to_owned) }.page();
        let id = Uuid::from_u128(7);
        let read = page(Some(100), Some(&id.simple().to_string())).unwrap();
        assert_eq!((read.limit, read.after), (100, Some(id)));
        for (limit, cursor) in [(Some(0), None), (Some(101), None), (Some(i64::MAX), None), (None, Some("x"))] {
            assert_eq!(page(limit, cursor).unwrap_err().code(), "invalid", "{limit:?} {cursor:?}");
        }
    }

    #[test]
    fn the_last_page_has_no_cursor() {
        let orders = |n| (0..n).map(|_| order(State::Queued)).collect::<Vec<_>>();
        let page = Orders::cut(orders(3), 2);
        assert_eq!((page.orders.len(), page.next_cursor), (2, Some(order(State::Queued).id.simple().to_string())));
        assert_eq!(Orders::cut(orders(2), 2).next_cursor, None);
        assert_eq!(Orders::cut(orders(0), 2).next_cursor, None);
    }
}
