//! Orders: what may be asked, which states an order passes through, and how a replay is recognised.

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use uuid::Uuid;

use crate::limits::NUMBERS_PER_ORDER_MAX;

/// Where an order is on its way. The payment gateway's transport state is kept elsewhere, never here.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum State {
    /// Accepted and waiting for a worker.
    Queued,
    /// Its numbers are held until `expires_at`.
    Reserved,
    /// A payment is under way.
    Paying,
    /// Paid; the numbers are the buyer's.
    Paid,
    /// Refused by the rules, with a reason.
    Rejected,
    /// Given up by the buyer or by staff.
    Cancelled,
    /// The hold ran out.
    Expired,
    /// Money is on its way back.
    Refunding,
    /// Money is back.
    Refunded,
}

use State::{Cancelled, Expired, Paid, Paying, Queued, Refunded, Refunding, Rejected, Reserved};

/// The only table of allowed transitions. Everything that is not here is forbidden.
pub const TRANSITIONS: &[(State, State)] = &[
    (Queued, Reserved),
    (Queued, Rejected),
    (Queued, Cancelled),
    (Reserved, Paying),
    (Reserved, Paid),
    (Reserved, Cancelled),
    (Reserved, Expired),
    (Paying, Reserved),
    (Paying, Paid),
    (Paying, Expired),
    (Paying, Cancelled),
    (Paying, Refunding),
    (Paid, Refunding),
    (Refunding, Refunded),
    (Refunded, Refunding),
    (Expired, Paid),
    (Expired, Refunding),
    (Cancelled, Refunding),
];

impl State {
    /// Every state.
    pub const ALL: [Self; 9] = [Queued, Reserved, Paying, Paid, Rejected, Cancelled, Expired, Refunding, Refunded];

    /// The word used in the database, in JSON and in the documentation.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Queued => "queued",
            Reserved => "reserved",
            Paying => "paying",
            Paid => "paid",
            Rejected => "rejected",
            Cancelled => "cancelled",
            Expired => "expired",
            Refunding => "refunding",
            Refunded => "refunded",
        }
    }

    /// The state with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Whether an order may go from this state to `next`.
    #[must_use]
    pub fn may_become(self, next: Self) -> bool {
        TRANSITIONS.contains(&(self, next))
    }

    /// Whether the order has ended for its buyer: nothing moves any more unless money arrives late or goes back.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Paid | Rejected | Cancelled | Expired | Refunded)
    }

    /// Whether numbers are taken in the order's name: all that it has not given up.
    #[must_use]
    pub const fn owns_numbers(self) -> bool {
        matches!(self, Reserved | Paying | Paid | Refunding)
    }
}

/// What to do when exact numbers of an order are taken by others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", try_from = "String")]
pub enum Fallback {
    /// All or nothing.
    #[default]
    Reject,
    /// Keep what is free, give up the rest.
    Drop,
    /// Random substitutes for what is taken.
    Replace,
}

impl TryFrom<String> for Fallback {
    type Error = &'static str;

    fn try_from(word: String) -> Result<Self, Self::Error> {
        Self::from_word(&word).ok_or("must be reject, drop or replace")
    }
}

impl Fallback {
    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reject => "reject",
            Self::Drop => "drop",
            Self::Replace => "replace",
        }
    }

    /// The fallback with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Reject, Self::Drop, Self::Replace].into_iter().find(|f| f.word() == word)
    }
}

/// What a buyer asks for: exact numbers, a quick pick, or both. Valid by construction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    numbers: Vec<i32>,
    quantity: i32,
    fallback: Fallback,
}

/// What is wrong with a request, with the field it is wrong in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InvalidField {
    /// JSON pointer to the field, as in RFC 6901.
    pub pointer: &'static str,
    /// English sentence.
    pub detail: String,
}

impl Request {
    /// Checks and normalises a request: numbers come out sorted.
    ///
    /// # Errors
    /// One [`InvalidField`] per broken rule: nothing asked, too much asked, a number named twice, a negative value.
    pub fn new(mut numbers: Vec<i32>, quantity: i32, fallback: Fallback) -> Result<Self, Vec<InvalidField>> {
        let mut wrong = Vec::new();
        let mut refuse = |pointer, detail: String| wrong.push(InvalidField { pointer, detail });
        let asked = i64::try_from(numbers.len()).unwrap_or(i64::MAX).saturating_add(i64::from(quantity));
        if quantity < 0 {
            refuse("/quantity", "must not be negative".into());
        }
        if numbers.is_empty() && quantity == 0 {
            refuse("/numbers", "name numbers, a quantity, or both".into());
        }
        if asked > i64::from(NUMBERS_PER_ORDER_MAX) {
            refuse(
                "/numbers",
                format!("an order has at most {NUMBERS_PER_ORDER_MAX} numbers, exact and quick picks together"),
            );
        }
        numbers.sort_unstable();
        if let Some(pair) = numbers.windows(2).find(|pair| pair[0] == pair[1]) {
            refuse("/numbers", format!("{} is named twice", pair[0]));
        }
        if numbers.first().is_some_and(|n| *n < 0) {
            refuse("/numbers", "must not be negative".into());
        }
        if wrong.is_empty() { Ok(Self { numbers, quantity, fallback }) } else { Err(wrong) }
    }

    /// Exact numbers, ascending, no duplicates.
    #[must_use]
    pub fn numbers(&self) -> &[i32] {
        &self.numbers
    }

    /// Numbers to pick at random.
    #[must_use]
    pub const fn quantity(&self) -> i32 {
        self.quantity
    }

    /// What to do when exact numbers are taken.
    #[must_use]
    pub const fn fallback(&self) -> Fallback {
        self.fallback
    }

    /// Numbers asked for in all.
    #[must_use]
    pub fn asked(&self) -> i32 {
        i32::try_from(self.numbers.len()).unwrap_or(i32::MAX).saturating_add(self.quantity)
    }

    /// SHA-256 over the canonical request, product included. Two requests under one idempotency key are the same
    /// request exactly when their fingerprints are equal: order of numbers and spelling of the JSON do not matter.
    #[must_use]
    pub fn fingerprint(&self, product_id: Uuid) -> [u8; 32] {
        let mut hash = Sha256::new();
        hash.update(b"tirada order v1");
        hash.update(product_id.as_bytes());
        hash.update(self.quantity.to_be_bytes());
        hash.update(self.fallback.word().as_bytes());
        hash.update([0]);
        for number in &self.numbers {
            hash.update(number.to_be_bytes());
        }
        hash.finalize().into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_state_and_pair_is_decided() {
        for from in State::ALL {
            assert_eq!(State::from_word(from.word()), Some(from));
            for to in State::ALL {
                let listed = TRANSITIONS.iter().filter(|t| **t == (from, to)).count();
                assert!(listed <= 1, "{from:?} to {to:?} is listed twice");
                assert_eq!(from.may_become(to), listed == 1);
            }
            assert!(!from.may_become(from), "{from:?} may not become itself");
            assert!(!from.may_become(Queued), "nothing goes back to the queue");
        }
    }

    #[test]
    fn every_state_leads_to_an_end() {
        for state in State::ALL {
            let mut reached = vec![state];
            let mut next = 0;
            while next < reached.len() {
                let here = reached[next];
                let onward = State::ALL.into_iter().filter(|to| here.may_become(*to));
                reached.extend(onward.filter(|to| !reached.contains(to)).collect::<Vec<_>>());
                next += 1;
            }
            assert!(reached.iter().any(|s| s.is_terminal()), "{state:?} never ends");
        }
    }

    #[test]
    fn a_request_names_what_is_wrong() {
        let fields =
            |r: Result<Request, Vec<InvalidField>>| r.unwrap_err().iter().map(|w| w.pointer).collect::<Vec<_>>();
        assert_eq!(fields(Request::new(vec![], 0, Fallback::Reject)), ["/numbers"]);
        assert_eq!(fields(Request::new(vec![4, 9, 4], 0, Fallback::Reject)), ["/numbers"]);
        assert_eq!(fields(Request::new(vec![-1], 0, Fallback::Reject)), ["/numbers"]);
        assert_eq!(fields(Request::new(vec![1], -1, Fallback::Reject)), ["/quantity"]);
        assert_eq!(fields(Request::new((0..60).collect(), 41, Fallback::Reject)), ["/numbers"]);
        assert_eq!(fields(Request::new(vec![1], i32::MAX, Fallback::Reject)), ["/numbers"]);
        assert!(Request::new((0..60).collect(), 40, Fallback::Reject).is_ok());
    }

    #[test]
    fn the_fingerprint_sees_content_and_not_order() {
        let product = Uuid::from_u128(1);
        let of = |numbers: Vec<i32>, quantity, fallback| {
            Request::new(numbers, quantity, fallback).unwrap().fingerprint(product)
        };
        let base = of(vec![1, 2], 1, Fallback::Drop);
        assert_eq!(base, of(vec![2, 1], 1, Fallback::Drop));
        assert_ne!(base, of(vec![1, 2], 2, Fallback::Drop));
        assert_ne!(base, of(vec![1, 2], 1, Fallback::Replace));
        assert_ne!(base, of(vec![1, 3], 1, Fallback::Drop));
        assert_ne!(base, Request::new(vec![1, 2], 1, Fallback::Drop).unwrap().fingerprint(Uuid::from_u128(2)));
    }
}
