//! Bounds of people: who works for a store, what is kept of anybody, and forgetting them.

use std::time::Duration;

use crate::login::Share;

/// Staff of one store, removed ones not counted.
pub const STAFF_PER_STORE_MAX: i64 = 200;

/// Longest name of a store, in characters: it stands in the subject of mails.
pub const STORE_NAME_CHARS_MAX: usize = 60;

/// Longest name of a person, in characters.
pub const NAME_CHARS_MAX: usize = 80;

/// Orders whose texts one transaction clears when somebody is erased: short enough for whoever waits for their locks.
pub const ORDERS_PER_ERASURE: i64 = 500;

/// Orders under way that are named when somebody cannot be erased because of them.
pub const UNDER_WAY_NAMED_MAX: i64 = 20;

/// Invitations and links to set one-time passwords up again that one store mails: as many at once as it may have staff.
/// Where they go is for its owners to say, or for who has their session.
pub const STAFF_MAILS_PER_STORE: Share = Share { messages: 200, one_per: Duration::from_secs(600) };

/// Sales over the counter of one member of staff: a list that was written by hand, and then one each five seconds,
/// which is more than anybody types. Nobody proves the phone of such a sale, and it is sent two or three notices.
pub const SALES_PER_MEMBER: Share = Share { messages: 120, one_per: Duration::from_secs(5) };

/// Sales over the counter of one store: those of five members at once.
pub const SALES_PER_STORE: Share = Share { messages: 600, one_per: Duration::from_secs(1) };
