//! Who sends mail: SES, or a file on a developer's machine.

mod local;
mod ses;

use std::path::PathBuf;

use domain::staff::{Email, Mail};
use edge::config::ConfigError;
use edge::{Config, Environment, Stage};

use crate::Unsent;

pub use local::Mailbox;
pub use ses::Ses;

/// Sends mail.
#[derive(Debug)]
pub enum Sender {
    /// Amazon SES.
    Ses(Box<Ses>),
    /// A file that a person reads.
    Local(Mailbox),
}

impl Sender {
    /// The sender of a stage: a file on the stage local, SES on all others.
    ///
    /// # Errors
    /// [`ConfigError`]: no region, credentials or sender's address; TIRADA_MAILS_FILE is not set on the stage local, or
    /// set elsewhere.
    pub fn from_config(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        match (config.stage, environment.optional("TIRADA_MAILS_FILE")) {
            (Stage::Local, Some(path)) => Ok(Self::local(path)),
            (Stage::Local, None) => Err(ConfigError::Missing("TIRADA_MAILS_FILE".into())),
            (stage, Some(_)) => Err(ConfigError::LocalOnly { what: "TIRADA_MAILS_FILE", stage: stage.word() }),
            (_, None) => Ok(Self::Ses(Box::new(Ses::new(config, environment)?))),
        }
    }

    /// A sender that writes to a file.
    #[must_use]
    pub fn local(path: impl Into<PathBuf>) -> Self {
        Self::Local(Mailbox::new(path))
    }

    /// Sends one mail.
    ///
    /// # Errors
    /// [`Unsent`] says whether it is certain.
    pub async fn send(&self, to: &Email, mail: &Mail) -> Result<(), Unsent> {
        match self {
            Self::Ses(ses) => ses.send(to, mail).await,
            Self::Local(mailbox) => mailbox.append(to, mail).map_err(Unsent::surely),
        }
    }
}
