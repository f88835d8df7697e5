//! Cancelling, one order at a time. Against a worker: `numbers::cancel`.

use domain::orders::State;
use domain::{Error, Reason};
use store::idempotency::Scope;
use store::orders::Cancelled;
use tests::chain::Chain;
use tests::look::{change, count, taken};
use tests::seed::{buyers, cancel, exact, order, product, store};
use tests::{TestDatabase, look, randomness};
use uuid::Uuid;

fn refused(result: domain::Result<Cancelled>) -> Reason {
    match result {
        Err(Error::Rejected(reason)) => reason,
        other => panic!("{other:?}"),
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn at_once_while_queued_and_by_request_once_reserved() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let chain = Chain::new(&database, 1, 10, seed);
    let queued = order(&client, &product, buyer, &exact(&[1])).await;
    let reserved = order(&client, &product, buyer, &exact(&[2])).await;
    chain.put(&product, reserved);
    chain.run().await;
    assert_eq!(cancel(&mut client, tenant, buyer, queued).await.unwrap(), Cancelled::Now);
    assert_eq!(cancel(&mut client, tenant, buyer, queued).await.unwrap(), Cancelled::Already);
    let requested = cancel(&mut client, tenant, buyer, reserved).await.unwrap();
    assert!(matches!(requested, Cancelled::Requested { product_id, .. } if product_id == product.described.id));
    assert_eq!(cancel(&mut client, tenant, buyer, reserved).await.unwrap(), Cancelled::Already);
    assert_eq!(look::order(&database, reserved).await.state, State::Reserved, "its numbers are the worker's business");
    assert_eq!(taken(&database, &product).await, 1);
    assert_eq!(refused(cancel(&mut client, tenant, buyers(1)[0], queued).await), Reason::NotFound);
    let elsewhere = store(&client).await;
    assert_eq!(refused(cancel(&mut client, elsewhere, buyer, queued).await), Reason::NotFound);
    let owed = "select count(*) from outbox where queue = 'release-numbers' and next_attempt_at > now()";
    assert_eq!(count(&database, owed).await, 1);
    change(&database, "update outbox set next_attempt_at = now()", 3).await;
    assert_eq!(chain.reconcile().await.published, 1, "the messages of orders that have left the queue are not needed");
    chain.run().await;
    assert_eq!(look::order(&database, reserved).await.state, State::Cancelled);
    assert_eq!(taken(&database, &product).await, 0);
    chain.put_release(&product, reserved);
    chain.run().await;
    let rejected = order(&client, &product, buyer, &exact(&[1])).await;
    change(&database, &format!("update orders set queue_deadline = now() where id = '{rejected}'"), 1).await;
    chain.put(&product, rejected);
    chain.run().await;
    assert_eq!(refused(cancel(&mut client, tenant, buyer, rejected).await), Reason::WrongState);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_key_of_a_cancellation_is_used_once() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let (one, other) =
        (order(&client, &product, buyer, &exact(&[1])).await, order(&client, &product, buyer, &exact(&[2])).await);
    let scope = Scope { tenant_id: tenant, subject_id: buyer, route: "cancel", key: "k" };
    let mut ends = Vec::new();
    for id in [one, one, other] {
        ends.push(store::orders::cancel(&mut client, scope, id, Uuid::now_v7()).await);
    }
    let mut ends = ends.into_iter();
    assert_eq!(ends.next().unwrap().unwrap(), Cancelled::Now);
    assert_eq!(ends.next().unwrap().unwrap(), Cancelled::Replayed);
    assert_eq!(refused(ends.next().unwrap()), Reason::KeyReused);
    assert_eq!(look::order(&database, other).await.state, State::Queued, "nothing changed");
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_in_a_workers_hands_is_busy() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let id = order(&client, &product, buyer, &exact(&[1])).await;
    let worker = client.transaction().await.unwrap();
    worker.execute("select from orders where id = $1 for no key update", &[&id]).await.unwrap();
    let mut impatient = database.app_client().await;
    assert_eq!(refused(cancel(&mut impatient, tenant, buyer, id).await), Reason::Busy);
    worker.rollback().await.unwrap();
    assert_eq!(cancel(&mut impatient, tenant, buyer, id).await.unwrap(), Cancelled::Now);
    database.finish().await;
}
