//! `POST /v1/staff/sessions/refresh` and `DELETE /v1/staff/sessions`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use edge::Problem;
use edge::auth::StaffClaim;
use edge::http::{JsonBody, StaffSessionAuth};
use edge::login_keys::Refresh;
use serde::Deserialize;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::tokens::StaffTokens;

/// Who refreshes a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StaffRefreshRequest {
    /// What signing in gave beside the token. Without it a lost answer ends the session.
    device: Option<Uuid>,
}

/// Get new tokens.
///
/// Bears the refresh token. Sent again by the same device within 30 seconds it is answered with the same next token;
/// used again later it ends the session, because somebody else may have it.
#[utoipa::path(
    post, path = "/v1/staff/sessions/refresh", tag = "staff", operation_id = "refresh_staff_session",
    request_body = StaffRefreshRequest,
    responses(
        (status = 200, description = "New tokens", body = StaffTokens),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff-refresh" = []))
)]
pub(crate) async fn refresh(
    Shared(state): Shared<State>,
    StaffSessionAuth(Refresh { session_id, generation }): StaffSessionAuth,
    JsonBody(body): JsonBody<StaffRefreshRequest>,
) -> Result<Json<StaffTokens>, Problem> {
    let client = state.database.client().await?;
    let now = store::staff::refresh(&client, session_id, generation, body.device).await?;
    drop(client);
    let claim = StaffClaim { staff_id: now.staff_id, tenant_id: now.tenant_id, session_id };
    Ok(Json(StaffTokens::new(&state.keys, claim, now.generation)?))
}

/// Sign out.
///
/// Bears the refresh token. The session ends at once.
#[utoipa::path(
    delete, path = "/v1/staff/sessions", tag = "staff", operation_id = "sign_out_staff",
    responses(
        (status = 204, description = "The session has ended"),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff-refresh" = []))
)]
pub(crate) async fn end(
    Shared(state): Shared<State>,
    StaffSessionAuth(refresh): StaffSessionAuth,
) -> Result<StatusCode, Problem> {
    store::staff::end(&*state.database.client().await?, refresh.session_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
