//! The development key pair. It is public: whoever reads this repository can sign with it, so configuration refuses
//! it, by its coordinates, on every stage but local.

use std::time::Duration;

use domain::{Error, Result};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, encode, get_current_timestamp};
use uuid::Uuid;

use super::staff::{StaffClaim, staff_claims};
use super::{BUYER_AUDIENCE, Claims, POINT_BYTES};

/// The `kid` of the development key.
pub const KID: &str = "development";

/// The key set that local configuration uses.
pub const JWKS: &str = include_str!("../../development/jwks.json");

/// The private key as a JWK set, as local configuration has it.
pub const SIGNING_KEYS: &str = include_str!("../../development/signing-keys.json");

/// The private key, PKCS #8 in PEM.
pub const SIGNING_KEY: &str = include_str!("../../development/signing-key.pem");

/// A buyer's token as the login would issue it, for local use and tests. Expires `lifetime` from now (7 days at most
/// are accepted).
///
/// # Errors
/// [`Error::Fault`] when the key cannot be used.
pub fn sign_buyer(tenant_id: Uuid, buyer_id: Uuid, issuer: &str, lifetime: Duration) -> Result<String> {
    let claims = Claims {
        iss: issuer.to_owned(),
        aud: BUYER_AUDIENCE.to_owned(),
        sub: buyer_id,
        tenant: tenant_id,
        exp: get_current_timestamp() + lifetime.as_secs(),
        nbf: None,
    };
    sign(&header(), &claims)
}

/// A token of a session of staff as signing in would issue it.
///
/// # Errors
/// [`Error::Fault`] when the key cannot be used.
pub fn sign_staff(claim: StaffClaim, issuer: &str, lifetime: Duration) -> Result<String> {
    sign(&header(), &staff_claims(claim, issuer, lifetime))
}

/// Whether this is the development key, under whatever `kid`.
pub(super) fn is_public_key(key: &DecodingKey) -> bool {
    // A PKCS #8 document of this curve ends with the public point.
    let document = private_der();
    let point = document.last_chunk::<POINT_BYTES>();
    point.is_some_and(|point| key.try_get_as_bytes().is_ok_and(|bytes| bytes == point))
}

/// The header of its tokens.
#[must_use]
pub fn header() -> Header {
    Header { kid: Some(KID.to_owned()), ..Header::new(Algorithm::ES256) }
}

/// Any claims under any header, signed with it.
///
/// # Errors
/// [`Error::Fault`] when the key cannot be used for that.
pub fn sign(header: &Header, claims: &impl serde::Serialize) -> Result<String> {
    encode(header, claims, &EncodingKey::from_ec_der(&private_der())).map_err(|error| Error::Fault(Box::new(error)))
}

fn private_der() -> Vec<u8> {
    let body: String = SIGNING_KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    aws_smithy_types::base64::decode(body).unwrap_or_default()
}
