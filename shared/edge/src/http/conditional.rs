//! Conditional reads: an unchanged resource costs a client, and the CDN in front, a 304 without a body.
//!
//! Tags are weak: a compressing CDN would have to weaken a strong one, and byte ranges are not offered.

use std::hash::{DefaultHasher, Hasher};

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use axum::http::{HeaderMap, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::Error;
use serde::Serialize;

use crate::problem::Problem;

/// The answer to a conditional read: `body` with its tag, or 304 when the client has this version already.
///
/// `etag` is the bare version, without quotes or `W/`.
pub fn cacheable(request: &HeaderMap, etag: &str, cache_control: &'static str, body: impl IntoResponse) -> Response {
    if is_unmodified(request, etag) {
        return not_modified(etag, cache_control);
    }
    tagged(body.into_response(), etag, cache_control)
}

/// The answer to a conditional read of JSON that has no version of its own: its tag is a hash of the whole body, so it
/// changes exactly when the answer does.
///
/// # Errors
/// A fault when the value cannot be written as JSON.
pub fn cacheable_json(
    request: &HeaderMap,
    cache_control: &'static str,
    value: &impl Serialize,
) -> Result<Response, Problem> {
    let body = serde_json::to_vec(value).map_err(Error::fault)?;
    // Not a keyed hash: instances must agree.
    let mut hash = DefaultHasher::new();
    hash.write(&body);
    let etag = format!("{:016x}", hash.finish());
    Ok(cacheable(request, &etag, cache_control, ([(CONTENT_TYPE, "application/json")], body)))
}

/// 304, for handlers that know the version before they have read the body.
pub fn not_modified(etag: &str, cache_control: &'static str) -> Response {
    tagged(StatusCode::NOT_MODIFIED.into_response(), etag, cache_control)
}

fn tagged(mut response: Response, etag: &str, cache_control: &'static str) -> Response {
    let headers = response.headers_mut();
    headers.insert(CACHE_CONTROL, HeaderValue::from_static(cache_control));
    if let Ok(tag) = HeaderValue::from_str(&format!("W/\"{etag}\"")) {
        headers.insert(ETAG, tag);
    }
    response
}

/// Whether the client's `If-None-Match` names this version, by weak comparison (RFC 9110, 13.1.2).
#[must_use]
pub fn is_unmodified(request: &HeaderMap, etag: &str) -> bool {
    request
        .get_all(IF_NONE_MATCH)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .any(|list| list.trim() == "*" || tags(list).any(|tag| tag == etag))
}

/// The opaque tags of a list, as far as it is well formed. Not split at commas, which a tag may contain.
fn tags(list: &str) -> impl Iterator<Item = &str> {
    let mut rest = list;
    std::iter::from_fn(move || {
        rest = rest.trim_start_matches([' ', '\t', ',']);
        let (tag, after) = rest.strip_prefix("W/").unwrap_or(rest).strip_prefix('"')?.split_once('"')?;
        rest = after;
        Some(tag)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asking(values: &[&'static str]) -> HeaderMap {
        values.iter().map(|value| (IF_NONE_MATCH, HeaderValue::from_static(value))).collect()
    }

    #[test]
    fn weak_comparison_lists_and_the_asterisk() {
        for yes in ["\"7\"", "W/\"7\"", "\"1\", W/\"7\"", "\"1\",\"7\"", "*", " \"7\" ", "\"a,b\" , \"7\""] {
            assert!(is_unmodified(&asking(&[yes]), "7"), "{yes}");
        }
        for no in ["", "7", "\"8\"", "\"77\"", "w/\"7\"", "\"7", "\"1\" 7", "\"*\""] {
            assert!(!is_unmodified(&asking(&[no]), "7"), "{no}");
        }
        assert!(is_unmodified(&asking(&["\"1\"", "\"7\""]), "7"), "several header lines are one list");
        assert!(is_unmodified(&asking(&["\"a,b\""]), "a,b"));
        assert!(!is_unmodified(&HeaderMap::new(), "7"));
    }

    #[test]
    fn both_answers_carry_the_tag_and_the_age() {
        for (headers, status) in [(HeaderMap::new(), 200), (asking(&["\"7\""]), 304)] {
            let response = cacheable(&headers, "7", "public, max-age=1", "body");
            assert_eq!(response.status(), status);
            assert_eq!(response.headers()[ETAG], "W/\"7\"");
            assert_eq!(response.headers()[CACHE_CONTROL], "public, max-age=1");
        }
    }
}
