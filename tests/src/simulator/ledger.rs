//! What clients saw: every acceptance, and every state that an order was seen in. At the end the ledger is held
//! against what is true: no acceptance may have vanished, and nothing that was final may have changed.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

use serde_json::Value;
use uuid::Uuid;

use super::gateway::{Gateway, HttpRequest};
use crate::http::Answer;
use crate::{TestDatabase, look};

/// States in which a drained order may be.
const AT_REST: [&str; 8] = ["reserved", "paying", "paid", "rejected", "cancelled", "expired", "refunding", "refunded"];
/// What may be seen after a state, besides the state itself.
const FOLLOWING: [(&str, &[&str]); 8] = [
    ("reserved", &["paying", "paid", "cancelled", "expired", "refunding", "refunded"]),
    ("paying", &["reserved", "paid", "cancelled", "expired", "refunding", "refunded"]),
    ("paid", &["refunding", "refunded"]),
    ("rejected", &[]),
    // Money can still come.
    ("cancelled", &["refunding", "refunded"]),
    ("expired", &["paid", "refunding", "refunded"]),
    ("refunding", &["refunded"]),
    // A refund that had succeeded can fail.
    ("refunded", &["refunding"]),
];

/// An order whose acceptance a client saw.
#[derive(Debug, Clone)]
pub struct Acceptance {
    /// The order.
    pub order_id: Uuid,
    /// The key that it was placed under.
    pub key: String,
    /// The buyer's `Authorization` header.
    pub bearer: String,
    /// The product.
    pub product_id: Uuid,
    /// The body of the request.
    pub body: String,
}

impl Acceptance {
    /// Sends the same request again.
    pub(super) async fn repeat(&self, gateway: &Gateway) -> Answer {
        let headers = [
            ("authorization", self.bearer.as_str()),
            ("idempotency-key", &self.key),
            ("content-type", "application/json"),
        ];
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let path = format!("/v1/products/{}/orders", self.product_id);
        gateway.send(HttpRequest { method: "POST", path, headers, body: self.body.clone() }).await
    }
}

/// An order as somebody saw it.
#[derive(Debug, Clone)]
struct Seen {
    state: String,
    numbers: Vec<i64>,
    substitutes: Vec<i64>,
}

/// What all clients of a world saw.
#[derive(Clone, Default)]
pub struct Ledger(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    accepted: BTreeMap<String, Acceptance>,
    seen: HashMap<Uuid, Seen>,
    attempts: HashMap<(Uuid, String), Uuid>,
    wrong: Vec<String>,
    refusals: BTreeMap<String, usize>,
    retries: BTreeMap<String, usize>,
}

impl Ledger {
    /// A client saw that its order was accepted. The same key must always give the same order.
    pub fn accepted(&self, acceptance: Acceptance) {
        let mut inner = self.0.lock().unwrap();
        let key = acceptance.key.clone();
        let order_id = acceptance.order_id;
        let first = inner.accepted.entry(key.clone()).or_insert(acceptance).order_id;
        if first != order_id {
            inner.wrong.push(format!("the key {key} gave the orders {first} and {order_id}"));
        }
    }

    /// A client saw that a payment is under way. The same key must always give the same attempt.
    pub fn paying(&self, order_id: Uuid, key: &str, attempt_id: Uuid) {
        let mut inner = self.0.lock().unwrap();
        let first = *inner.attempts.entry((order_id, key.to_owned())).or_insert(attempt_id);
        if first != attempt_id {
            inner.wrong.push(format!("the key {key} gave the attempts {first} and {attempt_id}"));
        }
    }

    /// A client was refused for good, with this code.
    pub fn refused(&self, code: &str) {
        *self.0.lock().unwrap().refusals.entry(code.to_owned()).or_default() += 1;
    }

    /// A client was told to try again, with this status and code.
    pub fn retried(&self, status: u16, code: &str) {
        let mut inner = self.0.lock().unwrap();
        *inner.retries.entry(format!("{status} {code}").trim().to_owned()).or_default() += 1;
    }

    /// A client saw an order, as the API describes it.
    pub fn saw(&self, order_id: Uuid, order: &Value) {
        let state = order["state"].as_str().unwrap_or_default().to_owned();
        let list = |name: &str| order[name].as_array().into_iter().flatten().filter_map(Value::as_i64).collect();
        let now = Seen { state, numbers: list("numbers"), substitutes: list("substitutes") };
        let mut inner = self.0.lock().unwrap();
        if let Some(before) = inner.seen.get(&order_id)
            && !may_follow(before, &now)
        {
            let wrong = format!("order {order_id} was seen as {before:?} and then as {now:?}");
            inner.wrong.push(wrong);
        }
        inner.seen.insert(order_id, now);
    }

    /// Acceptances seen so far.
    #[must_use]
    pub fn acceptances(&self) -> Vec<Acceptance> {
        self.0.lock().unwrap().accepted.values().cloned().collect()
    }

    /// Refusals for good by code.
    #[must_use]
    pub fn refusals(&self) -> BTreeMap<String, usize> {
        self.0.lock().unwrap().refusals.clone()
    }

    /// Answers that told clients to try again, by status and code.
    #[must_use]
    pub fn retries(&self) -> BTreeMap<String, usize> {
        self.0.lock().unwrap().retries.clone()
    }

    /// What is wrong, one sentence each, now that everything has come to rest.
    pub async fn findings(&self, database: &TestDatabase) -> Vec<String> {
        let (accepted, seen, attempts, mut wrong) = {
            let inner = self.0.lock().unwrap();
            (inner.accepted.clone(), inner.seen.clone(), inner.attempts.clone(), inner.wrong.clone())
        };
        let rows = database
            .owner()
            .query("select id, idempotency_key, state, numbers, coalesce(substitutes, '{}') from orders", &[])
            .await;
        let rows = rows.expect("the orders");
        let mut orders: HashMap<Uuid, (String, Seen)> = HashMap::new();
        for row in &rows {
            let list = |place: usize| row.get::<_, Vec<i32>>(place).into_iter().map(i64::from).collect();
            let now = Seen { state: row.get(2), numbers: list(3), substitutes: list(4) };
            orders.insert(row.get(0), (row.get(1), now));
        }
        for (key, acceptance) in accepted {
            let id = acceptance.order_id;
            match orders.get(&id) {
                None => wrong.push(format!("order {id} was accepted and is gone")),
                Some((stored, _)) if *stored != key => {
                    wrong.push(format!("order {id} has the key {stored}, not {key}"))
                }
                Some((_, now)) if !AT_REST.contains(&now.state.as_str()) => {
                    wrong.push(format!("order {id} came to no end: it is {}", now.state));
                }
                Some(_) => {}
            }
        }
        for (id, seen) in seen {
            let now = orders.get(&id).map(|(_, now)| now);
            if now.is_none_or(|now| !may_follow(&seen, now)) {
                wrong.push(format!("order {id} was seen as {seen:?} and is {now:?}"));
            }
        }
        let rows = database.owner().query("select order_id, requested_under, id from payment_attempts", &[]).await;
        let stored: HashMap<(Uuid, String), Uuid> =
            rows.expect("the attempts").iter().map(|row| ((row.get(0), row.get(1)), row.get(2))).collect();
        for (asked, attempt_id) in attempts {
            if stored.get(&asked) != Some(&attempt_id) {
                wrong.push(format!("attempt {attempt_id} of order {} was under way and is gone", asked.0));
            }
        }
        let keys = "select count(*) from (select from orders group by tenant_id, buyer_id, idempotency_key having count(*) > 1) x";
        if look::count(database, keys).await > 0 {
            wrong.push("a key has two orders".into());
        }
        wrong
    }
}

fn may_follow(before: &Seen, now: &Seen) -> bool {
    let following = FOLLOWING.iter().find(|(state, _)| *state == before.state);
    let following = following.map_or(&[] as &[&str], |(_, following)| following);
    let follows = before.state == now.state || following.contains(&now.state.as_str());
    before.state == "queued" || (follows && (before.numbers == now.numbers || are_replaced(before, now)))
}

/// Late money bought others in place of what was gone. They are named, and only what had run out can be gone.
fn are_replaced(before: &Seen, now: &Seen) -> bool {
    let was_held = matches!(before.state.as_str(), "reserved" | "paying" | "expired");
    let was_paid = matches!(now.state.as_str(), "paid" | "refunding" | "refunded");
    let explained = |number: &i64| before.numbers.contains(number) || now.substitutes.contains(number);
    was_held && was_paid && before.numbers.len() == now.numbers.len() && now.numbers.iter().all(explained)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_was_seen_may_not_be_taken_back() {
        let order = |state: &str, numbers: &[i64]| json!({ "state": state, "numbers": numbers });
        let replaced = |state: &str, numbers: &[i64], substitutes: &[i64]| json!({ "state": state, "numbers": numbers, "substitutes": substitutes });
        for (before, now, fine) in [
            (order("queued", &[]), order("reserved", &[1]), true),
            (order("reserved", &[1]), order("expired", &[1]), true),
            (order("reserved", &[1]), order("reserved", &[2]), false),
            (order("reserved", &[1]), order("queued", &[]), false),
            (order("reserved", &[1]), order("rejected", &[]), false),
            (order("rejected", &[]), order("reserved", &[1]), false),
            (order("expired", &[1]), order("paid", &[1]), true),
            (order("paid", &[1]), order("expired", &[1]), false),
            (order("refunded", &[1]), order("paid", &[1]), false),
            (order("expired", &[1, 2]), order("paid", &[1, 3]), false),
            (order("expired", &[1, 2]), replaced("paid", &[1, 3], &[3]), true),
            (order("reserved", &[1, 2]), replaced("reserved", &[1, 3], &[3]), false),
            (order("expired", &[1, 2]), replaced("paid", &[3], &[3]), false),
        ] {
            let ledger = Ledger::default();
            ledger.saw(Uuid::nil(), &before);
            ledger.saw(Uuid::nil(), &now);
            assert_eq!(ledger.0.lock().unwrap().wrong.is_empty(), fine, "{before} then {now}");
        }
    }

    #[tokio::test]
    async fn a_vanished_order_and_a_key_with_two_orders_are_found() {
        let database = TestDatabase::new().await;
        let ledger = Ledger::default();
        let acceptance = |order_id| Acceptance {
            order_id,
            key: "key".into(),
            bearer: String::new(),
            product_id: Uuid::nil(),
            body: String::new(),
        };
        assert_eq!(ledger.findings(&database).await, Vec::<String>::new());
        ledger.accepted(acceptance(Uuid::nil()));
        ledger.accepted(acceptance(Uuid::max()));
        let found = ledger.findings(&database).await;
        assert!(found.len() == 2 && found[0].contains("the key key gave") && found[1].contains("is gone"), "{found:?}");
        database.finish().await;
    }
}
