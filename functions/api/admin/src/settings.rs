//! `GET /v1/admin/store` and `PATCH /v1/admin/store`

use std::collections::BTreeSet;

use access::StaffAuth;
use axum::Json;
use axum::extract::State as Shared;
use domain::Reason;
use domain::limits::STORE_NAME_CHARS_MAX;
use domain::notices::Kind;
use domain::roles::Action;
use domain::text::is_store_name;
use edge::Problem;
use edge::http::JsonBody;
use serde::{Deserialize, Serialize};
use serde_json::json;
use store::acts::Subject;
use store::stores::{Settings, SettingsChange, change_settings, find_settings};
use utoipa::ToSchema;

use crate::State;

/// How a store works.
#[derive(Serialize, ToSchema)]
pub(crate) struct StoreSettings {
    /// Its name in URLs.
    #[schema(example = "demo")]
    store: String,
    /// Its name for people.
    name: String,
    /// `open`, or `paused` while no new orders are taken.
    #[schema(example = "open")]
    intake: &'static str,
    /// What was said when that was switched last.
    intake_reason: Option<String>,
    /// Calling codes of the countries that login codes and notices are sent to. The platform's operator changes them.
    #[schema(example = json!(["34", "351", "55"]))]
    countries: Vec<String>,
    /// What its buyers are told of: `reserved`, `paid`, `rejected`, `expired`, `refunded`.
    #[schema(example = json!(["reserved", "paid"]))]
    notices: Vec<&'static str>,
}

impl From<Settings> for StoreSettings {
    fn from(settings: Settings) -> Self {
        Self {
            store: settings.slug,
            name: settings.name,
            intake: settings.intake.word(),
            intake_reason: settings.intake_reason,
            countries: settings.phone_prefixes,
            notices: settings.notices.into_iter().map(Kind::word).collect(),
        }
    }
}

/// What is to change of a store; what is absent stays.
#[derive(Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StoreChange {
    /// Its name for people, on one line, with nothing hidden and no address in it.
    #[schema(min_length = 1, max_length = 60)]
    #[serde(skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    /// What its buyers are told of: some of `reserved`, `paid`, `rejected`, `expired`, `refunded`, each once, or
    /// nothing.
    #[schema(max_items = 5)]
    #[serde(skip_serializing_if = "Option::is_none")]
    notices: Option<Vec<String>>,
}

impl StoreChange {
    fn checked(&self) -> Result<SettingsChange, Problem> {
        if self.name.as_deref().is_some_and(|name| !is_store_name(name)) {
            let detail = format!(
                "must have 1 to {STORE_NAME_CHARS_MAX} characters on one line, none of them hidden, and no address"
            );
            return Err(Problem::new(Reason::Invalid).with_error("/name", detail));
        }
        if self.notices.as_deref().is_some_and(|words| !are_kinds(words)) {
            let detail = "must be some of reserved, paid, rejected, expired, refunded, each once";
            return Err(Problem::new(Reason::Invalid).with_error("/notices", detail));
        }
        let wanted = |words: &Vec<String>| {
            Kind::ALL.into_iter().filter(|kind| words.iter().any(|word| word == kind.word())).collect()
        };
        Ok(SettingsChange { name: self.name.clone(), notices: self.notices.as_ref().map(wanted) })
    }
}

/// Whether these are kinds of notices, each named once, so that there are no more than there are kinds.
fn are_kinds(words: &[String]) -> bool {
    let distinct: BTreeSet<&str> = words.iter().map(String::as_str).collect();
    distinct.len() == words.len() && distinct.into_iter().all(|word| Kind::from_word(word).is_some())
}

/// Read how the store works.
#[utoipa::path(
    get, path = "/v1/admin/store", tag = "admin", operation_id = "inspect_store",
    responses(
        (status = 200, description = "How the store works", body = StoreSettings),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn inspect(Shared(state): Shared<State>, auth: StaffAuth) -> Result<Json<StoreSettings>, Problem> {
    let staff = auth.may(Action::InspectStore)?;
    let settings = find_settings(&*state.database.client().await?, staff.tenant_id).await?;
    Ok(Json(settings.into()))
}

/// Change how the store works.
///
/// Another name wants a fresh proof: every message to its buyers and its staff bears it. Its switch has a route of its
/// own.
#[utoipa::path(
    patch, path = "/v1/admin/store", tag = "admin", operation_id = "edit_store", request_body = StoreChange,
    responses(
        (status = 200, description = "How the store works now", body = StoreSettings),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 403, description = "forbidden, not-fresh", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn edit(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    JsonBody(body): JsonBody<StoreChange>,
) -> Result<Json<StoreSettings>, Problem> {
    let staff = auth.may(Action::EditStore)?;
    let change = body.checked()?;
    let mut client = state.database.client().await?;
    if let Some(name) = &change.name
        && *name != find_settings(&client, staff.tenant_id).await?.name
    {
        auth.proved()?;
    }
    let deed = staff.act(Subject::Store, staff.tenant_id).with(&json!(body));
    let settings = change_settings(&mut client, &change, &deed.act).await?;
    Ok(Json(settings.into()))
}
