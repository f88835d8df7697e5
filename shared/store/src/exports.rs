//! Exports: who asked for which file, how far it is, and the rows that it is made of.
//!
//! A row is its own outbox. Whoever writes an export claims it for a while under an id of their own; every later
//! statement names that id, so that a worker that was thought dead changes nothing any more.

mod request;
mod rows;
mod work;

pub use request::{Export, NewExport, find, list, request};
pub use rows::{Page, page};
pub use work::{
    Claim, Claimed, Part, Product, begin, claim, claim_due, fail, finish, put_down, put_down_failed, renew, save_part,
};
