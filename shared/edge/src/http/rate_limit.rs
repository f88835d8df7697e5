//! The answer to who has used a limit up.

use std::time::Duration;

use axum::http::{HeaderName, HeaderValue};
use axum::response::{IntoResponse, Response};
use domain::Reason;
use domain::login::Share;

use crate::problem::Problem;

const RATE_LIMIT: HeaderName = HeaderName::from_static("ratelimit");
const RATE_LIMIT_POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");

/// 429 with the fields of draft-ietf-httpapi-ratelimit-headers-10: the limit's name, how long to wait, and what it
/// allows unless that is nobody's business.
pub fn limited(name: &str, policy: Option<Share>, wait: Duration) -> Response {
    let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
    let mut response = Problem::new(Reason::TooManyRequests).with_retry_after(seconds).into_response();
    let mut set = |header: HeaderName, text: String| {
        if let Ok(value) = HeaderValue::from_str(&text) {
            response.headers_mut().insert(header, value);
        }
    };
    set(RATE_LIMIT, format!("\"{name}\";r=0;t={seconds}"));
    if let Some(Share { messages, one_per }) = policy {
        let window = one_per.saturating_mul(messages).as_secs();
        set(RATE_LIMIT_POLICY, format!("\"{name}\";q={messages};w={window}"));
    }
    response
}
