//! The rules of Tirada, and nothing else: what an order may become, which numbers it gets, what is refused and why.
//!
//! Pure by construction: no clock, no SQL, no AWS, no async. Whatever varies (time, randomness, rows) comes in as
//! an argument, so every rule here can be tested with plain values.

pub mod catalog;
pub mod errors;
pub mod exports;
pub mod limits;
pub mod login;
pub mod messages;
pub mod notices;
pub mod numbers;
pub mod orders;
pub mod payments;
pub mod people;
pub mod roles;
pub mod schedule;
mod septets;
pub mod staff;
pub mod text;
pub mod uploads;

pub use errors::{Error, Reason, Result};
