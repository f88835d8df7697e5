//! Logging in with a code on the phone: who gets in, who does not, and what it may cost.

mod codes;
mod limits;
mod logs;
mod refresh;
mod rotation;
mod sending;
mod session;
mod storms;
mod tokens;

/// A phone of a country that every store serves.
const PHONE: &str = "+34600000001";
