//! `GET /v1/admin/audit`

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use domain::roles::Action;
use edge::Problem;
use edge::http::{Page, QueryParams, cut};
use serde::Serialize;
use serde_json::Value;
use store::acts::Act;
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;

/// Something that was done.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditEntry {
    /// Its id.
    id: Uuid,
    /// When.
    #[serde(with = "time::serde::rfc3339")]
    at: OffsetDateTime,
    /// Who of the staff; null for the platform's operator, and for whoever gave wrong one-time passwords.
    staff: Option<Uuid>,
    /// What: the id of the operation, an act of the operator, or `wrong_passwords` when none of the subject's one-time
    /// passwords may be wrong for a while.
    #[schema(example = "set_reserving")]
    action: String,
    /// To what: store, product, order, staff, session, export, upload or buyer.
    #[schema(value_type = String, example = "product")]
    subject: &'static str,
    /// To which.
    subject_id: Uuid,
    /// What of it.
    #[schema(value_type = Option<Object>)]
    detail: Option<Value>,
    /// Why.
    reason: Option<String>,
}

impl From<Act> for AuditEntry {
    fn from(act: Act) -> Self {
        Self {
            id: act.id,
            at: act.at,
            staff: act.staff_id,
            action: act.action,
            subject: act.subject.word(),
            subject_id: act.subject_id,
            detail: act.detail.and_then(|text| serde_json::from_str(&text).ok()),
            reason: act.reason,
        }
    }
}

/// A page of the audit log, newest first.
#[derive(Serialize, ToSchema)]
pub(crate) struct AuditPage {
    /// What was done.
    entries: Vec<AuditEntry>,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Read who did what.
#[utoipa::path(
    get, path = "/v1/admin/audit", tag = "admin", operation_id = "read_audit_log", params(Page),
    responses(
        (status = 200, description = "A page of the audit log", body = AuditPage),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn list(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    QueryParams(page): QueryParams<Page>,
) -> Result<Json<AuditPage>, Problem> {
    let staff = auth.may(Action::ReadAuditLog)?;
    let (limit, after) = page.bounds()?;
    let client = state.database.client().await?;
    let mut found = store::acts::list(&client, staff.tenant_id, after, limit + 1).await?;
    let next_cursor = cut(&mut found, limit, |act| act.id);
    Ok(Json(AuditPage { entries: found.into_iter().map(AuditEntry::from).collect(), next_cursor }))
}
