//! `GET /v1/staff/sessions` and `DELETE /v1/staff/sessions/{session}`

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use domain::roles::Action;
use edge::Problem;
use edge::http::PathParams;
use serde::Serialize;
use store::acts::Subject;
use store::staff::{Session, end_other, list_sessions};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// A session that lives.
#[derive(Serialize, ToSchema)]
pub(crate) struct OpenSession {
    /// Its id.
    id: Uuid,
    /// Whether it is the one that asks.
    is_this: bool,
    /// When its owner signed in.
    #[serde(with = "time::serde::rfc3339")]
    signed_in_at: OffsetDateTime,
    /// When its refresh token was last used.
    #[serde(with = "time::serde::rfc3339")]
    used_at: OffsetDateTime,
    /// When it ends if it is not used.
    #[serde(with = "time::serde::rfc3339")]
    expires_at: OffsetDateTime,
}

/// Somebody's sessions, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct OpenSessions {
    /// The latest hundred.
    sessions: Vec<OpenSession>,
}

/// List your sessions.
#[utoipa::path(
    get, path = "/v1/staff/sessions", tag = "staff", operation_id = "list_staff_sessions",
    responses(
        (status = 200, description = "Those that live", body = OpenSessions),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn list(Shared(state): Shared<State>, auth: StaffAuth) -> Result<Json<OpenSessions>, Problem> {
    let staff = auth.may(Action::ListStaffSessions)?;
    let client = state.database.client().await?;
    let found = list_sessions(&client, staff.tenant_id, staff.staff_id).await?;
    let shown = |session: Session| OpenSession {
        id: session.id,
        is_this: session.id == staff.session_id,
        signed_in_at: session.created_at,
        used_at: session.rotated_at,
        expires_at: session.expires_at,
    };
    Ok(Json(OpenSessions { sessions: found.into_iter().map(shown).collect() }))
}

/// End one of your sessions.
#[utoipa::path(
    delete, path = "/v1/staff/sessions/{session}", tag = "staff", operation_id = "end_staff_session",
    params(("session" = Uuid, Path, description = "The session")),
    responses(
        (status = 204, description = "It has ended"),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn end(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(session_id): PathParams<Uuid>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::EndStaffSession)?;
    let deed = staff.act(Subject::Session, session_id);
    end_other(&mut *state.database.client().await?, staff.staff_id, &deed.act).await?;
    Ok(StatusCode::NO_CONTENT)
}
