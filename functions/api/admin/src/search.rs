//! `POST /v1/admin/orders/search`

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use domain::Reason;
use domain::limits::PAGE_MAX;
use domain::login::Phone;
use domain::roles::Action;
use edge::Problem;
use edge::http::{JsonBody, cut};
use serde::{Deserialize, Serialize};
use store::orders::{Wanted, search as find};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::orders::StoreOrder;

/// Orders of a page.
const PER_PAGE: u16 = 20;

/// What is known about an order: its code, its buyer's phone, or a number of a product.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct OrderSearch {
    /// The order's id, which is the code that its buyer has.
    code: Option<Uuid>,
    /// The phone that its buyer logged in with, in E.164.
    #[schema(pattern = r"^\+[1-9][0-9]{7,14}$", example = "+34600000000")]
    phone: Option<String>,
    /// The product, with `number`.
    product: Option<Uuid>,
    /// A number that it owns now.
    number: Option<i32>,
    /// Orders at most, 1 to 100.
    #[schema(minimum = 1, maximum = 100, default = 20)]
    limit: Option<u16>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

impl OrderSearch {
    fn wanted(&self) -> Result<Wanted, Problem> {
        match (self.code, &self.phone, self.product, self.number) {
            (Some(id), None, None, None) => Ok(Wanted::Code(id)),
            (None, Some(phone), None, None) => {
                let wrong =
                    || Problem::new(Reason::Invalid).with_error("/phone", "must be a plus sign and 8 to 15 digits");
                Phone::parse(phone).map(Wanted::Phone).ok_or_else(wrong)
            }
            (None, None, Some(product_id), Some(number)) => Ok(Wanted::Number { product_id, number }),
            _ => {
                Err(Problem::new(Reason::Invalid).with_error("", "name a code, or a phone, or a product and a number"))
            }
        }
    }

    fn bounds(&self) -> Result<(usize, Option<Uuid>), Problem> {
        let limit = self.limit.unwrap_or(PER_PAGE);
        if !(1..=PAGE_MAX).contains(&i64::from(limit)) {
            return Err(Problem::new(Reason::Invalid).with_error("/limit", format!("must be 1 to {PAGE_MAX}")));
        }
        let after = self.cursor.as_deref().map(Uuid::try_parse).transpose();
        let after = after.map_err(|_| Problem::new(Reason::Invalid).with_error("/cursor", "is not one of ours"))?;
        Ok((usize::from(limit), after))
    }
}

/// Orders that were found, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct FoundOrders {
    /// The orders.
    orders: Vec<StoreOrder>,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Find orders.
///
/// Changes nothing and takes no idempotency key. It is a POST so that no phone stands in an address, which is what logs
/// keep.
#[utoipa::path(
    post, path = "/v1/admin/orders/search", tag = "admin", operation_id = "search_orders",
    request_body = OrderSearch,
    responses(
        (status = 200, description = "A page of orders", body = FoundOrders),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn search(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    JsonBody(body): JsonBody<OrderSearch>,
) -> Result<Json<FoundOrders>, Problem> {
    let staff = auth.may(Action::SearchOrders)?;
    let (wanted, (limit, after)) = (body.wanted()?, body.bounds()?);
    let client = state.database.client().await?;
    let mut found = find(&client, staff.tenant_id, &wanted, after, limit + 1).await?;
    let next_cursor = cut(&mut found, limit, |order| order.id);
    Ok(Json(FoundOrders { orders: found.into_iter().map(StoreOrder::from).collect(), next_cursor }))
}
