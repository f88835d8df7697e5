//! Everything that needs a real database, by context. Each test has its own, and ends with the auditor.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on panics")]

mod admin;
mod auditor;
mod erasing;
mod events;
mod exports;
mod fake_gateway;
mod http;
mod login;
mod migrations;
mod notices;
mod numbers;
mod openapi;
mod operator;
mod orders;
mod outbox;
mod payments;
mod pool;
mod roles;
mod security;
mod staff;
mod template;
mod tenants;
mod tidy;
mod uploads;
