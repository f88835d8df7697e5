//! `GET /v1/products/{product}`

use std::sync::Arc;

use axum::Json;
use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use domain::catalog::Intake;
use domain::limits::NUMBERS_PER_CHUNK;
use domain::numbers::Counters;
use edge::Problem;
use edge::http::{Money, PathParams, cacheable};
use serde::Serialize;
use store::catalog::Product;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::snapshot::Snapshot;
use crate::{LIVE, State};

/// A product as its seller describes it.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Product)]
pub(crate) struct ProductBody {
    /// Its id.
    id: Uuid,
    /// Its name for people.
    name: String,
    /// Its campaign.
    campaign: String,
    /// Price of one number.
    price: Money,
    /// The smallest number.
    first: i32,
    /// How many numbers there are, from `first` on.
    count: i32,
    /// Digits of a printed number: shorter ones get zeros in front.
    padding: i16,
    /// First instant of the sale.
    #[serde(with = "time::serde::rfc3339")]
    opens_at: OffsetDateTime,
    /// First instant after the sale.
    #[serde(with = "time::serde::rfc3339")]
    closes_at: OffsetDateTime,
    /// IANA name of the zone in which the seller thinks.
    #[schema(example = "America/Sao_Paulo")]
    zone: String,
    /// How long reserved numbers wait for their payment.
    hold_seconds: i32,
    /// Most numbers in one order.
    numbers_per_order_max: i32,
    /// Most numbers in one buyer's hands.
    numbers_per_buyer_max: i32,
    /// Whether new orders are taken, within `opens_at` and `closes_at`: `open` or `paused`, by the product, its store
    /// and the platform together.
    #[schema(value_type = String, example = "open")]
    intake: &'static str,
}

/// Numbers by whose hands they are in. They add up to the product's count.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Counters)]
pub(crate) struct CountersBody {
    /// Free to take.
    available: i32,
    /// Held for orders; they come back when holds expire.
    reserved: i32,
    /// Paid.
    paid: i32,
    /// Withdrawn by the seller.
    blocked: i32,
}

/// How to read the product's bitmap.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Bitmap)]
pub(crate) struct BitmapBody {
    /// Grows with every change of any number.
    version: i64,
    /// Numbers in one chunk, a bit each.
    #[schema(example = 8192)]
    numbers_per_chunk: i32,
    /// Chunks, counted from 0.
    chunk_count: i32,
    /// `lsb-first`: bit `i % 8` (value `1 << (i % 8)`) of byte `i / 8` is the chunk's i-th number.
    #[schema(value_type = String, example = "lsb-first")]
    bit_order: &'static str,
}

/// A product with its counters.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ProductWithCounters {
    #[serde(flatten)]
    product: ProductBody,
    /// Counters of the whole product, a second or so old.
    counters: CountersBody,
    /// What its bitmap looks like.
    availability: BitmapBody,
}

/// Read a product.
///
/// Counters inform and never reserve.
#[utoipa::path(
    get, path = "/v1/products/{product}", tag = "catalog",
    params(("product" = Uuid, Path, description = "The product")),
    responses(
        (status = 200, description = "The product", body = ProductWithCounters),
        (status = 304, description = "Unchanged"),
        (status = 404, description = "not-found", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn read_product(
    Shared(state): Shared<State>,
    PathParams(id): PathParams<Uuid>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let snapshot: Arc<Snapshot> = state.snapshots.read(&state.database, id).await?;
    Ok(cacheable(&headers, &snapshot.tag(), LIVE, Json(ProductWithCounters::new(&snapshot))))
}

impl ProductWithCounters {
    pub(crate) fn new(snapshot: &Snapshot) -> Self {
        let availability = BitmapBody {
            version: snapshot.availability.version,
            numbers_per_chunk: NUMBERS_PER_CHUNK,
            chunk_count: snapshot.product.described.range.chunk_count(),
            bit_order: "lsb-first",
        };
        Self {
            product: ProductBody::new(&snapshot.product, snapshot.intake),
            counters: snapshot.availability.counters.into(),
            availability,
        }
    }
}

impl ProductBody {
    pub(crate) fn new(product: &Product, intake: Intake) -> Self {
        let described = product.described.clone();
        let price = Money::from(described.price);
        Self {
            id: described.id,
            name: described.name,
            campaign: described.campaign,
            price,
            first: described.range.first,
            count: described.range.count,
            padding: described.padding,
            opens_at: described.opens_at,
            closes_at: described.closes_at,
            zone: described.zone,
            hold_seconds: described.hold_seconds,
            numbers_per_order_max: described.numbers_per_order_max,
            numbers_per_buyer_max: described.numbers_per_buyer_max,
            intake: intake.word(),
        }
    }
}

impl From<Counters> for CountersBody {
    fn from(counters: Counters) -> Self {
        let Counters { available, reserved, paid, blocked } = counters;
        Self { available, reserved, paid, blocked }
    }
}

/// A product's own switch and what is above it, together.
pub(crate) fn effective(product: &Product, above: Intake) -> Intake {
    if product.intake == Intake::Open { above } else { Intake::Paused }
}
