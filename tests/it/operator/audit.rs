//! Whatever the operator does to a store stands in the store's audit log, and what was refused does not.

use std::collections::BTreeSet;

use clap::CommandFactory;
use domain::catalog::Range;
use operator::Cli;
use serde_json::{Value, json};
use tests::look::count;
use tests::seed::exact;
use tests::till::{Policy, Till};
use tokio_postgres::Row;
use uuid::Uuid;

use super::Terminal;
use crate::security::leaves;

/// Commands that leave a line in the audit log of the store that they change.
const LOGGED: &[&str] = &[
    "buyer email",
    "buyer erase",
    "buyer logout",
    "finding close",
    "gateway set",
    "intake pause",
    "intake resume",
    "numbers block",
    "numbers unblock",
    "pay",
    "product payments",
    "rebuild",
    "refund all",
    "refund order",
    "refund retry",
    "reserving halt",
    "reserving resume",
    "staff erase",
    "staff invite",
    "staff recover",
    "store countries",
    "store notices",
    "store open",
];

/// Commands that look, and those that change nothing of one store: keys, messages, and what is sealed with a key.
const UNLOGGED: &[&str] = &[
    "audit",
    "gateway list",
    "gateway reseal",
    "keys signing",
    "notices",
    "order",
    "payments",
    "products",
    "queues",
    "redrive",
    "staff list",
    "staff reseal",
];

#[test]
fn every_command_is_known_to_be_logged_or_not() {
    let mut commands = Vec::new();
    leaves(&Cli::command(), "tirada", &mut commands);
    let commands: BTreeSet<&str> = commands.iter().map(|name| name.strip_prefix("tirada ").unwrap()).collect();
    let known: BTreeSet<&str> = LOGGED.iter().chain(UNLOGGED).copied().collect();
    assert_eq!(commands, known);
}

/// The operator's lines in the store's audit log, oldest first: action, subject, its id, detail, reason.
async fn lines(till: &Till) -> Vec<Value> {
    let sql = "select action, subject, subject_id::text, detail, reason from audit_log
        where tenant_id = $1 and staff_id is null order by id";
    let line = |row: &Row| {
        let text = |column: usize| row.get::<_, Option<String>>(column);
        let detail: Value = text(3).map_or(Value::Null, |detail| serde_json::from_str(&detail).unwrap());
        json!([text(0), text(1), text(2), detail, text(4)])
    };
    let rows = till.database.owner().query(sql, &[&till.product.described.tenant_id]).await.unwrap();
    rows.iter().map(line).collect()
}

async fn slug(till: &Till) -> String {
    let sql = "select slug from tenants where id = $1";
    till.database.owner().query_one(sql, &[&till.product.described.tenant_id]).await.unwrap().get(0)
}

fn words(line: &str) -> Vec<&str> {
    line.split(' ').collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_done_to_a_store_is_in_its_log_with_the_reason() {
    let till = Till::open(Policy::default()).await;
    let (terminal, slug) = (Terminal::of(&till), slug(&till).await);
    let (store, id) = (till.product.described.tenant_id.to_string(), till.product.described.id.to_string());
    let payments = "--gateways manual,stripe --capture automatic --late-money refund";
    let policy = json!({
        "gateways": ["manual", "stripe"], "capture": "automatic", "late_money": "refund", "keeps_disputed": false,
    });
    let mut wanted = Vec::new();
    for (line, logged) in [
        (
            format!("intake pause --store {slug} --reason storm"),
            json!(["set_store_intake", "store", store, { "intake": "paused" }, "storm"]),
        ),
        (
            format!("intake resume --store {slug} --reason calm"),
            json!(["set_store_intake", "store", store, { "intake": "open" }, "calm"]),
        ),
        (
            format!("intake pause --product {id} --reason moved"),
            json!(["set_product_intake", "product", id, { "intake": "paused" }, "moved"]),
        ),
        (
            format!("intake resume --product {id} --reason now"),
            json!(["set_product_intake", "product", id, { "intake": "open" }, "now"]),
        ),
        (
            format!("reserving halt --product {id} --reason fault"),
            json!(["set_reserving", "product", id, { "reserving": "halted" }, "fault"]),
        ),
        (format!("rebuild --product {id}"), json!(["rebuild_product", "product", id, null, null])),
        (
            format!("reserving resume --product {id} --reason rebuilt"),
            json!(["set_reserving", "product", id, { "reserving": "on" }, "rebuilt"]),
        ),
        (
            format!("numbers block --product {id} 9,7-8,77 --reason jury"),
            json!(["block_numbers", "product", id, { "runs": "7-9,77" }, "jury"]),
        ),
        (
            format!("numbers unblock --product {id} 8 --reason found"),
            json!(["unblock_numbers", "product", id, { "runs": "8" }, "found"]),
        ),
        (
            format!("store countries --store {slug} --serve 55,34"),
            json!(["set_countries", "store", store, { "countries": ["34", "55"] }, null]),
        ),
        (
            format!("store notices --store {slug} --send paid"),
            json!(["edit_store", "store", store, { "notices": ["paid"] }, null]),
        ),
        (format!("product payments --product {id} {payments}"), json!(["set_payments", "product", id, policy, null])),
    ] {
        terminal.done(&words(&line)).await;
        wanted.push(logged);
    }
    assert_eq!(lines(&till).await, wanted);
    for look in [format!("store countries --store {slug}"), format!("store notices --store {slug}")] {
        terminal.done(&words(&look)).await;
    }
    assert_eq!(lines(&till).await.len(), wanted.len(), "who looks changes nothing");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn money_that_is_booked_and_given_back_is_in_the_log_once() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let order = till.reserve(&till.buyer(), &exact(&[1, 2])).await;
    let (id, product) = (order.to_string(), till.product.described.id.to_string());
    let mut wanted = Vec::new();
    for (line, action, detail, reason) in [
        (format!("pay {id} --reason cash"), "book_payment", Value::Null, "cash"),
        (
            format!("refund order {id} --numbers 1 --reason part --yes"),
            "refund_order",
            json!({ "numbers": [1] }),
            "part",
        ),
        (
            format!("refund all --product {product} --reason off --yes"),
            "refund_order",
            json!({ "numbers": null }),
            "off",
        ),
    ] {
        terminal.done(&words(&line)).await;
        till.rest().await;
        wanted.push(json!([action, "order", id, detail, reason]));
        assert_eq!(lines(&till).await, wanted);
    }
    terminal.done(&["refund", "all", "--product", &product, "--reason", "off", "--yes"]).await;
    assert_eq!(lines(&till).await, wanted, "again, nothing is left to give back");
    till.is(order, "refunded").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_refused_is_not_in_the_log_and_says_which_numbers_are_wrong() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let id = till.product.described.id.to_string();
    till.reserve(&till.buyer(), &exact(&[7])).await;
    terminal.done(&["numbers", "block", "--product", &id, "8", "--reason", "jury"]).await;
    let [seven, eight, nine] = [7, 8, 9].map(|number| Range::label(number, till.product.described.padding));
    for (act, numbers, said) in [
        ("block", "7-9", format!("only free numbers can be blocked, not {seven}, {eight};")),
        ("unblock", "7-9", format!("only blocked numbers can be unblocked, not {seven}, {nine};")),
    ] {
        let (code, text) = terminal.refused(&["numbers", act, "--product", &id, numbers, "--reason", "x"]).await;
        assert!(code == 3 && text.contains(&said), "{text}");
    }
    let odd = (0..1_001).map(|n| (2 * n + 1).to_string()).collect::<Vec<_>>().join(",");
    let (code, text) = terminal.refused(&["numbers", "block", "--product", &id, &odd, "--reason", "x"]).await;
    assert!(code == 3 && text.contains("too many for the audit log"), "{text}");
    let nothing = Uuid::now_v7().to_string();
    assert_eq!(terminal.refused(&["intake", "pause", "--product", &nothing, "--reason", "x"]).await.0, 3);
    assert_eq!(lines(&till).await.len(), 1, "only what was done");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_platforms_own_switch_is_no_stores() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    terminal.done(&["intake", "pause", "--all", "--reason", "leak", "--yes"]).await;
    let told = "select count(*) from platform where intake = 'paused' and intake_reason = 'leak'";
    assert_eq!(count(&till.database, told).await, 1, "its reason stands with it");
    terminal.done(&["intake", "resume", "--all", "--reason", "rotated", "--yes"]).await;
    assert_eq!(count(&till.database, "select count(*) from audit_log").await, 0);
    till.finish().await;
}
