//! What the integration tests stand on: a real database per test, a queue with real semantics, an auditor that
//! trusts nobody, and seeded randomness.
//!
//! Knows no test. The auditor shares no code with what it audits.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]
#![allow(clippy::missing_panics_doc, reason = "a test that cannot go on panics")]

pub mod auditor;
pub mod bucket;
pub mod chain;
pub mod database;
pub mod files;
pub mod http;
pub mod leaks;
pub mod login;
pub mod look;
pub mod notices;
pub mod operator;
pub mod queue;
pub mod randomness;
pub mod rotation;
pub mod seed;
pub mod server;
pub mod simulator;
pub mod staff;
pub mod template;
pub mod till;
pub mod tokens;
pub mod writes;

pub use database::TestDatabase;
pub use fake_gateway as gateway;
