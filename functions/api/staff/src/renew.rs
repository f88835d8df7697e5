//! `POST /v1/staff/sessions/proofs`

use access::StaffAuth;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use domain::roles::Action;
use edge::Problem;
use edge::http::JsonBody;
use serde::Deserialize;
use store::staff::{Proof, Prover, prove};
use utoipa::ToSchema;

use crate::State;
use crate::tokens::{one_time_password, step_of, too_many};

/// Who proves again who they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ProofRequest {
    /// The password that the app shows.
    #[schema(pattern = "^[0-9]{6}$", example = "042042")]
    one_time_password: String,
}

/// Prove again who you are.
///
/// For ten minutes the session then does what wants a fresh proof (`not-fresh`), as it does after signing in. The same
/// password again in the same session changes nothing and is answered the same. Five wrong passwords in a row, and only
/// signing in anew helps. Wrong ones count together with those given to sign in.
#[utoipa::path(
    post, path = "/v1/staff/sessions/proofs", tag = "staff", operation_id = "renew_staff_session",
    request_body = ProofRequest,
    responses(
        (status = 204, description = "Proved"),
        (status = 400, description = "invalid", body = Problem),
        (status = 401, description = "unauthorized", body = Problem),
        (status = 409, description = "too-many-attempts", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, code-wrong", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem),
        (status = 503, description = "unavailable", body = Problem)),
    security(("staff" = []))
)]
pub(crate) async fn renew(
    Shared(state): Shared<State>,
    auth: StaffAuth,
    JsonBody(body): JsonBody<ProofRequest>,
) -> Result<StatusCode, Problem> {
    let staff = auth.may(Action::RenewStaffSession)?;
    let password = one_time_password(&body.one_time_password)?;
    let mut client = state.database.client().await?;
    let who = Prover { tenant_id: staff.tenant_id, staff_id: staff.staff_id, session_id: staff.session_id };
    let proof = prove(&mut client, who, |tried| step_of(&state.keys.sealing, tried, password)).await?;
    match proof {
        Proof::Given => Ok(StatusCode::NO_CONTENT),
        Proof::Limited(wait) => Err(too_many(wait)),
    }
}
