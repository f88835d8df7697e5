//! Cash and bank transfers.

use serde_json::json;
use tests::look::{change, count, taken};
use tests::seed::exact;
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::Terminal;

async fn attempts(till: &Till) -> i64 {
    count(&till.database, "select count(*) from payment_attempts").await
}

#[tokio::test(flavor = "multi_thread")]
async fn cash_is_booked_once() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let id = till.reserve(&till.buyer(), &exact(&[1, 2])).await;
    let order = id.to_string();
    let pay = ["pay", &order, "--reason", "cash at the desk"];
    let printed = terminal.done(&pay).await;
    assert_eq!(printed, json!({"order": order, "state": "paid", "reason": "cash at the desk"}));
    assert_eq!(terminal.done(&pay).await, printed);
    till.is(id, "paid").await;
    assert_eq!((attempts(&till).await, taken(&till.database, &till.product).await), (1, 2));
    let shown = terminal.done(&["payments", &order]).await;
    let payment = &shown["payments"][0];
    assert_eq!((&payment["gateway"], &payment["used"]), (&json!("manual"), &json!("payment")));
    assert_eq!(
        (&payment["captured_minor"], &shown["refunds"], &shown["disputes"]),
        (&json!(500), &json!([]), &json!([]))
    );
    terminal.done(&["order", &order]).await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_booking_that_was_interrupted_is_taken_up_again() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let id = till.reserve(&till.buyer(), &exact(&[1])).await;
    let new = store::payments::NewAttempt {
        id: Uuid::now_v7(),
        tenant_id: till.product.described.tenant_id,
        buyer_id: None,
        order_id: id,
        method: domain::payments::Method::Manual,
        return_url: None,
        key: "booked by staff",
    };
    store::payments::start(&mut till.database.app_client().await, &new).await.unwrap();
    till.is(id, "paying").await;
    terminal.done(&["pay", &id.to_string(), "--reason", "cash"]).await;
    till.is(id, "paid").await;
    assert_eq!(attempts(&till).await, 1);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_open_payment_is_called_off_first() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    for (method, numbers) in [("card", [1]), ("pix", [2])] {
        let buyer = till.buyer();
        let id = till.reserve(&buyer, &exact(&numbers)).await;
        let open = till.open_payment(&buyer, id, "k", method).await;
        terminal.done(&["pay", &id.to_string(), "--reason", "transfer 7"]).await;
        till.is(id, "paid").await;
        assert!(till.gateway.pay(open).is_err(), "{method}: nobody can pay it any more");
    }
    assert_eq!(attempts(&till).await, 4);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_that_nobody_answers_for_is_waited_for() {
    let till = Till::open(Policy::default()).await;
    let unreachable = Terminal::of(&till).with("TIRADA_STRIPE_URL", "http://127.0.0.1:1");
    let buyer = till.buyer();
    let id = till.reserve(&buyer, &exact(&[1])).await;
    till.open_payment(&buyer, id, "k", "card").await;
    let order = id.to_string();
    let pay = ["pay", &order, "--reason", "cash"];
    let (code, text) = unreachable.refused(&pay).await;
    assert!(code == 4 && text.contains("with stripe"), "{code} {text}");
    assert_eq!(attempts(&till).await, 1, "one at a time");
    till.rest().await;
    till.is(id, "reserved").await;
    unreachable.done(&pay).await;
    till.is(id, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn only_what_holds_its_numbers_can_be_booked() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let pay = async |id: Uuid| terminal.refused(&["pay", &id.to_string(), "--reason", "cash"]).await;
    assert_eq!(pay(Uuid::now_v7()).await.0, 3);
    let buyer = till.buyer();
    let paid = till.reserve(&buyer, &exact(&[1])).await;
    till.gateway.pay(till.open_payment(&buyer, paid, "k", "card").await).unwrap();
    till.settle().await;
    let (code, text) = pay(paid).await;
    assert!(code == 3 && text.contains("is paid"), "{text}");
    let late = till.reserve(&till.buyer(), &exact(&[2])).await;
    change(&till.database, &format!("update orders set expires_at = now() where id = '{late}'"), 1).await;
    assert!(pay(late).await.1.contains("cannot be paid"));
    till.database.owner().batch_execute("update products set gateways = '{stripe}'").await.unwrap();
    let other = till.reserve(&till.buyer(), &exact(&[3])).await;
    let (code, text) = pay(other).await;
    assert!(code == 3 && text.contains("does not list the gateway manual"), "{text}");
    till.is(other, "reserved").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_product_gets_its_money_booked_and_its_order_paid_later() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let id = till.reserve(&till.buyer(), &exact(&[1])).await;
    let product = till.product.described.id.to_string();
    let switch = async |act| terminal.done(&["reserving", act, "--product", &product, "--reason", "a look"]).await;
    switch("halt").await;
    let output = terminal.run(&["pay", &id.to_string(), "--reason", "cash"]).await.unwrap();
    assert_eq!((output.code(), &output.json()["state"]), (1, &json!("paying")));
    switch("resume").await;
    till.rest().await;
    till.is(id, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_buyer_who_has_used_up_all_tries_can_pay_in_cash() {
    let till = Till::open(Policy::default()).await;
    let terminal = Terminal::of(&till);
    let buyer = till.buyer();
    let id = till.reserve(&buyer, &exact(&[1])).await;
    for number in 0..domain::limits::ATTEMPTS_PER_ORDER_MAX {
        till.open_payment(&buyer, id, &format!("key-{number}"), "pix").await;
    }
    assert_eq!(till.pay(&buyer, id, "one-more", "pix").await.refusal().1, "too-many-attempts");
    assert_eq!(terminal.done(&["pay", &id.to_string(), "--reason", "cash"]).await["state"], "paid");
    till.finish().await;
}
