//! Secrets at rest, stores' credentials and those of one-time passwords: AES-256-GCM with a key of the platform, bound
//! to the store and the gateway or person they are for, so that a row copied to another does not open.
//!
//! Several keys may be known at once: the first seals, every one opens, so that a rotation needs no moment.

use aws_lc_rs::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use aws_lc_rs::rand;
use domain::payments::Gateway;
use domain::{Error, Result};
use uuid::Uuid;

use crate::config::Stage;
use crate::environment::ConfigError;
use crate::key_set::KeySet;

/// First byte of what is sealed.
const FORMAT: u8 = 1;

/// The development key set. It is public; configuration refuses it on every stage but local.
pub const DEVELOPMENT_KEYS: &str = include_str!("../development/sealing-keys.json");

const KEYS: KeySet = KeySet {
    variable: "TIRADA_SEALING_KEYS",
    development: DEVELOPMENT_KEYS,
    development_name: "the development sealing key",
};

/// Keys that seal and open.
#[derive(Clone)]
pub struct SealingKeys(std::sync::Arc<[(String, LessSafeKey)]>);

impl std::fmt::Debug for SealingKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(id, _)| id)).finish()
    }
}

/// What a store's credentials are sealed for.
#[must_use]
pub fn context(tenant_id: Uuid, gateway: Gateway) -> Vec<u8> {
    format!("credentials {tenant_id} {}", gateway.word()).into_bytes()
}

/// What the secret of somebody's one-time passwords is sealed for.
#[must_use]
pub fn totp_context(tenant_id: Uuid, staff_id: Uuid) -> Vec<u8> {
    format!("totp {tenant_id} {staff_id}").into_bytes()
}

impl SealingKeys {
    /// Reads `{"keys": [{"id": "…", "key": "base64 of 32 bytes"}]}`, the sealing key first.
    ///
    /// # Errors
    /// [`ConfigError`]: not of this form, or a development key on a stage other than local.
    pub fn from_json(text: &str, stage: Stage) -> Result<Self, ConfigError> {
        let keys = KEYS.read(text, stage)?.into_iter().map(|(id, bytes)| {
            let key = UnboundKey::new(&AES_256_GCM, &bytes);
            key.map(|key| (id, LessSafeKey::new(key))).map_err(|_| ConfigError::invalid(KEYS.variable, "has a bad key"))
        });
        Ok(Self(keys.collect::<Result<Vec<_>, _>>()?.into()))
    }

    /// Seals a text for a context.
    ///
    /// # Errors
    /// A fault when there is no randomness.
    pub fn seal(&self, context: &[u8], text: &[u8]) -> Result<Vec<u8>> {
        let (id, key) = self.0.first().ok_or_else(|| Error::fault("no sealing key"))?;
        let mut nonce = [0; NONCE_LEN];
        rand::fill(&mut nonce).map_err(|_| Error::fault("no randomness"))?;
        let mut sealed = text.to_vec();
        key.seal_in_place_append_tag(Nonce::assume_unique_for_key(nonce), Aad::from(context), &mut sealed)
            .map_err(|_| Error::fault("cannot seal"))?;
        let id_bytes = u8::try_from(id.len()).map_err(|_| Error::fault("the key's id is too long"))?;
        Ok([&[FORMAT, id_bytes][..], id.as_bytes(), &nonce, &sealed].concat())
    }

    /// Whether something is sealed with the key that seals now.
    #[must_use]
    pub fn is_current(&self, sealed: &[u8]) -> bool {
        let Some((head, rest)) = sealed.split_first_chunk::<2>() else { return false };
        let id = rest.get(..usize::from(head[1]));
        head[0] == FORMAT && self.0.first().is_some_and(|(first, _)| id == Some(first.as_bytes()))
    }

    /// Opens what was sealed for this context.
    ///
    /// # Errors
    /// A fault when it was sealed with a key that is not known any more, for another context, or was changed.
    pub fn open(&self, context: &[u8], sealed: &[u8]) -> Result<Vec<u8>> {
        let fault = || Error::fault("sealed credentials cannot be opened");
        let (head, rest) = sealed.split_first_chunk::<2>().ok_or_else(fault)?;
        let (id, rest) = rest.split_at_checked(usize::from(head[1])).ok_or_else(fault)?;
        let (nonce, text) = rest.split_first_chunk::<NONCE_LEN>().ok_or_else(fault)?;
        let key = self.0.iter().find(|(known, _)| head[0] == FORMAT && known.as_bytes() == id);
        let (_, key) = key.ok_or_else(|| Error::fault("credentials are sealed with an unknown key"))?;
        let mut text = text.to_vec();
        let opened = key
            .open_in_place(Nonce::assume_unique_for_key(*nonce), Aad::from(context), &mut text)
            .map_err(|_| fault())?
            .len();
        text.truncate(opened);
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OTHER: &str = r#"{"keys":[{"id":"new","key":"AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE="}]}"#;

    fn keys(text: &str) -> SealingKeys {
        SealingKeys::from_json(text, Stage::Local).unwrap()
    }

    #[test]
    fn what_was_sealed_opens_for_its_store_and_gateway_only() {
        let keys = keys(DEVELOPMENT_KEYS);
        let (store, other) = (Uuid::from_u128(1), Uuid::from_u128(2));
        let sealed = keys.seal(&context(store, Gateway::Stripe), b"{}").unwrap();
        assert_eq!(keys.open(&context(store, Gateway::Stripe), &sealed).unwrap(), b"{}");
        assert!(keys.open(&context(other, Gateway::Stripe), &sealed).is_err());
        assert!(keys.open(&context(store, Gateway::MercadoPago), &sealed).is_err());
        assert_ne!(keys.seal(&context(store, Gateway::Stripe), b"{}").unwrap(), sealed);
    }

    #[test]
    fn every_changed_bit_is_noticed() {
        let keys = keys(DEVELOPMENT_KEYS);
        let sealed = keys.seal(b"context", b"secret").unwrap();
        for bit in 0..sealed.len() * 8 {
            let mut changed = sealed.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(keys.open(b"context", &changed).is_err(), "bit {bit}");
        }
        for length in 0..sealed.len() {
            assert!(keys.open(b"context", &sealed[..length]).is_err());
        }
    }

    #[test]
    fn an_old_key_still_opens_after_a_rotation() {
        let sealed = keys(DEVELOPMENT_KEYS).seal(b"context", b"secret").unwrap();
        let both = OTHER.replace("}]}", "},") + &DEVELOPMENT_KEYS.trim()[DEVELOPMENT_KEYS.find("{\"id\"").unwrap()..];
        assert_eq!(keys(&both).open(b"context", &sealed).unwrap(), b"secret");
        assert!(!keys(&both).is_current(&sealed) && keys(DEVELOPMENT_KEYS).is_current(&sealed));
        assert!(keys(&both).is_current(&keys(&both).seal(b"context", b"secret").unwrap()));
        assert!(!keys(&both).is_current(b"") && !keys(&both).is_current(&sealed[..3]));
        assert_ne!(keys(&both).seal(b"context", b"secret").unwrap()[..5], sealed[..5], "the new key seals");
        assert!(keys(OTHER).open(b"context", &sealed).is_err());
    }

    #[test]
    fn the_development_key_is_for_local_use_and_bad_ones_are_refused() {
        for stage in [Stage::Dev, Stage::Staging, Stage::Prod] {
            assert!(SealingKeys::from_json(DEVELOPMENT_KEYS, stage).is_err());
            assert!(SealingKeys::from_json(OTHER, stage).is_ok());
        }
        for bad in ["", "{}", r#"{"keys":[]}"#, r#"{"keys":[{"id":"a","key":"AQE="}]}"#, &OTHER.replace("new", "")] {
            assert!(SealingKeys::from_json(bad, Stage::Local).is_err(), "{bad}");
        }
    }
}
