//! Refresh tokens and device tokens: what they say, and a hash of it. Checked without asking anybody.
//!
//! A refresh token names a family and a generation, a device token a device and a phone's hash. Both name their key.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use domain::limits::{DEVICE_KNOWN_FOR, TOKEN_BYTES_MAX};
use domain::login::Phone;
use uuid::Uuid;

use super::{HASH_BYTES, Key, LoginKeys};

/// How tokens begin, so that people and scanners of logs know them.
const REFRESH: &str = "trr_";
const STAFF_REFRESH: &str = "trs_";
const DEVICE: &str = "trd_";

/// What a refresh token says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Refresh {
    /// The family.
    pub session_id: Uuid,
    /// Its generation, from 1 on.
    pub generation: i32,
}

impl Refresh {
    fn said(self) -> Vec<u8> {
        [self.session_id.as_bytes(), &self.generation.to_be_bytes()[..]].concat()
    }

    fn read(said: &[u8]) -> Option<Self> {
        let (session_id, generation) = said.split_first_chunk()?;
        let generation = i32::from_be_bytes(generation.try_into().ok()?);
        Some(Self { session_id: Uuid::from_bytes(*session_id), generation })
    }
}

/// A device that has logged in before.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    /// Its id, made at its first login.
    pub id: Uuid,
    /// A keyed hash of the store and the phone that it logged in with last.
    phone: Uuid,
    key_id: String,
}

impl LoginKeys {
    /// The refresh token of a generation of a family.
    #[must_use]
    pub fn refresh_token(&self, refresh: Refresh) -> String {
        self.current().token(REFRESH, &refresh.said())
    }

    /// The same of staff's sessions: neither is good for the other.
    #[must_use]
    pub fn staff_refresh_token(&self, refresh: Refresh) -> String {
        self.current().token(STAFF_REFRESH, &refresh.said())
    }

    /// What a refresh token says, if it is one of ours.
    #[must_use]
    pub fn read_refresh(&self, token: &str) -> Option<Refresh> {
        Refresh::read(&self.read(REFRESH, token)?.1)
    }

    /// What a refresh token of staff says, if it is one of ours.
    #[must_use]
    pub fn read_staff_refresh(&self, token: &str) -> Option<Refresh> {
        Refresh::read(&self.read(STAFF_REFRESH, token)?.1)
    }

    /// The token that a device keeps after it has logged in with a phone at a store. `now` in seconds since 1970.
    #[must_use]
    pub fn device_token(&self, device_id: Uuid, store: &str, phone: &Phone, now: u64) -> String {
        let phone = self.current().phone(store, phone);
        let said = [device_id.as_bytes(), &now.to_be_bytes()[..], phone.as_bytes()].concat();
        self.current().token(DEVICE, &said)
    }

    /// The device of a token, if it is one of ours and the device has logged in within `DEVICE_KNOWN_FOR`.
    #[must_use]
    pub fn read_device(&self, token: &str, now: u64) -> Option<Device> {
        let (key, said) = self.read(DEVICE, token)?;
        let (id, rest) = said.split_first_chunk()?;
        let (since, phone) = rest.split_first_chunk()?;
        let age = now.saturating_sub(u64::from_be_bytes(*since));
        let phone = Uuid::from_slice(phone).ok()?;
        let device = || Device { id: Uuid::from_bytes(*id), phone, key_id: key.id.clone() };
        (age <= DEVICE_KNOWN_FOR.as_secs()).then(device)
    }

    /// Whether a device has logged in with this phone at this store.
    #[must_use]
    pub fn is_known(&self, device: &Device, store: &str, phone: &Phone) -> bool {
        self.0.iter().any(|key| key.id == device.key_id && key.phone(store, phone) == device.phone)
    }

    /// The key and the content of a token with this beginning.
    fn read(&self, kind: &str, token: &str) -> Option<(&Key, Vec<u8>)> {
        if token.len() > TOKEN_BYTES_MAX {
            return None;
        }
        let bytes = decoded(token.strip_prefix(kind)?)?;
        let (id_bytes, rest) = bytes.split_first()?;
        let (id, rest) = rest.split_at_checked(usize::from(*id_bytes))?;
        let (said, hash) = rest.split_last_chunk::<HASH_BYTES>()?;
        let key = self.0.iter().find(|key| key.id.as_bytes() == id)?;
        let is_ours = verify_slices_are_equal(&key.hash(kind, &[said]), hash).is_ok();
        is_ours.then(|| (key, said.to_vec()))
    }
}

impl Key {
    fn phone(&self, store: &str, phone: &Phone) -> Uuid {
        self.name("device", &[store.as_bytes(), phone.as_str().as_bytes()])
    }

    fn token(&self, kind: &str, said: &[u8]) -> String {
        // Ids of keys are bounded when they are read.
        let id_bytes = u8::try_from(self.id.len()).unwrap_or_default();
        let hash = self.hash(kind, &[said]);
        let all = [&[id_bytes][..], self.id.as_bytes(), said, &hash].concat();
        let digits: String = all.iter().map(|byte| format!("{byte:02x}")).collect();
        format!("{kind}{digits}")
    }
}

/// The bytes of lower-case hexadecimal digits.
fn decoded(digits: &str) -> Option<Vec<u8>> {
    let value = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    let (pairs, rest) = digits.as_bytes().as_chunks::<2>();
    if !rest.is_empty() {
        return None;
    }
    pairs.iter().map(|[high, low]| Some(value(*high)? << 4 | value(*low)?)).collect()
}
