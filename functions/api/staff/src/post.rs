//! What is mailed, and what of it is known afterwards.

use std::time::Duration;

use domain::login::Language;
use domain::staff::{Email, LinkPurpose, link_mail};
use edge::config::ConfigError;
use edge::metrics::{self, Dimension, Metric, Unit};
use edge::one_time_link::OneTimeLink;
use edge::{Config, Environment};
use senders::mail::Sender;

/// The page that links lead to, and who sends them.
#[derive(Debug)]
pub struct Post {
    sender: Sender,
    page: String,
}

/// A link about to be mailed.
pub(crate) struct Letter<'a> {
    pub(crate) to: &'a Email,
    pub(crate) language: Language,
    pub(crate) purpose: LinkPurpose,
    pub(crate) store: &'a str,
    pub(crate) link: &'a OneTimeLink,
}

impl Post {
    /// As configured: the page from TIRADA_STAFF_URL.
    ///
    /// # Errors
    /// [`ConfigError`]: something is missing.
    pub fn from_config(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        Ok(Self::new(Sender::from_config(config, environment)?, environment.required("TIRADA_STAFF_URL")?))
    }

    /// By a sender, with links to a page.
    #[must_use]
    pub const fn new(sender: Sender, page: String) -> Self {
        Self { sender, page }
    }

    /// Mails a link. Whether it left is counted and logged, and not told: who does not get it asks again.
    pub(crate) async fn send(&self, letter: &Letter<'_>, within: Duration) {
        let mail = link_mail(letter.language, letter.purpose, letter.store, &letter.link.address(&self.page));
        let sent = tokio::time::timeout(within, self.sender.send(letter.to, &mail)).await;
        let failure = match sent {
            Ok(Ok(())) => None,
            Ok(Err(unsent)) => Some(unsent.error.chain()),
            Err(_) => Some("no answer in time".to_owned()),
        };
        metrics::count("staff_mails", &[(Dimension::Outcome, if failure.is_none() { "sent" } else { "failed" })]);
        if let Some(error) = failure {
            metrics::emit(&[metric("staff_mails_failed", 1.0)], &[]);
            tracing::warn!(error.message = error, "a link was not mailed");
        }
    }
}

const fn metric(name: &'static str, value: f64) -> Metric {
    Metric { name, value, unit: Unit::Count }
}
