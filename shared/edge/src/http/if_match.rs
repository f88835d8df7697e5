//! Changes that say what they were made from (RFC 9110, 13.1.1): nobody overwrites what they have not seen.

use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::{ETAG, IF_MATCH};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::Reason;

use crate::problem::Problem;

/// The version that a change was made from; 428 when the request does not say, 412 when it is no version of ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IfMatch(pub i64);

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(IF_MATCH).iter();
        let Some(value) = values.next() else { return Err(Problem::new(Reason::PreconditionRequired)) };
        let text = value.to_str().ok().filter(|_| values.next().is_none());
        text.and_then(version).map(Self).ok_or_else(|| Problem::new(Reason::PreconditionFailed))
    }
}

/// One strong tag. A weak one, a list or the asterisk would not say which version was seen.
fn version(text: &str) -> Option<i64> {
    let digits = text.trim().strip_prefix('"')?.strip_suffix('"')?;
    let is_plain = digits.bytes().all(|byte| byte.is_ascii_digit());
    digits.parse().ok().filter(|_| is_plain)
}

/// An answer with the version of what it shows, as [`IfMatch`] wants it.
pub fn versioned(version: i64, answer: impl IntoResponse) -> Response {
    let mut response = answer.into_response();
    if let Ok(tag) = HeaderValue::from_str(&format!("\"{version}\"")) {
        response.headers_mut().insert(ETAG, tag);
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_strong_tag_names_a_version() {
        assert_eq!(version("\"7\""), Some(7));
        assert_eq!(version(versioned(12, "").headers()[ETAG].to_str().unwrap()), Some(12));
        for bad in [
            "",
            "7",
            "W/\"7\"",
            "*",
            "\"7\", \"8\"",
            "\"\"",
            "\"-7\"",
            "\"+7\"",
            "\"x\"",
            "\"",
            "\"99999999999999999999\"",
        ] {
            assert_eq!(version(bad), None, "{bad}");
        }
    }
}
