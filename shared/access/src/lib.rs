//! Who of a store's staff is asking, and may they: the one place where tokens and the database meet.
//!
//! A token says whose session it is; one look at the database says whether that lives and what its owner may do now, so
//! that the removal of a role holds from the next request on. What a handler is given knows no store before it has
//! named its action: nobody can forget to ask.

use axum::extract::{FromRef, FromRequestParts};
use axum::http::request::Parts;
use domain::limits::REASON_CHARS_MAX;
use domain::roles::Action;
use domain::{Error, Reason};
use edge::Problem;
use edge::auth::{StaffClaim, TokenKeys};
use edge::http::{IdempotencyKey, StaffToken};
use serde::Serialize;
use serde_json::Value;
use sha2::{Digest, Sha256};
use store::Database;
use store::acts::{Keyed, NewAct, Subject};
use store::staff::Look;
use uuid::Uuid;

/// What helps whoever must prove again who they are.
const PROVE_AGAIN: &str = "This wants a one-time password of the last ten minutes: send one to \
    POST /v1/staff/sessions/proofs, then repeat this.";

/// What the look needs. A router's state holds it.
#[derive(Clone)]
pub struct Access {
    database: Database,
    keys: TokenKeys,
}

impl Access {
    /// By tokens and a database.
    #[must_use]
    pub fn new(database: Database, keys: TokenKeys) -> Self {
        Self { database, keys }
    }
}

impl FromRef<Access> for TokenKeys {
    fn from_ref(access: &Access) -> Self {
        access.keys.clone()
    }
}

/// Somebody of a store's staff whose session lives; 401 for everybody else. Says nothing before [`Self::may`].
#[derive(Debug, Clone, Copy)]
pub struct StaffAuth {
    claim: StaffClaim,
    look: Look,
}

impl<S: Send + Sync> FromRequestParts<S> for StaffAuth
where
    Access: FromRef<S>,
{
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let access = Access::from_ref(state);
        let StaffToken(claim) = StaffToken::from_request_parts(parts, &access).await?;
        let StaffClaim { staff_id, tenant_id, session_id } = claim;
        let client = access.database.client().await?;
        let look = store::staff::look(&client, tenant_id, staff_id, session_id).await?;
        look.map(|look| Self { claim, look }).ok_or_else(|| Problem::new(Reason::Unauthorized))
    }
}

impl StaffAuth {
    /// Who it is, if they may do this.
    ///
    /// # Errors
    /// Forbidden for their role, not-fresh when they must prove again who they are.
    pub fn may(self, action: Action) -> Result<Staff, Problem> {
        if !self.look.role.may(action) {
            return Err(Problem::new(Reason::Forbidden));
        }
        if action.wants_fresh() {
            self.proved()?;
        }
        let StaffClaim { staff_id, tenant_id, session_id } = self.claim;
        Ok(Staff { staff_id, tenant_id, session_id, action })
    }

    /// That they have proved a moment ago who they are, for an action of which only a part wants it.
    ///
    /// # Errors
    /// Not-fresh when they must prove it again.
    pub fn proved(self) -> Result<(), Problem> {
        if self.look.is_fresh { Ok(()) } else { Err(Problem::new(Reason::NotFresh).with_detail(PROVE_AGAIN)) }
    }
}

/// Somebody who may do what they are about to do.
#[derive(Debug, Clone, Copy)]
pub struct Staff {
    /// Who.
    pub staff_id: Uuid,
    /// Their store; ids of others do not exist for them.
    pub tenant_id: Uuid,
    /// The session that they use.
    pub session_id: Uuid,
    action: Action,
}

impl Staff {
    /// What they are about to do, for the audit log.
    #[must_use]
    pub fn act(&self, subject: Subject, subject_id: Uuid) -> Deed {
        let act = NewAct {
            tenant_id: self.tenant_id,
            staff_id: Some(self.staff_id),
            action: self.action,
            subject,
            subject_id,
            detail: None,
            reason: None,
            keyed: None,
        };
        Deed { act }
    }

    /// An id for what a request makes: the same each time that it is sent under its key.
    #[must_use]
    pub fn id_of(&self, key: &IdempotencyKey, of: Uuid) -> Uuid {
        let mut hash = Sha256::new();
        for id in [self.tenant_id, self.staff_id, of] {
            hash.update(id.as_bytes());
        }
        hash.update(self.action.word());
        hash.update([0]);
        hash.update(key.as_str());
        let digest: [u8; 32] = hash.finalize().into();
        let mut bytes = [0; 16];
        bytes.copy_from_slice(&digest[..16]);
        uuid::Builder::from_custom_bytes(bytes).into_uuid()
    }
}

/// An act with what its request says of it.
#[derive(Debug, Clone)]
pub struct Deed {
    /// As the store functions take it.
    pub act: NewAct,
}

impl Deed {
    /// Why.
    ///
    /// # Errors
    /// Invalid when it is empty or too long.
    pub fn because(mut self, reason: &str) -> Result<Self, Problem> {
        self.act.reason = Some(checked(reason)?);
        Ok(self)
    }

    /// What of it. Nothing personal.
    #[must_use]
    pub fn with(mut self, detail: &Value) -> Self {
        self.act.detail = Some(detail.to_string());
        self
    }

    /// Under which key, with the request's body.
    ///
    /// # Errors
    /// A fault when the body cannot be written as JSON.
    pub fn under(mut self, key: &IdempotencyKey, body: &impl Serialize) -> Result<Self, Problem> {
        let fingerprint = fingerprint(self.act.subject_id, body)?;
        self.act.keyed = Some(Keyed { key: key.as_str().to_owned(), fingerprint });
        Ok(self)
    }
}

/// SHA-256 over what is asked for, of what: two requests under one key are the same exactly when these are.
fn fingerprint(subject_id: Uuid, body: &impl Serialize) -> Result<[u8; 32], Error> {
    let body = serde_json::to_vec(body).map_err(Error::fault)?;
    Ok(Sha256::new()
        .chain_update(b"tirada act v1")
        .chain_update(subject_id.as_bytes())
        .chain_update(body)
        .finalize()
        .into())
}

fn checked(reason: &str) -> Result<String, Problem> {
    let reason = reason.trim();
    let fits = (1..=REASON_CHARS_MAX).contains(&reason.chars().count()) && !reason.chars().any(char::is_control);
    let wrong = || {
        let detail = format!("must have 1 to {REASON_CHARS_MAX} characters on one line");
        Problem::new(Reason::Invalid).with_error("/reason", detail)
    };
    fits.then(|| reason.to_owned()).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_are_short_and_on_one_line() {
        assert_eq!(checked(" called off ").unwrap(), "called off");
        let long = "a".repeat(REASON_CHARS_MAX + 1);
        for bad in ["", "  ", "a\nb", "a\u{7}", &long] {
            assert_eq!(checked(bad).unwrap_err().code(), "invalid", "{bad}");
        }
    }

    #[test]
    fn what_is_asked_for_tells_requests_apart() {
        let of = |id, body: &[i32]| fingerprint(Uuid::from_u128(id), &body).unwrap();
        assert_eq!(of(1, &[1, 2]), of(1, &[1, 2]));
        assert!(of(1, &[1, 2]) != of(2, &[1, 2]) && of(1, &[1, 2]) != of(1, &[2, 1]));
    }
}
