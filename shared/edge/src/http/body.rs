//! Extractors for what a request says: its JSON body, its path and its query. Each refusal is a problem document.

use axum::body::to_bytes;
use axum::extract::rejection::PathRejection;
use axum::extract::{FromRequest, FromRequestParts, Path, Query, Request};
use axum::http::header::{CONTENT_LENGTH, CONTENT_TYPE};
use axum::http::request::Parts;
use domain::Reason;
use domain::limits::{BODY_BYTES_MAX, WEBHOOK_BYTES_MAX};
use serde::de::DeserializeOwned;
use serde_json::error::Category;
use serde_path_to_error::{Path as JsonPath, Segment};

use super::explain::{self, DETAIL_CHARS_MAX};
use crate::problem::Problem;

/// A JSON body of at most `BODY_BYTES_MAX` bytes. `T` decides about unknown fields: put
/// `#[serde(deny_unknown_fields)]` on it.
#[derive(Debug, Clone, Copy)]
pub struct JsonBody<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequest<S> for JsonBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        if !is_json(&request) {
            return Err(Problem::new(Reason::UnsupportedMediaType));
        }
        // The announced length first, so that a large body is not read to be refused.
        let announced = request.headers().get(CONTENT_LENGTH).and_then(|v| v.to_str().ok()?.parse::<u64>().ok());
        if announced.is_some_and(|length| usize::try_from(length).map_or(true, |length| length > BODY_BYTES_MAX)) {
            return Err(too_large());
        }
        let bytes = to_bytes(request.into_body(), BODY_BYTES_MAX).await.map_err(|_| too_large())?;
        parsed(&bytes).map(Self)
    }
}

/// A body as received, of at most `WEBHOOK_BYTES_MAX` bytes: for signatures, which are over bytes.
#[derive(Debug, Clone)]
pub struct RawBody(pub axum::body::Bytes);

impl<S: Send + Sync> FromRequest<S> for RawBody {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        to_bytes(request.into_body(), WEBHOOK_BYTES_MAX).await.map(Self).map_err(|_| {
            Problem::new(Reason::TooLarge).with_detail(format!("A webhook has at most {WEBHOOK_BYTES_MAX} bytes."))
        })
    }
}

fn too_large() -> Problem {
    Problem::new(Reason::TooLarge).with_detail(format!("A body has at most {BODY_BYTES_MAX} bytes."))
}

fn is_json(request: &Request) -> bool {
    let Some(value) = request.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok()) else { return false };
    let (media_type, parameters) = value.split_once(';').unwrap_or((value, ""));
    // JSON is UTF-8; another charset would be a lie or unreadable.
    let utf8 = ["", "charset=utf-8", "charset=\"utf-8\""];
    media_type.trim().eq_ignore_ascii_case("application/json")
        && utf8.iter().any(|text| parameters.trim().eq_ignore_ascii_case(text))
}

fn parsed<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, Problem> {
    // An array would do for a struct otherwise, field by field.
    if bytes.trim_ascii_start().first() == Some(&b'[') && serde_json::from_slice::<serde::de::IgnoredAny>(bytes).is_ok()
    {
        return Err(Problem::new(Reason::Invalid).with_error("", "must be an object"));
    }
    let mut json = serde_json::Deserializer::from_slice(bytes);
    let value = serde_path_to_error::deserialize(&mut json).map_err(|error| refusal(error.path(), error.inner()))?;
    json.end().map_err(|error| unreadable(&error))?;
    Ok(value)
}

/// 400 for what is not JSON, 422 with the field for what is, but not what we want.
fn refusal(path: &JsonPath, error: &serde_json::Error) -> Problem {
    match error.classify() {
        Category::Data => Problem::new(Reason::Invalid).with_error(pointer(path), explain::field(&error.to_string())),
        Category::Io | Category::Syntax | Category::Eof => unreadable(error),
    }
}

fn unreadable(error: &serde_json::Error) -> Problem {
    Problem::unreadable(explain::unreadable(error))
}

/// RFC 6901.
fn pointer(path: &JsonPath) -> String {
    let mut text = String::new();
    for segment in path.iter() {
        match segment {
            Segment::Seq { index } => text.push_str(&format!("/{index}")),
            Segment::Map { key } | Segment::Enum { variant: key } => {
                text.push('/');
                text.push_str(&key.replace('~', "~0").replace('/', "~1"));
            }
            Segment::Unknown => {}
        }
    }
    text.chars().take(DETAIL_CHARS_MAX).collect()
}

/// Parameters in the path. What cannot be one of ours does not exist: 404.
#[derive(Debug, Clone, Copy)]
pub struct PathParams<T>(pub T);

impl<T: DeserializeOwned + Send, S: Send + Sync> FromRequestParts<S> for PathParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        match Path::<T>::from_request_parts(parts, state).await {
            Ok(Path(value)) => Ok(Self(value)),
            Err(PathRejection::FailedToDeserializePathParams(_)) => Err(Problem::new(Reason::NotFound)),
            Err(other) => Err(Problem::internal(format!("a route without its parameters: {other}"))),
        }
    }
}

/// Parameters in the query. `T` decides about unknown ones.
#[derive(Debug, Clone, Copy)]
pub struct QueryParams<T>(pub T);

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for QueryParams<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let found = Query::<T>::from_request_parts(parts, state).await;
        found
            .map(|Query(value)| Self(value))
            .map_err(|error| Problem::new(Reason::Invalid).with_detail(explain::query(&error.body_text())))
    }
}
