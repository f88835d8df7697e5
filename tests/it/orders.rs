//! Placing and cancelling.

mod cancel;
mod idempotency;
mod refusals;
mod window;
