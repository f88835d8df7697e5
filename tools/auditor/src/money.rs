//! I4, I6 and I8: money taken, given back and kept is the price of the numbers that an order still owns.

use std::collections::HashMap;

use tokio_postgres::Transaction;
use uuid::Uuid;

use super::{Expect, Facts, Order};

#[derive(Default)]
struct Money {
    captured: i64,
    payments: i64,
    paid_with: i64,
    undecided: i64,
    /// Refunds by what became of them.
    asked: i64,
    accepted: i64,
    succeeded: i64,
    owed: i64,
    lost: i64,
    /// Beyond the price, on its way back.
    excess: i64,
    /// Given back in the gateway's dashboard, and the numbers that stand for it.
    elsewhere: i64,
    numbers_elsewhere: i64,
    /// Numbers of accepted refunds.
    gone: Vec<i32>,
}

pub(super) async fn check(tx: &Transaction<'_>, facts: &Facts, expect: Expect, findings: &mut Vec<String>) {
    let mut money: HashMap<Uuid, Money> = HashMap::new();
    let sql = "select order_id, captured_minor, used, state, amount_minor from payment_attempts";
    for row in tx.query(sql, &[]).await.expect("the attempts") {
        let of = money.entry(row.get(0)).or_default();
        let (captured, used, state): (i64, Option<&str>, &str) = (row.get(1), row.get(2), row.get(3));
        of.captured += captured;
        of.undecided += i64::from(used.is_none() && captured > 0);
        if used == Some("payment") {
            of.payments += 1;
            of.paid_with += captured;
        }
        if (state == "captured") != (captured > 0) {
            findings.push(format!("I6: an attempt is {state} with {captured} captured"));
        }
    }
    let sql = "select r.order_id, r.amount_minor, r.state, r.retried_as is not null, r.numbers, r.cause, a.used
        from refunds r join payment_attempts a on a.id = r.attempt_id";
    for row in tx.query(sql, &[]).await.expect("the refunds") {
        let of = money.entry(row.get(0)).or_default();
        let (amount, state, retried): (i64, &str, bool) = (row.get(1), row.get(2), row.get(3));
        let numbers: Vec<i32> = row.get(4);
        let (cause, used): (&str, Option<&str>) = (row.get(5), row.get(6));
        if used == Some("payment") && cause == "wrong-amount" && !(state == "failed" && retried) {
            of.excess += amount;
        }
        if cause == "elsewhere" && state != "failed" {
            of.elsewhere += amount;
            of.numbers_elsewhere += i64::try_from(numbers.len()).unwrap_or(0);
        }
        match state {
            "created" => of.asked += amount,
            "failed" if !retried => of.owed += amount,
            "failed" => {}
            _ => {
                of.accepted += amount;
                of.succeeded += if state == "succeeded" { amount } else { 0 };
                of.gone.extend(numbers);
            }
        }
    }
    let sql = "select order_id, amount_minor from disputes where state = 'lost'";
    for row in tx.query(sql, &[]).await.expect("the disputes") {
        money.entry(row.get(0)).or_default().lost += row.get::<_, i64>(1);
    }
    let nothing = Money::default();
    for order in facts.orders.values() {
        let keeps = facts.products.get(&order.product_key).is_some_and(|product| product.keeps_disputed);
        check_order(order, money.get(&order.id).unwrap_or(&nothing), keeps, expect, findings);
    }
}

fn check_order(order: &Order, money: &Money, keeps_disputed: bool, expect: Expect, findings: &mut Vec<String>) {
    let mut wrong = |what: String| findings.push(format!("order {} ({}): {what}", order.id, order.state));
    if money.payments > 1 {
        wrong(format!("I6: paid {} times", money.payments));
    }
    if money.accepted + money.asked + money.lost > money.captured {
        wrong(format!("I4: {} go back of {} captured", money.accepted + money.asked + money.lost, money.captured));
    }
    let price = order.total.unwrap_or(0);
    if order.state == "paid" && price > 0 && (money.payments, money.paid_with - money.excess) != (1, price) {
        wrong(format!("I4: costs {price}, paid with {} by {} payments", money.paid_with, money.payments));
    }
    if let Some(number) = money.gone.iter().find(|number| order.owned().any(|owned| owned == **number)) {
        wrong(format!("I4: {number} was refunded and is still owned"));
    }
    if order.state == "refunded" && money.succeeded + money.lost < money.captured {
        wrong(format!("I8: {} of {} are back", money.succeeded + money.lost, money.captured));
    }
    if expect == Expect::UnderWay || price == 0 {
        return;
    }
    if money.undecided > 0 {
        wrong("I6: money came and nobody has decided about it".into());
    }
    let sold = matches!(order.state.as_str(), "paid" | "refunding" | "refunded");
    let owned = if sold { order.unit_price * i64::try_from(order.owned().count()).unwrap_or(0) } else { 0 };
    // What is owed to the buyer is still here: its numbers may be gone, or have never come back.
    let lost = if keeps_disputed { 0 } else { money.lost };
    let kept = money.captured - money.accepted - money.asked - lost;
    // A seller may give back less than a number costs.
    let goodwill = (money.elsewhere - order.unit_price * money.numbers_elsewhere).max(0);
    if kept < owned - goodwill || kept > owned + money.owed {
        wrong(format!("I4: {kept} are kept and {} owed for numbers worth {owned}", money.owed));
    }
}
