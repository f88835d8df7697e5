//! Notices: what a commit owes a buyer about an order, and what became of it.
//!
//! Owed by the statement that moves the order, for buyers whose phone is known and for kinds that their store sends. A
//! row is its own outbox: the reconciler hands it to the queue, a worker claims it, sends it and says how it ended.

mod due;
mod owe;
mod send;
mod settings;
mod watch;

pub use due::{claim_due, drop_late};
pub use send::{Channel, Claim, Claimed, claim, end, mark_sent, may_have, note_failure};
pub use settings::{list_kinds, save_email};
pub use watch::{Counted, Measures, Stuck, count, list_stuck, measure};

pub(crate) use owe::{owe_refund, owing};
