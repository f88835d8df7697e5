//! Who is asking: buyers' tokens, and staff's.
//!
//! A token is an ES256 JWT signed by a key of the allow-list, chosen by `kid`. Nothing in a token can choose anything
//! else: not the algorithm, not a key, not an address to fetch one from. Every refusal looks the same outside.

pub mod development;
pub mod signing;
mod staff;

use std::collections::HashMap;
use std::sync::Arc;

use domain::Reason;
use domain::limits::TOKEN_BYTES_MAX;
use jsonwebtoken::{Algorithm, DecodingKey, Validation, decode, decode_header};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::config::Stage;
use crate::environment::ConfigError;

pub use signing::SigningKeys;
pub use staff::StaffClaim;

/// Clock difference forgiven in either direction, in seconds.
const LEEWAY_SECONDS: u64 = 30;

/// Furthest expiry accepted, in seconds from now. We issue tokens for minutes; one that lives for years is a mistake or
/// an attack, even when it is well signed.
const LIFETIME_SECONDS_MAX: u64 = 7 * 24 * 3_600;

/// The audience of a buyer's token. Tokens of other kinds, staff's for one, have another.
const BUYER_AUDIENCE: &str = "buyer";

/// Bytes of an uncompressed P-256 point: a tag and two coordinates.
const POINT_BYTES: usize = 65;

/// A buyer whose token was checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Buyer {
    /// The buyer.
    pub buyer_id: Uuid,
    /// The store they belong to; ids of other stores do not exist for them.
    pub tenant_id: Uuid,
}

/// What a buyer's token says. Strict types do most of the checking: an `exp` that is text or has a fraction, a list as
/// `aud`, a `sub` that is no UUID do not parse.
#[derive(Debug, Serialize, Deserialize)]
struct Claims {
    iss: String,
    aud: String,
    sub: Uuid,
    tenant: Uuid,
    exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<u64>,
}

/// What a token says about its end.
trait Expiring {
    /// Seconds since 1970.
    fn exp(&self) -> u64;
}

impl Expiring for Claims {
    fn exp(&self) -> u64 {
        self.exp
    }
}

/// The public keys that may sign tokens of buyers and of staff. Cheap to clone.
#[derive(Clone)]
pub struct TokenKeys(Arc<Inner>);

struct Inner {
    keys: HashMap<String, DecodingKey>,
    buyers: Validation,
    staff: Validation,
    /// The same keys for others to read, as a JWK set.
    published: Value,
}

impl std::fmt::Debug for TokenKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.keys.keys()).finish()
    }
}

/// A key set as configured. Unlike RFC 7517 asks of readers, a key that we cannot use is an error: the set is ours.
#[derive(Deserialize)]
struct Jwks {
    keys: Vec<Jwk>,
}

#[derive(Deserialize)]
struct Jwk {
    kid: String,
    kty: String,
    crv: String,
    x: String,
    y: String,
    alg: Option<String>,
    #[serde(rename = "use")]
    usage: Option<String>,
    d: Option<serde::de::IgnoredAny>,
}

impl TokenKeys {
    /// Reads a JWK set of P-256 keys. An empty one is allowed and refuses everybody.
    ///
    /// # Errors
    /// [`ConfigError`]: no key set, a key of another kind or without `kid`, a `kid` twice, a private key, or the
    /// development key on a stage other than local.
    pub fn from_jwks(jwks: &str, issuer: &str, stage: Stage) -> Result<Self, ConfigError> {
        let invalid = |why: String| ConfigError::invalid("TIRADA_TOKEN_KEYS", why);
        let set: Jwks =
            serde_json::from_str(jwks).map_err(|error| invalid(format!("must be a JWK set of EC keys: {error}")))?;
        let mut keys = HashMap::with_capacity(set.keys.len());
        let mut published = Vec::with_capacity(set.keys.len());
        for jwk in set.keys {
            let key = jwk.key().map_err(|why| invalid(format!("has key {:?}, which {why}", jwk.kid)))?;
            if stage != Stage::Local && development::is_public_key(&key) {
                return Err(ConfigError::LocalOnly { what: "the development signing key", stage: stage.word() });
            }
            if keys.insert(jwk.kid.clone(), key).is_some() {
                return Err(invalid(format!("has kid {:?} twice", jwk.kid)));
            }
            published.push(jwk.published());
        }
        let buyers = validation(Algorithm::ES256, issuer, BUYER_AUDIENCE);
        let staff = staff::staff_validation(issuer);
        Ok(Self(Arc::new(Inner { keys, buyers, staff, published: json!({ "keys": published }) })))
    }

    /// The keys as a JWK set (RFC 7517), for others who check our tokens.
    #[must_use]
    pub fn published(&self) -> &Value {
        &self.0.published
    }

    /// The buyer that an `Authorization` header proves.
    ///
    /// # Errors
    /// [`Reason::Unauthorized`], whatever is wrong.
    pub fn verify_buyer(&self, authorization: Option<&str>) -> Result<Buyer, Reason> {
        let claims = authorization.and_then(bearer_token).and_then(|token| self.verified(token, &self.0.buyers));
        let buyer = claims.map(|Claims { sub, tenant, .. }| Buyer { buyer_id: sub, tenant_id: tenant });
        buyer.ok_or(Reason::Unauthorized)
    }

    fn staff_claims(&self, token: &str) -> Option<staff::StaffClaims> {
        self.verified(token, &self.0.staff)
    }

    fn verified<C: DeserializeOwned + Expiring>(&self, token: &str, validation: &Validation) -> Option<C> {
        // Unchecked, and used only to look a key up.
        let header = decode_header(token).ok()?;
        // Extensions marked critical must be understood, and we understand none.
        if header.crit.is_some() {
            return None;
        }
        let key = self.0.keys.get(header.kid.as_deref()?)?;
        let claims = decode::<C>(token, key, validation).ok()?.claims;
        let furthest = jsonwebtoken::get_current_timestamp() + LIFETIME_SECONDS_MAX + LEEWAY_SECONDS;
        (claims.exp() <= furthest).then_some(claims)
    }
}

/// What tokens of one kind are checked for.
fn validation(algorithm: Algorithm, issuer: &str, audience: &str) -> Validation {
    let mut validation = Validation::new(algorithm);
    validation.leeway = LEEWAY_SECONDS;
    validation.validate_nbf = true;
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[issuer]);
    validation.set_audience(&[audience]);
    validation
}

/// The token in `Bearer <token>`, if its length is bearable.
pub(crate) fn bearer_token(authorization: &str) -> Option<&str> {
    let (scheme, token) = authorization.split_once(' ')?;
    let fits = scheme.eq_ignore_ascii_case("bearer") && !token.is_empty() && token.len() <= TOKEN_BYTES_MAX;
    fits.then_some(token)
}

impl Jwk {
    fn published(&self) -> Value {
        let Self { kid, x, y, .. } = self;
        json!({ "kid": kid, "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": x, "y": y })
    }

    /// The key, or what is wrong with it as the end of a sentence.
    fn key(&self) -> Result<DecodingKey, &'static str> {
        let is = |value: &Option<String>, wanted: &str| value.as_deref().is_none_or(|value| value == wanted);
        if self.kid.is_empty() {
            return Err("needs a kid");
        }
        if self.d.is_some() {
            return Err("is private; only public keys belong here");
        }
        if self.kty != "EC" || self.crv != "P-256" || !is(&self.alg, "ES256") || !is(&self.usage, "sig") {
            return Err("is not for ES256 signatures");
        }
        let key = DecodingKey::from_ec_components(&self.x, &self.y).map_err(|_| "has unreadable coordinates")?;
        match key.try_get_as_bytes() {
            Ok(point) if point.len() == POINT_BYTES => Ok(key),
            _ => Err("has coordinates of the wrong length"),
        }
    }
}

#[cfg(test)]
mod tests;
