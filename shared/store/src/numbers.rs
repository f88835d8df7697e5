//! Numbers change hands here, and only here: reserve, release, block, mend.

mod block;
mod give_back;
mod holdings;
mod locks;
mod mend;
mod release;
mod reserve;
mod sweep;
mod waiting;
mod writes;

pub use block::{block, list_unfit, unblock};
pub use holdings::{find_miscounted, recount};
pub(crate) use locks::{lock_chunks, lock_holdings};
pub(crate) use mend::describe;
pub(crate) use mend::repair;
pub use mend::{compare_chunk, confirm_chunk, mend_chunks, rebuild, rebuild_as_operator};
pub use release::release;
pub use reserve::{Decided, Group, Served, reserve};
pub use sweep::{Sweep, find_due_products, release_due, sweep, sweep_lag};
pub use waiting::{count_unlisted, relist};
pub(crate) use writes::{add_to_holdings, delete_taken, expect, insert_taken, update_chunks};

use domain::Error;
use uuid::Uuid;

/// Why a transaction over chunks did not commit.
#[derive(Debug)]
pub(crate) enum Failure {
    /// Bits or counters of these chunks do not agree with the rows: mend them, then try again.
    Disagreement(Vec<i32>),
    /// These buyers' holdings do not agree with their orders: recount them, then try again.
    Miscounted(Vec<Uuid>),
    /// Picks need chunks that were not locked.
    TooNarrow,
    /// Another transaction made a buyer's first holding meanwhile: decide again, knowing it.
    Overtaken,
    /// Anything else.
    Error(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Error(error)
    }
}

impl From<domain::Reason> for Failure {
    fn from(reason: domain::Reason) -> Self {
        Self::Error(reason.into())
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Error(crate::errors::from_postgres(error))
    }
}

impl Failure {
    /// Whether an order, and not the database's mood, may be the cause: then trying each alone spares the others.
    pub(crate) const fn is_about_data(&self) -> bool {
        matches!(self, Self::Disagreement(_) | Self::Miscounted(_) | Self::Error(Error::Fault(_)))
    }

    /// As an error, where mending was tried and did not help.
    pub(crate) fn into_error(self) -> Error {
        match self {
            Self::Disagreement(chunks) => Error::fault(format!("chunks {chunks:?} disagree with their rows")),
            Self::Miscounted(buyers) => {
                Error::fault(format!("holdings of {} buyers disagree with their orders", buyers.len()))
            }
            Self::TooNarrow => Error::fault("a plan over every chunk was too narrow"),
            Self::Overtaken => Error::busy("other groups are first with these buyers' holdings, again and again"),
            Self::Error(error) => error,
        }
    }
}
