//! `GET /v1/stores/{store}` and its products.

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::Reason;
use edge::Problem;
use edge::http::{Page, PathParams, QueryParams, cacheable_json, cut};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::products::{ProductBody, effective};
use crate::{SETTLED, State};

/// A store.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Store)]
pub(crate) struct StoreBody {
    /// Its id.
    id: Uuid,
    /// Its name in addresses.
    slug: String,
    /// Its name for people.
    name: String,
    /// Whether it takes new orders now: `open` or `paused`. A product may be paused all the same.
    #[schema(value_type = String, example = "open")]
    intake: &'static str,
}

/// A page of a store's products, by opening time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Products {
    /// The products.
    products: Vec<ProductBody>,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Read a store.
#[utoipa::path(
    get, path = "/v1/stores/{store}", tag = "catalog",
    params(("store" = String, Path, description = "Its name in addresses")),
    responses(
        (status = 200, description = "The store", body = StoreBody),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "not-found", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn read_store(
    Shared(state): Shared<State>,
    PathParams(slug): PathParams<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let client = state.database.client().await?;
    let store = find_store(&client, &slug).await?;
    let intake = store::switches::find_intake_of_tenant(&client, store.id).await?;
    let body = StoreBody { id: store.id, slug: store.slug, name: store.name, intake: intake.word() };
    cacheable_json(&headers, SETTLED, &body)
}

/// List a store's products.
///
/// Those that open first come first. Counters are with each product, not here.
#[utoipa::path(
    get, path = "/v1/stores/{store}/products", tag = "catalog",
    params(("store" = String, Path, description = "Its name in addresses"), Page),
    responses(
        (status = 200, description = "A page of products", body = Products),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "not-found", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn list_products(
    Shared(state): Shared<State>,
    PathParams(slug): PathParams<String>,
    QueryParams(page): QueryParams<Page>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let (limit, after) = page.bounds()?;
    let client = state.database.client().await?;
    let store = find_store(&client, &slug).await?;
    let above = store::switches::find_intake_of_tenant(&client, store.id).await?;
    let one_more = i64::try_from(limit).unwrap_or(0) + 1;
    let mut found = store::catalog::list_products(&client, store.id, after, one_more).await?;
    let next_cursor = cut(&mut found, limit, |product| product.described.id);
    let products = found.iter().map(|product| ProductBody::new(product, effective(product, above))).collect();
    let body = Products { products, next_cursor };
    cacheable_json(&headers, SETTLED, &body)
}

/// The store with this slug, or 404.
async fn find_store(client: &store::Client, slug: &str) -> Result<store::catalog::Store, Problem> {
    store::catalog::find_store(client, slug).await?.ok_or_else(|| Problem::new(Reason::NotFound))
}
