//! API Gateway: a request becomes an event of payload format 2.0, the function's response an answer.

use std::collections::BTreeMap;

use axum::http::{HeaderMap, HeaderName, HeaderValue};
use domain::limits::GATEWAY_TIMEOUT;
use serde_json::{Value, json};
use uuid::Uuid;

use super::function::Function;
use super::instance::Outcome;
use crate::http::Answer;

/// Largest body of a request, and largest event of a function, in bytes ("Quotas for HTTP APIs", "Lambda quotas").
const BODY_BYTES_MAX: usize = 10 * 1_024 * 1_024;
const EVENT_BYTES_MAX: usize = 6 * 1_024 * 1_024;

/// A request.
#[derive(Debug, Clone, Default)]
pub struct HttpRequest {
    /// Its method.
    pub method: &'static str,
    /// Its path, with its query if it has one.
    pub path: String,
    /// Its headers, names in lower case.
    pub headers: BTreeMap<String, String>,
    /// Its body.
    pub body: String,
}

impl HttpRequest {
    /// Path and query.
    fn parts(&self) -> (&str, &str) {
        self.path.split_once('?').unwrap_or((&self.path, ""))
    }
}

/// The API in front of the HTTP functions.
#[derive(Clone)]
pub struct Gateway {
    routes: Vec<(String, Function)>,
}

impl Gateway {
    /// An API with these routes: method and path pattern, and the function behind it.
    #[must_use]
    pub const fn new(routes: Vec<(String, Function)>) -> Self {
        Self { routes }
    }

    /// Sends a request. What the function does not answer becomes 502 (it crashed or failed), 503 (throttled) or 504
    /// (not within 30 seconds; it goes on without anybody listening).
    pub async fn send(&self, request: HttpRequest) -> Answer {
        let Some((route, function, parameters)) = self.route(&request) else { return message(404, "Not Found") };
        if request.body.len() > BODY_BYTES_MAX {
            return message(413, "Request Entity Too Large");
        }
        let event = event(route, parameters, &request);
        if event.to_string().len() > EVENT_BYTES_MAX {
            return message(413, "Request Entity Too Large");
        }
        match tokio::time::timeout(GATEWAY_TIMEOUT, function.invoke(event)).await {
            Ok(Outcome::Answer(response)) => answer(&response),
            Ok(Outcome::Throttled) => message(503, "Service Unavailable"),
            Ok(Outcome::Error(_) | Outcome::TimedOut | Outcome::Crashed) => message(502, "Internal Server Error"),
            Err(_) => message(504, "Endpoint request timed out"),
        }
    }

    fn route(&self, request: &HttpRequest) -> Option<(&str, &Function, Value)> {
        self.routes.iter().find_map(|(route, function)| {
            let (method, pattern) = route.split_once(' ')?;
            let parameters = parameters(pattern, request.parts().0)?;
            (method == request.method).then_some((route.as_str(), function, parameters))
        })
    }
}

/// The path's parameters if it has a pattern's form.
fn parameters(pattern: &str, path: &str) -> Option<Value> {
    let (wanted, given): (Vec<&str>, Vec<&str>) = (pattern.split('/').collect(), path.split('/').collect());
    let mut found = json!({});
    if wanted.len() != given.len() {
        return None;
    }
    for (wanted, given) in wanted.into_iter().zip(given) {
        match wanted.strip_prefix('{').and_then(|rest| rest.strip_suffix('}')) {
            Some(name) => found[name] = given.into(),
            None if wanted == given => {}
            None => return None,
        }
    }
    Some(found)
}

fn event(route: &str, parameters: Value, request: &HttpRequest) -> Value {
    let domain = "a1b2c3d4e5.execute-api.us-east-1.amazonaws.com";
    let (path, query) = request.parts();
    let mut headers = request.headers.clone();
    headers.insert("host".into(), domain.into());
    headers.insert("content-length".into(), request.body.len().to_string());
    let mut event = json!({
        "version": "2.0", "routeKey": route, "rawPath": path, "rawQueryString": query, "headers": headers,
        "requestContext": {
            "accountId": "123456789012", "apiId": "a1b2c3d4e5", "domainName": domain, "domainPrefix": "a1b2c3d4e5",
            "http": {
                "method": request.method, "path": path, "protocol": "HTTP/1.1", "sourceIp": "203.0.113.10",
                "userAgent": "tests",
            },
            "requestId": Uuid::now_v7(), "routeKey": route, "stage": "$default",
            "time": "29/Nov/2026:15:27:46 +0000", "timeEpoch": 1_795_966_066_601_u64,
        },
        "pathParameters": parameters, "isBase64Encoded": false,
    });
    if !request.body.is_empty() {
        event["body"] = request.body.clone().into();
    }
    event
}

fn answer(response: &Value) -> Answer {
    let mut headers = HeaderMap::new();
    for (name, value) in response["headers"].as_object().into_iter().flatten() {
        let name: HeaderName = name.parse().expect("a header's name");
        headers.insert(name, HeaderValue::from_str(value.as_str().unwrap_or_default()).expect("a header's value"));
    }
    let status = response["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok());
    let body = response["body"].as_str().unwrap_or_default().as_bytes().to_vec();
    Answer { status: status.unwrap_or(502), headers, body }
}

/// What API Gateway says itself.
fn message(status: u16, text: &str) -> Answer {
    Answer { status, headers: HeaderMap::new(), body: json!({ "message": text }).to_string().into_bytes() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_match_by_their_parts() {
        let pattern = "/v1/orders/{order}/cancellations";
        assert_eq!(parameters(pattern, "/v1/orders/7/cancellations"), Some(json!({ "order": "7" })));
        assert_eq!(parameters(pattern, "/v1/orders/7"), None);
        assert_eq!(parameters(pattern, "/v1/orders/7/payments"), None);
    }
}
