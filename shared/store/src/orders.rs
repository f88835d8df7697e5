//! Orders: placing, reading, cancelling.

mod cancel;
mod overdue;
mod place;
mod read;

pub use cancel::{Cancelled, cancel};
pub use overdue::reject_overdue;
pub use place::{NewOrder, Placed, place, replay};
pub use read::{Event, Order, Page, Place, find, history, list};
