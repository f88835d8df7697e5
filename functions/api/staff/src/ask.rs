//! `POST /v1/stores/{store}/staff-links`

use std::time::Duration;

use axum::extract::State as Shared;
use axum::http::StatusCode;
use domain::catalog::is_label;
use domain::limits::{STAFF_LINK_ANSWER_AFTER, STAFF_LINKS_PER_ADDRESS, STAFF_LINKS_PER_EMAIL};
use domain::staff::{Email, LinkPurpose};
use edge::Problem;
use edge::http::{ClientAddress, JsonBody, PathParams};
use edge::one_time_link::OneTimeLink;
use serde::Deserialize;
use store::staff::{AskLink, NewLink, take_from_pots};
use tokio::time::Instant;
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::post::Letter;
use crate::tokens::{email, language, too_many};

/// Who wants to sign in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct StaffLinkRequest {
    /// The address that was invited.
    #[schema(max_length = 254, example = "staff@example.org")]
    email: String,
    /// The language of the mail: `es`, `pt-BR` or `en`.
    #[schema(pattern = "^(es|pt-BR|en)$", example = "es")]
    language: Option<String>,
}

/// Ask for a link to sign in.
///
/// The answer is the same, and takes as long, whether the address is that of the store's staff or not. The link is good
/// once, for 15 minutes, together with a one-time password.
#[utoipa::path(
    post, path = "/v1/stores/{store}/staff-links", tag = "staff", operation_id = "ask_staff_link",
    params(("store" = String, Path, description = "Its name in addresses")),
    request_body = StaffLinkRequest,
    responses(
        (status = 202, description = "A link is mailed, if there is somebody to mail it to"),
        (status = 400, description = "invalid", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn ask(
    Shared(state): Shared<State>,
    PathParams(store): PathParams<String>,
    address: ClientAddress,
    JsonBody(body): JsonBody<StaffLinkRequest>,
) -> Result<StatusCode, Problem> {
    let began = Instant::now();
    let (email, language) = (email(&body.email)?, language(body.language.as_deref())?);
    if let Some(wait) = limited(&state, &store, &email, address).await? {
        return Err(too_many(wait));
    }
    let link = OneTimeLink::new()?;
    let known = if is_label(&store) {
        let new = NewLink { id: Uuid::now_v7(), hash: &link.hash() };
        let client = state.database.client().await?;
        store::staff::ask(&client, &AskLink { store: &store, email: &email, link: new }).await?
    } else {
        // No store is called that, and it may be no text for the database.
        None
    };
    if let Some(store) = known {
        let purpose = LinkPurpose::SignIn;
        let letter = Letter { to: &email, language, purpose, store: &store, link: &link };
        state.post.send(&letter, STAFF_LINK_ANSWER_AFTER.saturating_sub(began.elapsed())).await;
    }
    tokio::time::sleep_until(began + STAFF_LINK_ANSWER_AFTER).await;
    Ok(StatusCode::ACCEPTED)
}

/// How long to wait, when too many links were asked for.
async fn limited(
    state: &State,
    store: &str,
    email: &Email,
    address: ClientAddress,
) -> Result<Option<Duration>, Problem> {
    let keys = &state.keys.login;
    let pots = [
        (keys.subject("staff-email", &[store, email.as_str()]), STAFF_LINKS_PER_EMAIL),
        (keys.subject("staff-address", &[&address.network()]), STAFF_LINKS_PER_ADDRESS),
    ];
    let client = state.database.client().await?;
    Ok(take_from_pots(&client, &pots).await?)
}
