//! `GET /.well-known/jwks.json`

use axum::extract::State as Shared;
use axum::http::HeaderMap;
use axum::response::Response;
use edge::Problem;
use edge::http::cacheable_json;

use crate::State;

/// A new key is published a deployment before it signs, so that nobody needs it within these five minutes.
const CACHED: &str = "public, max-age=300";

/// Read the keys that buyers' tokens are signed with.
///
/// A JWK set (RFC 7517). During a rotation it has two keys.
#[utoipa::path(
    get, path = "/.well-known/jwks.json", tag = "login", operation_id = "read_keys",
    responses(
        (status = 200, description = "The keys", body = Object),
        (status = 304, description = "Unchanged"))
)]
pub(crate) async fn read_keys(Shared(state): Shared<State>, headers: HeaderMap) -> Result<Response, Problem> {
    cacheable_json(&headers, CACHED, state.keys.public.published())
}
