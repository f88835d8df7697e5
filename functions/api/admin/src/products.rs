//! `GET /v1/admin/products` and `GET /v1/admin/products/{product}`

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::response::Response;
use domain::limits::PAGE_MAX;
use domain::roles::Action;
use edge::Problem;
use edge::http::{Page, PathParams, QueryParams, cut, versioned};
use serde::Serialize;
use store::catalog::list_products;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::product::StoreProduct;

/// A page of a store's products, by opening.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreProducts {
    /// The products.
    products: Vec<StoreProduct>,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

/// List the store's products.
#[utoipa::path(
    get, path = "/v1/admin/products", tag = "admin", operation_id = "list_store_products", params(Page),
    responses(
        (status = 200, description = "A page of products", body = StoreProducts),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn list(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    QueryParams(page): QueryParams<Page>,
) -> Result<Json<StoreProducts>, Problem> {
    let staff = auth.may(Action::ListStoreProducts)?;
    let (limit, after) = page.bounds()?;
    let client = state.database.client().await?;
    let one_more = i64::try_from(limit + 1).unwrap_or(PAGE_MAX);
    let mut found = list_products(&client, staff.tenant_id, after, one_more).await?;
    let next_cursor = cut(&mut found, limit, |product| product.described.id);
    Ok(Json(StoreProducts { products: found.into_iter().map(StoreProduct::from).collect(), next_cursor }))
}

/// Read one of the store's products.
#[utoipa::path(
    get, path = "/v1/admin/products/{product}", tag = "admin", operation_id = "inspect_product",
    params(("product" = Uuid, Path, description = "The product")),
    responses(
        (status = 200, description = "The product", body = StoreProduct, headers(
            ("ETag" = String, description = "Its version, for If-Match"))),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn inspect(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::InspectProduct)?;
    let product = store::products::find(&*state.database.client().await?, staff.tenant_id, id).await?;
    Ok(versioned(product.version, Json(StoreProduct::from(product))))
}
