//! A halted product: nothing changes its numbers, nothing is lost, and it goes on when resumed.

use domain::catalog::Reserving;
use domain::messages::Queue;
use store::orders::Cancelled;
use store::switches::set_reserving;
use tests::chain::Chain;
use tests::look::{change, count, expected, outcomes, taken};
use tests::seed::{buyers, cancel, exact, product, store};
use tests::{TestDatabase, look, randomness, seed};
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn orders_are_parked_and_served_after_resuming() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let chain = Chain::new(&database, 2, 10, seed);
    let buyer = buyers(1)[0];
    let held = seed::order(&client, &product, buyer, &exact(&[1])).await;
    chain.put(&product, held);
    chain.run().await;

    set_reserving(&client, tenant, product.described.id, Reserving::Halted, Some("a test")).await.unwrap();
    let ids: Vec<Uuid> = seed::orders(&database.app(1), &product, &wishes(), 1).await;
    look::change(&database, "delete from outbox", 6).await;
    let end = cancel(&mut client, tenant, buyer, held).await.unwrap();
    assert!(matches!(end, Cancelled::Requested { .. }));
    look::change(&database, "delete from outbox", 1).await;
    for id in &ids {
        chain.put(&product, *id);
        chain.put(&product, *id);
    }
    chain.put_release(&product, held);
    chain.run().await;
    for queue in Queue::ALL {
        assert_eq!((chain.queues.len(queue), chain.queues.dead(queue).len()), (0, 0), "messages are acknowledged");
    }
    assert_eq!(outcomes(&database, &product).await, expected([("queued", 5), ("reserved", 1)]));
    assert_eq!(taken(&database, &product).await, 1, "nothing changed");
    let parked =
        "select count(*) from outbox where next_attempt_at between now() + interval '15 s' and now() + interval '60 s'";
    assert_eq!(count(&database, parked).await, 6, "one row for each order");
    assert_eq!(chain.expire().await.orders, 0, "the sweep leaves it alone");
    assert_eq!(chain.reconcile().await.published, 0, "not yet");

    set_reserving(&client, tenant, product.described.id, Reserving::On, None).await.unwrap();
    change(&database, "update outbox set next_attempt_at = now()", 6).await;
    assert_eq!(chain.reconcile().await.published, 6);
    chain.run().await;
    assert_eq!(outcomes(&database, &product).await, expected([("reserved", 5), ("cancelled", 1)]));
    assert_eq!(count(&database, "select count(*) from outbox").await, 0);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn orders_wait_through_a_halt_longer_than_their_deadline() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let chain = Chain::new(&database, 2, 10, randomness::seed());
    set_reserving(&client, tenant, product.described.id, Reserving::Halted, Some("a test")).await.unwrap();
    let ids: Vec<Uuid> = seed::orders(&database.app(1), &product, &wishes(), 1).await;
    change(&database, "update orders set queue_deadline = now() - interval '1 hour'", 5).await;
    assert_eq!(chain.reconcile().await.rejected, 0, "nobody is to blame for a halt");
    set_reserving(&client, tenant, product.described.id, Reserving::On, None).await.unwrap();
    assert_eq!(chain.reconcile().await.rejected, 0, "the deadline starts over");
    for id in &ids {
        chain.put(&product, *id);
    }
    chain.run().await;
    assert_eq!(outcomes(&database, &product).await, expected([("reserved", 5)]));
    database.finish().await;
}

fn wishes() -> Vec<(Uuid, domain::orders::Request)> {
    buyers(5).into_iter().zip(10..).map(|(buyer, number)| (buyer, exact(&[number]))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn parking_a_row_that_is_being_sent_keeps_it() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let chain = Chain::new(&database, 1, 10, seed);
    let id = seed::order(&client, &product, buyers(1)[0], &exact(&[1])).await;
    change(&database, "delete from outbox", 1).await;
    set_reserving(&client, tenant, product.described.id, Reserving::Halted, Some("a test")).await.unwrap();
    chain.put(&product, id);
    chain.run().await;
    change(&database, "update outbox set next_attempt_at = now()", 1).await;
    let claimed = store::outbox::claim(&client).await.unwrap();
    assert_eq!(claimed.len(), 1);
    // The relay has sent the message and is about to delete the row; the worker is faster and parks the order again.
    chain.put(&product, id);
    chain.run().await;
    assert_eq!(store::outbox::delete(&client, &claimed).await.unwrap(), 0);
    assert_eq!(count(&database, "select count(*) from outbox").await, 1, "the order is still owed a message");
    database.finish_under_way().await;
}
