//! Which numbers are free and who gets them.
//!
//! [`chunk`] is the bitmap: the availability of 8,192 numbers in 1 KiB with its counters. [`plan`] chooses the
//! chunks that a group of orders must lock. [`decide`] hands out numbers inside locked chunks. None of them is the
//! arbiter: that is the database's unique index. They only have to be right almost always, and fast.

mod chunk;
mod decide;
mod plan;

pub use chunk::{Chunk, Counters, Disagreement, Kind};
pub use decide::{Ask, Decider, Decision, TooNarrow};
pub use plan::{Plan, Scope};
