//! Amazon SES. The client is put together by hand, and only when the first mail is sent, as that of the queues.

use std::sync::OnceLock;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_sesv2::Client;
use aws_sdk_sesv2::config::retry::RetryConfig;
use aws_sdk_sesv2::config::timeout::TimeoutConfig;
use aws_sdk_sesv2::config::{BehaviorVersion, Region};
use aws_sdk_sesv2::error::BuildError;
use aws_sdk_sesv2::types::{Body, Content, Destination, EmailContent, Message};
use domain::Error;
use domain::limits::MAIL_TIMEOUT;
use domain::staff::{Email, Mail};
use edge::config::ConfigError;
use edge::{Config, Environment};

use crate::Unsent;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// One: an attempt that was cut short may have sent the mail, and whoever owes it tries again or is asked again.
const ATTEMPTS_MAX: u32 = 1;
const CHARSET: &str = "UTF-8";

/// Mail by SES.
#[derive(Debug)]
pub struct Ses {
    client: OnceLock<Client>,
    from: String,
    region: String,
    endpoint_url: Option<String>,
    credentials: Credentials,
}

impl Ses {
    /// As configured, from the address in TIRADA_MAIL_FROM. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]: the address, the region, or credentials.
    pub fn new(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        Ok(Self {
            client: OnceLock::new(),
            from: environment.required("TIRADA_MAIL_FROM")?,
            region: config.region.clone().ok_or_else(|| ConfigError::Missing("AWS_REGION".into()))?,
            endpoint_url: config.endpoint_url.clone(),
            credentials: edge::iam::credentials(environment)?,
        })
    }

    /// Sends a mail.
    ///
    /// # Errors
    /// SES refused, which is certain, or did not answer in time.
    pub(crate) async fn send(&self, to: &Email, mail: &Mail) -> Result<(), Unsent> {
        let content = content(mail).map_err(|error| Unsent::surely(Error::fault(error)))?;
        let destination = Destination::builder().to_addresses(to.as_str()).build();
        let request = self.client().send_email().from_email_address(&self.from).destination(destination);
        match request.content(content).send().await {
            Ok(_) => Ok(()),
            // Only the code of the error: its text may quote the request, which holds the address and, for staff, the link.
            Err(error) => {
                let refusal = error.as_service_error().map(|service| service.meta().code().unwrap_or("no code"));
                let text = format!("SES: {}", refusal.unwrap_or("no answer"));
                Err(Unsent { error: Error::busy(text), may_have_left: refusal.is_none() })
            }
        }
    }

    fn client(&self) -> &Client {
        self.client.get_or_init(|| {
            let timeouts = TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(MAIL_TIMEOUT)
                .operation_timeout(MAIL_TIMEOUT)
                .build();
            let mut settings = aws_sdk_sesv2::Config::builder()
                .behavior_version(BehaviorVersion::latest())
                .region(Region::new(self.region.clone()))
                .credentials_provider(self.credentials.clone())
                .timeout_config(timeouts)
                .retry_config(RetryConfig::standard().with_max_attempts(ATTEMPTS_MAX));
            settings.set_endpoint_url(self.endpoint_url.clone());
            Client::from_conf(settings.build())
        })
    }
}

fn content(mail: &Mail) -> Result<EmailContent, BuildError> {
    let part = |text: &str| Content::builder().data(text).charset(CHARSET).build();
    let body = Body::builder().text(part(&mail.text)?).build();
    let message = Message::builder().subject(part(&mail.subject)?).body(body).build();
    Ok(EmailContent::builder().simple(message).build())
}
