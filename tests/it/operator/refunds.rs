//! Money back by command.

use serde_json::json;
use tests::gateway::{Fault, Matcher};
use tests::look::{count, taken};
use tests::seed::exact;
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::Terminal;

/// An order of these numbers that is paid.
async fn paid(till: &Till, numbers: &[i32], method: &str) -> Uuid {
    let buyer = till.buyer();
    let id = till.reserve(&buyer, &exact(numbers)).await;
    till.gateway.pay(till.open_payment(&buyer, id, "k", method).await).unwrap();
    till.settle().await;
    till.is(id, "paid").await;
    id
}

/// An order of these numbers that staff have booked.
async fn booked(till: &Till, terminal: &Terminal, numbers: &[i32]) -> Uuid {
    let id = till.reserve(&till.buyer(), &exact(numbers)).await;
    terminal.done(&["pay", &id.to_string(), "--reason", "cash"]).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_and_then_the_rest() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let id = paid(&till, &[7, 8, 9, 77], "card").await;
    let order = id.to_string();
    let some = ["refund", "order", &order, "--numbers", "8-9,77", "--reason", "as agreed"];
    assert_eq!(terminal.refused(&some).await.0, 3, "there is nobody to ask");
    let some = [&some[..], &["--yes"]].concat();
    let made = terminal.done(&some).await;
    assert_eq!((&made["amount_minor"], &made["numbers"]), (&json!(750), &json!([8, 9, 77])));
    let (code, text) = terminal.refused(&some).await;
    assert!(code == 3 && text.contains("00007 00008 00009 00077"), "{text}");
    till.rest().await;
    assert_eq!((till.kept(id), taken(&till.database, &till.product).await), (250, 1));
    assert_eq!(terminal.done(&["order", &order]).await["order"]["given_up"], json!([8, 9, 77]));
    let rest = ["refund", "order", &order, "--reason", "all of it", "--yes"];
    assert_eq!(terminal.done(&rest).await["amount_minor"], 250);
    till.rest().await;
    till.is(id, "refunded").await;
    let (code, text) = terminal.refused(&rest).await;
    assert!(code == 3 && text.contains("is refunded"), "{text}");
    let shown = terminal.done(&["payments", &order]).await;
    let of = |name: &str| [&shown["refunds"][0][name], &shown["refunds"][1][name]].map(Clone::clone);
    assert_eq!(of("note"), [json!("as agreed"), json!("all of it")]);
    assert_eq!(of("state"), [json!("succeeded"), json!("succeeded")]);
    assert_eq!(
        (&shown["payments"][0]["refunded_minor"], &shown["currency"]),
        (&json!(1_000), &json!(till.product.described.price.currency))
    );
    assert!(!shown.to_string().contains("secret"), "what the buyer pays with is the buyer's: {shown}");
    let nobody = Uuid::now_v7().to_string();
    assert_eq!(terminal.refused(&["refund", "order", &nobody, "--reason", "x", "--yes"]).await.0, 3);
    assert_eq!(terminal.refused(&["payments", &nobody]).await.0, 3);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_of_a_product_once_each_though_interrupted() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let card = paid(&till, &[1, 2], "card").await;
    let part = paid(&till, &[3, 4, 5], "card").await;
    let pix = paid(&till, &[6], "pix").await;
    let cash = booked(&till, &terminal, &[8]).await;
    let held = till.reserve(&till.buyer(), &exact(&[9])).await;
    terminal.done(&["refund", "order", &part.to_string(), "--numbers", "4", "--reason", "one", "--yes"]).await;
    let product = till.product.described.id.to_string();
    let all = ["refund", "all", "--product", &product, "--reason", "no draw"];
    assert_eq!(terminal.refused(&all).await.0, 3, "there is nobody to ask");
    let all = [&all[..], &["--yes"]].concat();

    let mut owner = till.database.another_owner().await;
    let lock = owner.transaction().await.unwrap();
    lock.execute("select from orders where id = $1 for no key update", &[&pix]).await.unwrap();
    let output = terminal.run(&all).await.unwrap();
    lock.rollback().await.unwrap();
    let printed = output.json();
    assert_eq!((output.code(), &printed["failed"]), (1, &json!([pix])), "{output:?}");
    assert_eq!((&printed["orders"], &printed["numbers"]), (&json!(3), &json!(5)));
    assert_eq!((&printed["amount_minor"], &printed["by_hand"]), (&json!(1_250), &json!(1)));

    let printed = terminal.done(&all).await;
    assert_eq!((&printed["orders"], &printed["amount_minor"]), (&json!(1), &json!(250)));
    till.rest().await;
    assert_eq!(terminal.done(&all).await["orders"], 0);
    for id in [card, part, pix, cash] {
        till.is(id, "refunded").await;
        assert_eq!(till.kept(id), 0);
    }
    assert_eq!(terminal.done(&["payments", &cash.to_string()]).await["payments"][0]["refunded_minor"], 250);
    till.is(held, "reserved").await;
    assert_eq!(count(&till.database, "select count(*) from refunds").await, 5);
    assert_eq!(taken(&till.database, &till.product).await, 1);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_failed_refund_is_tried_again_once() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let id = paid(&till, &[1, 2], "card").await;
    till.gateway.script(Matcher::any(), Fault::PendingThenFailed(300), 1);
    let failed = terminal.done(&["refund", "order", &id.to_string(), "--reason", "x", "--yes"]).await;
    let refund = failed["refund"].as_str().unwrap();
    let retry = ["refund", "retry", refund];
    assert_eq!(terminal.refused(&retry).await.0, 3, "it has not failed");
    till.rest().await;
    till.is(id, "refunding").await;
    let again = terminal.done(&retry).await;
    assert_eq!(again["amount_minor"], 500);
    let (code, text) = terminal.refused(&retry).await;
    assert!(code == 3 && text.contains("cannot be tried again"), "{text}");
    till.rest().await;
    till.is(id, "refunded").await;
    let shown = terminal.done(&["payments", &id.to_string()]).await;
    assert_eq!(shown["refunds"][0]["retried_as"], again["refund"]);
    assert_eq!(terminal.refused(&["refund", "retry", &Uuid::now_v7().to_string()]).await.0, 3);
    assert_eq!(till.kept(id), 0);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn all_failed_refunds_of_a_product_are_tried_again() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let orders = [paid(&till, &[1, 2], "card").await, paid(&till, &[3], "card").await, paid(&till, &[4], "pix").await];
    let product = till.product.described.id.to_string();
    till.gateway.script(Matcher::any(), Fault::PendingThenFailed(10), 2);
    terminal.done(&["refund", "all", "--product", &product, "--reason", "no draw", "--yes"]).await;
    till.rest().await;
    let owed = "select count(*) from refunds where state = 'failed' and retried_as is null";
    assert_eq!(count(&till.database, owed).await, 2);
    let retry = ["refund", "retry", "--product", &product];
    assert_eq!(terminal.refused(&retry).await.0, 3, "there is nobody to ask");
    let retry = [&retry[..], &["--yes"]].concat();
    assert_eq!(terminal.done(&retry).await["orders"], 2);
    assert_eq!(terminal.done(&retry).await["orders"], 0);
    let logged = "select count(*) from audit_log l join refunds r on r.order_id = l.subject_id
        where l.action = 'retry_refund' and l.subject = 'order' and l.detail like '%' || r.retried_as || '%'";
    assert_eq!(count(&till.database, logged).await, 2);
    till.rest().await;
    for id in orders {
        till.is(id, "refunded").await;
        assert_eq!(till.kept(id), 0);
    }
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_that_cost_nothing_are_taken_back() {
    let till = Till::sell(Policy::default(), |product| product.price(0, "BRL")).await;
    let terminal = Terminal::of(&till);
    let buyer = till.buyer();
    let id = till.reserve(&buyer, &exact(&[7, 8, 9])).await;
    let order = id.to_string();
    let some = ["refund", "order", &order, "--numbers", "8", "--reason", "x", "--yes"];
    assert_eq!(terminal.refused(&some).await.0, 3, "it is not paid yet");
    assert_eq!(till.pay(&buyer, id, "first", "card").await.status, 204);
    let halt = ["reserving", "halt", "--product", &till.product.described.id.to_string(), "--reason", "x"];
    terminal.done(&halt).await;
    let (code, text) = terminal.refused(&some).await;
    assert!(code == 3 && text.contains("halted"), "{text}");
    terminal.done(&["reserving", "resume", "--product", halt[3], "--reason", "x"]).await;
    assert_eq!(terminal.done(&some).await["numbers"], json!([8]));
    assert_eq!(terminal.refused(&some).await.0, 3, "it is not the order's any more");
    till.is(id, "paid").await;
    assert_eq!(taken(&till.database, &till.product).await, 2);
    let rest = ["refund", "order", &order, "--reason", "x", "--yes"];
    assert_eq!(terminal.done(&rest).await["numbers"], json!([7, 9]));
    till.is(id, "refunded").await;
    assert_eq!(terminal.refused(&rest).await.0, 3);
    assert_eq!(till.seen(&buyer, id).await["given_up"], json!([7, 8, 9]));
    till.chain.put(&till.product, id);
    till.rest().await;
    till.is(id, "refunded").await;
    let again = till.reserve(&buyer, &exact(&[7, 8, 9])).await;
    till.is(again, "reserved").await;
    till.finish().await;
}
