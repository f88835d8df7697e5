//! Orders: placing, reading, cancelling; and what staff do to them.

mod buyer;
mod cancel;
mod overdue;
mod place;
mod read;
mod search;
mod sell;
mod staff;

pub use buyer::{KnownBuyer, find_buyer};
pub use cancel::{Cancelled, cancel};
pub use overdue::reject_overdue;
pub use place::{NewOrder, Placed, place, replay};
pub use read::{Event, Order, Page, Place, find, history, history_of, list};
pub use search::{Wanted, search};
pub use sell::{Empty, NewSale, Sold, sell};
pub use staff::{extend, give_up};
