//! `POST /v1/stores/{store}/sessions`

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::Reason;
use domain::catalog::is_label;
use domain::login::is_code;
use edge::Problem;
use edge::auth::Buyer;
use edge::http::{JsonBody, PathParams};
use edge::login_keys::Refresh;
use edge::metrics::{self, Dimension};
use serde::{Deserialize, Serialize};
use store::login::{Exchange, LoggedIn};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::tokens::{Tokens, device, now};

/// A code that came to the phone.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SessionRequest {
    /// The asking session, as the answer to the request for a code named it.
    asking_session: Uuid,
    /// The code.
    #[schema(pattern = "^[0-9]{6}$", example = "042042")]
    code: String,
    /// What the device got at an earlier login.
    #[schema(max_length = 1000)]
    device: Option<String>,
}

/// A session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Session {
    /// The buyer.
    buyer: Uuid,
    /// Keep it on the device, beyond the session: it refreshes the session, and makes the next login safer.
    device: String,
    #[serde(flatten)]
    tokens: Tokens,
}

/// Log in with a code.
///
/// A code is good once, for five minutes and five tries.
#[utoipa::path(
    post, path = "/v1/stores/{store}/sessions", tag = "login", operation_id = "log_in",
    params(("store" = String, Path, description = "Its name in addresses")),
    request_body = SessionRequest,
    responses(
        (status = 201, description = "Logged in", body = Session),
        (status = 400, description = "invalid", body = Problem),
        (status = 409, description = "too-many-attempts", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, code-wrong", body = Problem),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn exchange(
    Shared(state): Shared<State>,
    PathParams(store): PathParams<String>,
    JsonBody(body): JsonBody<SessionRequest>,
) -> Result<Response, Problem> {
    if !is_code(&body.code) {
        return Err(Problem::new(Reason::Invalid).with_error("/code", "must have six digits"));
    }
    // What cannot be a store's name has no asking sessions, and may be no text for the database.
    if !is_label(&store) {
        return Err(refused(Reason::CodeWrong));
    }
    let keys = &state.keys.login;
    let device_id = device(keys, body.device.as_deref()).map_or_else(Uuid::now_v7, |device| device.id);
    let session_id = Uuid::now_v7();
    let logged_in = {
        let exchange = Exchange {
            store: &store,
            asking_id: body.asking_session,
            right_under: &keys.matching(body.asking_session, &body.code),
            session_id,
            buyer_id: Uuid::now_v7(),
            device_id,
        };
        store::login::exchange(&mut *state.database.client().await?, &exchange).await?
    };
    match logged_in {
        LoggedIn::WrongCode => Err(refused(Reason::CodeWrong)),
        LoggedIn::TriesUsedUp => Err(refused(Reason::TooManyAttempts)),
        LoggedIn::Yes { buyer_id, tenant_id, phone } => {
            metrics::count("logins", &[(Dimension::Outcome, "logged-in")]);
            let refresh = Refresh { session_id, generation: 1 };
            let session = Session {
                buyer: buyer_id,
                device: keys.device_token(device_id, &store, &phone, now()),
                tokens: Tokens::new(&state.keys, Buyer { buyer_id, tenant_id }, refresh)?,
            };
            Ok((StatusCode::CREATED, Json(session)).into_response())
        }
    }
}

fn refused(reason: Reason) -> Problem {
    metrics::count("logins", &[(Dimension::Outcome, reason.code())]);
    Problem::new(reason)
}
