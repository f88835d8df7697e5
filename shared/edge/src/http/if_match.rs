//! Changes that say what they were made from (RFC 9110, 13.1.1): nobody overwrites what they have not seen.

use axum::extract::FromRequestParts;
use axum::http::HeaderValue;
use axum::http::header::{ETAG, IF_MATCH, ToStrError};
use axum::http::request::Parts;
use axum::response::{IntoResponse, Response};
use domain::Reason;

use crate::problem::Problem;

/// Most tags of one request.
const TAGS_MAX: usize = 100;

/// The versions that a change may be made over; 428 when the request does not say, 412 when it says no such thing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum IfMatch {
    /// Whichever there is: the asterisk.
    Any,
    /// One of these.
    Versions(Vec<i64>),
}

impl IfMatch {
    /// Whether the change may be made over this version.
    #[must_use]
    pub fn allows(&self, version: i64) -> bool {
        match self {
            Self::Any => true,
            Self::Versions(versions) => versions.contains(&version),
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let values = parts.headers.get_all(IF_MATCH).iter();
        let lines: Result<Vec<&str>, ToStrError> = values.map(HeaderValue::to_str).collect();
        match lines {
            Ok(lines) if lines.is_empty() => Err(Problem::new(Reason::PreconditionRequired)),
            // Several lines are one list (RFC 9110, 5.3).
            Ok(lines) => parsed(&lines.join(",")).ok_or_else(|| Problem::new(Reason::PreconditionFailed)),
            Err(_) => Err(Problem::new(Reason::PreconditionFailed)),
        }
    }
}

/// The asterisk, or tags between commas (RFC 9110, 5.6.1 and 8.8.3).
fn parsed(text: &str) -> Option<IfMatch> {
    if text.trim() == "*" {
        return Some(IfMatch::Any);
    }
    let (mut versions, mut tags) = (Vec::new(), 0);
    let mut rest = text.trim_start_matches([' ', '\t', ',']);
    while !rest.is_empty() {
        let (is_weak, tag) = rest.strip_prefix("W/").map_or((false, rest), |tag| (true, tag));
        let (opaque, after) = tag.strip_prefix('"')?.split_once('"')?;
        let after = after.trim_start_matches([' ', '\t']);
        let is_separated = after.is_empty() || after.starts_with(',');
        tags += 1;
        if tags > TAGS_MAX || !is_separated || !opaque.bytes().all(|byte| byte.is_ascii_graphic()) {
            return None;
        }
        // A weak one would not say which version was seen.
        if !is_weak {
            versions.extend(version(opaque));
        }
        rest = after.trim_start_matches([' ', '\t', ',']);
    }
    (tags > 0).then_some(IfMatch::Versions(versions))
}

/// The version with this tag. Tags are the same letter by letter only: `07` is none of 7.
fn version(opaque: &str) -> Option<i64> {
    opaque.parse().ok().filter(|version: &i64| version.to_string() == opaque)
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
    use axum::http::Request;

    use super::*;

    #[test]
    fn the_asterisk_and_lists_match_and_weak_tags_never() {
        let own = versioned(7, "");
        let own = own.headers()[ETAG].to_str().unwrap();
        for (text, matches) in [
            (own, true),
            ("*", true),
            (" * ", true),
            ("\"6\", \"7\"", true),
            ("\"7\",\"6\"", true),
            (", ,\t\"7\" ,, ", true),
            ("\"a,b\", \"7\"", true),
            ("W/\"7\", \"7\"", true),
            ("\"6\"", false),
            ("\"6\", \"8\"", false),
            ("W/\"7\"", false),
            ("W/\"7\", \"6\"", false),
            ("\"07\"", false),
            ("\"+7\"", false),
            ("\"-7\"", false),
            ("\"\"", false),
            ("\"x\"", false),
            ("\"99999999999999999999\"", false),
        ] {
            assert_eq!(parsed(text).map(|found| found.allows(7)), Some(matches), "{text}");
        }
    }

    #[test]
    fn what_is_no_list_of_tags_is_refused() {
        let many = ["\"7\""; TAGS_MAX].join(",");
        assert!(parsed(&many).is_some_and(|found| found.allows(7)));
        let too_many = format!("{many},\"7\"");
        for bad in [
            "",
            " ",
            ",",
            "7",
            "\"",
            "\"7",
            "7\"",
            "\"7\" \"8\"",
            "\"7\"\"8\"",
            "\"7\"; \"8\"",
            "\"7 8\"",
            "w/\"7\"",
            "W/7",
            "W/ \"7\"",
            "*, \"7\"",
            "\"7\", *",
            "**",
            too_many.as_str(),
        ] {
            assert_eq!(parsed(bad), None, "{bad}");
        }
    }

    #[tokio::test]
    async fn several_lines_are_one_list() {
        let cases: [(&[&str], Result<bool, &str>); 7] = [
            (&[], Err("precondition-required")),
            (&["\"6\"", "\"7\""], Ok(true)),
            (&["\"6\"", "\"8\""], Ok(false)),
            (&["*"], Ok(true)),
            (&["*", "\"7\""], Err("precondition-failed")),
            (&["\"7\"", "7"], Err("precondition-failed")),
            (&["\"\u{e9}\""], Err("precondition-failed")),
        ];
        for (lines, allowed) in cases {
            let mut request = Request::builder();
            for line in lines {
                request = request.header(IF_MATCH, HeaderValue::from_bytes(line.as_bytes()).unwrap());
            }
            let (mut parts, ()) = request.body(()).unwrap().into_parts();
            let found = IfMatch::from_request_parts(&mut parts, &()).await;
            let found = found.map(|found| found.allows(7));
            assert_eq!(found.as_ref().map_err(Problem::code), allowed.as_ref().map_err(|code| *code), "{lines:?}");
        }
    }
}
