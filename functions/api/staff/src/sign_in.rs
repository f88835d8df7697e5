//! `POST /v1/staff/sessions`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::roles::Role;
use edge::Problem;
use edge::auth::StaffClaim;
use edge::http::JsonBody;
use edge::metrics::{self, Dimension};
use serde::{Deserialize, Serialize};
use store::staff::{SignIn, try_link};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::tokens::{StaffTokens, checked, link_hash, one_time_password};

/// A link and a one-time password.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StaffSessionRequest {
    /// What stands behind the `#` of the link's address.
    #[schema(max_length = 100)]
    link: String,
    /// The password that the app shows.
    #[schema(pattern = "^[0-9]{6}$", example = "042042")]
    one_time_password: String,
}

/// A session of staff.
#[derive(Serialize, ToSchema)]
pub(crate) struct StaffSession {
    /// Who.
    staff: Uuid,
    /// The session.
    session: Uuid,
    /// As what.
    #[schema(value_type = String, example = "owner")]
    role: Role,
    /// Keep it beside the refresh token: with it a refresh whose answer was lost may be repeated.
    device: Uuid,
    #[serde(flatten)]
    tokens: StaffTokens,
}

/// Sign in.
///
/// A link is good once, for five tries; so is each one-time password. With an invitation this joins the store's staff.
/// Ten passwords of one person may be wrong, by whatever link, and one more every hour.
#[utoipa::path(
    post, path = "/v1/staff/sessions", tag = "staff", operation_id = "sign_in_staff",
    request_body = StaffSessionRequest,
    responses(
        (status = 201, description = "Signed in", body = StaffSession),
        (status = 400, description = "invalid", body = Problem),
        (status = 409, description = "too-many-attempts", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, link-wrong, code-wrong", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn sign_in(
    Shared(state): Shared<State>,
    JsonBody(body): JsonBody<StaffSessionRequest>,
) -> Result<Response, Problem> {
    let hash = link_hash(&body.link)?;
    let password = one_time_password(&body.one_time_password)?;
    let answer = exchange(&state, &hash, password).await;
    let outcome = answer.as_ref().map_or_else(Problem::code, |_| "signed-in");
    metrics::count("staff_sign_ins", &[(Dimension::Outcome, outcome)]);
    Ok((StatusCode::CREATED, Json(answer?)).into_response())
}

async fn exchange(state: &State, hash: &[u8], password: &str) -> Result<StaffSession, Problem> {
    let mut client = state.database.client().await?;
    let tried = try_link(&mut client, hash).await?;
    let (tried, step) = checked(&state.keys.sealing, &mut client, tried, password).await?;
    let (session_id, device_id) = (Uuid::now_v7(), edge::random::uuid()?);
    let signed_in = SignIn { tried: &tried, step, session_id, device_id };
    let role = store::staff::sign_in(&mut client, &signed_in).await?.role;
    let claim = StaffClaim { staff_id: tried.staff_id, tenant_id: tried.tenant_id, session_id };
    let tokens = StaffTokens::new(&state.keys, claim, 1)?;
    Ok(StaffSession { staff: tried.staff_id, session: session_id, role, device: device_id, tokens })
}
