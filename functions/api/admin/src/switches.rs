//! The switches of a product and of the store, and the end of a sale.

use access::StaffAuth;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::Reason;
use domain::catalog::{Intake, Reserving};
use domain::roles::Action;
use edge::Problem;
use edge::http::{IdempotencyKey, JsonBody, PathParams};
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::acts::Subject;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// Whether new orders are taken.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct IntakeSwitch {
    /// `open` or `paused`.
    #[schema(pattern = "^(open|paused)$", example = "paused")]
    intake: String,
    /// Why; kept with the switch and in the audit log.
    #[schema(max_length = 200, example = "moved to tomorrow")]
    reason: String,
}

/// Whether a product's numbers may change hands.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReservingSwitch {
    /// `on` or `halted`.
    #[schema(pattern = "^(on|halted)$", example = "halted")]
    reserving: String,
    /// Why; kept with the switch and in the audit log.
    #[schema(max_length = 200, example = "numbers look wrong")]
    reason: String,
}

/// Why something is done.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Because {
    /// The reason; kept in the audit log.
    #[schema(max_length = 200, example = "asked for by the buyer")]
    pub(crate) reason: String,
}

fn intake(body: &IntakeSwitch) -> Result<Intake, Problem> {
    let wrong = || Problem::new(Reason::Invalid).with_error("/intake", "must be open or paused");
    Intake::from_word(&body.intake).ok_or_else(wrong)
}

/// Take new orders of a product, or none.
///
/// Accepted orders finish in either case.
#[utoipa::path(
    put, path = "/v1/admin/products/{product}/intake", tag = "admin", operation_id = "set_product_intake",
    params(("product" = Uuid, Path, description = "The product")),
    request_body = IntakeSwitch,
    responses(
        (status = 204, description = "Switched"),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn product_intake(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    JsonBody(body): JsonBody<IntakeSwitch>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::SetProductIntake)?;
    let intake = intake(&body)?;
    let deed = staff.act(Subject::Product, id).with(&json!({ "intake": intake.word() })).because(&body.reason)?;
    let mut client = state.database.client().await?;
    store::products::switch_intake(&mut client, Some(id), intake, &deed.act).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Take new orders in the whole store, or none.
///
/// Accepted orders finish in either case.
#[utoipa::path(
    put, path = "/v1/admin/store/intake", tag = "admin", operation_id = "set_store_intake",
    request_body = IntakeSwitch,
    responses(
        (status = 204, description = "Switched"),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn store_intake(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    JsonBody(body): JsonBody<IntakeSwitch>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::SetStoreIntake)?;
    let intake = intake(&body)?;
    let deed = staff.act(Subject::Store, staff.tenant_id).with(&json!({ "intake": intake.word() }));
    let deed = deed.because(&body.reason)?;
    store::products::switch_intake(&mut *state.database.client().await?, None, intake, &deed.act).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Halt whatever changes a product's numbers, or go on.
///
/// The kill switch for numbers that look wrong. While it is halted orders are taken and wait; their time to wait starts
/// over when it ends.
#[utoipa::path(
    put, path = "/v1/admin/products/{product}/reserving", tag = "admin", operation_id = "set_reserving",
    params(("product" = Uuid, Path, description = "The product")),
    request_body = ReservingSwitch,
    responses(
        (status = 204, description = "Switched"),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn reserving(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    JsonBody(body): JsonBody<ReservingSwitch>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::SetReserving)?;
    let wrong = || Problem::new(Reason::Invalid).with_error("/reserving", "must be on or halted");
    let reserving = Reserving::from_word(&body.reserving).ok_or_else(wrong)?;
    let deed = staff.act(Subject::Product, id).with(&json!({ "reserving": reserving.word() }));
    let deed = deed.because(&body.reason)?;
    store::products::switch_reserving(&mut *state.database.client().await?, reserving, &deed.act).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// End a sale now.
///
/// Orders that still wait are refused; those that hold numbers may be paid. Later, `closes_at` can be moved on again.
#[utoipa::path(
    post, path = "/v1/admin/products/{product}/closings", tag = "admin", operation_id = "close_product",
    params(("product" = Uuid, Path, description = "The product"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per closing")),
    request_body = Because,
    responses(
        (status = 204, description = "Closed"),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "not-open, sale-closed, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, key-reused", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn close(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(id): PathParams<Uuid>,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<Because>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::CloseProduct)?;
    let deed = staff.act(Subject::Product, id).because(&body.reason)?.under(&key, &body)?;
    store::products::close(&mut *state.database.client().await?, &deed.act).await?;
    Ok(StatusCode::NO_CONTENT.into_response())
}
