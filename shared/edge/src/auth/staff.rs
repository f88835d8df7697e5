//! Staff's tokens: signed by the same keys as buyers', with an issuer and an audience of their own, so that neither is
//! good where the other is wanted. They name the session; whether that still lives, and what its owner may do, is
//! looked up with every request.

use std::time::Duration;

use domain::{Reason, Result};
use jsonwebtoken::{Algorithm, Validation, get_current_timestamp};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Expiring, SigningKeys, TokenKeys, bearer_token, validation};

/// The audience of staff's tokens.
const STAFF_AUDIENCE: &str = "staff";

/// Somebody of a store's staff, as their token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StaffClaim {
    /// Who.
    pub staff_id: Uuid,
    /// Their store; ids of others do not exist for them.
    pub tenant_id: Uuid,
    /// The session that the token was given to.
    pub session_id: Uuid,
}

/// What a token says. As strict as buyers' claims.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StaffClaims {
    iss: String,
    aud: String,
    sub: Uuid,
    tenant: Uuid,
    session: Uuid,
    exp: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    nbf: Option<u64>,
}

impl Expiring for StaffClaims {
    fn exp(&self) -> u64 {
        self.exp
    }
}

/// The issuer of staff's tokens beside that of buyers'.
fn staff_issuer(issuer: &str) -> String {
    format!("{issuer}/staff")
}

/// What staff's tokens are checked for.
pub(super) fn staff_validation(issuer: &str) -> Validation {
    validation(Algorithm::ES256, &staff_issuer(issuer), STAFF_AUDIENCE)
}

/// What a token of this session says.
pub(super) fn staff_claims(claim: StaffClaim, issuer: &str, lifetime: Duration) -> StaffClaims {
    StaffClaims {
        iss: staff_issuer(issuer),
        aud: STAFF_AUDIENCE.to_owned(),
        sub: claim.staff_id,
        tenant: claim.tenant_id,
        session: claim.session_id,
        exp: get_current_timestamp() + lifetime.as_secs(),
        nbf: None,
    }
}

impl TokenKeys {
    /// What an `Authorization` header of staff says, if its token is good. It does not prove that the session lives.
    ///
    /// # Errors
    /// [`Reason::Unauthorized`], whatever is wrong.
    pub fn verify_staff(&self, authorization: Option<&str>) -> Result<StaffClaim, Reason> {
        let claims = authorization.and_then(bearer_token).and_then(|token| self.staff_claims(token));
        let claim = claims.map(|StaffClaims { sub, tenant, session, .. }| StaffClaim {
            staff_id: sub,
            tenant_id: tenant,
            session_id: session,
        });
        claim.ok_or(Reason::Unauthorized)
    }
}

impl SigningKeys {
    /// A token of a session of staff that expires `lifetime` from now.
    ///
    /// # Errors
    /// A fault when the key cannot be used.
    pub fn sign_staff(&self, claim: StaffClaim, lifetime: Duration) -> Result<String> {
        self.sign(&staff_claims(claim, self.issuer(), lifetime))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::Buyer;
    use crate::auth::development::{self, JWKS, SIGNING_KEYS};
    use crate::config::Stage;

    const MINUTE: Duration = Duration::from_secs(60);

    #[test]
    fn a_token_is_good_for_its_own_kind_only() {
        let keys = TokenKeys::from_jwks(JWKS, "tirada", Stage::Local).unwrap();
        let signing = SigningKeys::from_json(SIGNING_KEYS, "tirada", &keys).unwrap();
        let [a, b, c] = [1, 2, 3].map(Uuid::from_u128);
        let claim = StaffClaim { staff_id: a, tenant_id: b, session_id: c };
        let staff = format!("Bearer {}", signing.sign_staff(claim, MINUTE).unwrap());
        assert_eq!(keys.verify_staff(Some(&staff)), Ok(claim));
        assert_eq!(keys.verify_buyer(Some(&staff)), Err(Reason::Unauthorized));
        let buyer = signing.sign_buyer(Buyer { buyer_id: a, tenant_id: b }, MINUTE).unwrap();
        assert_eq!(keys.verify_staff(Some(&format!("Bearer {buyer}"))), Err(Reason::Unauthorized));
        assert_eq!(keys.verify_staff(None), Err(Reason::Unauthorized));
        // Another's issuer, even with the right audience, and the right issuer with a buyer's audience.
        for (iss, aud) in [("tirada", "staff"), ("tirada/staff", "buyer"), ("else/staff", "staff")] {
            let mut claims = staff_claims(claim, "tirada", MINUTE);
            (claims.iss, claims.aud) = (iss.to_owned(), aud.to_owned());
            let token = development::sign(&development::header(), &claims).unwrap();
            assert_eq!(keys.verify_staff(Some(&format!("Bearer {token}"))), Err(Reason::Unauthorized), "{iss} {aud}");
        }
        let mut old = staff_claims(claim, "tirada", MINUTE);
        old.exp = get_current_timestamp() - 60;
        let token = development::sign(&development::header(), &old).unwrap();
        assert_eq!(keys.verify_staff(Some(&format!("Bearer {token}"))), Err(Reason::Unauthorized));
    }
}
