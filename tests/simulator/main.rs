//! Faults on the real bootstraps, by what they break. Each scenario ends with a drain, the auditor, and what
//! clients saw. `python3 -m local simulate` builds the bootstraps and runs it; no other test run includes it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod bitmap;
mod bulk;
mod capacity;
mod clock;
mod commits;
mod connections;
mod crowd;
mod deploy;
mod expiry;
mod exports;
mod fairness;
mod intake;
mod locks;
mod login;
mod messages;
mod notices;
mod outage;
mod panics;
mod payment_storm;
mod payments;
mod queue;
mod rotation;
mod sale;
mod silence;
mod staff;
mod storm;
mod time;
mod volume;
mod worker;
