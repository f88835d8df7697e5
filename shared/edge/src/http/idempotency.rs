//! The `Idempotency-Key` header (IETF draft-ietf-httpapi-idempotency-key-header-07).

use axum::extract::FromRequestParts;
use axum::http::HeaderName;
use axum::http::request::Parts;
use domain::Reason;
use domain::limits::IDEMPOTENCY_KEY_BYTES_MAX;

use crate::problem::Problem;

/// The request's header.
pub const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Set to `true` on an answer that was given before.
pub const IDEMPOTENCY_REPLAYED: HeaderName = HeaderName::from_static("idempotency-replayed");

/// The key that a client chose for this request. The draft's form (a quoted string) and the bare form that many
/// clients send are the same key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IdempotencyKey(String);

impl IdempotencyKey {
    /// The key: 1 to `IDEMPOTENCY_KEY_BYTES_MAX` visible ASCII characters.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl<S: Send + Sync> FromRequestParts<S> for IdempotencyKey {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let mut values = parts.headers.get_all(IDEMPOTENCY_KEY).iter();
        let Some(value) = values.next() else { return Err(Problem::new(Reason::KeyMissing)) };
        let text = value.to_str().ok().filter(|_| values.next().is_none());
        text.and_then(parse).map(Self).ok_or_else(|| {
            Problem::unreadable(format!(
                "Idempotency-Key must be one key of 1 to {IDEMPOTENCY_KEY_BYTES_MAX} visible ASCII characters."
            ))
        })
    }
}

fn parse(value: &str) -> Option<String> {
    let value = value.trim();
    let key = match value.strip_prefix('"') {
        Some(quoted) => unquoted(quoted.strip_suffix('"')?)?,
        // Commas and semicolons would be a second key or a parameter: API Gateway joins repeated headers.
        None if !value.contains(['"', '\\', ',', ';']) => value.to_owned(),
        None => return None,
    };
    let fits = (1..=IDEMPOTENCY_KEY_BYTES_MAX).contains(&key.len()) && key.bytes().all(|b| b.is_ascii_graphic());
    fits.then_some(key)
}

/// The inside of a structured field string, its escapes undone.
fn unquoted(inside: &str) -> Option<String> {
    let mut out = String::with_capacity(inside.len());
    let mut characters = inside.chars();
    while let Some(c) = characters.next() {
        match c {
            '"' => return None,
            '\\' => out.push(characters.next().filter(|c| matches!(c, '"' | '\\'))?),
            c => out.push(c),
        }
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_and_bare_are_the_same_key() {
        for same in ["abc-1", "\"abc-1\"", "  abc-1 "] {
            assert_eq!(parse(same).as_deref(), Some("abc-1"), "{same}");
        }
        assert_eq!(parse(r#""a\"b\\c,d""#).as_deref(), Some(r#"a"b\c,d"#));
        let longest = "k".repeat(IDEMPOTENCY_KEY_BYTES_MAX);
        assert_eq!(parse(&longest), Some(longest.clone()));
        assert_eq!(parse(&format!("\"{longest}\"")), Some(longest));
    }

    #[test]
    fn anything_else_is_refused() {
        let long = "k".repeat(IDEMPOTENCY_KEY_BYTES_MAX + 1);
        for bad in
            ["", " ", "\"", "\"\"", "\"a", "a\"", "\"a\"b\"", r#""a\"#, r#""a\b""#, "a b", "\"a b\"", "a,b", "a;b=1"]
        {
            assert_eq!(parse(bad), None, "{bad}");
        }
        assert_eq!(parse(&long), None);
        assert_eq!(parse("\"a\";p=1"), None);
        assert_eq!(parse("\"a\", \"b\""), None);
    }
}
