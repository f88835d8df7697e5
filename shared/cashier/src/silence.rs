//! Accounts whose gateway keeps us waiting for nothing are left alone for a moment, so that one store's slow gateway
//! does not take the places of everybody's payments. What was not asked now is asked by its next look.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant, SystemTime};

use domain::limits::{ACCOUNTS_REMEMBERED_MAX, LEFT_ALONE_FOR, SILENCES_MAX};
use domain::payments::Gateway;
use uuid::Uuid;

/// A question that took less has taken nobody's place.
const SLOW: Duration = Duration::from_secs(2);

type Account = (Uuid, Gateway);

/// Slow questions without an answer, one after the other, per account of this instance.
#[derive(Debug, Default)]
pub(crate) struct Silences(Mutex<HashMap<Account, Silence>>);

/// The moment is of the wall clock, because a frozen environment's monotonic clock may stand still: then the moment
/// would last for as many invocations as it takes to fill it.
#[derive(Debug, Clone, Copy)]
struct Silence {
    times: u32,
    last: SystemTime,
}

impl Silences {
    /// Whether an account is to be left alone now. When its time is over one question more decides.
    pub(crate) fn is_left_alone(&self, account: Account) -> bool {
        self.is_left_alone_at(account, SystemTime::now())
    }

    /// A clock set back ends it.
    fn is_left_alone_at(&self, account: Account, now: SystemTime) -> bool {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(&account).copied();
        known.is_some_and(|silence| {
            let is_recent = now.duration_since(silence.last).is_ok_and(|time| time < LEFT_ALONE_FOR);
            silence.times >= SILENCES_MAX && is_recent
        })
    }

    /// A question begins. Dropped without an answer, it was met with silence.
    pub(crate) fn ask(&self, account: Account) -> Question<'_> {
        Question { silences: self, account, began: Instant::now(), is_answered: false }
    }

    fn note(&self, account: Account, is_answered: bool, took: Duration) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if is_answered {
            all.remove(&account);
        } else if took >= SLOW {
            if all.len() >= ACCOUNTS_REMEMBERED_MAX {
                all.clear();
            }
            let times = all.get(&account).map_or(0, |silence| silence.times);
            all.insert(account, Silence { times: times.saturating_add(1), last: SystemTime::now() });
        }
    }
}

/// A question under way.
pub(crate) struct Question<'a> {
    silences: &'a Silences,
    account: Account,
    began: Instant,
    is_answered: bool,
}

impl Question<'_> {
    pub(crate) fn answered(mut self) {
        self.is_answered = true;
    }
}

impl Drop for Question<'_> {
    fn drop(&mut self) {
        self.silences.note(self.account, self.is_answered, self.began.elapsed());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ACCOUNT: Account = (Uuid::nil(), Gateway::Stripe);

    #[test]
    fn an_account_is_left_alone_after_some_slow_silences_in_a_row() {
        let silences = Silences::default();
        for _ in 0..SILENCES_MAX {
            assert!(!silences.is_left_alone(ACCOUNT));
            silences.note(ACCOUNT, false, SLOW);
        }
        assert!(silences.is_left_alone(ACCOUNT));
        assert!(!silences.is_left_alone((Uuid::from_u128(1), Gateway::Stripe)), "others are asked as before");
        let now = SystemTime::now();
        assert!(silences.is_left_alone_at(ACCOUNT, now + LEFT_ALONE_FOR / 2));
        assert!(!silences.is_left_alone_at(ACCOUNT, now + LEFT_ALONE_FOR), "frozen or not, its time is over");
        assert!(!silences.is_left_alone_at(ACCOUNT, now - LEFT_ALONE_FOR), "a clock that was set back");
        silences.ask(ACCOUNT).answered();
        assert!(!silences.is_left_alone(ACCOUNT));
    }

    #[test]
    fn quick_failures_take_nobodys_place() {
        let silences = Silences::default();
        for _ in 0..=SILENCES_MAX {
            drop(silences.ask(ACCOUNT));
        }
        assert!(!silences.is_left_alone(ACCOUNT));
    }
}
