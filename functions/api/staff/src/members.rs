//! `/v1/admin/staff`: who works for the store.

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::limits::{MAIL_TIMEOUT, STAFF_MAILS_PER_STORE};
use domain::roles::{Action, Role};
use domain::staff::LinkPurpose;
use edge::Problem;
use edge::http::{IDEMPOTENCY_REPLAYED, IdempotencyKey, JsonBody, Page, PathParams, QueryParams, cut};
use edge::one_time_link::OneTimeLink;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::acts::Subject;
use store::staff::{Invite, Invited, Member, NewLink, take_from_pots};
use time::OffsetDateTime;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::post::Letter;
use crate::tokens::{email, language, too_many};

/// Somebody of the store's staff.
#[derive(Serialize, ToSchema)]
pub(crate) struct StaffMember {
    /// Who.
    id: Uuid,
    /// Their address.
    email: String,
    /// Their role: owner, operator, finance, support or viewer.
    #[schema(value_type = String, example = "support")]
    role: Role,
    /// When they were invited.
    #[serde(with = "time::serde::rfc3339")]
    invited_at: OffsetDateTime,
    /// When they accepted; null = not yet.
    #[serde(with = "time::serde::rfc3339::option")]
    joined_at: Option<OffsetDateTime>,
}

impl From<Member> for StaffMember {
    fn from(member: Member) -> Self {
        Self {
            id: member.id,
            email: member.email,
            role: member.role,
            invited_at: member.created_at,
            joined_at: member.joined_at,
        }
    }
}

/// A page of a store's staff.
#[derive(Serialize, ToSchema)]
pub(crate) struct StaffPage {
    /// Those who were not removed.
    staff: Vec<StaffMember>,
    /// For the next page; null on the last one.
    next_cursor: Option<String>,
}

/// Somebody to be invited.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct InvitationRequest {
    /// Where the link goes.
    #[schema(max_length = 254, example = "staff@example.org")]
    email: String,
    /// As what: owner, operator, finance, support or viewer.
    #[schema(value_type = String, pattern = "^(owner|operator|finance|support|viewer)$", example = "support")]
    role: Role,
    /// The language of the mail: `es`, `pt-BR` or `en`.
    #[schema(pattern = "^(es|pt-BR|en)$", example = "es")]
    language: Option<String>,
}

/// Somebody who was invited.
#[derive(Serialize, ToSchema)]
pub(crate) struct Invitation {
    /// Who.
    id: Uuid,
}

/// Another role.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RoleChange {
    /// Which: owner, operator, finance, support or viewer.
    #[schema(value_type = String, pattern = "^(owner|operator|finance|support|viewer)$", example = "support")]
    role: Role,
}

/// List the store's staff.
#[utoipa::path(
    get, path = "/v1/admin/staff", tag = "admin", operation_id = "list_staff", params(Page),
    responses(
        (status = 200, description = "A page of staff", body = StaffPage),
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
) -> Result<Json<StaffPage>, Problem> {
    let staff = auth.may(Action::ListStaff)?;
    let (limit, after) = page.bounds()?;
    let client = state.database.client().await?;
    let mut found = store::staff::list(&client, staff.tenant_id, after, limit + 1).await?;
    let next_cursor = cut(&mut found, limit, |member| member.id);
    Ok(Json(StaffPage { staff: found.into_iter().map(StaffMember::from).collect(), next_cursor }))
}

/// Invite somebody.
///
/// A link is mailed that is good for three days. Who has not joined yet may be invited again, with another key: then
/// only the last link is good.
#[utoipa::path(
    post, path = "/v1/admin/staff", tag = "admin", operation_id = "invite_staff",
    params(("Idempotency-Key" = String, Header, description = "Chosen by the client, one per invitation")),
    request_body = InvitationRequest,
    responses(
        (status = 201, description = "Invited", body = Invitation, headers(
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 409, description = "staff-exists, key-in-flight", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, limit-exceeded, key-reused", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn invite(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    key: IdempotencyKey,
    JsonBody(body): JsonBody<InvitationRequest>,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::InviteStaff)?;
    let (email, language) = (email(&body.email)?, language(body.language.as_deref())?);
    take_mail(&state, staff.tenant_id).await?;
    let link = OneTimeLink::new()?;
    let new = Invite {
        id: Uuid::now_v7(),
        email: &email,
        role: body.role,
        link: NewLink { id: Uuid::now_v7(), hash: &link.hash() },
    };
    // Under one key for one address: who it is has no id before.
    let deed = staff.act(Subject::Staff, Uuid::nil()).with(&json!({ "role": body.role })).under(&key, &body)?;
    let invited = store::staff::invite(&mut *state.database.client().await?, &new, &deed.act).await?;
    match invited {
        Invited::Now { id, store } => {
            let purpose = LinkPurpose::Invitation;
            let letter = Letter { to: &email, language, purpose, store: &store, link: &link };
            state.post.send(&letter, MAIL_TIMEOUT).await;
            Ok((StatusCode::CREATED, Json(Invitation { id })).into_response())
        }
        Invited::Before { id } => {
            Ok((StatusCode::CREATED, [(IDEMPOTENCY_REPLAYED, "true")], Json(Invitation { id })).into_response())
        }
    }
}

/// Give somebody another role.
///
/// It holds from their next request on.
#[utoipa::path(
    patch, path = "/v1/admin/staff/{member}", tag = "admin", operation_id = "change_staff",
    params(("member" = Uuid, Path, description = "Who")),
    request_body = RoleChange,
    responses(
        (status = 204, description = "Changed"),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "last-owner", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn change(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(member): PathParams<Uuid>,
    JsonBody(body): JsonBody<RoleChange>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::ChangeStaff)?;
    let deed = staff.act(Subject::Staff, member).with(&json!({ "role": body.role }));
    store::staff::change_role(&mut *state.database.client().await?, body.role, &deed.act).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Remove somebody.
///
/// Their sessions and links end at once.
#[utoipa::path(
    delete, path = "/v1/admin/staff/{member}", tag = "admin", operation_id = "remove_staff",
    params(("member" = Uuid, Path, description = "Who")),
    responses(
        (status = 204, description = "Removed"),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "last-owner", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn remove(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(member): PathParams<Uuid>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::RemoveStaff)?;
    let deed = staff.act(Subject::Staff, member);
    store::staff::remove(&mut *state.database.client().await?, &deed.act).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Let somebody set one-time passwords up again.
///
/// For who has lost their phone: a link is mailed that is good for three days. The old passwords are good until it is
/// used; then all their sessions end.
#[utoipa::path(
    post, path = "/v1/admin/staff/{member}/recoveries", tag = "admin", operation_id = "recover_staff",
    params(("member" = Uuid, Path, description = "Who"),
        ("Idempotency-Key" = String, Header, description = "Chosen by the client, one per recovery")),
    responses(
        (status = 202, description = "The link is mailed", headers(
            ("Idempotency-Replayed" = String, description = "true when the key had been used before"))),
        (status = 400, description = "key-missing, invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "key-in-flight", body = Problem),
        (status = 422, description = "key-reused", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn recover(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    PathParams(member): PathParams<Uuid>,
    key: IdempotencyKey,
) -> Result<Response, Problem> {
    let staff = auth.may(Action::RecoverStaff)?;
    let deed = staff.act(Subject::Staff, member).under(&key, &())?;
    take_mail(&state, staff.tenant_id).await?;
    let link = OneTimeLink::new()?;
    let new = NewLink { id: Uuid::now_v7(), hash: &link.hash() };
    let made = store::staff::recover(&mut *state.database.client().await?, new, &deed.act).await?;
    let Some((email, store)) = made else {
        return Ok((StatusCode::ACCEPTED, [(IDEMPOTENCY_REPLAYED, "true")]).into_response());
    };
    // Whoever has lost their passwords was invited in some language; nobody remembers which.
    let language = language(None)?;
    let letter = Letter { to: &email, language, purpose: LinkPurpose::Recovery, store: &store, link: &link };
    state.post.send(&letter, MAIL_TIMEOUT).await;
    Ok(StatusCode::ACCEPTED.into_response())
}

/// Takes a mail from the store's pot, also for a repeated request, which will mail none.
async fn take_mail(state: &State, tenant_id: Uuid) -> Result<(), Problem> {
    let pot = state.keys.login.subject("staff-mail", &[&tenant_id.to_string()]);
    let client = state.database.client().await?;
    let wait = take_from_pots(&client, &[(pot, STAFF_MAILS_PER_STORE)]).await?;
    wait.map_or(Ok(()), |wait| Err(too_many(wait)))
}
