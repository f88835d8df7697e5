//! The independent auditor: recomputes every invariant from the rows, in its own words.
//!
//! Shares no code with what it audits: its own SQL, its own bit arithmetic, its own table of transitions. A rule that
//! changes in the domain must be changed here as well, on purpose.

#![allow(clippy::missing_panics_doc, reason = "an auditor that cannot read panics")]

mod history;
mod ledger;
mod lists;
mod money;
mod numbers;
mod orders;
mod rest;

use std::collections::HashMap;

use fake_gateway::Ledger;
use tokio_postgres::{Client, IsolationLevel, Transaction};
use uuid::Uuid;

/// Whether work may still be under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Everything has come to rest: no order waits for anything but its buyer or the clock.
    Rest,
    /// Orders may be under way; all else must hold at every moment.
    UnderWay,
}

/// Everything that is wrong in the database of a client, one sentence each, from one snapshot.
pub async fn findings_in(client: &mut Client, expect: Expect) -> Vec<String> {
    let snapshot = client.build_transaction().isolation_level(IsolationLevel::RepeatableRead).read_only(true);
    let tx = snapshot.start().await.expect("a snapshot");
    let facts = Facts::load(&tx).await;
    let mut findings = Vec::new();
    numbers::check(&facts, &mut findings);
    orders::check(&facts, &mut findings);
    history::check(&tx, &facts, &mut findings).await;
    lists::check(&tx, &mut findings).await;
    money::check(&tx, &facts, expect, &mut findings).await;
    if expect == Expect::Rest {
        rest::check(&tx, &mut findings).await;
    }
    findings
}

/// Everything that is wrong in the database of a client at rest, and where a gateway's ledger says otherwise about the
/// money.
pub async fn imbalances_in(client: &mut Client, ledger: &Ledger) -> Vec<String> {
    let mut findings = findings_in(client, Expect::Rest).await;
    ledger::check(client, ledger, &mut findings).await;
    findings
}

/// States in which an order owns its numbers, with the word of its rows.
const OWNING: [(&str, &str); 4] =
    [("reserved", "reserved"), ("paying", "reserved"), ("paid", "paid"), ("refunding", "paid")];

struct Facts {
    products: HashMap<i32, Product>,
    chunks: Vec<Chunk>,
    taken: Vec<Taken>,
    orders: HashMap<Uuid, Order>,
    holdings: HashMap<(i32, Uuid), i32>,
}

struct Product {
    id: Uuid,
    tenant_id: Uuid,
    first: i32,
    count: i32,
    per_buyer_max: i32,
    keeps_disputed: bool,
}

struct Chunk {
    product_key: i32,
    chunk: i32,
    bits: Vec<u8>,
    size: i32,
    /// available, reserved, paid, blocked
    counters: [i32; 4],
}

struct Taken {
    product_key: i32,
    number: i32,
    order_id: Option<Uuid>,
}

struct Order {
    id: Uuid,
    tenant_id: Uuid,
    product_id: Uuid,
    product_key: i32,
    buyer_id: Uuid,
    state: String,
    requested: Vec<i32>,
    quantity: i32,
    fallback: String,
    numbers: Vec<i32>,
    lost: Vec<i32>,
    substitutes: Vec<i32>,
    given_up: Vec<i32>,
    reason: Option<String>,
    unit_price: i64,
    total: Option<i64>,
    version: i32,
}

impl Order {
    /// Numbers that are taken in its name.
    fn owned(&self) -> impl Iterator<Item = i32> + '_ {
        let owns = self.owns().is_some();
        self.numbers.iter().copied().filter(move |number| owns && !self.given_up.contains(number))
    }

    fn owns(&self) -> Option<&'static str> {
        OWNING.iter().find(|(state, _)| *state == self.state).map(|(_, kind)| *kind)
    }
}

impl Taken {
    /// What its owner's state makes it; none when nobody may own it.
    fn kind(&self, facts: &Facts) -> Option<&'static str> {
        self.order_id.map_or(Some("blocked"), |id| facts.orders.get(&id).and_then(Order::owns))
    }
}

impl Facts {
    async fn load(tx: &Transaction<'_>) -> Self {
        let rows = |sql| async move { tx.query(sql, &[]).await.expect(sql) };
        let products = rows(
            "select key, id, tenant_id, first_number, number_count, numbers_per_buyer_max, keeps_disputed from products",
        );
        let chunks =
            rows("select product_key, chunk, bits, size, available, reserved, paid, blocked from number_chunks");
        let taken = rows("select product_key, number, order_id from taken_numbers");
        let orders = rows(
            "select id, tenant_id, product_id, product_key, buyer_id, state, requested_numbers, requested_quantity,
                fallback, numbers, lost_numbers, substitutes, reason, unit_price_minor, total_minor, version, given_up
            from orders",
        );
        let holdings = rows("select product_key, buyer_id, held from buyer_holdings");
        let product = |r: &tokio_postgres::Row| Product {
            id: r.get(1),
            tenant_id: r.get(2),
            first: r.get(3),
            count: r.get(4),
            per_buyer_max: r.get(5),
            keeps_disputed: r.get(6),
        };
        Self {
            products: products.await.iter().map(|r| (r.get(0), product(r))).collect(),
            chunks: chunks.await.iter().map(chunk_from).collect(),
            taken: taken.await.iter().map(taken_from).collect(),
            orders: orders.await.iter().map(|r| (r.get(0), order_from(r))).collect(),
            holdings: holdings.await.iter().map(|r| ((r.get(0), r.get(1)), r.get(2))).collect(),
        }
    }
}

fn chunk_from(r: &tokio_postgres::Row) -> Chunk {
    let counters = [r.get(4), r.get(5), r.get(6), r.get(7)];
    Chunk { product_key: r.get(0), chunk: r.get(1), bits: r.get(2), size: r.get(3), counters }
}

fn taken_from(r: &tokio_postgres::Row) -> Taken {
    Taken { product_key: r.get(0), number: r.get(1), order_id: r.get(2) }
}

fn order_from(r: &tokio_postgres::Row) -> Order {
    Order {
        id: r.get(0),
        tenant_id: r.get(1),
        product_id: r.get(2),
        product_key: r.get(3),
        buyer_id: r.get(4),
        state: r.get(5),
        requested: r.get(6),
        quantity: r.get(7),
        fallback: r.get(8),
        numbers: r.get(9),
        lost: r.get::<_, Option<_>>(10).unwrap_or_default(),
        substitutes: r.get::<_, Option<_>>(11).unwrap_or_default(),
        reason: r.get(12),
        unit_price: r.get(13),
        total: r.get(14),
        version: r.get(15),
        given_up: r.get::<_, Option<_>>(16).unwrap_or_default(),
    }
}
