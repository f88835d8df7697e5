//! No order waits for another one, and gateways are not asked again and again for nothing.

use std::sync::Arc;
use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use domain::messages::{EventMessage, Queue};
use edge::Deadline;
use edge::queue::MessageQueue;
use tests::chain::message;
use tests::gateway::{Call, Dialect, Fault, Matcher};
use tests::look::{change, count};
use tests::seed::{exact, quick};
use tests::till::{Policy, Till};
use uuid::Uuid;

use super::{paid, refund};

/// Answers of gateways that were written down.
const ANSWERS: &str = "select sum(version)::int8 from payment_attempts";

/// As many attempts as an order may have, each replacing the one before.
async fn many_attempts(till: &Till, method: &str) -> Uuid {
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[10])).await;
    for number in 0..domain::limits::ATTEMPTS_PER_ORDER_MAX {
        till.open_payment(&buyer, order, &format!("key-{number}"), method).await;
        till.settle().await;
    }
    order
}

/// So many payments that have ended, all to be looked at since an hour. They are one order's, so that few messages are
/// owed, and took nothing, so that its money is right.
async fn yesterdays_sale(till: &Till, order: Uuid, payments: u64) {
    let sql = format!(
        "insert into payment_attempts (id, tenant_id, order_id, expires_at, amount_minor, number, gateway, method,
            capture, currency, requested_under, fingerprint, state, used, captured_minor, payment_id, look_at)
        select gen_random_uuid(), tenant_id, order_id, expires_at, amount_minor, (number + n)::int2, gateway, method,
            capture, currency, requested_under || n, fingerprint, 'captured', 'return', 0, payment_id || n,
            now() - interval '1 hour'
        from payment_attempts, generate_series(1, {payments}) n where order_id = '{order}'"
    );
    change(&till.database, &sql, payments).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_payment_without_an_answer_is_looked_at_before_yesterdays_sale() {
    let till = Till::open(Policy::default()).await;
    let (_, order, _) = paid(&till, "card").await;
    yesterdays_sale(&till, order, 2_000).await;
    let buyer = till.buyer();
    let second = till.reserve(&buyer, &exact(&[7])).await;
    till.gateway.script(Matcher::call(Call::Create), Fault::EffectThenNoAnswer(0), 6);
    assert_eq!(till.pay(&buyer, second, "first", "card").await.status, 202);
    till.gateway.heal();
    till.pass(Duration::from_secs(60)).await;
    store::payments::owe_looks(&till.database.app_client().await).await.unwrap();
    let owed = format!("select count(*) from outbox where queue = 'settle-payment' and order_id = '{second}'");
    assert_eq!(count(&till.database, &owed).await, 1);
    change(&till.database, "delete from payment_attempts where number > 1", 2_000).await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_looks_of_a_big_sale_do_not_pile_up() {
    let till = Till::open(Policy::default()).await;
    let (_, order, _) = paid(&till, "card").await;
    yesterdays_sale(&till, order, 900).await;
    till.chain.reconcile().await;
    let owed = "select count(*) from payment_attempts where look_owed";
    assert_eq!(count(&till.database, owed).await, 900, "one run owes them all, in as many passes as it takes");
    change(&till.database, "delete from payment_attempts where number > 1", 900).await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_of_many_attempts_does_not_hold_its_neighbour_up() {
    let till = Till::open(Policy::default()).await;
    let (_, healthy, _) = paid(&till, "card").await;
    let many = many_attempts(&till, "pix").await;
    till.gateway.script(Matcher::call(Call::Fetch).of(Dialect::MercadoPago), Fault::Delay(500), u32::MAX);
    let queue = Arc::clone(&till.chain.queues) as Arc<dyn MessageQueue>;
    let state = settle_payment::State::new(till.database.app(2), till.cashier.clone(), queue);
    let mut event = SqsEvent::default();
    event.records = [healthy, many].map(|order| record(&till, order)).into();
    let response = settle_payment::handle(&state, event, Deadline::after(Duration::from_secs(4))).await.unwrap();
    let failed: Vec<String> = response.batch_item_failures.into_iter().map(|one| one.item_identifier).collect();
    assert!(failed.is_empty(), "{failed:?} of {healthy} and {many}");
    till.gateway.heal();
    till.finish().await;
}

fn record(till: &Till, order: Uuid) -> SqsMessage {
    let mut record = SqsMessage::default();
    record.message_id = Some(order.to_string());
    record.receipt_handle = Some(order.to_string());
    record.body = Some(message(&till.product, order).body());
    record
}

#[tokio::test(flavor = "multi_thread")]
async fn attempts_that_have_ended_are_not_asked_about_for_each_new_one() {
    let till = Till::open(Policy::default()).await;
    many_attempts(&till, "card").await;
    let answers = count(&till.database, ANSWERS).await;
    assert!(answers < 200, "{answers} answers for 20 attempts");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_halted_product_does_not_ask_again_about_money_that_is_known() {
    let till = Till::open(Policy::default()).await;
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    change(&till.database, "update products set reserving = 'halted'", 1).await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    till.is(order, "paying").await;
    let before = count(&till.database, ANSWERS).await;
    for _ in 0..20 {
        till.pass(Duration::from_secs(30)).await;
        till.chain.reconcile().await;
        till.settle().await;
    }
    let asked = count(&till.database, ANSWERS).await - before;
    assert!(asked <= 2, "{asked} questions in ten minutes");
    change(&till.database, "update products set reserving = 'on'", 1).await;
    till.rest().await;
    till.is(order, "paid").await;
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_stores_unreadable_events_do_not_go_before_others() {
    let till = Till::open(Policy::default()).await;
    let other = tests::seed::store(till.database.owner()).await;
    let unreadable = format!(
        "insert into inbox (tenant_id, gateway, event_id, kind, payment_id, look_at, looks)
        select '{other}', 'stripe', 'evt_' || n, 'payment_intent.created', 'pi_' || n, now() - interval '1 hour', 20
        from generate_series(1, 20000) n"
    );
    change(&till.database, &unreadable, 20_000).await;
    let event = store::payments::Event {
        tenant_id: till.product.described.tenant_id,
        gateway: domain::payments::Gateway::Stripe,
        event_id: "evt_ours".into(),
        kind: "payment_intent.succeeded".into(),
        payment_id: Some("pi_1".into()),
    };
    let client = till.database.app_client().await;
    store::payments::receive(&client, &event).await.unwrap();
    change(&till.database, "update inbox set look_at = now() where event_id = 'evt_ours'", 1).await;
    let claimed = store::payments::claim_unprocessed(&client).await.unwrap();
    assert!(claimed.contains(&event) && claimed.len() > 1, "{} claimed", claimed.len());
    till.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn messages_of_a_store_whose_credentials_cannot_be_opened_do_not_die() {
    let till = Till::open(Policy::default()).await;
    let (_, order, _) = paid(&till, "card").await;
    let credentials = "select sealed from gateway_accounts where gateway = 'stripe'";
    let sealed: Vec<u8> = till.database.owner().query_one(credentials, &[]).await.unwrap().get(0);
    change(&till.database, "update gateway_accounts set sealed = sha512(sealed) where gateway = 'stripe'", 1).await;
    let till = till.restart_workers();
    refund(&till, order, Some(&[1])).await.unwrap();
    let event = store::payments::Event {
        tenant_id: till.product.described.tenant_id,
        gateway: domain::payments::Gateway::Stripe,
        event_id: "evt_ours".into(),
        kind: "payment_intent.succeeded".into(),
        payment_id: Some("pi_1".into()),
    };
    store::payments::receive(&till.database.app_client().await, &event).await.unwrap();
    let told = EventMessage::new(event.tenant_id, event.gateway, &event.event_id);
    let body = serde_json::to_string(&told).unwrap();
    till.chain.queues.put_body(Queue::SettlePayment, body, event.tenant_id.to_string());
    till.chain.put_settle(&till.product, order);
    till.chain.settle().await;
    assert_eq!(till.chain.queues.dead(Queue::SettlePayment), Vec::<String>::new(), "each look would send another");
    let unread = "select count(*) from inbox where event_id = 'evt_ours' and processed_at is null";
    assert_eq!(count(&till.database, unread).await, 1);
    assert_eq!(till.kept(order), 1_250);
    let restored = "update gateway_accounts set sealed = $1 where gateway = 'stripe'";
    till.database.owner().execute(restored, &[&sealed]).await.unwrap();
    let till = till.restart_workers();
    till.rest().await;
    assert_eq!(till.kept(order), 1_000);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_gateway_that_only_keeps_us_waiting_is_left_alone_for_a_moment() {
    let till = Till::open(Policy::default()).await;
    let mut orders = Vec::new();
    for _ in 0..=domain::limits::SILENCES_MAX {
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        orders.push((buyer, order));
    }
    let (patient, late) = (orders.split_off(1), orders.remove(0));
    till.gateway.script(Matcher::call(Call::Create), Fault::NoEffectNoAnswer(2_100), u32::MAX);
    let waited = patient.iter().map(|(buyer, order)| till.pay(buyer, *order, "first", "card"));
    assert!(futures::future::join_all(waited).await.iter().all(|answer| answer.status == 202));
    till.gateway.heal();
    let (buyer, order) = late;
    assert_eq!(till.pay(&buyer, order, "first", "card").await.status, 202, "it would only take somebody's place");
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.open_payment(&buyer, order, "first", "pix").await;
    till.restart_workers().finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_slow_database_is_not_the_gateways_silence() {
    let till = Till::open(Policy::default()).await;
    let mut orders = Vec::new();
    for _ in 0..domain::limits::SILENCES_MAX {
        let buyer = till.buyer();
        let order = till.reserve(&buyer, &quick(1)).await;
        orders.push((buyer, order));
    }
    till.gateway.script(Matcher::call(Call::Create), Fault::Delay(1_500), domain::limits::SILENCES_MAX);
    // While the gateway is asked somebody takes the orders, so that its answers cannot be written down.
    let paying =
        futures::future::join_all(orders.iter().map(|(buyer, order)| till.pay(buyer, *order, "first", "card")));
    let holding = async {
        let attempts = async || count(&till.database, "select count(*) from payment_attempts").await;
        while attempts().await < i64::from(domain::limits::SILENCES_MAX) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        let mut other = till.database.another_owner().await;
        let held = other.transaction().await.unwrap();
        held.execute("select from orders for update", &[]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(5)).await;
        held.rollback().await.unwrap();
    };
    let (answers, ()) = futures::join!(paying, holding);
    assert!(answers.iter().all(|answer| answer.status >= 400), "the database was too slow for all of them");
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &quick(1)).await;
    till.open_payment(&buyer, order, "first", "card").await;
    till.finish().await;
}
