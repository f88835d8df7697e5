//! `GET /v1/products/{product}/availability` and its chunks.

pub(crate) mod buckets;

use axum::Json;
use axum::extract::State as Shared;
use axum::http::header::{CONTENT_TYPE, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderName};
use axum::response::Response;
use domain::Reason;
use domain::limits::NUMBERS_PER_CHUNK;
use edge::Problem;
use edge::http::{PathParams, cacheable, not_modified};
use serde::Serialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::products::CountersBody;
use crate::{LIVE, State};

const OCTETS: [(HeaderName, &str); 1] = [(CONTENT_TYPE, "application/octet-stream")];

/// Where a product's available numbers are, coarsely.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Availability<'a> {
    /// The product.
    product_id: Uuid,
    /// Grows with every change of any number.
    version: i64,
    /// Counters of the whole product.
    counters: CountersBody,
    /// The smallest number.
    first: i32,
    /// Numbers in each bucket; the last one may have fewer.
    #[schema(example = 1000)]
    bucket_width: i32,
    /// Available numbers: bucket `i` counts from `first + i * bucket_width` on. About a thousand at most.
    buckets: &'a [i32],
    /// Numbers in each chunk of the bitmap.
    #[schema(example = 8192)]
    numbers_per_chunk: i32,
    /// Chunks of the bitmap.
    chunk_count: i32,
}

/// Read a product's availability.
///
/// Counters and a coarse picture; for single numbers, read the chunks that are on the screen. A second or so old:
/// it informs and never reserves.
#[utoipa::path(
    get, path = "/v1/products/{product}/availability", tag = "catalog",
    params(("product" = Uuid, Path, description = "The product")),
    responses(
        (status = 200, description = "The availability", body = Availability<'static>),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "not-found", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn read_availability(
    Shared(state): Shared<State>,
    PathParams(id): PathParams<Uuid>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let snapshot = state.snapshots.read(&state.database, id).await?;
    let range = snapshot.product.described.range;
    let body = Availability {
        product_id: id,
        version: snapshot.availability.version,
        counters: snapshot.availability.counters.into(),
        first: range.first,
        bucket_width: snapshot.buckets.width,
        buckets: &snapshot.buckets.available,
        numbers_per_chunk: NUMBERS_PER_CHUNK,
        chunk_count: range.chunk_count(),
    };
    Ok(cacheable(&headers, &snapshot.tag(), LIVE, Json(body)))
}

/// Read a chunk of a product's bitmap.
///
/// Exactly 1,024 octets: one bit for each of 8,192 numbers, 1 = not available. Bit `i % 8` (value `1 << (i % 8)`) of
/// octet `i / 8` is number `first + chunk * 8192 + i`. Bits beyond the product's last number are 1. The ETag is the
/// chunk's version; send it back and an unchanged chunk costs nothing.
#[utoipa::path(
    get, path = "/v1/products/{product}/availability/{chunk}", tag = "catalog",
    params(("product" = Uuid, Path, description = "The product"),
        ("chunk" = i32, Path, description = "Which chunk, from 0", minimum = 0)),
    responses(
        (status = 200, description = "The bits", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "not-found", body = Problem),
        (status = 422, description = "out-of-range", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn read_chunk(
    Shared(state): Shared<State>,
    PathParams((id, chunk)): PathParams<(Uuid, i32)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let client = state.database.client().await?;
    let product = store::catalog::require_product(&client, id).await?;
    let found = store::catalog::find_chunk(&client, product.key, chunk, known_version(&headers)).await?;
    let (version, bits) = found.ok_or_else(|| no_such_chunk(product.described.range.chunk_count()))?;
    let tag = version.to_string();
    match bits {
        Some(bits) => Ok(cacheable(&headers, &tag, LIVE, (OCTETS, bits))),
        None => Ok(not_modified(&tag, LIVE)),
    }
}

fn no_such_chunk(count: i32) -> Problem {
    Problem::new(Reason::OutOfRange).with_detail(format!("The product's chunks are 0 to {}.", count - 1))
}

/// The version that the client has, if it names exactly one: then its bits need not be read to be compared.
fn known_version(headers: &HeaderMap) -> Option<i64> {
    let text = headers.get(IF_NONE_MATCH)?.to_str().ok()?.trim();
    text.strip_prefix("W/").unwrap_or(text).strip_prefix('"')?.strip_suffix('"')?.parse().ok()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    #[test]
    fn a_single_version_is_known_and_anything_else_is_not() {
        let known = |text: &'static str| {
            known_version(&HeaderMap::from_iter([(IF_NONE_MATCH, HeaderValue::from_static(text))]))
        };
        assert_eq!(known("W/\"17\""), Some(17));
        assert_eq!(known(" \"17\""), Some(17));
        for text in ["", "17", "*", "\"17\", \"18\"", "\"x\"", "\"99999999999999999999\"", "w/\"17\""] {
            assert_eq!(known(text), None, "{text}");
        }
        assert_eq!(known_version(&HeaderMap::new()), None);
    }
}
