//! Who sends messages to phones: SNS, or a file on a developer's machine.

mod local;
mod sns;

use std::path::PathBuf;

use domain::login::Phone;
use edge::config::ConfigError;
use edge::{Config, Environment, Stage};

use crate::Unsent;

pub use local::Outbox;
pub use sns::Sns;

/// Sends text messages.
#[derive(Debug)]
pub enum Sender {
    /// Amazon SNS.
    Sns(Sns),
    /// A file that a person reads.
    Local(Outbox),
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
            Self::Local(outbox) => outbox.append(phone, text).map_err(Unsent::surely),
        }
    }
}
