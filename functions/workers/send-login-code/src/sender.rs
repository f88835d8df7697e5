//! Who sends messages to phones: SNS, or a file on a developer's machine.

use std::path::PathBuf;

use domain::login::Phone;
use domain::{Error, Result};
use edge::config::ConfigError;
use edge::{Config, Environment, Stage};

use crate::local::Outbox;
use crate::sns::Sns;

/// Sends text messages.
#[derive(Debug)]
pub enum Sender {
    /// Amazon SNS.
    Sns(Sns),
    /// A file that a person reads.
    Local(Outbox),
}

/// Why a message was not sent, as far as anybody knows.
#[derive(Debug)]
pub struct Unsent {
    /// What went wrong.
    pub error: Error,
    /// No answer came: the message may have left all the same.
    pub may_have_left: bool,
}

impl Sender {
    /// The sender of a stage: a file on the stage local, SNS on all others.
    ///
    /// # Errors
    /// [`ConfigError`]: no region or credentials; TIRADA_PHONES_FILE is not set on the stage local, or set elsewhere.
    pub fn from_config(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        match (config.stage, environment.optional("TIRADA_PHONES_FILE")) {
            (Stage::Local, Some(path)) => Ok(Self::local(path)),
            (Stage::Local, None) => Err(ConfigError::Missing("TIRADA_PHONES_FILE".into())),
            (stage, Some(_)) => Err(ConfigError::LocalOnly { what: "TIRADA_PHONES_FILE", stage: stage.word() }),
            (_, None) => Ok(Self::Sns(Sns::new(config, environment)?)),
        }
    }

    /// A sender that writes to a file.
    #[must_use]
    pub fn local(path: impl Into<PathBuf>) -> Self {
        Self::Local(Outbox::new(path))
    }

    /// Sends one message.
    ///
    /// # Errors
    /// [`Unsent`] says whether it is certain.
    pub async fn send(&self, phone: &Phone, text: &str) -> Result<(), Unsent> {
        match self {
            Self::Sns(sns) => sns.send(phone, text).await,
            Self::Local(outbox) => outbox.append(phone, text).map_err(|error| Unsent { error, may_have_left: false }),
        }
    }
}
