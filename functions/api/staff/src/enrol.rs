//! `POST /v1/staff/enrolments`

use axum::Json;
use axum::extract::State as Shared;
use domain::Error;
use edge::Problem;
use edge::http::JsonBody;
use edge::sealing::totp_context;
use edge::totp::TotpSecret;
use serde::{Deserialize, Serialize};
use store::staff::{find_enrolment, save_enrolment};
use utoipa::ToSchema;

use crate::State;
use crate::tokens::link_hash;

/// A link that was mailed to somebody who is invited, or has lost their one-time passwords.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EnrolmentRequest {
    /// What stands behind the `#` of its address.
    #[schema(max_length = 100)]
    link: String,
}

/// What an app for one-time passwords needs to know.
#[derive(Serialize, ToSchema)]
pub(crate) struct Enrolment {
    /// Whom it is for.
    email: String,
    /// The store's name.
    store: String,
    /// The secret, to be typed: base32.
    secret: String,
    /// The same with everything else, to be shown as a picture: SHA-1, six digits, 30 seconds.
    #[schema(example = "otpauth://totp/A%20store:staff%40example.org?secret=…")]
    address: String,
}

/// Set one-time passwords up.
///
/// Shows the secret for as long as the link is good, the same each time. It counts once a password of it has signed in
/// with the link.
#[utoipa::path(
    post, path = "/v1/staff/enrolments", tag = "staff", operation_id = "enrol_staff",
    request_body = EnrolmentRequest,
    responses(
        (status = 200, description = "What the app needs", body = Enrolment),
        (status = 400, description = "invalid", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, link-wrong", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn enrol(
    Shared(state): Shared<State>,
    JsonBody(body): JsonBody<EnrolmentRequest>,
) -> Result<Json<Enrolment>, Problem> {
    let hash = link_hash(&body.link)?;
    let client = state.database.client().await?;
    let found = find_enrolment(&client, &hash).await?;
    let context = totp_context(found.tenant_id, found.staff_id);
    let sealed = match found.totp {
        Some(sealed) => sealed,
        None => {
            let new = state.keys.sealing.seal(&context, TotpSecret::new()?.bytes())?;
            save_enrolment(&client, found.link_id, &new).await?
        }
    };
    let secret = TotpSecret::from_bytes(state.keys.sealing.open(&context, &sealed).map_err(Error::fault)?);
    Ok(Json(Enrolment {
        secret: secret.base32(),
        address: secret.address(&found.store, &found.email),
        email: found.email,
        store: found.store,
    }))
}
