//! `POST /v1/admin/products`

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::{IntoResponse, Response};
use domain::catalog::{NewProduct, Range};
use domain::limits::{NUMBERS_PER_STORE_MAX, PRODUCTS_PER_STORE_MAX};
use domain::roles::Action;
use domain::{Error, Reason};
use edge::Problem;
use edge::http::{IDEMPOTENCY_REPLAYED, IdempotencyKey, JsonBody, versioned};
use serde::{Deserialize, Serialize};
use store::acts::Subject;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::product::{Price, StoreProduct, hold};

/// A product to be.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProductRequest {
    /// Its name for people.
    #[schema(max_length = 120, example = "Spring raffle")]
    name: String,
    /// Label under which metrics are grouped.
    #[schema(pattern = "^[a-z0-9-]{1,40}$", example = "spring")]
    campaign: String,
    /// Price of one number.
    price: Price,
    /// The smallest number.
    #[schema(minimum = 0, maximum = 999_999_999, example = 1)]
    first: i32,
    /// How many numbers there are.
    #[schema(minimum = 1, maximum = 10_000_000, example = 100_000)]
    count: i32,
    /// Digits of a printed number: shorter ones get zeros in front.
    #[schema(minimum = 0, maximum = 9, example = 5)]
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
    #[schema(minimum = 60, maximum = 604_800, example = 900)]
    hold_seconds: i32,
    /// Most numbers in one order.
    #[schema(minimum = 1, maximum = 100, example = 20)]
    numbers_per_order_max: i32,
    /// Most numbers in one buyer's hands.
    #[schema(minimum = 1, maximum = 100_000, example = 100)]
    numbers_per_buyer_max: i32,
}

impl ProductRequest {
    fn described(&self, id: Uuid, tenant_id: Uuid) -> Result<NewProduct, Problem> {
        let product = NewProduct {
            id,
            tenant_id,
            campaign: self.campaign.clone(),
            name: self.name.clone(),
            range: Range { first: self.first, count: self.count },
            padding: self.padding,
            price: self.price.money()?,
            opens_at: self.opens_at,
            closes_at: self.closes_at,
            zone: self.zone.clone(),
            hold_seconds: hold(self.hold_seconds)?,
            numbers_per_order_max: self.numbers_per_order_max,
            numbers_per_buyer_max: self.numbers_per_buyer_max,
        };
        product.validate()?;
        Ok(product)
    }
}

/// Make a product.
///
/// All its numbers are available, and its intake is open: it sells from `opens_at` on. How it may be paid is the
/// operator's to say.
#[utoipa::path(
    post, path = "/v1/admin/products", tag = "admin", operation_id = "create_product",
    params(("Idempotency-Key" = String, Header, description = "Chosen by the client, one per product")),
    request_body = ProductRequest,
    responses(
        (status = 201, description = "The product", body = StoreProduct, headers(
            ("Location" = String, description = "The product"),
            ("ETag" = String, description = "Its version, for If-Match"),
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 409, description = "key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, limit-exceeded, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn create(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<ProductRequest>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::CreateProduct)?;
    let id = staff.id_of(&key, staff.tenant_id);
    let product = body.described(id, staff.tenant_id)?;
    let deed = staff.act(Subject::Product, id).under(&key, &body)?;
    let mut client = state.database.client().await?;
    let is_new = store::products::create(&mut client, &product, &deed.act).await.map_err(|error| match error {
        Error::Rejected(Reason::LimitExceeded) => Problem::new(Reason::LimitExceeded).with_detail(format!(
            "A store has at most {PRODUCTS_PER_STORE_MAX} products and {NUMBERS_PER_STORE_MAX} numbers in them."
        )),
        error => error.into(),
    })?;
    let made = store::products::find(&client, staff.tenant_id, id).await?;
    let replayed = (!is_new).then_some([(IDEMPOTENCY_REPLAYED, "true")]);
    let location = [(LOCATION, format!("/v1/admin/products/{id}"))];
    let answer = (StatusCode::CREATED, replayed, location, Json(StoreProduct::from(made.clone())));
    Ok(versioned(made.version, answer.into_response()))
}
