//! Bounds of people: who works for a store, what is kept of anybody, and forgetting them.

/// Staff of one store, removed ones not counted.
pub const STAFF_PER_STORE_MAX: i64 = 200;

/// Longest name of a person, in characters.
pub const NAME_CHARS_MAX: usize = 80;

/// Orders whose texts one transaction clears when somebody is erased: short enough for whoever waits for their locks.
pub const ORDERS_PER_ERASURE: i64 = 500;

/// Orders under way that are named when somebody cannot be erased because of them.
pub const UNDER_WAY_NAMED_MAX: i64 = 20;
