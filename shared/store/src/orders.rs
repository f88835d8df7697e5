//! Orders: placing, reading, cancelling.

mod cancel;
mod place;
mod read;

pub use cancel::{Cancelled, cancel};
pub use place::{NewOrder, Placed, place};
pub use read::{Order, Page, Place, find, history, list, place_in_queue};

pub use read::Event;
