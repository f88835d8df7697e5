//! The address that a request came from: what the CDN says if it proves itself, else what the gateway saw. No other
//! header counts, whoever sends it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName};
use lambda_http::RequestExt;
use lambda_http::request::RequestContext;
use secrecy::{ExposeSecret, SecretString};

use crate::environment::{ConfigError, Environment};
use crate::problem::Problem;

/// Where the CDN puts the viewer's address and port.
const VIEWER_ADDRESS: HeaderName = HeaderName::from_static("cloudfront-viewer-address");
/// Where the CDN proves that a request comes through it.
const ORIGIN_SECRET: HeaderName = HeaderName::from_static("x-origin-secret");

const VARIABLE: &str = "TIRADA_ORIGIN_SECRET";
const SECRET_BYTES_MIN: usize = 32;

/// What only the CDN knows; nothing where there is none. Two separated by a comma while one replaces the other.
#[derive(Debug, Clone, Default)]
pub struct OriginSecret(Vec<SecretString>);

impl OriginSecret {
    /// From TIRADA_ORIGIN_SECRET, if it is set.
    ///
    /// # Errors
    /// [`ConfigError`] when it is too short to be a secret.
    pub fn from_environment(environment: &Environment) -> Result<Self, ConfigError> {
        let text = environment.optional(VARIABLE).unwrap_or_default();
        let secrets: Vec<&str> = text.split(',').filter(|secret| !secret.is_empty()).collect();
        if secrets.iter().any(|secret| secret.len() < SECRET_BYTES_MIN) {
            return Err(ConfigError::invalid(VARIABLE, format_args!("must have {SECRET_BYTES_MIN} bytes at least")));
        }
        Ok(Self(secrets.into_iter().map(SecretString::from).collect()))
    }

    fn is_proved_by(&self, headers: &HeaderMap) -> bool {
        let Some(given) = only(headers, &ORIGIN_SECRET) else { return false };
        let is_equal =
            |secret: &SecretString| verify_slices_are_equal(secret.expose_secret().as_bytes(), given.as_bytes());
        self.0.iter().any(|secret| is_equal(secret).is_ok())
    }
}

/// The client's address. Not shown by `Debug`: it is personal.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct ClientAddress(IpAddr);

impl std::fmt::Debug for ClientAddress {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ClientAddress")
    }
}

impl ClientAddress {
    /// Whom the address stands for: itself, or for IPv6 its /64, which one subscriber has to themselves.
    #[must_use]
    pub fn network(self) -> String {
        match self.0.to_canonical() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                format!("{}/64", Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
        }
    }
}

impl<S: Send + Sync> FromRequestParts<S> for ClientAddress
where
    OriginSecret: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let through_cdn = OriginSecret::from_ref(state).is_proved_by(&parts.headers);
        let viewer = only(&parts.headers, &VIEWER_ADDRESS).filter(|_| through_cdn).and_then(viewer_address);
        // Whoever comes without an address shares one pot with all others of that kind.
        let address = viewer.or_else(|| seen_by_gateway(parts)).unwrap_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED));
        Ok(Self(address))
    }
}

fn seen_by_gateway(parts: &Parts) -> Option<IpAddr> {
    let Some(RequestContext::ApiGatewayV2(context)) = parts.request_context_ref() else { return None };
    context.http.source_ip.as_deref()?.parse().ok()
}

/// The address in `192.0.2.1:443` or `2001:db8::1:443`, with or without brackets.
fn viewer_address(text: &str) -> Option<IpAddr> {
    let (address, port) = text.rsplit_once(':')?;
    port.parse::<u16>().ok()?;
    let inside = address.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    inside.unwrap_or(address).parse().ok()
}

/// A header's value, if there is exactly one and it is text.
fn only<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Option<&'a str> {
    let mut values = headers.get_all(name).iter();
    let (first, second) = (values.next()?, values.next());
    if second.is_some() { None } else { first.to_str().ok() }
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::*;
    use crate::environment::tests::of;

    const SECRET: &str = "0123456789abcdef0123456789abcdef";

    fn secret(text: &'static str) -> OriginSecret {
        OriginSecret::from_environment(&of(&[(VARIABLE, text)])).unwrap()
    }

    async fn address(secret: &OriginSecret, headers: &[(&str, &str)]) -> String {
        let mut request = Request::builder();
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let event = serde_json::json!({
            "version": "2.0", "routeKey": "GET /x", "rawPath": "/x", "rawQueryString": "", "headers": {},
            "isBase64Encoded": false,
            "requestContext": { "stage": "$default", "http": {
                "method": "GET", "path": "/x", "protocol": "HTTP/1.1", "sourceIp": "192.0.2.9", "userAgent": "x" } },
        });
        let seen = lambda_http::request::from_str(&event.to_string()).unwrap();
        let context = seen.request_context();
        let request = request.body(()).unwrap().with_request_context(context);
        let (mut parts, ()) = request.into_parts();
        ClientAddress::from_request_parts(&mut parts, secret).await.unwrap().network()
    }

    #[tokio::test]
    async fn only_the_cdn_that_proves_itself_is_believed() {
        let viewer = ("cloudfront-viewer-address", "198.51.100.1:46532");
        let proved = [viewer, ("x-origin-secret", SECRET)];
        assert_eq!(address(&secret(SECRET), &proved).await, "198.51.100.1");
        let two = secret("ffffffffffffffffffffffffffffffff,0123456789abcdef0123456789abcdef");
        assert_eq!(address(&two, &proved).await, "198.51.100.1", "while one replaces the other");
        let forged = [
            viewer,
            ("x-forwarded-for", "198.51.100.2"),
            ("forwarded", "for=198.51.100.3"),
            ("x-real-ip", "198.51.100.4"),
            ("true-client-ip", "198.51.100.5"),
        ];
        assert_eq!(address(&secret(SECRET), &forged).await, "192.0.2.9");
        assert_eq!(address(&secret(SECRET), &[viewer, ("x-origin-secret", &SECRET[1..])]).await, "192.0.2.9");
        assert_eq!(address(&secret(""), &[viewer, ("x-origin-secret", "")]).await, "192.0.2.9", "there is no CDN");
        let twice = [viewer, viewer, ("x-origin-secret", SECRET)];
        assert_eq!(address(&secret(SECRET), &twice).await, "192.0.2.9");
    }

    #[test]
    fn a_viewers_address_has_a_port() {
        for (text, expected) in [
            ("198.51.100.1:46532", "198.51.100.1"),
            ("2001:db8:1:2:3:4:5:6:46532", "2001:db8:1:2::/64"),
            ("2001:0db8:85a3:0000:0000:8a2e:0370:7334:443", "2001:db8:85a3::/64"),
            ("[2001:db8::1]:443", "2001:db8::/64"),
            ("::ffff:198.51.100.1:443", "198.51.100.1"),
        ] {
            assert_eq!(ClientAddress(viewer_address(text).unwrap()).network(), expected, "{text}");
        }
        for bad in ["", "198.51.100.1", "198.51.100.1:", "198.51.100.1:x", "a:1", "198.51.100.1:70000"] {
            assert_eq!(viewer_address(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_secret_is_long() {
        let short = OriginSecret::from_environment(&of(&[(VARIABLE, "0123456789abcdef0123456789abcdef,short")]));
        assert!(short.unwrap_err().to_string().starts_with("TIRADA_ORIGIN_SECRET must have 32 bytes"));
    }
}
