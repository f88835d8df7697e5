//! The slow half: the deployed stack, driven from outside. `python3 -m local slow` brings the local cloud up and runs
//! it; without the cloud it fails, and no other test run includes it.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod cloud;
mod dead_letters;
mod files;
mod jobs;
mod login;
mod operator;
mod orders;
