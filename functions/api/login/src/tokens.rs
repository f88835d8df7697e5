//! What requests and answers have in common: the phone, the device, the tokens.

use std::time::{SystemTime, UNIX_EPOCH};

use domain::Reason;
use domain::limits::{ACCESS_TOKEN_LIVES, SESSION_IDLE_MAX};
use domain::login::Phone;
use edge::Problem;
use edge::auth::Buyer;
use edge::login_keys::{Device, LoginKeys, Refresh};
use serde::Serialize;
use utoipa::ToSchema;

use crate::Keys;

/// Tokens of a session.
#[derive(Serialize, ToSchema)]
pub(crate) struct Tokens {
    /// For the `Authorization` header of the buyer's requests.
    access_token: String,
    /// How it goes there.
    #[schema(value_type = String, example = "Bearer")]
    token_type: &'static str,
    /// Seconds for which it is good.
    #[schema(example = 600)]
    expires_in: u64,
    /// For new tokens. Good once: the answer has the next one.
    refresh_token: String,
    /// Seconds for which it is good if it is not used.
    #[schema(example = 2_592_000)]
    refresh_expires_in: u64,
}

impl Tokens {
    /// Fresh tokens.
    ///
    /// # Errors
    /// A fault when the signing key cannot be used.
    pub(crate) fn new(keys: &Keys, buyer: Buyer, refresh: Refresh) -> domain::Result<Self> {
        Ok(Self {
            access_token: keys.signing.sign_buyer(buyer, ACCESS_TOKEN_LIVES)?,
            token_type: "Bearer",
            expires_in: ACCESS_TOKEN_LIVES.as_secs(),
            refresh_token: keys.login.refresh_token(refresh),
            refresh_expires_in: SESSION_IDLE_MAX.as_secs(),
        })
    }
}

/// The phone in a request.
pub(crate) fn phone(text: &str) -> Result<Phone, Problem> {
    let invalid = || Problem::new(Reason::Invalid).with_error("/phone", "must be a plus sign and 8 to 15 digits");
    Phone::parse(text).ok_or_else(invalid)
}

/// The device in a request. A token that is not ours, or old, is none: its owner logs in like anybody.
pub(crate) fn device(keys: &LoginKeys, token: Option<&str>) -> Option<Device> {
    keys.read_device(token?, now())
}

/// Seconds since 1970.
pub(crate) fn now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_secs()
}
