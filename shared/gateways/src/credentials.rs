//! What a store needs to use its account at a gateway. Kept encrypted elsewhere; here only read.

use domain::payments::Gateway;
use domain::{Error, Reason, Result};
use secrecy::{ExposeSecret, SecretString};
use serde::Deserialize;

/// Webhook secrets that are valid at once: the current one and, while it is being replaced, the other.
const WEBHOOK_SECRETS_MAX: usize = 2;

/// Longest secret, in bytes. Theirs have about 100.
const SECRET_BYTES_MAX: usize = 512;

/// A store's account at a gateway.
#[derive(Debug, Clone)]
pub enum Credentials {
    /// At Stripe.
    Stripe(StripeCredentials),
    /// At Mercado Pago.
    MercadoPago(MercadoPagoCredentials),
    /// At the pretended gateway, which speaks Stripe's language.
    Sandbox(StripeCredentials),
    /// Staff book payments; nobody has to be asked.
    Manual,
}

/// An account at Stripe.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StripeCredentials {
    /// The API's key, restricted if the store is careful.
    pub secret_key: SecretString,
    /// What signs its webhooks.
    pub webhook_secrets: Vec<SecretString>,
}

/// An account at Mercado Pago.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MercadoPagoCredentials {
    /// The API's token.
    pub access_token: SecretString,
    /// What signs its webhooks.
    pub webhook_secrets: Vec<SecretString>,
}

impl Credentials {
    /// Reads them from JSON; for the manual gateway that is `{}`.
    ///
    /// # Errors
    /// [`Reason::Invalid`] for unknown, missing or empty fields, for secrets that cannot go into a header, and for
    /// none or more than two webhook secrets. It does not say more, because more could quote a secret.
    pub fn parse(gateway: Gateway, json: &[u8]) -> Result<Self> {
        #[derive(Deserialize)]
        #[serde(deny_unknown_fields)]
        struct Nothing {}

        let read = match gateway {
            Gateway::Stripe => serde_json::from_slice(json).map(Self::Stripe),
            Gateway::Sandbox => serde_json::from_slice(json).map(Self::Sandbox),
            Gateway::MercadoPago => serde_json::from_slice(json).map(Self::MercadoPago),
            Gateway::Manual => serde_json::from_slice(json).map(|Nothing {}| Self::Manual),
        };
        read.ok().filter(Self::is_usable).ok_or(Error::Rejected(Reason::Invalid))
    }

    /// Where the account is.
    #[must_use]
    pub fn gateway(&self) -> Gateway {
        match self {
            Self::Stripe(_) => Gateway::Stripe,
            Self::MercadoPago(_) => Gateway::MercadoPago,
            Self::Sandbox(_) => Gateway::Sandbox,
            Self::Manual => Gateway::Manual,
        }
    }

    /// What may sign its webhooks.
    #[must_use]
    pub fn webhook_secrets(&self) -> &[SecretString] {
        match self {
            Self::Stripe(account) | Self::Sandbox(account) => &account.webhook_secrets,
            Self::MercadoPago(account) => &account.webhook_secrets,
            Self::Manual => &[],
        }
    }

    fn is_usable(&self) -> bool {
        let key = match self {
            Self::Stripe(account) | Self::Sandbox(account) => &account.secret_key,
            Self::MercadoPago(account) => &account.access_token,
            Self::Manual => return true,
        };
        let secrets = self.webhook_secrets();
        (1..=WEBHOOK_SECRETS_MAX).contains(&secrets.len()) && is_secret(key) && secrets.iter().all(is_secret)
    }
}

fn is_secret(secret: &SecretString) -> bool {
    let text = secret.expose_secret();
    (1..=SECRET_BYTES_MAX).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_graphic())
}

#[cfg(test)]
mod tests {
    use super::*;

    const STRIPE: &str = r#"{"secret_key": "sk_test_51", "webhook_secrets": ["whsec_1", "whsec_2"]}"#;

    #[test]
    fn accounts_of_every_gateway_are_read() {
        for gateway in Gateway::ALL {
            let (json, secrets) = match gateway {
                Gateway::MercadoPago => (r#"{"access_token": "APP_USR-1", "webhook_secrets": ["s"]}"#, 1),
                Gateway::Manual => ("{}", 0),
                _ => (STRIPE, 2),
            };
            let credentials = Credentials::parse(*gateway, json.as_bytes()).unwrap();
            assert_eq!(credentials.gateway(), *gateway);
            assert_eq!(credentials.webhook_secrets().len(), secrets);
        }
    }

    #[test]
    fn incomplete_accounts_are_refused_without_a_word() {
        for json in [
            "",
            "{}",
            r#"{"secret_key": "sk_test_51"}"#,
            r#"{"secret_key": "sk_test_51", "webhook_secrets": []}"#,
            r#"{"secret_key": "sk_test_51", "webhook_secrets": [""]}"#,
            r#"{"secret_key": "", "webhook_secrets": ["whsec_1"]}"#,
            r#"{"secret_key": "sk_\n51", "webhook_secrets": ["whsec_1"]}"#,
            r#"{"secret_key": "sk_test_51", "webhook_secrets": ["a", "b", "c"]}"#,
            r#"{"secret_key": "sk_test_51", "webhook_secrets": ["whsec_1"], "publishable_key": "pk"}"#,
        ] {
            let error = Credentials::parse(Gateway::Stripe, json.as_bytes()).unwrap_err();
            assert!(matches!(error, Error::Rejected(Reason::Invalid)), "{json}");
        }
        assert!(Credentials::parse(Gateway::Manual, STRIPE.as_bytes()).is_err());
    }

    #[test]
    fn debug_output_shows_no_secret() {
        let credentials = Credentials::parse(Gateway::Stripe, STRIPE.as_bytes()).unwrap();
        let text = format!("{credentials:?}");
        assert!(!text.contains("sk_test") && !text.contains("whsec"), "{text}");
    }
}
