//! Problem documents (RFC 9457): the one translation of [`domain::Error`] into HTTP.
//!
//! The status is chosen by what the client should do next: mend the request (400, 422), log in (401), give up or look
//! again (404, 409), slow down (429), come back later (503). Whatever is our own fault stays opaque; its causes are
//! logged by [`crate::http::service`], once.

use std::time::Duration;

use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, WWW_AUTHENTICATE};
use axum::http::{HeaderName, HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use domain::orders::InvalidField;
use domain::{Error, Reason};
use serde::Serialize;
use utoipa::ToSchema;

/// Seconds after which a request that met a busy system should be sent again.
const RETRY_AFTER_BUSY: u32 = 2;

/// A problem document. Kept under 128 bytes, because it travels as the error of nearly every function of an API.
#[derive(Debug, Clone, Serialize, ToSchema)]
pub struct Problem {
    /// Identifies the kind of problem: `urn:tirada:problem:` and the code.
    #[serde(rename = "type")]
    #[schema(example = "urn:tirada:problem:sold-out", value_type = String)]
    kind: Box<str>,
    /// Short sentence about this kind of problem.
    title: &'static str,
    /// The status of the response.
    #[schema(example = 409)]
    status: u16,
    /// Sentence about this occurrence.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    detail: Option<Box<str>>,
    /// Identifies this occurrence; name it when you ask for help.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(example = "urn:tirada:request:0198f4a2-5f0b-7cc0-8d5e-9a6b1c2d3e4f", value_type = Option<String>)]
    instance: Option<Box<str>>,
    /// Stable code, for programs.
    #[schema(example = "sold-out")]
    code: &'static str,
    /// What is wrong with which field of the request.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    #[schema(value_type = Vec<FieldError>)]
    errors: Box<[FieldError]>,
    /// Seconds to wait before trying again; the same as the header.
    #[serde(skip_serializing_if = "Option::is_none")]
    retry_after: Option<u32>,
    #[serde(skip)]
    cause: Option<Box<Cause>>,
}

/// What is wrong with one field of a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, ToSchema)]
pub struct FieldError {
    /// JSON pointer (RFC 6901) into the body.
    #[schema(example = "/numbers/3")]
    pub pointer: String,
    /// What is wrong.
    pub detail: String,
}

/// What happened below, for the log only.
#[derive(Debug, Clone)]
pub(crate) enum Cause {
    /// Somebody or something was busy: worth a warning.
    Busy(String),
    /// A bug or an outage: worth an error.
    Fault(String),
}

impl Problem {
    /// The problem for a reason, with the status and the wait that go with it.
    #[must_use]
    pub fn new(reason: Reason) -> Self {
        let (status, retry_after) = answer(reason);
        Self { retry_after, ..Self::of(status, reason.code(), reason.title()) }
    }

    /// The problem for a reason, with the wait after which trying again may help if it is known better.
    #[must_use]
    pub fn refused(reason: Reason, retry_after: Option<Duration>) -> Self {
        match retry_after {
            // Rounded up, so that whoever waits so long is not early.
            Some(wait) => {
                let seconds = wait.as_secs() + u64::from(wait.subsec_nanos() > 0);
                Self::new(reason).with_retry_after(u32::try_from(seconds).unwrap_or(u32::MAX))
            }
            None => Self::new(reason),
        }
    }

    fn of(status: StatusCode, code: &'static str, title: &'static str) -> Self {
        Self {
            kind: format!("urn:tirada:problem:{code}").into(),
            title,
            status: status.as_u16(),
            detail: None,
            instance: None,
            code,
            errors: Box::default(),
            retry_after: None,
            cause: None,
        }
    }

    /// 503, code `unavailable`: nothing is wrong with the request, and later it will do.
    #[must_use]
    pub fn unavailable(cause: impl Into<String>) -> Self {
        let problem = Self::of(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "The service is busy");
        Self { retry_after: Some(RETRY_AFTER_BUSY), cause: Some(Box::new(Cause::Busy(cause.into()))), ..problem }
    }

    /// 500, code `internal`: ours, and nobody else's business.
    #[must_use]
    pub fn internal(cause: impl Into<String>) -> Self {
        Self { cause: Some(Box::new(Cause::Fault(cause.into()))), ..Self::panicked() }
    }

    /// The same 500 for a panic, which has no cause to log: its hook has done that.
    pub(crate) fn panicked() -> Self {
        Self::of(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Something went wrong on our side")
    }

    /// 400 instead of 422, for a request that could not even be read.
    pub(crate) fn unreadable(detail: impl Into<String>) -> Self {
        Self { status: StatusCode::BAD_REQUEST.as_u16(), ..Self::new(Reason::Invalid) }.with_detail(detail)
    }

    /// Says more about this occurrence.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Self {
        self.detail = Some(detail.into().into());
        self
    }

    /// Names what is wrong with one more field.
    #[must_use]
    pub fn with_error(mut self, pointer: impl Into<String>, detail: impl Into<String>) -> Self {
        let mut errors = self.errors.into_vec();
        errors.push(FieldError { pointer: pointer.into(), detail: detail.into() });
        self.errors = errors.into();
        self
    }

    /// Asks the client to wait this many seconds, at least one.
    #[must_use]
    pub fn with_retry_after(mut self, seconds: u32) -> Self {
        self.retry_after = Some(seconds.max(1));
        self
    }

    pub(crate) fn with_instance(mut self, instance: String) -> Self {
        self.instance = Some(instance.into());
        self
    }

    /// The stable code.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// The status.
    #[must_use]
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    pub(crate) fn cause(&self) -> Option<&Cause> {
        self.cause.as_deref()
    }
}

/// Status and seconds to wait for each reason.
fn answer(reason: Reason) -> (StatusCode, Option<u32>) {
    use Reason as R;
    match reason {
        R::KeyMissing | R::BadSignature => (StatusCode::BAD_REQUEST, None),
        R::Unauthorized => (StatusCode::UNAUTHORIZED, None),
        R::PaymentDeclined => (StatusCode::PAYMENT_REQUIRED, None),
        R::Forbidden | R::NotFresh => (StatusCode::FORBIDDEN, None),
        R::PreconditionFailed => (StatusCode::PRECONDITION_FAILED, None),
        R::PreconditionRequired => (StatusCode::PRECONDITION_REQUIRED, None),
        R::NotFound => (StatusCode::NOT_FOUND, None),
        R::MethodNotAllowed => (StatusCode::METHOD_NOT_ALLOWED, None),
        R::TooLarge => (StatusCode::PAYLOAD_TOO_LARGE, None),
        R::UnsupportedMediaType => (StatusCode::UNSUPPORTED_MEDIA_TYPE, None),
        // Send something else.
        R::Invalid
        | R::OutOfRange
        | R::LimitExceeded
        | R::KeyReused
        | R::TimeSkipped
        | R::MethodUnavailable
        | R::CodeWrong
        | R::LinkWrong
        | R::CountryNotServed => (StatusCode::UNPROCESSABLE_ENTITY, None),
        // Send the same again, soon.
        R::KeyInFlight | R::Busy => (StatusCode::CONFLICT, Some(1)),
        R::PaymentInFlight => (StatusCode::CONFLICT, Some(5)),
        R::GatewayUnavailable => (StatusCode::SERVICE_UNAVAILABLE, Some(5)),
        R::TooEarly => (StatusCode::TOO_MANY_REQUESTS, Some(2)),
        R::TooManyRequests => (StatusCode::TOO_MANY_REQUESTS, Some(60)),
        R::QueueFull => (StatusCode::SERVICE_UNAVAILABLE, Some(10)),
        R::SalesPaused => (StatusCode::SERVICE_UNAVAILABLE, Some(30)),
        // The world is different from what the client thought: look at it again.
        R::NotOpen
        | R::SaleClosed
        | R::SaleEnded
        | R::SoldOut
        | R::NumbersTaken
        | R::TooManyOpenOrders
        | R::WrongState
        | R::PaymentEnded
        | R::HoldExpired
        | R::TooManyAttempts
        | R::QueuedTooLong
        | R::ReservingHalted
        | R::LastOwner
        | R::StaffExists
        | R::Frozen => (StatusCode::CONFLICT, None),
    }
}

impl From<Reason> for Problem {
    fn from(reason: Reason) -> Self {
        Self::new(reason)
    }
}

impl From<Error> for Problem {
    fn from(error: Error) -> Self {
        match error {
            Error::Rejected(reason) => Self::new(reason),
            Error::Busy(_) => Self::unavailable(error.chain()),
            Error::Fault(_) => Self::internal(error.chain()),
        }
    }
}

impl From<Vec<InvalidField>> for Problem {
    fn from(fields: Vec<InvalidField>) -> Self {
        fields
            .into_iter()
            .fold(Self::new(Reason::Invalid), |problem, field| problem.with_error(field.pointer, field.detail))
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response = (self.status(), body).into_response();
        let headers = response.headers_mut();
        let mut set = |name: HeaderName, value: &'static str| headers.insert(name, HeaderValue::from_static(value));
        set(CONTENT_TYPE, "application/problem+json");
        set(CACHE_CONTROL, "no-store");
        if self.status() == StatusCode::UNAUTHORIZED {
            set(WWW_AUTHENTICATE, "Bearer");
        }
        if let Some(seconds) = self.retry_after {
            headers.insert(RETRY_AFTER, seconds.into());
        }
        // The service around the router completes and logs it.
        response.extensions_mut().insert(self);
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_tells_the_client_what_to_do_next() {
        for reason in Reason::ALL {
            let problem = Problem::new(*reason);
            assert!(problem.status().is_client_error() || problem.status() == 503, "{reason}");
            let waits = matches!(problem.status, 429 | 503);
            assert!(!waits || problem.retry_after.is_some(), "{reason}: 429 and 503 say how long to wait");
            assert_eq!(problem.code(), reason.code());
        }
    }

    #[test]
    fn causes_stay_inside() {
        for (error, status, code) in [
            (Error::fault("password of tirada_app"), 500, "internal"),
            (Error::busy("password of tirada_app"), 503, "unavailable"),
        ] {
            let problem = Problem::from(error);
            assert_eq!((problem.status, problem.code()), (status, code));
            let text = serde_json::to_string(&problem).unwrap();
            assert!(!text.contains("password"), "{text}");
            assert!(matches!(problem.cause(), Some(Cause::Busy(c) | Cause::Fault(c)) if c.contains("password")));
        }
    }

    #[test]
    fn the_document_has_the_agreed_members() {
        let field = InvalidField { pointer: "/quantity", detail: "must not be negative".into() };
        let problem = Problem::from(vec![field]).with_detail("no").with_retry_after(0).with_instance("urn:x".into());
        assert_eq!(
            serde_json::to_value(&problem).unwrap(),
            serde_json::json!({
                "type": "urn:tirada:problem:invalid", "title": "The request is not valid", "status": 422,
                "detail": "no", "instance": "urn:x", "code": "invalid", "retry_after": 1,
                "errors": [{"pointer": "/quantity", "detail": "must not be negative"}],
            })
        );
    }

    #[test]
    fn headers_agree_with_the_document() {
        let response = Problem::new(Reason::QueueFull).into_response();
        assert_eq!(
            (response.status(), response.headers()[RETRY_AFTER].to_str().unwrap()),
            (503.try_into().unwrap(), "10")
        );
        let response = Problem::new(Reason::Unauthorized).into_response();
        assert_eq!(response.headers()[WWW_AUTHENTICATE], "Bearer");
        assert_eq!(response.headers()[CONTENT_TYPE], "application/problem+json");
    }

    #[test]
    fn the_schema_is_the_document() {
        let schema = serde_json::to_value(<Problem as utoipa::PartialSchema>::schema()).unwrap();
        let members: Vec<&String> = schema["properties"].as_object().unwrap().keys().collect();
        assert_eq!(members, ["code", "detail", "errors", "instance", "retry_after", "status", "title", "type"]);
        assert_eq!(schema["required"], serde_json::json!(["type", "title", "status", "code"]));
        assert!(size_of::<Problem>() < 128);
    }
}
