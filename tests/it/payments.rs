//! Money: every accepted order ends paid, refunded or released, whatever the gateway does.

mod any_order;
mod expiry;
mod late;
mod pay;
mod refunds;
mod unanswered;
mod webhook;
