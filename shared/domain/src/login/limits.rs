//! What messages with codes may cost: five pots, each of which every message takes from.
//!
//! A pot holds a number of messages and is filled again at a steady pace (GCRA): no window whose edge lets twice as
//! many through, one moment per pot to store, and an exact time to wait.

use std::time::Duration;

use super::Phone;
use crate::limits::{
    CODES_PER_ADDRESS, CODES_PER_PLATFORM, CODES_PER_PREFIX, CODES_PER_STORE, CODES_PER_STRANGERS_PHONE,
    CODES_PER_USERS_PHONE, SHARE_OF_STRANGERS,
};

/// How much a pot holds, and how fast it is filled again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Messages in a full pot.
    pub messages: u32,
    /// How long one takes to come back.
    pub one_per: Duration,
}

/// What a pot is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pot {
    /// One phone at one store, asked for by a device that has logged in with it.
    KnownPhone,
    /// One phone at one store, asked for by anybody else.
    UnknownPhone,
    /// One client's address.
    Address,
    /// One country, at all stores.
    Prefix,
    /// One store.
    Store,
    /// Everything.
    Platform,
}

impl Pot {
    /// What the public calls the limit. Shared pots are nobody's business, so that they have one name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::KnownPhone | Self::UnknownPhone => "phone",
            Self::Address => "address",
            Self::Prefix | Self::Store | Self::Platform => "service",
        }
    }

    /// The word under which it is counted in metrics and hashed.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::KnownPhone => "known-phone",
            Self::UnknownPhone => "unknown-phone",
            Self::Address => "address",
            Self::Prefix => "prefix",
            Self::Store => "store",
            Self::Platform => "platform",
        }
    }

    /// What it holds.
    #[must_use]
    pub const fn share(self) -> Share {
        match self {
            Self::KnownPhone => CODES_PER_USERS_PHONE,
            Self::UnknownPhone => CODES_PER_STRANGERS_PHONE,
            Self::Address => CODES_PER_ADDRESS,
            Self::Prefix => CODES_PER_PREFIX,
            Self::Store => CODES_PER_STORE,
            Self::Platform => CODES_PER_PLATFORM,
        }
    }

    /// Whether many people share it.
    const fn is_shared(self) -> bool {
        matches!(self, Self::Prefix | Self::Store | Self::Platform)
    }
}

/// The pots of one message in the order in which all of them are counted, each with what tells it from others of its
/// kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pots(Vec<(Pot, Vec<String>)>, bool);

impl Pots {
    /// The pots of a message to a phone, asked for at a store from an address. A known device has logged in with that
    /// phone before.
    #[must_use]
    pub fn new(store: &str, phone: &Phone, address: &str, is_known: bool) -> Self {
        let own = if is_known { Pot::KnownPhone } else { Pot::UnknownPhone };
        let pots = vec![
            (own, vec![store.to_owned(), phone.as_str().to_owned()]),
            (Pot::Address, vec![address.to_owned()]),
            (Pot::Prefix, vec![phone.prefix().to_owned()]),
            (Pot::Store, vec![store.to_owned()]),
            (Pot::Platform, Vec::new()),
        ];
        Self(pots, is_known)
    }

    /// Kinds and what tells them apart.
    pub fn iter(&self) -> impl Iterator<Item = (Pot, &[String])> {
        self.0.iter().map(|(pot, of)| (*pot, of.as_slice()))
    }

    /// The pot at a place, counted from one as SQL does.
    #[must_use]
    pub fn at(&self, place: i32) -> Option<Pot> {
        let index = usize::try_from(place).ok()?.checked_sub(1)?;
        self.0.get(index).map(|(pot, _)| *pot)
    }

    /// Seconds that one message takes to come back, per pot.
    #[must_use]
    pub fn intervals(&self) -> Vec<f64> {
        self.0.iter().map(|(pot, _)| pot.share().one_per.as_secs_f64()).collect()
    }

    /// Seconds that each pot may be behind: what it holds. Strangers leave a part of the shared ones to those who have
    /// logged in before.
    #[must_use]
    pub fn tolerances(&self) -> Vec<f64> {
        let tolerance = |pot: Pot| {
            let part = if pot.is_shared() && !self.1 { SHARE_OF_STRANGERS } else { 1.0 };
            let Share { messages, one_per } = pot.share();
            f64::from(messages) * one_per.as_secs_f64() * part
        };
        self.0.iter().map(|(pot, _)| tolerance(*pot)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn strangers_and_users_share_everything_but_the_phones_pot() {
        let phone = Phone::parse("+34600000000").unwrap();
        let [stranger, user] = [false, true].map(|known| Pots::new("demo", &phone, "192.0.2.1", known));
        assert_eq!((stranger.at(1), user.at(1)), (Some(Pot::UnknownPhone), Some(Pot::KnownPhone)));
        assert_eq!((stranger.at(0), stranger.at(6), stranger.at(-1)), (None, None, None));
        let rest = |pots: &Pots| pots.iter().skip(1).map(|(pot, of)| (pot, of.to_vec())).collect::<Vec<_>>();
        assert_eq!(rest(&stranger), rest(&user));
        let (strangers, users) = (stranger.tolerances(), user.tolerances());
        assert_eq!(strangers[1], users[1], "an address has one pot");
        assert!((2..5).all(|place| strangers[place] < users[place]), "the shared ones keep a part for users");
    }

    #[test]
    fn wider_pots_hold_more() {
        let messages = |pot: Pot| pot.share().messages;
        let growing = [Pot::UnknownPhone, Pot::Address, Pot::Store, Pot::Prefix, Pot::Platform];
        assert!(growing.windows(2).all(|pair| messages(pair[0]) < messages(pair[1])));
    }
}
