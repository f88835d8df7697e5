//! What buyers are told about their orders: which notices there are, and when one is still true.
//!
//! Knows no order and no buyer; what a notice says is put together from the rows when it is sent, so that a late one
//! says what is true then.

mod texts;

use serde::{Deserialize, Serialize};

use crate::orders::State;

pub use texts::{Event, Facts, notice_mail, notice_text};

/// What a notice is about. An order has one of each at most.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Numbers are held, until when.
    Reserved,
    /// Paid, and for which numbers.
    Paid,
    /// Refused, and why.
    Rejected,
    /// The hold ran out.
    Expired,
    /// A gateway has accepted to give money back.
    Refunded,
}

impl Kind {
    /// Every kind.
    pub const ALL: [Self; 5] = [Self::Reserved, Self::Paid, Self::Rejected, Self::Expired, Self::Refunded];

    /// The word used in the database and in messages: that of the state that causes it.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Paid => "paid",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::Refunded => "refunded",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.word() == word)
    }

    /// Whether it can still be said of an order in this state. What has moved on has a notice of its own, or none.
    #[must_use]
    pub const fn is_true_of(self, state: State) -> bool {
        match self {
            Self::Reserved => matches!(state, State::Reserved | State::Paying),
            Self::Paid => matches!(state, State::Paid),
            Self::Rejected => matches!(state, State::Rejected),
            Self::Expired => matches!(state, State::Expired),
            // Money goes back from almost anywhere: the refunds decide.
            Self::Refunded => true,
        }
    }
}

/// How a notice ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// It has left, everywhere it goes.
    Sent,
    /// It is no longer true, the store does not want it, or nobody is there to get it.
    Needless,
    /// Its buyer, or everybody together, has had too many.
    Limited,
    /// It was not sent while it was of use.
    Late,
    /// Its provider refused it too often.
    Failed,
}

impl Outcome {
    /// The word used in the database and in metrics.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Sent => "sent",
            Self::Needless => "needless",
            Self::Limited => "limited",
            Self::Late => "late",
            Self::Failed => "failed",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_called_like_the_states_that_cause_them() {
        for kind in Kind::ALL {
            assert_eq!(Kind::from_word(kind.word()), Some(kind));
            assert_eq!(serde_json::to_value(kind).unwrap(), kind.word());
            let state = State::from_word(kind.word()).unwrap();
            assert!(kind.is_true_of(state), "{}", kind.word());
        }
        assert_eq!(Kind::from_word("queued"), None);
    }

    #[test]
    fn what_an_order_has_left_behind_is_not_told() {
        assert!(Kind::Reserved.is_true_of(State::Paying));
        for (kind, state) in [
            (Kind::Reserved, State::Paid),
            (Kind::Reserved, State::Expired),
            (Kind::Reserved, State::Cancelled),
            (Kind::Expired, State::Paid),
            (Kind::Paid, State::Refunding),
        ] {
            assert!(!kind.is_true_of(state), "{} {}", kind.word(), state.word());
        }
    }
}
