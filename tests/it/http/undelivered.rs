//! When the queue or the database is away.

use std::time::{Duration, Instant};

use domain::messages::Queue;
use domain::orders::State;
use store::{Database, Settings};
use tests::http::is;
use tests::{http, look};

use super::{Shop, nowhere};

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_could_not_be_sent_is_accepted_and_relayed() {
    let shop = Shop::open().await;
    shop.chain.queues.refuse_every(1);
    let buyer = shop.buyer();
    let answer = buyer.place(&shop.orders, shop.product_id(), "k", r#"{"numbers":[5]}"#).await;
    let id = answer.accepted();
    let again = buyer.place(&shop.orders, shop.product_id(), "k", r#"{"numbers":[5]}"#).await;
    assert_eq!((again.body.clone(), again.is_replay()), (answer.body, true));
    // What was not sent is not acknowledged by the next insert.
    let second = shop.order(&buyer, r#"{"numbers":[6]}"#).await;
    assert_eq!(shop.chain.queues.len(Queue::ReserveNumbers), 0);
    assert_eq!(look::count(&shop.database, "select count(*) from outbox").await, 2);
    shop.make_outbox_due().await;
    let report = shop.chain.reconcile().await;
    assert_eq!((report.published, report.unpublished), (0, 2), "still away: {report:?}");

    shop.chain.queues.refuse_every(0);
    shop.make_outbox_due().await;
    let report = shop.chain.reconcile().await;
    assert_eq!((report.published, report.unpublished), (2, 0), "{report:?}");
    assert_eq!(look::count(&shop.database, "select count(*) from outbox").await, 0);
    shop.chain.run().await;
    for order in look::orders(&shop.database, &[id, second]).await {
        assert_eq!(order.state, State::Reserved);
    }
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cancellation_that_could_not_be_sent_is_relayed() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"numbers":[5]}"#).await;
    shop.chain.run().await;
    shop.chain.queues.refuse_every(1);
    assert_eq!(buyer.cancel(&shop.orders, id, "c").await.status, 202);
    assert_eq!(shop.chain.queues.len(Queue::ReleaseNumbers), 0);
    shop.chain.queues.refuse_every(0);
    shop.make_outbox_due().await;
    shop.chain.reconcile().await;
    shop.chain.run().await;
    assert_eq!(look::order(&shop.database, id).await.state, State::Cancelled);
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_database_the_answer_is_503_in_time() {
    let settings = Settings::from_url("postgres://nobody:x@127.0.0.1:9/none").unwrap();
    let away = Database::new(Settings { borrow_timeout: Duration::from_secs(2), ..settings }).unwrap();
    let tenant = uuid::Uuid::now_v7();
    let buyer = http::Buyer::new(tenant);
    let orders = http::orders(away.clone(), nowhere());
    let started = Instant::now();
    let answers = [
        buyer.place(&orders, tenant, "k", r#"{"quantity":1}"#).await,
        buyer.cancel(&orders, tenant, "k").await,
        buyer.read(&http::order_status(away.clone()), tenant).await,
        http::catalog(away).get(&format!("/v1/products/{tenant}")).await,
    ];
    assert!(started.elapsed() < domain::limits::REQUEST_BUDGET);
    for answer in answers {
        assert_eq!(answer.refusal(), is(503, "unavailable"));
        assert!(answer.retry_after().is_some());
        assert!(!answer.text().contains("nobody"), "causes stay inside: {}", answer.text());
    }
}
