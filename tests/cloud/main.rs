//! The slow half: the deployed stack, driven from outside. Without the local cloud each test says so and passes;
//! `python3 -m local slow` brings it up and runs them.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod cloud;
mod dead_letters;
mod jobs;
mod operator;
mod orders;
mod panics;
