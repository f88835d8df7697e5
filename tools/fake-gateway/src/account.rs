//! The merchants that use the gateway.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// Whose wire format an account speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Dialect {
    /// Cards, by PaymentIntent and by Checkout Session.
    Stripe,
    /// Pix.
    MercadoPago,
}

impl Dialect {
    /// The word used in paths, in JSON and in the ledger.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stripe => "stripe",
            Self::MercadoPago => "mercado-pago",
        }
    }

    /// The dialect with this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        [Self::Stripe, Self::MercadoPago].into_iter().find(|dialect| dialect.name() == name)
    }
}

/// A merchant's account.
#[derive(Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Its wire format.
    pub dialect: Dialect,
    /// The secret key or access token that its calls carry.
    pub key: String,
    /// Where its events go; empty: nowhere.
    pub webhook_url: String,
    /// What its events are signed with.
    pub webhook_secret: String,
}

/// `stripe:KEY:URL:SECRET` or `mercado-pago:TOKEN:URL:SECRET`; only the URL may contain colons.
impl FromStr for Account {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parts = || {
            let (dialect, rest) = text.split_once(':')?;
            let (key, rest) = rest.split_once(':')?;
            let (url, secret) = rest.rsplit_once(':')?;
            Some((Dialect::from_name(dialect)?, key, url, secret))
        };
        let (dialect, key, url, secret) =
            parts().ok_or("an account is stripe:KEY:URL:SECRET or mercado-pago:TOKEN:URL:SECRET")?;
        if key.is_empty() || secret.is_empty() {
            return Err("an account has a key and a secret");
        }
        Ok(Self { dialect, key: key.into(), webhook_url: url.into(), webhook_secret: secret.into() })
    }
}

// Secrets do not belong into logs.
impl std::fmt::Debug for Account {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} account for {}", self.dialect.name(), self.webhook_url)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_read_from_one_argument() {
        let account: Account = "mercado-pago:TOKEN-1:http://127.0.0.1:4567/v1/hooks:whsec_x".parse().unwrap();
        assert_eq!(account.dialect, Dialect::MercadoPago);
        assert_eq!(
            (account.key.as_str(), account.webhook_url.as_str(), account.webhook_secret.as_str()),
            ("TOKEN-1", "http://127.0.0.1:4567/v1/hooks", "whsec_x")
        );
        for wrong in ["", "stripe:key", "paypal:key:http://a:secret", "stripe::http://a:secret", "stripe:key:http://a:"]
        {
            assert!(wrong.parse::<Account>().is_err(), "{wrong}");
        }
    }
}
