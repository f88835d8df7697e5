//! Amazon SNS. The client is put together by hand, and only when the first message is sent, as that of the queues.

use std::sync::OnceLock;
use std::time::Duration;

use aws_credential_types::Credentials;
use aws_sdk_sns::Client;
use aws_sdk_sns::config::retry::RetryConfig;
use aws_sdk_sns::config::timeout::TimeoutConfig;
use aws_sdk_sns::config::{BehaviorVersion, Region};
use aws_sdk_sns::types::MessageAttributeValue;
use domain::Error;
use domain::limits::SEND_TIMEOUT;
use domain::login::Phone;
use edge::config::ConfigError;
use edge::{Config, Environment};

use crate::Unsent;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
/// One: an attempt that was cut short may have sent the message, and the queue tries again anyhow.
const ATTEMPTS_MAX: u32 = 1;
/// Routes that get messages there, not cheap ones.
const KIND: (&str, &str) = ("AWS.SNS.SMS.SMSType", "Transactional");

/// Messages to phones by SNS.
#[derive(Debug)]
pub struct Sns {
    client: OnceLock<Client>,
    region: String,
    endpoint_url: Option<String>,
    credentials: Credentials,
}

impl Sns {
    /// As configured. Nothing is connected yet.
    ///
    /// # Errors
    /// [`ConfigError::Missing`]: the region, or credentials.
    pub fn new(config: &Config, environment: &Environment) -> Result<Self, ConfigError> {
        Ok(Self {
            client: OnceLock::new(),
            region: config.region.clone().ok_or_else(|| ConfigError::Missing("AWS_REGION".into()))?,
            endpoint_url: config.endpoint_url.clone(),
            credentials: edge::iam::credentials(environment)?,
        })
    }

    /// Sends a message.
    ///
    /// # Errors
    /// SNS refused, which is certain, or did not answer in time.
    pub(crate) async fn send(&self, phone: &Phone, text: &str) -> Result<(), Unsent> {
        let (name, value) = KIND;
        let kind = MessageAttributeValue::builder().data_type("String").string_value(value).build();
        let kind = kind.map_err(|error| Unsent::surely(Error::fault(error)))?;
        let publish = self.client().publish().phone_number(phone.as_str()).message(text);
        match publish.message_attributes(name, kind).send().await {
            Ok(_) => Ok(()),
            // Only the code of the error: its text may quote the request, which holds the phone and the login code.
            Err(error) => {
                let refusal = error.as_service_error().map(|service| service.meta().code().unwrap_or("no code"));
                let text = format!("SNS: {}", refusal.unwrap_or("no answer"));
                Err(Unsent { error: Error::busy(text), may_have_left: refusal.is_none() })
            }
        }
    }

    fn client(&self) -> &Client {
        self.client.get_or_init(|| {
            let timeouts = TimeoutConfig::builder()
                .connect_timeout(CONNECT_TIMEOUT)
                .operation_attempt_timeout(SEND_TIMEOUT)
                .operation_timeout(SEND_TIMEOUT)
                .build();
            let mut settings = aws_sdk_sns::Config::builder()
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
