//! Other people's code judges ours: the gateways' own libraries our signatures and we theirs, localstripe our Stripe
//! adapter, openpyxl our workbooks. `python3 -m local oracles` starts what is needed; without it these tests fail, and no other test run
//! includes them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod handler;
mod localstripe;
mod mercado_pago;
mod sdk;
mod sheets;
mod stripe;

/// Webhook secrets that tests sign with: the store's, the one that it is replacing, and another store's.
const SECRET: &str = "whsec_of_the_store";
const OLD_SECRET: &str = "whsec_of_the_store_before";
const OTHER_SECRET: &str = "whsec_of_another_store";

/// Who has signed a sample, in messages.
const SIGNERS: [&str; 3] = ["the adapter", "the fake gateway", "the library"];

/// Whether a row's sample may have been signed this long ago, in seconds. Both sides allow 300 and look at their own
/// clock, so rows stay away from the edge, which unit tests have.
const FRESH: i64 = 240;
const STALE: i64 = 360;

/// A variable that `python3 -m local oracles` sets.
fn told(variable: &str) -> String {
    std::env::var(variable).unwrap_or_else(|_| panic!("{variable} is not set: run python3 -m local oracles"))
}
