//! Passwords for the database on AWS: tokens signed here, without a call to anybody.
//!
//! The database checks a token when a connection is opened and not later, so one is made for each new connection.

use std::time::{Duration, SystemTime};

use aws_credential_types::Credentials;
use aws_sigv4::http_request::{SignableBody, SignableRequest, SignatureLocation, SigningSettings, sign};
use aws_sigv4::sign::v4;
use domain::{Error, Result};
use secrecy::SecretString;

use crate::environment::{ConfigError, Environment};

/// How long a token can be used to connect. The longest that RDS allows.
const TOKEN_LIFETIME: Duration = Duration::from_secs(900);

/// The credentials that Lambda gives its functions, or that a developer exported.
///
/// Lambda never changes them during the life of an execution environment, so they are read once.
///
/// # Errors
/// [`ConfigError::Missing`] names the variable.
pub fn credentials(environment: &Environment) -> Result<Credentials, ConfigError> {
    Ok(Credentials::new(
        environment.required("AWS_ACCESS_KEY_ID")?,
        environment.required("AWS_SECRET_ACCESS_KEY")?,
        environment.optional("AWS_SESSION_TOKEN"),
        None,
        "environment",
    ))
}

/// Makes the database's passwords for one place and role.
#[derive(Debug, Clone)]
pub struct DatabaseTokens {
    host: String,
    port: u16,
    user: String,
    region: String,
    credentials: Credentials,
}

impl DatabaseTokens {
    /// For this proxy or database, and this role.
    #[must_use]
    pub fn new(host: &str, port: u16, user: &str, region: &str, credentials: Credentials) -> Self {
        Self { host: host.to_owned(), port, user: user.to_owned(), region: region.to_owned(), credentials }
    }

    /// A fresh token, good for opening a connection within the next 900 s.
    ///
    /// # Errors
    /// [`Error::Fault`] when it cannot be signed.
    pub fn token(&self, now: SystemTime) -> Result<SecretString> {
        database_token(&self.host, self.port, &self.user, &self.region, &self.credentials, now)
    }
}

/// An RDS authentication token: a presigned request that is never sent, its scheme taken off.
///
/// # Errors
/// [`Error::Fault`] when it cannot be signed.
pub fn database_token(
    host: &str,
    port: u16,
    user: &str,
    region: &str,
    credentials: &Credentials,
    now: SystemTime,
) -> Result<SecretString> {
    let mut settings = SigningSettings::default();
    settings.expires_in = Some(TOKEN_LIFETIME);
    settings.signature_location = SignatureLocation::QueryParams;
    let identity = credentials.clone().into();
    let parameters = v4::SigningParams::builder()
        .identity(&identity)
        .region(region)
        .name("rds-db")
        .time(now)
        .settings(settings)
        .build()
        .map_err(|error| Error::Fault(Box::new(error)))?
        .into();

    let mut url = format!("https://{host}:{port}/?Action=connect&DBUser={}", encoded(user));
    let request = SignableRequest::new("GET", &url, std::iter::empty(), SignableBody::Bytes(&[]))
        .map_err(|error| Error::Fault(Box::new(error)))?;
    let (instructions, _) = sign(request, &parameters).map_err(|error| Error::Fault(Box::new(error)))?.into_parts();
    for (name, value) in instructions.params() {
        url.push_str(&format!("&{name}={}", encoded(value)));
    }
    Ok(url.split_off("https://".len()).into())
}

/// Percent-encodes everything but RFC 3986's unreserved characters.
pub(crate) fn encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out.push_str(&format!("%{byte:02X}"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret;

    use super::*;
    use crate::environment::tests::of;

    const HOST: &str = "proxy.example.sa-east-1.rds.amazonaws.com";

    /// 2026-01-02T03:04:05Z.
    fn now() -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(1_767_323_045)
    }

    fn keys(session: Option<&str>) -> Credentials {
        Credentials::new(
            "AKIDEXAMPLE",
            "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY",
            session.map(str::to_owned),
            None,
            "test",
        )
    }

    // The expected tokens come from botocore 1.44.8 (`generate_db_auth_token`) with the same input and a frozen clock.
    // It orders parameters differently, which the server does not mind: both are compared as sets.
    fn assert_same(token: &SecretString, expected: &str) {
        let parts = |text: &str| {
            let (start, query) = text.split_once('?').unwrap();
            let mut parameters: Vec<String> = query.split('&').map(str::to_owned).collect();
            parameters.sort();
            (start.to_owned(), parameters)
        };
        assert_eq!(parts(token.expose_secret()), parts(expected));
    }

    #[test]
    fn a_token_equals_the_reference_implementation() {
        let token = database_token(HOST, 5432, "tirada_app", "sa-east-1", &keys(None), now()).unwrap();
        assert_same(
            &token,
            "proxy.example.sa-east-1.rds.amazonaws.com:5432/?Action=connect&DBUser=tirada_app\
             &X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Fsa-east-1%2Frds-db%2Faws4_request\
             &X-Amz-Date=20260102T030405Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host\
             &X-Amz-Signature=b08ec6e06d9f9d00ac4db8be1b4df72f850789affe7dcbfe1055770c62503e4b",
        );
    }

    #[test]
    fn a_session_token_is_signed_too() {
        let keys = keys(Some("FwoGZXIvYXdzE/+Ab=="));
        let token = database_token(HOST, 5432, "tirada_app", "sa-east-1", &keys, now()).unwrap();
        assert_same(
            &token,
            "proxy.example.sa-east-1.rds.amazonaws.com:5432/?Action=connect&DBUser=tirada_app\
             &X-Amz-Algorithm=AWS4-HMAC-SHA256\
             &X-Amz-Credential=AKIDEXAMPLE%2F20260102%2Fsa-east-1%2Frds-db%2Faws4_request\
             &X-Amz-Date=20260102T030405Z&X-Amz-Expires=900&X-Amz-SignedHeaders=host\
             &X-Amz-Security-Token=FwoGZXIvYXdzE%2F%2BAb%3D%3D\
             &X-Amz-Signature=4d9c6aaffcc75dfd2a3cfbac4bbd0669a20b08102f0e790e8ceed5fb06066369",
        );
    }

    #[test]
    fn credentials_come_from_the_environment_and_stay_out_of_logs() {
        let environment = of(&[("AWS_ACCESS_KEY_ID", "a"), ("AWS_SECRET_ACCESS_KEY", "hidden")]);
        let tokens = DatabaseTokens::new(HOST, 5432, "tirada_app", "sa-east-1", credentials(&environment).unwrap());
        assert!(tokens.token(now()).unwrap().expose_secret().starts_with(HOST));
        assert!(!format!("{tokens:?}").contains("hidden"));
        assert_eq!(credentials(&of(&[])).unwrap_err().to_string(), "AWS_ACCESS_KEY_ID is not set");
    }
}
