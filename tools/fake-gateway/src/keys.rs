//! Idempotency keys: the first result is kept for a day and given to everybody who comes with the same key.
//!
//! Stripe, "Idempotent requests": the status and the body of the first request are saved, 500s included; a request
//! with other parameters is an error; nothing is saved when the parameters were not valid or while another request
//! with the key is being executed; keys can be removed after 24 hours.

use std::collections::HashMap;

use serde_json::Value;
use time::{Duration, OffsetDateTime};

const KEPT_FOR: Duration = Duration::hours(24);

/// A kept result.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Kept {
    pub(super) status: u16,
    pub(super) body: Value,
}

/// What is known about a key.
#[derive(Debug, PartialEq)]
pub(super) enum Seen {
    /// Nothing: it is now being executed.
    New,
    /// It is being executed.
    InProgress,
    /// This was its result.
    Before(Kept),
    /// It was used with other parameters.
    Different,
}

struct Entry {
    fingerprint: String,
    began: OffsetDateTime,
    kept: Option<Kept>,
}

/// The keys of all accounts.
#[derive(Default)]
pub(super) struct Keys(HashMap<(usize, String), Entry>);

impl Keys {
    /// Looks a key up, and marks it as being executed when it is new.
    pub(super) fn begin(&mut self, account: usize, key: &str, fingerprint: &str, now: OffsetDateTime) -> Seen {
        let place = (account, key.to_owned());
        if self.0.get(&place).is_some_and(|entry| entry.kept.is_some() && now - entry.began >= KEPT_FOR) {
            self.0.remove(&place);
        }
        match self.0.get(&place) {
            None => {
                self.0.insert(place, Entry { fingerprint: fingerprint.to_owned(), began: now, kept: None });
                Seen::New
            }
            Some(entry) if entry.fingerprint != fingerprint => Seen::Different,
            Some(Entry { kept: Some(kept), .. }) => Seen::Before(kept.clone()),
            Some(_) => Seen::InProgress,
        }
    }

    /// Keeps the result of what [`Self::begin`] allowed; without one the key is as if it had never been used.
    pub(super) fn finish(&mut self, account: usize, key: &str, result: Option<Kept>) {
        let place = (account, key.to_owned());
        match result {
            None => drop(self.0.remove(&place)),
            Some(kept) => {
                if let Some(entry) = self.0.get_mut(&place) {
                    entry.kept = Some(kept);
                }
            }
        }
    }

    /// Forgets every result.
    pub(super) fn forget(&mut self) {
        self.0.retain(|_, entry| entry.kept.is_none());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_gives_its_first_result_for_a_day() {
        let (mut keys, now) = (Keys::default(), OffsetDateTime::UNIX_EPOCH);
        let kept = Kept { status: 500, body: Value::Null };
        assert_eq!(keys.begin(0, "k", "a", now), Seen::New);
        assert_eq!(keys.begin(0, "k", "a", now), Seen::InProgress);
        assert_eq!(keys.begin(1, "k", "a", now), Seen::New, "another account's keys are others");
        keys.finish(0, "k", Some(kept.clone()));
        assert_eq!(keys.begin(0, "k", "a", now + Duration::hours(23)), Seen::Before(kept));
        assert_eq!(keys.begin(0, "k", "b", now), Seen::Different);
        assert_eq!(keys.begin(0, "k", "b", now + Duration::hours(24)), Seen::New);
        keys.finish(0, "k", None);
        assert_eq!(keys.begin(0, "k", "c", now), Seen::New, "what was not kept leaves nothing");
    }
}
