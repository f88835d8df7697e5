//! `GET /v1/time`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::header::CACHE_CONTROL;
use axum::response::IntoResponse;
use edge::Problem;
use serde::Serialize;
use time::OffsetDateTime;
use utoipa::ToSchema;

use crate::State;

/// The clock that decides when a sale opens.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Time {
    /// RFC 3339, UTC.
    #[serde(with = "time::serde::rfc3339")]
    now: OffsetDateTime,
}

/// Read the clock.
///
/// The database's, by which every opening, hold and deadline is judged. For countdowns: ask a few times, take the
/// answer that came back fastest, and add half of what it took.
#[utoipa::path(
    get, path = "/v1/time", tag = "catalog",
    responses(
        (status = 200, description = "The time", body = Time),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn read_time(Shared(state): Shared<State>) -> Result<impl IntoResponse, Problem> {
    let client = state.database.client().await?;
    let now = store::catalog::now(&client).await?;
    Ok(([(CACHE_CONTROL, "no-store")], Json(Time { now })))
}
