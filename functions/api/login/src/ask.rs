//! `POST /v1/stores/{store}/login-codes`

use std::time::Duration;

use axum::Json;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use domain::Reason;
use domain::login::{Language, Phone, Pot, Pots};
use domain::messages::{LoginCodeMessage, Queue};
use edge::Problem;
use edge::http::{ClientAddress, JsonBody, PathParams};
use edge::metrics::{self, Dimension};
use edge::queue::Outgoing;
use serde::{Deserialize, Serialize};
use store::login::{Asked, Asking};
use utoipa::ToSchema;
use uuid::Uuid;

use crate::State;
use crate::tokens::{device, phone};

/// Who wants to log in.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LoginCodeRequest {
    /// The phone in E.164: a plus sign, the country, the number, nothing between.
    #[schema(pattern = r"^\+[1-9][0-9]{7,14}$", example = "+34600000000")]
    phone: String,
    /// The language of the message: `es`, `pt-BR` or `en`. Without it, that of the phone's country.
    #[schema(pattern = "^(es|pt-BR|en)$", example = "es")]
    language: Option<String>,
    /// Sends the code of this asking session again. It stays the same code, with the tries and the time that are left.
    asking_session: Option<Uuid>,
    /// What the device got at an earlier login. Others can then not keep its owner from getting a code.
    #[schema(max_length = 1000)]
    device: Option<String>,
}

/// A code is on its way.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct AskingSession {
    /// Names the asking session when the code is given.
    asking_session: Uuid,
    /// Seconds for which the code is still good.
    #[schema(example = 300)]
    expires_in: u64,
}

/// Ask for a login code.
///
/// The answer is the same whether somebody has logged in with the phone before or not. Codes that were sent earlier stay
/// good.
#[utoipa::path(
    post, path = "/v1/stores/{store}/login-codes", tag = "login", operation_id = "ask_login_code",
    params(("store" = String, Path, description = "Its name in addresses")),
    request_body = LoginCodeRequest,
    responses(
        (status = 202, description = "A message will be sent", body = AskingSession),
        (status = 400, description = "invalid", body = Problem),
        (status = 404, description = "not-found", body = Problem),
        (status = 409, description = "too-many-attempts", body = Problem),
        (status = 413, description = "too-large", body = Problem),
        (status = 415, description = "unsupported-media-type", body = Problem),
        (status = 422, description = "invalid, country-not-served", body = Problem),
        (status = 429, description = "too-many-requests", body = Problem, headers(
            ("Retry-After" = u32, description = "Seconds to wait"),
            ("RateLimit" = String, description = "The limit that is used up: phone, address or service"),
            ("RateLimit-Policy" = String, description = "What it allows"))),
        (status = 503, description = "unavailable", body = Problem))
)]
pub(crate) async fn ask(
    Shared(state): Shared<State>,
    PathParams(store): PathParams<String>,
    address: ClientAddress,
    JsonBody(body): JsonBody<LoginCodeRequest>,
) -> Result<Response, Problem> {
    let phone = phone(&body.phone)?;
    let language = language(body.language.as_deref(), &phone)?;
    if !domain::catalog::is_label(&store) {
        return Err(Problem::new(Reason::NotFound));
    }
    let keys = &state.keys.login;
    let known = device(keys, body.device.as_deref()).is_some_and(|device| keys.is_known(&device, &store, &phone));
    let pots = Pots::new(&store, &phone, &address.network(), known);
    let asking = Asking {
        id: edge::random::uuid()?,
        store: &store,
        again: body.asking_session,
        phone: &phone,
        language,
        key_id: keys.current_id(),
        pots: &pots,
        subjects: &keys.subjects(&pots),
    };
    let asked = store::login::ask(&*state.database.client().await?, &asking).await?;
    match asked {
        Asked::Limited { pot, wait } => Ok(limited(pot, wait)),
        Asked::Owed { id, tenant_id, left, is_resend } => {
            fail::fail_point!("login.asked");
            metrics::count("login_codes_asked", &[(Dimension::Outcome, if is_resend { "again" } else { "new" })]);
            publish(&state, LoginCodeMessage::new(tenant_id, id)).await;
            let body = AskingSession { asking_session: id, expires_in: left.as_secs() };
            Ok((StatusCode::ACCEPTED, Json(body)).into_response())
        }
    }
}

fn language(tag: Option<&str>, phone: &Phone) -> Result<Language, Problem> {
    let Some(tag) = tag else { return Ok(phone.language()) };
    let known = Language::from_tag(tag);
    known.ok_or_else(|| Problem::new(Reason::Invalid).with_error("/language", "must be es, pt-BR or en"))
}

/// A message that cannot be sent is owed by its row: the reconciler sends it.
async fn publish(state: &State, message: LoginCodeMessage) {
    let sent = state.queue.send(Queue::SendLoginCode, &[Outgoing::from(&message)]).await;
    if let Some(Err(error)) = sent.into_iter().next() {
        tracing::warn!(store.id = %message.tenant_id, %error, "a login code was not published, left to the reconciler");
    }
}

/// Names no pot that many people share.
fn limited(pot: Pot, wait: Duration) -> Response {
    metrics::count("login_codes_limited", &[(Dimension::Outcome, pot.word())]);
    let (name, share) = (pot.name(), pot.share());
    edge::http::limited(name, (name != Pot::Platform.name()).then_some(share), wait)
}
