//! I12: every order came to its state by allowed steps, each written down once.

use std::collections::HashMap;

use tokio_postgres::Transaction;
use uuid::Uuid;

use super::Facts;

/// The auditor's own copy of the rules.
const ALLOWED: [(&str, &str); 18] = [
    ("queued", "reserved"),
    ("queued", "rejected"),
    ("queued", "cancelled"),
    ("reserved", "paying"),
    ("reserved", "paid"),
    ("reserved", "cancelled"),
    ("reserved", "expired"),
    ("paying", "reserved"),
    ("paying", "paid"),
    ("paying", "expired"),
    ("paying", "cancelled"),
    ("paying", "refunding"),
    ("paid", "refunding"),
    ("refunding", "refunded"),
    ("refunded", "refunding"),
    ("expired", "paid"),
    ("expired", "refunding"),
    ("cancelled", "refunding"),
];

pub(super) async fn check(tx: &Transaction<'_>, facts: &Facts, findings: &mut Vec<String>) {
    let sql = "select order_id, version, from_state, to_state from order_events order by order_id, version";
    let mut last: HashMap<Uuid, (i32, String)> = HashMap::new();
    for row in tx.query(sql, &[]).await.expect("the history") {
        let id: Uuid = row.get(0);
        let version: i32 = row.get(1);
        let (from, to): (Option<String>, String) = (row.get(2), row.get(3));
        let allowed = match last.get(&id) {
            None => version == 1 && from.is_none() && to == "queued",
            Some((before, state)) => {
                version == before + 1
                    && from.as_ref() == Some(state)
                    && ALLOWED.contains(&(state.as_str(), to.as_str()))
            }
        };
        if !allowed {
            findings.push(format!("I12: order {id}: step {version} from {from:?} to {to} after {:?}", last.get(&id)));
        }
        last.insert(id, (version, to));
    }
    for order in facts.orders.values() {
        match last.remove(&order.id) {
            Some((version, state)) if version == order.version && state == order.state => {}
            found => findings.push(format!(
                "I12: order {} is {} in version {}, its history ends with {found:?}",
                order.id, order.state, order.version
            )),
        }
    }
    findings.extend(last.keys().map(|id| format!("I12: history of the unknown order {id}")));
}
