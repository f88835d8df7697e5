//! Everything that is Lambda, AWS or HTTP, so that no other crate has to be.
//!
//! Depends on `domain` and never on `store`: what a function does with its database is the function's own affair.
//! Translates at the border, once each way: requests, messages and configuration into plain values, and
//! [`domain::Error`] into problem documents and batch item failures.

pub mod auth;
pub mod config;
pub mod deadline;
pub mod environment;
pub mod failpoints;
pub mod http;
pub mod iam;
mod key_set;
pub mod login_keys;
pub mod metrics;
pub mod one_time_link;
pub mod panics;
pub mod problem;
pub mod queue;
pub mod random;
pub mod sealing;
pub mod sqs;
pub mod storage;
pub mod telemetry;
pub mod totp;

pub use config::{Config, Kind, Stage};
pub use deadline::Deadline;
pub use environment::{ConfigError, Environment};
pub use problem::Problem;

/// The first line of every `main`: logging, configuration, failpoints, in this order.
///
/// # Errors
/// [`ConfigError`] when the configuration is incomplete or contradicts itself. It is already logged.
pub fn start(kind: Kind) -> Result<Config, ConfigError> {
    telemetry::init();
    let environment = Environment::process();
    let config = Config::read(&environment, kind)
        .and_then(|config| failpoints::init(&environment, config.stage).map(|()| config))
        .inspect_err(|error| tracing::error!(error.message = %error, "start-up refused"))?;
    metrics::init(config.stage);
    Ok(config)
}
