//! `POST /v1/sessions/refresh` and `DELETE /v1/sessions`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use edge::Problem;
use edge::auth::Buyer;
use edge::http::{JsonBody, SessionAuth};
use edge::login_keys::Refresh;
use serde::Deserialize;
use utoipa::ToSchema;

use crate::State;
use crate::tokens::{Tokens, device};

/// Who refreshes a session.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RefreshRequest {
    /// What the device got when it logged in. Without it a lost answer ends the session.
    #[schema(max_length = 1000)]
    device: Option<String>,
}

/// Get new tokens.
///
/// Bears the refresh token. Sent again by the same device within 30 seconds it is answered with the same next token;
/// used again later it ends the session, because somebody else may have it.
#[utoipa::path(
    post, path = "/v1/sessions/refresh", tag = "login", operation_id = "refresh_session",
    request_body = RefreshRequest,
    responses(
        (status = 200, description = "New tokens", body = Tokens),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("refresh" = []))
)]
pub(crate) async fn refresh(
    Shared(state): Shared<State>,
    SessionAuth(Refresh { session_id, generation }): SessionAuth,
    JsonBody(body): JsonBody<RefreshRequest>,
) -> Result<Json<Tokens>, Problem> {
    let device_id = device(&state.keys.login, body.device.as_deref()).map(|device| device.id);
    let client = state.database.client().await?;
    let refreshed = store::login::refresh(&client, session_id, generation, device_id).await?;
    drop(client);
    let buyer = Buyer { buyer_id: refreshed.buyer_id, tenant_id: refreshed.tenant_id };
    let next = Refresh { session_id, generation: refreshed.generation };
    Ok(Json(Tokens::new(&state.keys, buyer, next)?))
}

/// Log out.
///
/// Bears the refresh token. Access tokens that were given stay good for their ten minutes at most.
#[utoipa::path(
    delete, path = "/v1/sessions", tag = "login", operation_id = "log_out",
    responses(
        (status = 204, description = "The session has ended"),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("refresh" = []))
)]
pub(crate) async fn end(
    Shared(state): Shared<State>,
    SessionAuth(refresh): SessionAuth,
) -> Result<StatusCode, Problem> {
    store::login::end(&*state.database.client().await?, refresh.session_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
