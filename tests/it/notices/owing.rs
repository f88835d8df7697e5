//! What is owed when: by the commit that moves the order, to buyers who have logged in, as their store wants it.

use std::time::Duration;

use store::payments::{RefundRequest, retry_refund};
use tests::gateway::{Fault, Matcher};
use tests::look::{change, count};
use tests::notices::Told;
use tests::operator;
use tests::seed::{self, exact, quick};
use tests::till::{Policy, Till};
use tests::writes::Writes;
use uuid::Uuid;

use super::{PHONE, ended, ends, known, tell};

const NOTICES: &str = "select count(*) from notices";
const HOLD: Duration = Duration::from_secs(901);

async fn refund(till: &Till, order_id: Uuid, numbers: Option<&[i32]>) {
    let tenant_id = till.product.described.tenant_id;
    let request = RefundRequest { tenant_id, order_id, numbers, note: "as agreed", refund_id: Uuid::now_v7() };
    operator::refund(&mut till.database.app_client().await, &request).await.unwrap();
    till.rest().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn each_step_of_an_order_is_told_once() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let last = || told.texts(PHONE).pop().unwrap_or_default();
    let order = till.reserve(&buyer, &exact(&[7, 77])).await;
    tell(&till, &told).await;
    let text = last();
    assert!(text.starts_with("A store (A raffle): reservado hasta el "), "{text}");
    assert!(text.ends_with(": 00007, 00077. Paga antes o vuelve a la venta."), "{text}");
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    tell(&till, &told).await;
    assert_eq!(last(), "A store (A raffle): pago recibido. Tienes 00007, 00077.");
    refund(&till, order, Some(&[7])).await;
    tell(&till, &told).await;
    assert_eq!(last(), "A store (A raffle): te devolvemos BRL 2,50 por donde pagaste.");
    refund(&till, order, None).await;
    tell(&till, &told).await;
    till.is(order, "refunded").await;
    assert_eq!(told.texts(PHONE).len(), 3, "an order has one notice of each kind");
    assert_eq!(ends(&till).await, ["reserved", "paid", "refunded"].map(|kind| ended(kind, "sent")));
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refund_that_failed_untold_leaves_the_next_to_be_told() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let order = till.reserve(&buyer, &exact(&[7])).await;
    let attempt = till.open_payment(&buyer, order, "first", "card").await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    tell(&till, &told).await;
    till.gateway.script(Matcher::any(), Fault::PendingThenFailed(300), 1);
    refund(&till, order, None).await;
    till.is(order, "refunding").await;
    tell(&till, &told).await;
    assert_eq!(ends(&till).await.pop(), Some(ended("refunded", "needless")));
    let failed = "select id from refunds where state = 'failed'";
    let failed: Uuid = till.database.owner().query_one(failed, &[]).await.unwrap().get(0);
    let mut client = till.database.app_client().await;
    retry_refund(&mut client, till.product.described.tenant_id, order, failed).await.unwrap();
    till.rest().await;
    till.is(order, "refunded").await;
    tell(&till, &told).await;
    assert_eq!(ends(&till).await.pop(), Some(ended("refunded", "sent")));
    assert_eq!(told.texts(PHONE).last().unwrap(), "A store (A raffle): te devolvemos BRL 2,50 por donde pagaste.");
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_gets_nothing_is_told_why() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let client = till.database.app_client().await;
    let order = async |number: i32| seed::order(&client, &till.product, buyer.id, &exact(&[number])).await;
    till.reserve(&till.buyer(), &exact(&[7])).await;
    assert_eq!(count(&till.database, NOTICES).await, 0, "nobody knows that buyer's phone");
    let taken = order(7).await;
    till.chain.put(&till.product, taken);
    till.chain.reserve().await;
    till.is(taken, "rejected").await;
    tell(&till, &told).await;
    let overdue = order(8).await;
    change(&till.database, "update orders set queue_deadline = now() where state = 'queued'", 1).await;
    tell(&till, &told).await;
    till.is(overdue, "rejected").await;
    let held = till.reserve(&buyer, &exact(&[9])).await;
    tell(&till, &told).await;
    till.pass(HOLD).await;
    till.chain.expire().await;
    till.is(held, "expired").await;
    tell(&till, &told).await;
    let texts = told.texts(PHONE);
    for (text, said) in
        texts.iter().zip(["otros han sido antes", "demasiado larga", "reservado hasta", "ha vencido sin pago"])
    {
        assert!(text.contains(said), "{text}");
    }
    assert_eq!(texts.len(), 4);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_buyer_did_is_not_told() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let order = till.reserve(&buyer, &quick(1)).await;
    let mut client = till.database.app_client().await;
    seed::cancel(&mut client, till.product.described.tenant_id, buyer.id, order).await.unwrap();
    till.chain.put_release(&till.product, order);
    till.chain.release().await;
    till.is(order, "cancelled").await;
    tell(&till, &told).await;
    assert_eq!(told.texts(PHONE), Vec::<String>::new(), "and its hold is over");
    assert_eq!(ends(&till).await, [ended("reserved", "needless")]);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn who_pays_nothing_is_told_as_well() {
    let till = Till::sell(Policy::default(), |product| product.price(0, "BRL")).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    let order = till.reserve(&buyer, &exact(&[5])).await;
    assert_eq!(till.pay(&buyer, order, "free", "card").await.status, 204);
    till.is(order, "paid").await;
    tell(&till, &told).await;
    assert_eq!(told.texts(PHONE), ["A store (A raffle): pago recibido. Tienes 00005."]);
    assert_eq!(ends(&till).await, [ended("reserved", "needless"), ended("paid", "sent")]);
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_chooses_what_its_buyers_are_told() {
    let till = Till::open(Policy::default()).await;
    let (told, buyer) = (Told::default(), known(&till).await);
    change(&till.database, "update tenants set notices = '{paid}'", 1).await;
    till.reserve(&buyer, &quick(1)).await;
    assert_eq!(count(&till.database, NOTICES).await, 0);
    change(&till.database, "update tenants set notices = '{paid,reserved}'", 1).await;
    till.reserve(&buyer, &quick(1)).await;
    change(&till.database, "update tenants set notices = '{}'", 1).await;
    tell(&till, &told).await;
    assert_eq!(ends(&till).await, [ended("reserved", "needless")], "owed before, and not wanted any more");
    assert_eq!(told.texts(PHONE), Vec::<String>::new());
    till.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_batch_owes_its_notices_in_its_own_commit() {
    let till = Till::open(Policy::default()).await;
    let buyer = known(&till).await;
    let client = till.database.app_client().await;
    for who in [buyer.id, Uuid::now_v7(), buyer.id] {
        let id = seed::order(&client, &till.product, who, &quick(1)).await;
        till.chain.put(&till.product, id);
    }
    let writes = Writes::watch(&till.database).await;
    till.chain.reserve().await;
    let commits = writes.take().await;
    let rows = |commit: &[String], what: &str| commit.iter().filter(|one| one.as_str() == what).count();
    let total = |what: &str| commits.iter().map(|commit| rows(commit, what)).sum::<usize>();
    assert_eq!((total("insert notices"), total("insert order_events")), (2, 3), "{commits:?}");
    for commit in commits.iter().filter(|commit| rows(commit, "insert notices") > 0) {
        assert!(rows(commit, "update orders") >= rows(commit, "insert notices"), "{commit:?}");
    }
    till.finish().await;
}
