//! Forgetting people: what says who they are goes, what was sold and paid stays.
//!
//! Of a buyer everything personal stands in a few rows that are deleted, and in texts beside orders that are emptied.
//! Orders, numbers, payments, refunds, history and the audit log keep the buyer's id, which then is nobody's. Locks in
//! the order login_codes, buyers, orders, payment_attempts, refunds, notices, sessions, exports: whoever logs in or is
//! sold to at the same moment is either forgotten as well or new.

mod buyer;
mod staff;
mod texts;
mod traces;

pub use buyer::{ErasedBuyer, erase_buyer};
pub use staff::{ErasedStaff, erase_staff};
pub use traces::{Traces, Whom, find_traces};
