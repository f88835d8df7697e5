//! Making tokens. Only the functions where people log in can: everybody else knows the public keys alone.

use std::sync::Arc;
use std::time::Duration;

use aws_lc_rs::encoding::{AsBigEndian, EcPrivateKeyBin};
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use domain::{Error, Result};
use jsonwebtoken::{Algorithm, EncodingKey, Header, encode, get_current_timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use uuid::Uuid;

use super::{BUYER_AUDIENCE, Buyer, Claims, TokenKeys};
use crate::environment::ConfigError;

const VARIABLE: &str = "TIRADA_SIGNING_KEYS";
/// Bytes of a private key, and of each coordinate.
const NUMBER_BYTES: usize = 32;
const PROBE_LIVES: Duration = Duration::from_secs(60);

/// A private key that signs tokens, and the issuer's name. Cheap to clone.
#[derive(Clone)]
pub struct SigningKeys(Arc<Inner>);

struct Inner {
    header: Header,
    key: EncodingKey,
    issuer: String,
}

impl std::fmt::Debug for SigningKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("SigningKeys").field(&self.0.header.kid).finish()
    }
}

#[derive(Serialize, Deserialize)]
struct Jwks {
    keys: Vec<PrivateJwk>,
}

#[derive(Serialize, Deserialize)]
struct PrivateJwk {
    kid: String,
    kty: String,
    crv: String,
    x: String,
    y: String,
    d: String,
}

impl SigningKeys {
    /// Reads a JWK set of private P-256 keys; the first signs, others wait for their turn. The public half of each must
    /// be among the keys that tokens are checked with, or every login would be followed by a 401.
    ///
    /// # Errors
    /// [`ConfigError`]: no such set, a key of another kind, or one that nobody would accept.
    pub fn from_json(text: &str, issuer: &str, accepted: &TokenKeys) -> Result<Self, ConfigError> {
        let set: Jwks = serde_json::from_str(text)
            .map_err(|_| ConfigError::invalid(VARIABLE, "must be a JWK set of private EC keys"))?;
        let mut first = None;
        for jwk in set.keys {
            let invalid =
                |why: &str| ConfigError::invalid(VARIABLE, format_args!("has key {:?}, which {why}", jwk.kid));
            let key = jwk.key().map_err(invalid)?;
            let header = Header { kid: Some(jwk.kid.clone()), ..Header::new(Algorithm::ES256) };
            let signing = Self(Arc::new(Inner { header, key, issuer: issuer.to_owned() }));
            let probe = signing.sign_buyer(Buyer { buyer_id: Uuid::nil(), tenant_id: Uuid::nil() }, PROBE_LIVES);
            let probe = probe.map_err(|_| invalid("cannot sign"))?;
            let is_accepted = accepted.verify_buyer(Some(&format!("Bearer {probe}"))).is_ok();
            if !is_accepted {
                return Err(invalid("TIRADA_TOKEN_KEYS does not accept"));
            }
            first.get_or_insert(signing);
        }
        first.ok_or_else(|| ConfigError::invalid(VARIABLE, "has no key"))
    }

    /// A buyer's token that expires `lifetime` from now.
    ///
    /// # Errors
    /// [`Error::Fault`] when the key cannot be used.
    pub fn sign_buyer(&self, buyer: Buyer, lifetime: Duration) -> Result<String> {
        self.sign(&Claims {
            iss: self.0.issuer.clone(),
            aud: BUYER_AUDIENCE.to_owned(),
            sub: buyer.buyer_id,
            tenant: buyer.tenant_id,
            exp: get_current_timestamp() + lifetime.as_secs(),
            nbf: None,
        })
    }

    /// Who issues buyers' tokens.
    pub(super) fn issuer(&self) -> &str {
        &self.0.issuer
    }

    pub(super) fn sign(&self, claims: &impl Serialize) -> Result<String> {
        let Inner { header, key, .. } = &*self.0;
        encode(header, claims, key).map_err(|error| Error::Fault(Box::new(error)))
    }
}

/// Puts a new key in front of a JWK set of private keys, or makes the set. Of the older ones the first stays, so that
/// a deployment can go back.
///
/// # Errors
/// [`ConfigError`]: no such set, the `kid` is in use, or there is no randomness.
pub fn rotate(kid: &str, older: Option<&str>) -> Result<String, ConfigError> {
    let invalid = |why: &str| ConfigError::invalid("the file", why);
    let older: Jwks = match older {
        Some(text) => serde_json::from_str(text).map_err(|_| invalid("must be a JWK set of private EC keys"))?,
        None => Jwks { keys: Vec::new() },
    };
    if older.keys.iter().any(|jwk| jwk.kid == kid) {
        return Err(invalid("has a key of that kid"));
    }
    let key = new_key(kid).ok_or_else(|| invalid("gets no key: there is no randomness"))?;
    let keys: Vec<PrivateJwk> = std::iter::once(key).chain(older.keys.into_iter().take(1)).collect();
    serde_json::to_string_pretty(&Jwks { keys }).map_err(|error| ConfigError::invalid("the file", error))
}

/// The public half of a JWK set of private keys: what others check tokens with.
///
/// # Errors
/// [`ConfigError`]: no such set.
pub fn public_half(private: &str) -> Result<Value, ConfigError> {
    let set: Jwks = serde_json::from_str(private)
        .map_err(|_| ConfigError::invalid(VARIABLE, "must be a JWK set of private EC keys"))?;
    let public = |PrivateJwk { kid, x, y, .. }: PrivateJwk| json!({ "kid": kid, "kty": "EC", "crv": "P-256", "alg": "ES256", "use": "sig", "x": x, "y": y });
    Ok(json!({ "keys": set.keys.into_iter().map(public).collect::<Vec<_>>() }))
}

fn new_key(kid: &str) -> Option<PrivateJwk> {
    let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).ok()?;
    let (x, y) = pair.public_key().as_ref().get(1..)?.split_at_checked(NUMBER_BYTES)?;
    let private: EcPrivateKeyBin<'_> = pair.private_key().as_be_bytes().ok()?;
    let (kid, kty, crv) = (kid.to_owned(), "EC".to_owned(), "P-256".to_owned());
    Some(PrivateJwk { kid, kty, crv, x: url_encoded(x), y: url_encoded(y), d: url_encoded(private.as_ref()) })
}

impl PrivateJwk {
    /// The key, or what is wrong with it as the end of a sentence.
    fn key(&self) -> Result<EncodingKey, &'static str> {
        if self.kty != "EC" || self.crv != "P-256" {
            return Err("is not for ES256 signatures");
        }
        let number = |text: &str| url_decoded(text).filter(|bytes| bytes.len() == NUMBER_BYTES);
        let (Some(x), Some(y), Some(d)) = (number(&self.x), number(&self.y), number(&self.d)) else {
            return Err("has unreadable numbers");
        };
        let point = [&[4][..], &x, &y].concat();
        let pair = EcdsaKeyPair::from_private_key_and_public_key(&ECDSA_P256_SHA256_FIXED_SIGNING, &d, &point);
        let document = pair.map_err(|_| "is no pair")?.to_pkcs8v1().map_err(|_| "cannot be used")?;
        Ok(EncodingKey::from_ec_der(document.as_ref()))
    }
}

/// Bytes as base64url without padding.
fn url_encoded(bytes: &[u8]) -> String {
    aws_smithy_types::base64::encode(bytes).replace('+', "-").replace('/', "_").trim_end_matches('=').to_owned()
}

/// The bytes of base64url without padding (RFC 7515).
fn url_decoded(text: &str) -> Option<Vec<u8>> {
    if text.contains(['+', '/', '=']) {
        return None;
    }
    let padding = "=".repeat((4 - text.len() % 4) % 4);
    aws_smithy_types::base64::decode(text.replace('-', "+").replace('_', "/") + &padding).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::development::{JWKS, SIGNING_KEYS};
    use crate::config::Stage;

    /// The example of RFC 7517, appendix A.2.
    fn other() -> Value {
        json!({
            "kid": "other", "kty": "EC", "crv": "P-256", "d": "870MB6gfuTJ4HtUnUvYMyJpr5eUZNP4Bk43bVdj3eAE",
            "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4", "y": "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM",
        })
    }

    fn ours() -> Value {
        serde_json::from_str::<Value>(SIGNING_KEYS).unwrap()["keys"][0].clone()
    }

    fn public(keys: &[Value]) -> TokenKeys {
        let without = |key: &Value| {
            let mut key = key.clone();
            key.as_object_mut().unwrap().remove("d");
            key
        };
        let set = json!({ "keys": keys.iter().map(without).collect::<Vec<_>>() }).to_string();
        TokenKeys::from_jwks(&set, "tirada", Stage::Local).unwrap()
    }

    fn signing(keys: &[Value], accepted: &TokenKeys) -> Result<SigningKeys, ConfigError> {
        SigningKeys::from_json(&json!({ "keys": keys }).to_string(), "tirada", accepted)
    }

    #[test]
    fn a_rotation_has_no_moment_without_an_accepted_key() {
        let buyer = Buyer { buyer_id: Uuid::from_u128(1), tenant_id: Uuid::from_u128(2) };
        let both = public(&[ours(), other()]);
        for (keys, kid) in
            [(vec![ours()], "development"), (vec![ours(), other()], "development"), (vec![other(), ours()], "other")]
        {
            let token = signing(&keys, &both).unwrap().sign_buyer(buyer, PROBE_LIVES).unwrap();
            assert_eq!(both.verify_buyer(Some(&format!("Bearer {token}"))), Ok(buyer), "{kid}");
            assert_eq!(jsonwebtoken::decode_header(&token).unwrap().kid.as_deref(), Some(kid));
        }
    }

    #[test]
    fn a_rotation_makes_keys_that_sign_and_keeps_one() {
        let first = rotate("1", None).unwrap();
        let second = rotate("2", Some(&first)).unwrap();
        let third = rotate("3", Some(&second)).unwrap();
        let kids = |text: &str| -> Vec<String> {
            let set: Value = serde_json::from_str(text).unwrap();
            set["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
        };
        assert_eq!(
            (kids(&first), kids(&second), kids(&third)),
            (vec!["1".into()], vec!["2".into(), "1".into()], vec!["3".into(), "2".into()])
        );
        let public = public_half(&third).unwrap();
        assert!(!public.to_string().contains("\"d\""), "{public}");
        let accepted = TokenKeys::from_jwks(&public.to_string(), "tirada", Stage::Prod).unwrap();
        assert_eq!(*accepted.published(), public);
        let signing = SigningKeys::from_json(&third, "tirada", &accepted).unwrap();
        let token = signing.sign_buyer(Buyer { buyer_id: Uuid::nil(), tenant_id: Uuid::nil() }, PROBE_LIVES).unwrap();
        assert_eq!(jsonwebtoken::decode_header(&token).unwrap().kid.as_deref(), Some("3"));
        assert!(rotate("3", Some(&third)).is_err() && rotate("4", Some("{}")).is_err());
        assert!(public_half(JWKS).is_err());
    }

    #[test]
    fn keys_that_nobody_accepts_stop_the_login() {
        let only_ours = public(&[ours()]);
        let refusal = |keys: &[Value]| signing(keys, &only_ours).unwrap_err().to_string();
        assert!(refusal(&[other()]).contains("does not accept"));
        assert!(refusal(&[ours(), other()]).contains("does not accept"), "one that waits as well");
        let changed = |name: &str, value: &str| {
            let mut jwk = ours();
            jwk[name] = json!(value);
            jwk
        };
        assert!(refusal(&[changed("kid", "x")]).contains("does not accept"));
        assert!(refusal(&[changed("kty", "RSA")]).contains("ES256"));
        assert!(refusal(&[changed("d", "AAAA")]).contains("unreadable"));
        assert!(refusal(&[changed("d", other()["d"].as_str().unwrap())]).contains("no pair"));
        assert!(refusal(&[]).contains("no key"));
        let elsewhere = SigningKeys::from_json(SIGNING_KEYS, "another issuer", &only_ours);
        assert!(elsewhere.unwrap_err().to_string().contains("does not accept"));
        let public_only = SigningKeys::from_json(JWKS, "tirada", &only_ours).unwrap_err().to_string();
        assert!(public_only.contains("private"), "{public_only}");
    }
}
