//! The configuration of a function: read once, typed, checked before the first event.
//!
//! Knows the names of the variables and which values contradict each other. A function asks for what only it needs
//! ([`Config::token_keys`], [`Queues::url`]) while it starts, so that a missing variable stops it there.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use domain::limits;
use domain::messages::Queue;
use secrecy::SecretString;

use crate::auth::{SigningKeys, TokenKeys};
pub use crate::environment::{ConfigError, Environment};
use crate::login_keys::LoginKeys;

/// Where this code runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// A developer's machine: the only place where failpoints and the development signing key are allowed.
    Local,
    /// Shared, on AWS, without real buyers.
    Dev,
    /// As production, without real buyers.
    Staging,
    /// Real buyers.
    Prod,
}

impl Stage {
    /// The word used in configuration and metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Local => "local",
            Self::Dev => "dev",
            Self::Staging => "staging",
            Self::Prod => "prod",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Stage {
    type Err = ();

    fn from_str(word: &str) -> Result<Self, ()> {
        [Self::Local, Self::Dev, Self::Staging, Self::Prod].into_iter().find(|s| s.word() == word).ok_or(())
    }
}

/// What encloses a function's work, and so bounds its timeouts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Answers API Gateway: one request within `REQUEST_BUDGET`.
    Http,
    /// Works on batches or passes until `DEADLINE_MARGIN` before its function's timeout.
    Worker,
}

/// How the database is reached.
#[derive(Debug, Clone)]
pub enum DatabaseLocation {
    /// A URL with its password: local only.
    Url(SecretString),
    /// The proxy on AWS, whose password is a token made for each connection (see [`crate::iam`]).
    Iam {
        /// Host name of the proxy, also the name in its certificate.
        host: String,
        /// TCP port.
        port: u16,
        /// Database.
        name: String,
        /// Role.
        user: String,
        /// AWS region of the proxy.
        region: String,
    },
}

/// URLs of the queues that this function may send to or delay on.
#[derive(Debug, Clone, Default)]
pub struct Queues(HashMap<Queue, String>);

impl Queues {
    /// The URL of a queue.
    ///
    /// # Errors
    /// [`ConfigError::Missing`] when the function was not given it.
    pub fn url(&self, queue: Queue) -> Result<&str, ConfigError> {
        self.0.get(&queue).map(String::as_str).ok_or_else(|| ConfigError::Missing(queue_variable(queue)))
    }

    fn read(environment: &Environment) -> Self {
        let url = |queue| Some((queue, environment.optional(&queue_variable(queue))?));
        Self(Queue::ALL.into_iter().filter_map(url).collect())
    }
}

/// `TIRADA_QUEUE_RESERVE_NUMBERS_URL` and its like.
fn queue_variable(queue: Queue) -> String {
    format!("TIRADA_QUEUE_{}_URL", queue.name().to_uppercase().replace('-', "_"))
}

/// What every function knows about itself.
#[derive(Debug, Clone)]
pub struct Config {
    /// Where it runs.
    pub stage: Stage,
    /// The database.
    pub database: DatabaseLocation,
    /// Longest wait for a connection.
    pub borrow_timeout: Duration,
    /// The function's own timeout.
    pub function_timeout: Duration,
    /// AWS region, if there is one.
    pub region: Option<String>,
    /// Where AWS is, if not at its public endpoints.
    pub endpoint_url: Option<String>,
    /// Queues.
    pub queues: Queues,
    token_keys: Option<String>,
    token_issuer: Option<String>,
}

impl Config {
    /// Reads and checks the configuration.
    ///
    /// # Errors
    /// [`ConfigError`]: something is missing or unusable, the timeouts do not nest, or failpoints are set on a stage
    /// other than local.
    pub fn read(environment: &Environment, kind: Kind) -> Result<Self, ConfigError> {
        let stage = environment
            .parsed("TIRADA_STAGE", "local, dev, staging or prod")?
            .ok_or_else(|| ConfigError::Missing("TIRADA_STAGE".into()))?;
        crate::failpoints::check(environment, stage)?;
        let region = environment.optional("AWS_REGION").or_else(|| environment.optional("AWS_DEFAULT_REGION"));
        let borrow_timeout = environment.millis("TIRADA_DATABASE_BORROW_TIMEOUT_MS")?.unwrap_or(limits::BORROW_TIMEOUT);
        let function_timeout = environment
            .millis("TIRADA_FUNCTION_TIMEOUT_MS")?
            .ok_or_else(|| ConfigError::Missing("TIRADA_FUNCTION_TIMEOUT_MS".into()))?;
        check_timeouts(kind, borrow_timeout, function_timeout)?;
        Ok(Self {
            stage,
            database: database(environment, region.as_deref())?,
            borrow_timeout,
            function_timeout,
            region,
            endpoint_url: environment.optional("AWS_ENDPOINT_URL"),
            queues: Queues::read(environment),
            token_keys: environment.optional("TIRADA_TOKEN_KEYS"),
            token_issuer: environment.optional("TIRADA_TOKEN_ISSUER"),
        })
    }

    /// The keys that buyers' tokens are checked with, from TIRADA_TOKEN_KEYS and TIRADA_TOKEN_ISSUER.
    ///
    /// # Errors
    /// [`ConfigError`]: not set, not usable, or the development key on a stage other than local.
    pub fn token_keys(&self) -> Result<TokenKeys, ConfigError> {
        let jwks = self.token_keys.as_deref().ok_or_else(|| ConfigError::Missing("TIRADA_TOKEN_KEYS".to_owned()))?;
        TokenKeys::from_jwks(jwks, self.issuer()?, self.stage)
    }

    /// The keys that sign tokens, from TIRADA_SIGNING_KEYS; each must be among [`Self::token_keys`].
    ///
    /// # Errors
    /// [`ConfigError`]: not set or not usable, or a key that nobody accepts.
    pub fn signing_keys(&self, environment: &Environment) -> Result<SigningKeys, ConfigError> {
        SigningKeys::from_json(&environment.required("TIRADA_SIGNING_KEYS")?, self.issuer()?, &self.token_keys()?)
    }

    /// The keys that codes, refresh tokens and device tokens are derived with, from TIRADA_LOGIN_KEYS.
    ///
    /// # Errors
    /// [`ConfigError`]: not set, not usable, or the development key on a stage other than local.
    pub fn login_keys(&self, environment: &Environment) -> Result<LoginKeys, ConfigError> {
        LoginKeys::from_json(&environment.required("TIRADA_LOGIN_KEYS")?, self.stage)
    }

    /// Where buckets are, if not at AWS: a place of their own, or where everything else is.
    #[must_use]
    pub fn bucket_endpoint_url(&self, environment: &Environment) -> Option<String> {
        environment.optional("AWS_ENDPOINT_URL_S3").or_else(|| self.endpoint_url.clone())
    }

    fn issuer(&self) -> Result<&str, ConfigError> {
        self.token_issuer.as_deref().ok_or_else(|| ConfigError::Missing("TIRADA_TOKEN_ISSUER".to_owned()))
    }
}

fn database(environment: &Environment, region: Option<&str>) -> Result<DatabaseLocation, ConfigError> {
    match (environment.optional("TIRADA_DATABASE_URL"), environment.optional("TIRADA_DATABASE_HOST")) {
        (Some(_), Some(_)) => {
            Err(ConfigError::invalid("TIRADA_DATABASE_URL", "and TIRADA_DATABASE_HOST exclude each other"))
        }
        (Some(url), None) => Ok(DatabaseLocation::Url(url.into())),
        (None, None) => Err(ConfigError::Missing("TIRADA_DATABASE_URL or TIRADA_DATABASE_HOST".into())),
        (None, Some(host)) => Ok(DatabaseLocation::Iam {
            host,
            port: environment.parsed("TIRADA_DATABASE_PORT", "a port number")?.unwrap_or(5432),
            name: environment.required("TIRADA_DATABASE_NAME")?,
            user: environment.required("TIRADA_DATABASE_USER")?,
            region: region.map(str::to_owned).ok_or_else(|| ConfigError::Missing("AWS_REGION".into()))?,
        }),
    }
}

/// Each timeout must be shorter than the one around it, or the outer one cuts the inner one short and nobody learns
/// how it ended.
fn check_timeouts(kind: Kind, borrow: Duration, function: Duration) -> Result<(), ConfigError> {
    let mut chain = vec![
        ("LOCK_TIMEOUT", limits::LOCK_TIMEOUT),
        ("STATEMENT_TIMEOUT", limits::STATEMENT_TIMEOUT),
        ("TIRADA_DATABASE_BORROW_TIMEOUT_MS", borrow),
    ];
    match kind {
        Kind::Http => chain.extend([
            ("REQUEST_BUDGET", limits::REQUEST_BUDGET),
            ("TIRADA_FUNCTION_TIMEOUT_MS", function),
            ("GATEWAY_TIMEOUT", limits::GATEWAY_TIMEOUT),
        ]),
        Kind::Worker => chain.extend([
            ("TIRADA_FUNCTION_TIMEOUT_MS less DEADLINE_MARGIN", function.saturating_sub(limits::DEADLINE_MARGIN)),
            ("TIRADA_FUNCTION_TIMEOUT_MS", function),
        ]),
    }
    let broken: Vec<String> = chain
        .windows(2)
        .filter(|pair| pair[0].1 >= pair[1].1)
        .map(|pair| {
            let [(inner, inner_time), (outer, outer_time)] = [pair[0], pair[1]];
            format!("{inner} ({} ms) >= {outer} ({} ms)", inner_time.as_millis(), outer_time.as_millis())
        })
        .collect();
    if broken.is_empty() { Ok(()) } else { Err(ConfigError::Timeouts(broken.join(" and "))) }
}

#[cfg(test)]
mod tests;
