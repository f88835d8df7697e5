//! What staff do to their store, and the record of it.

mod audit;
mod numbers;
mod orders;
mod products;
mod refunds;
mod sales;
mod settings;
mod switches;

use serde_json::{Value, json};

/// A product as a request describes it: on sale since long ago.
fn described() -> Value {
    json!({
        "name": "Spring raffle", "campaign": "spring", "price": { "amount": "250", "currency": "EUR" },
        "first": 1, "count": 100, "padding": 3, "opens_at": "2026-01-01T20:00:00Z", "closes_at": "2099-01-01T00:00:00Z",
        "zone": "Europe/Madrid", "hold_seconds": 900, "numbers_per_order_max": 10, "numbers_per_buyer_max": 20,
    })
}
