//! Orders that are accepted, and what one commit holds.

use domain::messages::Queue;
use domain::orders::State;
use tests::http::Buyer;
use tests::look;
use tests::writes::Writes;

use super::Shop;

#[tokio::test(flavor = "multi_thread")]
async fn an_order_is_recorded_answered_queued_and_served() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let body = r#"{"numbers":[77,7],"quantity":1,"fallback":"replace"}"#;
    let answer = buyer.place(&shop.orders, shop.product_id(), "\"first\"", body).await;
    let id = answer.accepted();
    assert_eq!((answer.retry_after(), answer.is_replay()), (Some(2), false));
    assert_eq!(answer.header("cache-control"), "no-store");
    let order = look::order(&shop.database, id).await;
    assert_eq!((order.state, order.tenant_id, order.buyer_id), (State::Queued, shop.tenant, buyer.id));
    assert_eq!((order.requested_numbers, order.requested_quantity), (vec![7, 77], 1));
    assert_eq!((order.unit_price_minor, order.currency.as_str(), order.total_minor), (250, "EUR", None));
    assert_eq!(shop.chain.queues.len(Queue::ReserveNumbers), 1);
    // Not due: its own request was about to publish it.
    assert_eq!(look::count(&shop.database, "select count(*) from outbox where next_attempt_at > now()").await, 1);

    shop.chain.run().await;
    let order = look::order(&shop.database, id).await;
    assert_eq!((order.state, order.numbers.len(), order.total_minor), (State::Reserved, 3, Some(750)));
    assert!(order.numbers.contains(&7) && order.numbers.contains(&77));
    shop.make_outbox_due().await;
    let report = shop.chain.reconcile().await;
    assert_eq!((report.needless, report.published), (1, 0), "served already: {report:?}");
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn one_commit_per_order_and_the_next_one_acknowledges() {
    const ORDERS: usize = 30;
    let shop = Shop::open().await;
    let writes = Writes::watch(&shop.database).await;
    for _ in 0..ORDERS {
        shop.order(&shop.buyer(), r#"{"quantity":1}"#).await;
    }
    let commits = writes.take().await;
    assert_eq!(commits.len(), ORDERS, "{commits:?}");
    let inserted = ["insert order_events", "insert order_queue", "insert orders", "insert outbox"];
    for (position, mut commit) in commits.into_iter().enumerate() {
        commit.sort_unstable();
        let acknowledged = usize::from(position > 0);
        assert_eq!(commit[acknowledged..], inserted, "order {position}");
        assert_eq!(commit[..acknowledged], ["delete outbox"][..acknowledged], "order {position}");
    }
    assert_eq!(look::count(&shop.database, "select count(*) from outbox").await, 1, "only the last one is left");
    shop.chain.run().await;
    // An environment that ended forgets what it published: the relay clears it, or sends a duplicate that finds
    // nothing to do.
    shop.make_outbox_due().await;
    shop.chain.reconcile().await;
    assert_eq!(look::count(&shop.database, "select count(*) from outbox").await, 0);
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_insert_skips_acknowledgements_that_somebody_else_holds() {
    let shop = Shop::open().await;
    shop.order(&shop.buyer(), r#"{"quantity":1}"#).await;
    let mut relay = shop.database.another_owner().await;
    let tx = relay.transaction().await.unwrap();
    tx.execute("select from outbox for no key update", &[]).await.unwrap();
    let started = std::time::Instant::now();
    shop.order(&shop.buyer(), r#"{"quantity":1}"#).await;
    assert!(started.elapsed() < domain::limits::LOCK_TIMEOUT, "nobody waits for the relay");
    tx.rollback().await.unwrap();
    assert_eq!(look::count(&shop.database, "select count(*) from outbox").await, 2);
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_form_of_a_request() {
    let shop = Shop::open().await;
    for body in [
        r#"{"quantity":1}"#,
        r#"{"quantity":100}"#,
        r#"{"numbers":[1]}"#,
        r#"{"numbers":[2,3],"quantity":0,"fallback":"reject"}"#,
        r#"{"numbers":[4],"fallback":"drop"}"#,
        r#" { "fallback" : "replace", "numbers" : [ 5 ] } "#,
    ] {
        shop.order(&shop.buyer(), body).await;
    }
    let upper = shop.product_id().to_string().to_uppercase();
    let request = shop.buyer().ask("POST", &format!("/v1/products/{upper}/orders"));
    let request = request.header("idempotency-key", "k").header("content-type", "application/json; charset=utf-8");
    assert_eq!(shop.orders.send(request, r#"{"quantity":1}"#).await.status, 202, "ids are not case sensitive");
    shop.chain.run().await;
    shop.make_outbox_due().await;
    shop.chain.reconcile().await;
    // A quick pick may have drawn an exact number of the others first.
    let served = "select count(*) from orders where state in ('reserved', 'rejected')";
    assert_eq!(look::count(&shop.database, served).await, 7);
    shop.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crowd_at_once_loses_nobody() {
    let shop = Shop::open().await;
    let apis: Vec<_> = (0..4).map(|_| shop.another()).collect();
    let buyers: Vec<Buyer> = (0..200).map(|_| shop.buyer()).collect();
    let placed =
        futures::future::join_all(buyers.iter().enumerate().map(|(i, buyer)| {
            let (api, product_id) = (&apis[i % apis.len()], shop.product_id());
            async move {
                buyer.place(api, product_id, "only", format!(r#"{{"numbers":[{}]}}"#, i % 50 + 1)).await.accepted()
            }
        }))
        .await;
    assert_eq!(shop.chain.queues.len(Queue::ReserveNumbers), 200);
    shop.chain.run().await;
    let orders = look::orders(&shop.database, &placed).await;
    assert_eq!(orders.iter().filter(|order| order.state == State::Reserved).count(), 50);
    shop.finish().await;
}
