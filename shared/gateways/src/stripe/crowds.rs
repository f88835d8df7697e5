//! Accounts with too many payments to look through, so that not every payment without an answer reads the same pages to
//! find that out: gateways allow few reads a second, and an opening has many payments.

use std::collections::HashMap;
use std::hash::{BuildHasher, RandomState};
use std::sync::{Arc, Mutex, PoisonError};

use secrecy::{ExposeSecret, SecretString};
use time::OffsetDateTime;

/// Accounts that are remembered; then all are forgotten.
const ACCOUNTS_MAX: usize = 1_000;

/// Since when an account's list of payments is longer than we look through. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Crowds(Arc<Shared>);

#[derive(Debug, Default)]
struct Shared {
    hasher: RandomState,
    since: Mutex<HashMap<u64, OffsetDateTime>>,
}

/// What is known of one account.
#[derive(Debug, Clone)]
pub(crate) struct Crowd {
    crowds: Crowds,
    account: u64,
}

impl Crowds {
    /// That of the account of a key.
    pub(crate) fn of(&self, key: &SecretString) -> Crowd {
        Crowd { crowds: self.clone(), account: self.0.hasher.hash_one(key.expose_secret()) }
    }
}

impl Crowd {
    /// Whether a list that begins then is known to be too long. Payments are never taken from a list, so that what is
    /// too long stays so, and what begins earlier is longer.
    pub(crate) fn is_known_since(&self, begin: OffsetDateTime) -> bool {
        let since = self.crowds.0.since.lock().unwrap_or_else(PoisonError::into_inner);
        since.get(&self.account).is_some_and(|known| begin <= *known)
    }

    /// Remembers that a list that begins then is too long.
    pub(crate) fn note_since(&self, begin: OffsetDateTime) {
        let mut since = self.crowds.0.since.lock().unwrap_or_else(PoisonError::into_inner);
        if since.len() >= ACCOUNTS_MAX && !since.contains_key(&self.account) {
            since.clear();
        }
        since.entry(self.account).and_modify(|known| *known = begin.max(*known)).or_insert(begin);
    }
}

#[cfg(test)]
mod tests {
    use time::Duration;
    use time::macros::datetime;

    use super::*;

    const NOON: OffsetDateTime = datetime!(2026-11-30 12:00:00 UTC);

    #[test]
    fn what_begins_earlier_is_longer() {
        let (crowds, second) = (Crowds::default(), Duration::SECOND);
        let of = |key: &str| crowds.of(&SecretString::from(key));
        assert!(!of("a").is_known_since(NOON));
        of("a").note_since(NOON);
        of("a").note_since(NOON - second);
        assert!(of("a").is_known_since(NOON) && of("a").is_known_since(NOON - 60 * second));
        assert!(!of("a").is_known_since(NOON + second) && !of("b").is_known_since(NOON));
    }

    #[test]
    fn the_memory_has_an_end() {
        let crowds = Crowds::default();
        let of = |number: usize| crowds.of(&SecretString::from(number.to_string()));
        (0..ACCOUNTS_MAX).for_each(|number| of(number).note_since(NOON));
        of(0).note_since(NOON);
        assert_eq!(crowds.0.since.lock().unwrap().len(), ACCOUNTS_MAX);
        of(ACCOUNTS_MAX).note_since(NOON);
        assert!(of(ACCOUNTS_MAX).is_known_since(NOON) && !of(0).is_known_since(NOON));
    }
}
