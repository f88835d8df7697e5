//! Logging in: asking sessions, what is sent for them, and sessions with their refresh tokens.
//!
//! Neither codes nor tokens stand in a row: they are derived elsewhere, and come in here as what they are recognised
//! by. Asking reads nothing about the buyer, so that it is the same for phones that are known and phones that are not.

mod ask;
mod exchange;
mod prefixes;
mod send;
mod sessions;

pub use ask::{Asked, Asking, ask};
pub use exchange::{Exchange, LoggedIn, exchange};
pub use prefixes::{list_prefixes, save_prefixes};
pub use send::{Claim, Claimed, claim, claim_unsent, mark_sent, release};
pub use sessions::{Refreshed, end, end_all, refresh};
