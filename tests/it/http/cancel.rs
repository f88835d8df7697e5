//! `POST /v1/orders/{order}/cancellations` in every state.

use std::time::Instant;

use domain::messages::Queue;
use domain::orders::State;
use tests::http::{Buyer, is};
use tests::look::{change, count, order};
use tests::seed::{buyers, exact, product};
use tests::writes::Writes;
use tests::{look, seed};
use uuid::Uuid;

use super::Shop;

#[tokio::test(flavor = "multi_thread")]
async fn a_queued_order_is_cancelled_at_once() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"numbers":[5]}"#).await;
    let writes = Writes::watch(&shop.database).await;
    let answer = buyer.cancel(&shop.orders, id, "c").await;
    assert_eq!(
        (answer.status, answer.header("location"), answer.is_replay()),
        (202, format!("/v1/orders/{id}").as_str(), false)
    );
    let mut commits = writes.take().await;
    commits[0].sort_unstable();
    assert_eq!(
        commits,
        [["delete order_queue", "insert idempotency_keys", "insert order_events", "update orders"]],
        "and never a chunk"
    );
    assert_eq!(order(&shop.database, id).await.state, State::Cancelled);
    assert_eq!(shop.chain.queues.len(Queue::ReleaseNumbers), 0, "there is nothing to give back");
    shop.chain.run().await;
    assert_eq!(order(&shop.database, id).await.state, State::Cancelled, "its message finds nothing to do");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_held_order_is_cancelled_by_the_worker() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"numbers":[5,6]}"#).await;
    shop.chain.run().await;
    let writes = Writes::watch(&shop.database).await;
    assert_eq!(buyer.cancel(&shop.orders, id, "c").await.status, 202);
    let mut commits = writes.take().await;
    commits[0].sort_unstable();
    assert_eq!(
        commits,
        [["insert holds", "insert idempotency_keys", "insert outbox", "update orders"]],
        "and never a chunk"
    );
    let asked = order(&shop.database, id).await;
    assert!(asked.state == State::Reserved && asked.cancel_requested_at.is_some());
    assert_eq!(shop.chain.queues.len(Queue::ReleaseNumbers), 1);
    assert_eq!(buyer.cancel(&shop.orders, id, "another").await.status, 202, "asked before: still fine");
    assert_eq!(shop.chain.queues.len(Queue::ReleaseNumbers), 1, "and not sent twice");
    shop.chain.run().await;
    assert_eq!(order(&shop.database, id).await.state, State::Cancelled);
    assert_eq!(look::taken(&shop.database, &shop.product).await, 0);
    assert_eq!(buyer.cancel(&shop.orders, id, "late").await.status, 202, "it is cancelled");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn states_that_cannot_be_cancelled() {
    let shop = Shop::with(|tenant| product(tenant, 10).hold_seconds(60)).await;
    let buyer = shop.buyer();
    let paid = shop.order(&buyer, r#"{"numbers":[1]}"#).await;
    let rejected = shop.order(&buyer, r#"{"numbers":[1]}"#).await;
    let expired = shop.order(&buyer, r#"{"numbers":[2]}"#).await;
    shop.chain.run().await;
    shop.pay(paid).await;
    let overdue =
        format!("update orders set expires_at = now() - interval '1 minute', sweep_at = now() where id = '{expired}'");
    change(&shop.database, &overdue, 1).await;
    shop.chain.expire().await;
    for (id, state) in [(paid, State::Paid), (rejected, State::Rejected), (expired, State::Expired)] {
        assert_eq!(order(&shop.database, id).await.state, state);
        assert_eq!(buyer.cancel(&shop.orders, id, "c").await.refusal(), is(409, "wrong-state"), "{state:?}");
    }
    // Put there by hand, looked at, and put back for the auditor.
    for state in ["refunding", "refunded"] {
        change(&shop.database, &format!("update orders set state = '{state}' where id = '{paid}'"), 1).await;
        assert_eq!(buyer.cancel(&shop.orders, paid, "c").await.refusal(), is(409, "wrong-state"), "{state}");
    }
    change(&shop.database, &format!("update orders set state = 'paid' where id = '{paid}'"), 1).await;
    assert_eq!(count(&shop.database, "select count(*) from idempotency_keys").await, 0, "a refusal uses no key up");
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn busy_while_a_worker_has_it_and_then_under_the_same_key() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"numbers":[5]}"#).await;
    let mut worker = shop.database.another_owner().await;
    let tx = worker.transaction().await.unwrap();
    tx.execute("select from orders where id = $1 for no key update", &[&id]).await.unwrap();
    let started = Instant::now();
    let answer = buyer.cancel(&shop.orders, id, "c").await;
    assert_eq!((answer.refusal(), answer.retry_after()), (is(409, "busy"), Some(1)));
    assert!(started.elapsed() < domain::limits::LOCK_TIMEOUT * 2);
    tx.rollback().await.unwrap();
    let answer = buyer.cancel(&shop.orders, id, "c").await;
    assert_eq!((answer.status, answer.is_replay()), (202, false));
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn replays_and_reused_keys() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let (one, other) = (shop.order(&buyer, r#"{"numbers":[5]}"#).await, shop.order(&buyer, r#"{"numbers":[6]}"#).await);
    let first = buyer.cancel(&shop.orders, one, "c").await;
    let again = buyer.cancel(&shop.another(), one, "c").await;
    assert_eq!((again.status, again.is_replay(), &again.body), (202, true, &first.body));
    assert_eq!(again.header("location"), first.header("location"));
    assert_eq!(buyer.cancel(&shop.orders, other, "c").await.refusal(), is(422, "key-reused"));
    assert_eq!(order(&shop.database, other).await.state, State::Queued);
    // Keys of orders and of cancellations are different keys.
    buyer.place(&shop.orders, shop.product_id(), "c", r#"{"numbers":[7]}"#).await.accepted();
    let request = buyer.ask("POST", &format!("/v1/orders/{other}/cancellations"));
    assert_eq!(shop.orders.send(request, "").await.refusal(), is(400, "key-missing"));

    let apis: Vec<_> = (0..10).map(|_| shop.another()).collect();
    let answers = futures::future::join_all(apis.iter().map(|api| buyer.cancel(api, other, "at-once"))).await;
    assert!(answers.iter().all(|answer| answer.status == 202), "{answers:?}");
    assert_eq!(answers.iter().filter(|answer| !answer.is_replay()).count(), 1);
    shop.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn other_peoples_orders_do_not_exist() {
    let shop = Shop::open().await;
    let buyer = shop.buyer();
    let id = shop.order(&buyer, r#"{"numbers":[5]}"#).await;
    let mut client = shop.database.another_owner().await;
    let elsewhere = seed::store(&client).await;
    let theirs = product(elsewhere, 10).insert(&mut client).await;
    let foreign = seed::order(&client, &theirs, buyers(1)[0], &exact(&[1])).await;
    let writes = Writes::watch(&shop.database).await;
    for (who, id) in [
        (shop.buyer(), id),
        (Buyer::with_id(elsewhere, buyer.id), id),
        (buyer.clone(), foreign),
        (buyer.clone(), Uuid::now_v7()),
        (buyer.clone(), shop.product_id()),
    ] {
        assert_eq!(who.cancel(&shop.orders, id, "c").await.refusal(), is(404, "not-found"));
    }
    let request = buyer.ask("POST", "/v1/orders/7/cancellations").header("idempotency-key", "c");
    assert_eq!(shop.orders.send(request, "").await.refusal(), is(404, "not-found"));
    assert_eq!(writes.take().await, Vec::<Vec<String>>::new());
    shop.chain.put(&theirs, foreign);
    shop.finish().await;
}
