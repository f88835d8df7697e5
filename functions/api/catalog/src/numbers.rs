//! `GET /v1/products/{product}/numbers/{number}`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::catalog::Range;
use domain::numbers::{Chunk, Counters};
use domain::{Error, Reason};
use edge::Problem;
use edge::http::{PathParams, cacheable};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::{LIVE, State};

/// A hint about one number.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NumberHint {
    /// The number.
    number: i32,
    /// As it is printed.
    #[schema(example = "000042")]
    label: String,
    /// Whether it was available a moment ago. Only an order decides.
    available: bool,
}

/// Read a number.
#[utoipa::path(
    get, path = "/v1/products/{product}/numbers/{number}", tag = "catalog",
    params(("product" = Uuid, Path, description = "The product"), ("number" = i32, Path, description = "The number")),
    responses(
        (status = 200, description = "A hint", body = NumberHint),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "not-found", body = Problem),
        (status = 422, description = "out-of-range", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn read_number(
    Shared(state): Shared<State>,
    PathParams((id, number)): PathParams<(Uuid, i32)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let client = state.database.client().await?;
    let product = store::catalog::require_product(&client, id).await?;
    let range = product.described.range;
    if !range.contains(number) {
        let (first, last) = (range.first, range.last());
        return Err(Problem::new(Reason::OutOfRange).with_detail(format!("The numbers are {first} to {last}.")));
    }
    let chunk = range.chunk_of(number);
    let found = store::catalog::find_chunk(&client, product.key, chunk, None).await?;
    let (version, bits) = found.ok_or_else(|| Error::fault(format!("chunk {chunk} is missing")))?;
    let available = is_available(range, chunk, &bits.unwrap_or_default(), number)?;
    let label = Range::label(number, product.described.padding);
    let tag = format!("{}-{version}", product.version);
    Ok(cacheable(&headers, &tag, LIVE, Json(NumberHint { number, label, available })))
}

fn is_available(range: Range, chunk: i32, bits: &[u8], number: i32) -> domain::Result<bool> {
    Ok(Chunk::from_stored(range, chunk, bits, Counters::default())?.is_free(number))
}
