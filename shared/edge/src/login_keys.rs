//! What is derived instead of stored: codes, refresh tokens, device tokens, and the names of limits. All of it is
//! HMAC-SHA256 with a key of the platform, each under a purpose of its own, so that none can stand in for another.
//!
//! Several keys may be known at once: the first derives, every one is recognised. Codes name their key in their row,
//! tokens in themselves.

mod tokens;

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac::{self, HMAC_SHA256};
use domain::login::{Pots, code_of};
use uuid::Uuid;

use crate::config::Stage;
use crate::environment::ConfigError;
use crate::key_set::KeySet;

pub use tokens::{Device, Refresh};

/// The development key set. It is public; configuration refuses it on every stage but local.
pub const DEVELOPMENT_KEYS: &str = include_str!("../development/login-keys.json");

const KEYS: KeySet = KeySet {
    variable: "TIRADA_LOGIN_KEYS",
    development: DEVELOPMENT_KEYS,
    development_name: "the development login key",
};

/// Bytes of a hash.
const HASH_BYTES: usize = 32;

/// Keys that derive.
#[derive(Clone)]
pub struct LoginKeys(std::sync::Arc<[Key]>);

struct Key {
    id: String,
    key: hmac::Key,
}

impl std::fmt::Debug for LoginKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|key| &key.id)).finish()
    }
}

impl LoginKeys {
    /// Reads `{"keys": [{"id": "…", "key": "base64 of 32 bytes"}]}`, the deriving key first.
    ///
    /// # Errors
    /// [`ConfigError`]: not of this form, or a development key on a stage other than local.
    pub fn from_json(text: &str, stage: Stage) -> Result<Self, ConfigError> {
        let keys = KEYS.read(text, stage)?.into_iter();
        Ok(Self(keys.map(|(id, bytes)| Key { id, key: hmac::Key::new(HMAC_SHA256, &bytes) }).collect()))
    }

    /// The id of the key that derives now.
    #[must_use]
    pub fn current_id(&self) -> &str {
        &self.current().id
    }

    /// The code of an asking session that was made under a key; none if that key is not known any more.
    #[must_use]
    pub fn code(&self, key_id: &str, asking_id: Uuid) -> Option<String> {
        self.0.iter().find(|key| key.id == key_id).map(|key| key.code(asking_id))
    }

    /// The ids of the keys under which a text is the code of an asking session. Takes as long for wrong codes as for
    /// right ones.
    #[must_use]
    pub fn matching(&self, asking_id: Uuid, code: &str) -> Vec<&str> {
        let is_right = |key: &&Key| verify_slices_are_equal(key.code(asking_id).as_bytes(), code.as_bytes()).is_ok();
        self.0.iter().filter(is_right).map(|key| key.id.as_str()).collect()
    }

    /// What pots are called in the database: nothing there says whose they are.
    #[must_use]
    pub fn subjects(&self, pots: &Pots) -> Vec<Uuid> {
        let name = |(pot, of): (domain::login::Pot, &[String])| {
            let parts = [pot.word()].into_iter().chain(of.iter().map(String::as_str)).map(str::as_bytes);
            self.current().name("limit", &parts.collect::<Vec<_>>())
        };
        pots.iter().map(name).collect()
    }

    /// What one pot is called: as [`Self::subjects`], for pots that are no phone's.
    #[must_use]
    pub fn subject(&self, pot: &str, of: &[&str]) -> Uuid {
        let parts: Vec<&[u8]> = [pot].iter().chain(of).map(|part| part.as_bytes()).collect();
        self.current().name("limit", &parts)
    }

    /// The first one; a set has one at least.
    fn current(&self) -> &Key {
        &self.0[0]
    }
}

impl Key {
    /// A hash of parts under a purpose. The lengths go in too, so that parts cannot lend each other characters.
    fn hash(&self, purpose: &str, parts: &[&[u8]]) -> [u8; HASH_BYTES] {
        let mut context = hmac::Context::with_key(&self.key);
        for part in [purpose.as_bytes()].into_iter().chain(parts.iter().copied()) {
            context.update(&(part.len() as u64).to_be_bytes());
            context.update(part);
        }
        let mut hash = [0; HASH_BYTES];
        hash.copy_from_slice(context.sign().as_ref());
        hash
    }

    fn code(&self, asking_id: Uuid) -> String {
        let hash = self.hash("code", &[asking_id.as_bytes()]);
        let mut first = [0; 8];
        first.copy_from_slice(&hash[..8]);
        code_of(first)
    }

    /// Sixteen bytes of a hash, for names.
    fn name(&self, purpose: &str, parts: &[&[u8]]) -> Uuid {
        let mut first = [0; 16];
        first.copy_from_slice(&self.hash(purpose, parts)[..16]);
        Uuid::from_bytes(first)
    }
}

#[cfg(test)]
mod tests;
