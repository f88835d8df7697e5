//! `PATCH /v1/admin/products/{product}`

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::response::Response;
use domain::Reason;
use domain::catalog::NewProduct;
use domain::roles::Action;
use edge::Problem;
use edge::http::{IfMatch, JsonBody, PathParams, versioned};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use store::acts::Subject;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::product::{Price, StoreProduct, hold};

/// What is to change of a product; what is absent stays.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProductChange {
    /// Its name for people.
    #[schema(max_length = 120)]
    name: Option<String>,
    /// Label under which metrics are grouped.
    #[schema(pattern = "^[a-z0-9-]{1,40}$")]
    campaign: Option<String>,
    /// Price of one number, for later orders. The currency is frozen once there are orders.
    price: Option<Price>,
    /// Digits of a printed number; frozen once there are orders.
    #[schema(minimum = 0, maximum = 9)]
    padding: Option<i16>,
    /// First instant of the sale; frozen once it has come.
    #[serde(default, with = "time::serde::rfc3339::option")]
    opens_at: Option<OffsetDateTime>,
    /// First instant after the sale.
    #[serde(default, with = "time::serde::rfc3339::option")]
    closes_at: Option<OffsetDateTime>,
    /// IANA name of the zone in which the seller thinks.
    zone: Option<String>,
    /// How long reserved numbers wait for their payment, for later orders.
    #[schema(minimum = 60, maximum = 604_800)]
    hold_seconds: Option<i32>,
    /// Most numbers in one order, for later orders.
    #[schema(minimum = 1, maximum = 100)]
    numbers_per_order_max: Option<i32>,
    /// Most numbers in one buyer's hands. Lowering it takes nothing away.
    #[schema(minimum = 1, maximum = 100_000)]
    numbers_per_buyer_max: Option<i32>,
}

impl ProductChange {
    /// The product as it would be.
    fn over(&self, product: NewProduct) -> Result<NewProduct, Problem> {
        let price = self.price.as_ref().map(Price::money).transpose()?;
        let hold_seconds = self.hold_seconds.map(hold).transpose()?;
        let new = NewProduct {
            name: self.name.clone().unwrap_or(product.name),
            campaign: self.campaign.clone().unwrap_or(product.campaign),
            price: price.unwrap_or(product.price),
            padding: self.padding.unwrap_or(product.padding),
            opens_at: self.opens_at.unwrap_or(product.opens_at),
            closes_at: self.closes_at.unwrap_or(product.closes_at),
            zone: self.zone.clone().unwrap_or(product.zone),
            hold_seconds: hold_seconds.unwrap_or(product.hold_seconds),
            numbers_per_order_max: self.numbers_per_order_max.unwrap_or(product.numbers_per_order_max),
            numbers_per_buyer_max: self.numbers_per_buyer_max.unwrap_or(product.numbers_per_buyer_max),
            ..product
        };
        new.validate()?;
        Ok(new)
    }

    /// What was named, for the audit log.
    fn named(&self) -> Value {
        let mut all = serde_json::to_value(self).unwrap_or_default();
        if let Some(members) = all.as_object_mut() {
            members.retain(|_, value| !value.is_null());
        }
        all
    }
}

/// Whether a change may stop a sale or give it away: it ends sooner or opens later, costs something else, or leaves
/// less time to pay. Nobody can take back what was sold, or not sold, meanwhile.
fn wants_proof(before: &NewProduct, after: &NewProduct) -> bool {
    after.closes_at < before.closes_at
        || after.opens_at > before.opens_at
        || after.price != before.price
        || after.hold_seconds < before.hold_seconds
}

/// Change a product.
///
/// Says in `If-Match` which version it was made from, or `*` for whichever there is. The range never changes, currency
/// and padding not once there are orders, the opening not once it has come; price and limits hold for later orders. An
/// earlier end, a later opening, another price and less time to pay want a fresh proof, as closing does.
#[utoipa::path(
    patch, path = "/v1/admin/products/{product}", tag = "admin", operation_id = "edit_product",
    params(("product" = Uuid, Path, description = "The product"),
        ("If-Match" = String, Header, description = "The ETag that was read, several, or *")),
    request_body = ProductChange,
    responses(
        (status = 200, description = "The product as it is now", body = StoreProduct, headers(
            ("ETag" = String, description = "Its version, for If-Match"))),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "frozen", body = Problem),
        (status = 412, description = "precondition-failed", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 428, description = "precondition-required", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn edit(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    seen: IfMatch,
    JsonBody(body): JsonBody<ProductChange>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::EditProduct)?;
    let mut client = state.database.client().await?;
    let product = store::products::find(&client, staff.tenant_id, id).await?;
    let version = product.version;
    if !seen.allows(version) {
        return Err(Problem::new(Reason::PreconditionFailed));
    }
    let new = body.over(product.described.clone())?;
    if wants_proof(&product.described, &new) {
        auth.may(Action::CloseProduct)?;
    }
    let deed = staff.act(Subject::Product, id).with(&body.named());
    let now = store::products::edit(&mut client, &new, version, &deed.act).await?;
    Ok(versioned(now.version, Json(StoreProduct::from(now))))
}
