//! Orders against rows, holdings, prices and limits.

use std::collections::{BTreeSet, HashMap, HashSet};

use uuid::Uuid;

use super::{Facts, Order, Product};

pub(super) fn check(facts: &Facts, findings: &mut Vec<String>) {
    check_rows_have_orders(facts, findings);
    let taken: HashSet<(i32, i32, Uuid)> =
        facts.taken.iter().filter_map(|taken| Some((taken.product_key, taken.number, taken.order_id?))).collect();
    let mut owners: HashMap<(i32, i32), Uuid> = HashMap::new();
    let mut held: HashMap<(i32, Uuid), i32> = HashMap::new();
    for order in facts.orders.values() {
        let Some(product) = facts.products.get(&order.product_key) else {
            findings.push(format!("order {}: unknown product {}", order.id, order.product_key));
            continue;
        };
        check_shape(order, product, findings);
        if order.owns().is_none() {
            continue;
        }
        for number in order.owned() {
            if !taken.contains(&(order.product_key, number, order.id)) {
                findings.push(format!("I1: order {} is {} without a row of {number}", order.id, order.state));
            }
            if let Some(other) = owners.insert((order.product_key, number), order.id) {
                findings.push(format!("I1: {number} belongs to the orders {other} and {}", order.id));
            }
            *held.entry((order.product_key, order.buyer_id)).or_default() += 1;
        }
    }
    check_holdings(facts, &held, findings);
}

/// No orphans: every taken row that is not blocked names an order that owns it.
fn check_rows_have_orders(facts: &Facts, findings: &mut Vec<String>) {
    for taken in &facts.taken {
        let Some(id) = taken.order_id else { continue };
        let owned = facts.orders.get(&id).is_some_and(|order| {
            order.product_key == taken.product_key && order.owned().any(|number| number == taken.number)
        });
        if !owned {
            let state = facts.orders.get(&id).map(|order| &order.state);
            findings.push(format!("I1: {} is taken for order {id}, which is {state:?}", taken.number));
        }
    }
}

fn check_holdings(facts: &Facts, held: &HashMap<(i32, Uuid), i32>, findings: &mut Vec<String>) {
    let pairs: BTreeSet<&(i32, Uuid)> = facts.holdings.keys().chain(held.keys()).collect();
    for pair in pairs {
        let stored = facts.holdings.get(pair).copied().unwrap_or(0);
        let counted = held.get(pair).copied().unwrap_or(0);
        if stored != counted {
            findings.push(format!("holdings: buyer {} has {stored} of product {}, not {counted}", pair.1, pair.0));
        }
        let most = facts.products.get(&pair.0).map_or(0, |product| product.per_buyer_max);
        if counted > most {
            findings.push(format!("limit: buyer {} holds {counted} of product {}, {most} are allowed", pair.1, pair.0));
        }
    }
}

fn check_shape(order: &Order, product: &Product, findings: &mut Vec<String>) {
    let id = order.id;
    let mut wrong = |what: String| findings.push(format!("order {id} ({}): {what}", order.state));
    if order.product_id != product.id || order.tenant_id != product.tenant_id {
        wrong("I10: product key, product and tenant do not belong together".into());
    }
    let numbers: BTreeSet<i32> = order.numbers.iter().copied().collect();
    let requested: BTreeSet<i32> = order.requested.iter().copied().collect();
    let lost: BTreeSet<i32> = order.lost.iter().copied().collect();
    let substitutes: BTreeSet<i32> = order.substitutes.iter().copied().collect();
    let asked = requested.len() + usize::try_from(order.quantity).expect("not negative");
    if numbers.len() != order.numbers.len() {
        wrong(format!("has a number twice: {:?}", order.numbers));
    }
    if numbers.iter().any(|number| *number < product.first || number - product.first >= product.count) {
        wrong(format!("has numbers outside the range: {numbers:?}"));
    }
    if numbers.len() > asked
        || !lost.is_subset(&requested)
        // A number that others had may come back as a substitute.
        || lost.intersection(&numbers).any(|number| !substitutes.contains(number))
        || !substitutes.is_subset(&numbers)
    {
        wrong(format!("got {numbers:?} with {substitutes:?} for lost {lost:?} of {requested:?}, {asked} asked"));
    }
    if order.fallback != "replace" && !substitutes.is_empty() {
        wrong("has substitutes that were not asked for".into());
    }
    match order.state.as_str() {
        "queued" | "rejected" if !numbers.is_empty() => wrong("has numbers".into()),
        "rejected" if order.reason.is_none() => wrong("has no reason".into()),
        "queued" | "rejected" => {}
        _ if order.reason.is_some() => wrong(format!("has the reason {:?}", order.reason)),
        "cancelled" if order.total.is_none() && numbers.is_empty() => {}
        _ => {
            if order.total != i64::try_from(numbers.len()).ok().map(|count| order.unit_price * count) {
                wrong(format!("total {:?} for {} numbers at {}", order.total, numbers.len(), order.unit_price));
            }
            if order.fallback == "reject" && (numbers.len() != asked || !requested.is_subset(&numbers)) {
                wrong(format!("all or nothing, and got {numbers:?} of {requested:?} and {}", order.quantity));
            }
        }
    }
}
