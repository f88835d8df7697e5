//! Who sends messages to phones: SNS, or a file on a developer's machine.

use domain::Result;
use domain::login::Phone;
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

impl Sender {
    /// The sender of a stage: a file on the stage local, SNS on all others.
    ///
    /// # Errors
    /// [`ConfigError`]: no region or credentials; TIRADA_PHONES_FILE is not set on the stage local, or set elsewhere.
    pub fn from_config(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        match (config.stage, environment.optional("TIRADA_PHONES_FILE")) {
            (Stage::Local, Some(path)) => Ok(Self::Local(Outbox::new(path))),
            (Stage::Local, None) => Err(ConfigError::Missing("TIRADA_PHONES_FILE".into())),
            (stage, Some(_)) => Err(ConfigError::LocalOnly { what: "TIRADA_PHONES_FILE", stage: stage.word() }),
            (_, None) => Ok(Self::Sns(Sns::new(config, environment)?)),
        }
    }

    /// Sends one message. When it returns an error the message was surely not sent, or nobody knows.
    ///
    /// # Errors
    /// Busy when another try may succeed, a fault when this message never will.
    pub async fn send(&self, phone: &Phone, text: &str) -> Result<()> {
        match self {
            Self::Sns(sns) => sns.send(phone, text).await,
            Self::Local(outbox) => outbox.append(phone, text),
        }
    }
}
