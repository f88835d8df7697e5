//! What surrounds every HTTP function: unknown routes, panics, the time budget, request ids and security headers.
//!
//! A function brings its routes, with handlers that take the extractors of this module and return
//! `Result<_, Problem>`; [`serve`] does the rest.

mod address;
mod body;
mod buyer;
mod conditional;
mod explain;
mod idempotency;
mod if_match;
mod money;
mod paging;
mod rate_limit;
mod staff;

use axum::Router;
use axum::extract::{MatchedPath, Request};
use axum::http::header::{CACHE_CONTROL, X_CONTENT_TYPE_OPTIONS};
use axum::http::{HeaderName, HeaderValue, Method};
use axum::middleware::{Next, from_fn};
use axum::response::{IntoResponse, Response};
use domain::limits::REQUEST_BUDGET;
use domain::{Error, Reason};
use lambda_http::Context;
use tracing::Instrument;
use uuid::Uuid;

pub use address::{ClientAddress, OriginSecret};
pub use body::{JsonBody, PathParams, QueryParams, RawBody};
pub use buyer::{BuyerAuth, SessionAuth};
pub use conditional::{cacheable, cacheable_json, is_unmodified, not_modified};
pub use idempotency::{IDEMPOTENCY_KEY, IDEMPOTENCY_REPLAYED, IdempotencyKey};
pub use if_match::{IfMatch, versioned};
pub use money::Money;
pub use paging::{Page, cut};
pub use rate_limit::limited;
pub use staff::{StaffSessionAuth, StaffToken};

use crate::metrics::{self, Dimension};
use crate::panics::caught;
use crate::problem::{Cause, Problem};

const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

/// Runs a router under the Lambda runtime until the environment is shut down.
///
/// # Errors
/// When the runtime's own API fails, which ends the process.
pub async fn serve(router: Router) -> Result<(), lambda_http::Error> {
    lambda_http::run(service(router)).await
}

/// The router with everything around it, as it runs in production; tests call it directly.
pub fn service(router: Router) -> Router {
    router
        .fallback(|| async { Problem::new(Reason::NotFound) })
        .method_not_allowed_fallback(|| async { Problem::new(Reason::MethodNotAllowed) })
        .layer(from_fn(guard))
}

/// What the log says about a request. Never its query, body or headers: those may be personal.
struct Seen {
    id: String,
    method: Method,
    route: String,
}

async fn guard(request: Request, next: Next) -> Response {
    let seen = Seen {
        id: request_id(&request),
        method: request.method().clone(),
        route: request.extensions().get::<MatchedPath>().map_or("none", MatchedPath::as_str).to_owned(),
    };
    // Whatever is logged below, a panic included, names the request.
    let span = tracing::info_span!("request", request.id = seen.id, request.route = seen.route);
    let work = caught(async {
        fail::fail_point!("http.request");
        next.run(request).await
    });
    let work = work.instrument(span);
    let response = match tokio::time::timeout(REQUEST_BUDGET, work).await {
        Ok(Ok(response)) => response,
        Ok(Err(_)) => Problem::panicked().into_response(),
        Err(_) => Problem::unavailable("REQUEST_BUDGET is used up")
            .with_detail("This took too long and may or may not have been done; repeat it with the same key.")
            .into_response(),
    };
    finish(response, &seen)
}

/// An error that nobody made a problem of is a fault of ours: an answer that could not be written, for one.
fn as_problem(response: Response) -> Response {
    let status = response.status();
    let is_error = status.is_client_error() || status.is_server_error();
    if !is_error || response.extensions().get::<Problem>().is_some() {
        return response;
    }
    Problem::from(Error::fault(format!("an answer of status {status} is no problem document"))).into_response()
}

/// Lambda's id, under which the log has this request; a new one outside Lambda.
fn request_id(request: &Request) -> String {
    let context = request.extensions().get::<Context>();
    let id = context.map(|context| context.request_id.clone()).filter(|id| !id.is_empty());
    id.unwrap_or_else(|| Uuid::now_v7().to_string())
}

fn finish(response: Response, seen: &Seen) -> Response {
    let mut response = as_problem(response);
    if let Some(problem) = response.extensions_mut().remove::<Problem>() {
        log(&problem, seen);
        metrics::count("requests.refused", &[(Dimension::Outcome, problem.code())]);
        let (parts, body) =
            problem.with_instance(format!("urn:tirada:request:{}", seen.id)).into_response().into_parts();
        // The handler's own headers stay (Allow, for one); those that describe the document are replaced.
        response.headers_mut().remove(axum::http::header::CONTENT_LENGTH);
        for (name, value) in &parts.headers {
            response.headers_mut().insert(name, value.clone());
        }
        if seen.method != Method::HEAD {
            *response.body_mut() = body;
        }
    }
    let headers = response.headers_mut();
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    if let Ok(id) = HeaderValue::from_str(&seen.id) {
        headers.insert(REQUEST_ID, id);
    }
    response
}

/// The one line about a request that did not succeed.
fn log(problem: &Problem, seen: &Seen) {
    let Seen { id, method, route } = seen;
    let status = problem.status().as_u16();
    let code = problem.code();
    macro_rules! line {
        ($level:ident, $text:literal $(, $cause:expr)?) => {
            tracing::$level!(
                request.id = %id,
                request.method = %method,
                request.route = %route,
                response.status = status,
                problem.code = code,
                $(error.message = %$cause,)?
                $text
            )
        };
    }
    match problem.cause() {
        Some(Cause::Fault(cause)) => line!(error, "request failed", cause),
        Some(Cause::Busy(cause)) => line!(warn, "request met a busy system", cause),
        None => line!(debug, "request refused"),
    }
}

#[cfg(test)]
mod tests;
