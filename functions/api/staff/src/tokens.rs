//! What requests and answers have in common: tokens, links, languages, one-time passwords.

use std::time::Duration;

use domain::limits::{ACCESS_TOKEN_LIVES, STAFF_SESSION_IDLE_MAX};
use domain::login::Language;
use domain::staff::Email;
use domain::{Error, Reason};
use edge::Problem;
use edge::auth::StaffClaim;
use edge::login_keys::Refresh;
use edge::one_time_link::OneTimeLink;
use edge::sealing::{SealingKeys, totp_context};
use edge::totp::TotpSecret;
use serde::Serialize;
use store::staff::{Password, Tried, note_wrong};
use utoipa::ToSchema;

use crate::Keys;

/// Tokens of a session of staff.
#[derive(Serialize, ToSchema)]
pub(crate) struct StaffTokens {
    /// For the `Authorization` header of staff's requests.
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
    #[schema(example = 43_200)]
    refresh_expires_in: u64,
}

impl StaffTokens {
    /// Fresh tokens.
    ///
    /// # Errors
    /// A fault when the signing key cannot be used.
    pub(crate) fn new(keys: &Keys, claim: StaffClaim, generation: i32) -> domain::Result<Self> {
        let refresh = Refresh { session_id: claim.session_id, generation };
        Ok(Self {
            access_token: keys.signing.sign_staff(claim, ACCESS_TOKEN_LIVES)?,
            token_type: "Bearer",
            expires_in: ACCESS_TOKEN_LIVES.as_secs(),
            refresh_token: keys.login.staff_refresh_token(refresh),
            refresh_expires_in: STAFF_SESSION_IDLE_MAX.as_secs(),
        })
    }
}

/// The address in a request.
pub(crate) fn email(text: &str) -> Result<Email, Problem> {
    Email::parse(text).ok_or_else(|| Problem::new(Reason::Invalid).with_error("/email", "must be an address of mail"))
}

/// The language in a request.
pub(crate) fn language(tag: Option<&str>) -> Result<Language, Problem> {
    let Some(tag) = tag else { return Ok(Language::En) };
    let wrong = || Problem::new(Reason::Invalid).with_error("/language", "must be es, pt-BR or en");
    Language::from_tag(tag).ok_or_else(wrong)
}

/// The answer to who must wait so long.
pub(crate) fn too_many(wait: Duration) -> Problem {
    let seconds = u32::try_from(wait.as_secs()).unwrap_or(u32::MAX).saturating_add(1);
    Problem::new(Reason::TooManyRequests).with_retry_after(seconds)
}

/// What a link in a request is recognised by.
pub(crate) fn link_hash(text: &str) -> Result<Vec<u8>, Problem> {
    OneTimeLink::read(text).map(|link| link.hash()).ok_or_else(|| Problem::new(Reason::LinkWrong))
}

/// A one-time password in a request.
pub(crate) fn one_time_password(text: &str) -> Result<&str, Problem> {
    let wrong = || Problem::new(Reason::Invalid).with_error("/one_time_password", "must have six digits");
    domain::login::is_code(text).then_some(text).ok_or_else(wrong)
}

/// Whose password somebody gives, and its step, if it is one of theirs at this moment and they may try.
///
/// # Errors
/// Too-many-requests when too many were wrong; code-wrong, which is noted; a fault when the secret does not open.
pub(crate) async fn checked(
    keys: &SealingKeys,
    client: &mut store::Client,
    tried: Tried,
    password: &str,
) -> Result<(Password, i64), Problem> {
    let tried = match tried {
        Tried::Password(tried) => tried,
        Tried::Limited(wait) => return Err(too_many(wait)),
    };
    if let Some(step) = step_of(keys, &tried, password)? {
        return Ok((tried, step));
    }
    note_wrong(client, &tried).await?;
    Err(Problem::new(Reason::CodeWrong))
}

/// The step whose password somebody gives, if it is one of theirs at this moment.
pub(crate) fn step_of(keys: &SealingKeys, tried: &Password, password: &str) -> domain::Result<Option<i64>> {
    let Some(sealed) = &tried.totp else { return Ok(None) };
    let secret = keys.open(&totp_context(tried.tenant_id, tried.staff_id), sealed).map_err(Error::fault)?;
    Ok(TotpSecret::from_bytes(secret).step_of(password, tried.now))
}
