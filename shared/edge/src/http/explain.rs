//! What a parser says of a request, in words for whoever sent it: no types of ours, and nothing of what was sent, which
//! may be a phone or a name. What it names behind `expected`, or says to be missing or twice, is ours.

use serde_json::error::Category;

/// Longest explanation, in characters.
pub(super) const DETAIL_CHARS_MAX: usize = 200;

const TIME: &str = "a time of RFC 3339, as 2030-01-31T18:00:00Z";

/// What is wrong with a field of a body, to be read behind the field's name.
pub(super) fn field(message: &str) -> String {
    let message = without_place(message);
    if let Some(name) = named(message, "missing field ") {
        return format!("must have `{name}`");
    }
    if let Some(name) = named(message, "duplicate field ") {
        return format!("has `{name}` twice");
    }
    // What is behind the last one is ours, unless nothing is.
    let is_ours = !message.ends_with("there are no fields");
    let expected = message.rsplit_once(", expected ").map(|(_, expected)| expected).filter(|_| is_ours);
    if message.starts_with("unknown field ") {
        return match expected.filter(|names| is_list(names)) {
            Some(names) => format!("is not known here, only {}", names.trim_start_matches("one of ")),
            None => "is not known here".to_owned(),
        };
    }
    match expected {
        Some(words) if message.starts_with("unknown variant ") && is_list(words) => format!("must be {words}"),
        Some(kind) if message.starts_with("invalid ") => format!("must be {}", in_words(kind)),
        _ => sentence(message),
    }
}

/// What is wrong with a query.
pub(super) fn query(message: &str) -> String {
    let (_, message) = message.split_once("query string: ").unwrap_or(("", message));
    // Behind a parameter's name. One that is not known may be anything.
    let message = message.find("unknown field `").map_or(message, |at| &message[at..]);
    let (name, message) = message.split_once(": ").filter(|(name, _)| is_name(name)).unwrap_or(("", message));
    let said = field(message);
    if message.starts_with("unknown field ") {
        format!("A parameter of the query {said}.")
    } else if message.starts_with("missing field ") || message.starts_with("duplicate field ") || name.is_empty() {
        format!("The query {said}.")
    } else {
        format!("The query's `{name}` {said}.")
    }
}

/// Where a body cannot be read.
pub(super) fn unreadable(error: &serde_json::Error) -> String {
    let what = match error.classify() {
        Category::Eof => "The body ends too early",
        Category::Io | Category::Syntax | Category::Data => "The body cannot be read as the JSON of this request",
    };
    format!("{what}: see line {}, column {}.", error.line(), error.column())
}

/// Without the place: the field says it.
fn without_place(message: &str) -> &str {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match message.rsplit_once(" at line ") {
        Some((before, place))
            if place.split_once(" column ").is_some_and(|(line, column)| is_number(line) && is_number(column)) =>
        {
            before
        }
        _ => message,
    }
}

/// The name behind a text, if nothing else stands there.
fn named<'a>(message: &'a str, before: &str) -> Option<&'a str> {
    message.strip_prefix(before)?.strip_prefix('`')?.strip_suffix('`').filter(|name| is_name(name))
}

fn is_name(text: &str) -> bool {
    (1..=40).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

/// Whether these are words of ours, few enough to be read.
fn is_list(words: &str) -> bool {
    words.starts_with(['`', 'o']) && words.len() < DETAIL_CHARS_MAX - 40
}

/// What a parser expected.
fn in_words(kind: &str) -> &'static str {
    match kind {
        "u8" => "a whole number from 0 to 255",
        "u16" => "a whole number from 0 to 65,535",
        "u32" => "a whole number from 0 to 4,294,967,295",
        "i16" => "a whole number from -32,768 to 32,767",
        "i32" => "a whole number from -2,147,483,648 to 2,147,483,647",
        "u64" | "i64" | "usize" => "a whole number",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a string" | "a borrowed string" => "text",
        "a sequence" => "a list",
        "a map" => "an object",
        _ if kind.starts_with("struct ") => "an object",
        _ if kind.contains("UUID") => "a UUID",
        _ if kind.contains("DateTime") => TIME,
        _ => "of another kind",
    }
}

/// What somebody else's parser says of a text, and what is said by rules of ours.
fn sentence(message: &str) -> String {
    let is_of_time = ["component", "literal", "trailing characters", "in the range"];
    if message.starts_with("must ") && !message.contains(['"', '`']) {
        message.chars().take(DETAIL_CHARS_MAX).collect()
    } else if message.starts_with("UUID parsing failed") {
        "must be a UUID".to_owned()
    } else if ["digit", "integer", "number too"].iter().any(|word| message.contains(word)) {
        "must be a whole number within bounds".to_owned()
    } else if is_of_time.iter().any(|word| message.contains(word)) {
        format!("must be {TIME}")
    } else {
        "is not valid".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_sent_is_not_quoted_back() {
        let whole = "must be a whole number from -2,147,483,648 to 2,147,483,647";
        for (message, said) in [
            ("invalid type: string \"+34600000000\", expected i32 at line 1 column 22", whole),
            ("invalid value: string \"a \\\"b, expected c\\\"\", expected i32", whole),
            ("invalid value: integer `34600000000`, expected i32", whole),
            ("invalid type: integer `34600000000`, expected a string at line 2 column 7", "must be text"),
            ("invalid type: sequence, expected struct ProductChange at line 1 column 0", "must be an object"),
            ("invalid type: null, expected a sequence at line 1 column 15", "must be a list"),
            ("invalid type: integer `1`, expected a formatted UUID string", "must be a UUID"),
            (
                "invalid type: integer `1`, expected an RFC3339-formatted `OffsetDateTime`",
                "must be a time of RFC 3339, as 2030-01-31T18:00:00Z",
            ),
            (
                "the 'year' component could not be parsed at line 1 column 9",
                "must be a time of RFC 3339, as 2030-01-31T18:00:00Z",
            ),
            ("UUID parsing failed: invalid character: found `x` at 1 at line 1 column 9", "must be a UUID"),
            ("unknown field `+34600000000`, expected `phone` or `name`", "is not known here, only `phone` or `name`"),
            ("unknown field `a`, expected one of `b`, `c`, `d`", "is not known here, only `b`, `c`, `d`"),
            ("unknown field `a, expected `34600000000`, there are no fields", "is not known here"),
            ("unknown variant `+34600000000`, expected `owner` or `viewer`", "must be `owner` or `viewer`"),
            ("unknown variant `x`, expected one of `a`, `b`, `c` at line 1 column 2", "must be one of `a`, `b`, `c`"),
            ("missing field `phone` at line 1 column 2", "must have `phone`"),
            ("duplicate field `phone` at line 1 column 20", "has `phone` twice"),
            ("must be reject, drop or replace", "must be reject, drop or replace"),
            ("must not be \"+34600000000\"", "is not valid"),
            ("unknown field `a", "is not known here"),
            ("something +34600000000", "is not valid"),
        ] {
            assert_eq!(field(message), said, "{message}");
        }
        let names = ["`a_name`"; 40].join(", ");
        assert_eq!(field(&format!("unknown field `x`, expected one of {names}")), "is not known here");
    }

    #[test]
    fn a_query_is_explained_with_its_parameter() {
        for (message, said) in [
            ("limit: invalid digit found in string", "The query's `limit` must be a whole number within bounds."),
            (
                "limit: number too large to fit in target type",
                "The query's `limit` must be a whole number within bounds.",
            ),
            (
                "cursor: UUID parsing failed: invalid length: expected 16 bytes, found 3",
                "The query's `cursor` must be a UUID.",
            ),
            (
                "+34600000000: unknown field `+34600000000`, expected `limit`",
                "A parameter of the query is not known here, only `limit`.",
            ),
            (
                "offset: unknown field `offset`, expected `limit` or `cursor`",
                "A parameter of the query is not known here, only `limit` or `cursor`.",
            ),
            ("missing field `limit`", "The query must have `limit`."),
            ("limit: duplicate field `limit`", "The query has `limit` twice."),
        ] {
            for before in ["", "Failed to deserialize query string: "] {
                assert_eq!(query(&format!("{before}{message}")), said, "{message}");
            }
        }
    }
}
