//! Messages that a commit owes to a queue: none is lost, and none is deleted before it was sent.

use domain::messages::Queue;
use store::orders::{NewOrder, place};
use store::outbox::{claim, delete, delete_needless, owe_silent};
use tests::chain::Chain;
use tests::look::{change, count};
use tests::seed::{buyers, exact, order, orders, product, quick, store};
use tests::{TestDatabase, randomness, seed};
use uuid::Uuid;

const ROWS: &str = "select count(*) from outbox";

async fn fresh(database: &TestDatabase) -> (tokio_postgres::Client, store::catalog::Product) {
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 10_000).insert(&mut client).await;
    (client, product)
}

async fn make_due(database: &TestDatabase) {
    let rows = u64::try_from(count(database, ROWS).await).unwrap();
    change(database, "update outbox set next_attempt_at = now()", rows).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_is_a_later_try_and_a_delete_needs_the_last_claim() {
    let database = TestDatabase::new().await;
    let (client, product) = fresh(&database).await;
    let id = order(&client, &product, buyers(1)[0], &exact(&[1])).await;
    assert!(claim(&client).await.unwrap().is_empty(), "its own request is about to publish it");
    make_due(&database).await;
    let first = claim(&client).await.unwrap();
    assert_eq!((first.len(), first[0].message.order_id, first[0].attempts), (1, id, 1));
    assert!(claim(&client).await.unwrap().is_empty(), "claimed");
    make_due(&database).await;
    let second = claim(&client).await.unwrap();
    assert_eq!(second[0].attempts, 2);
    assert_eq!(delete(&client, &first).await.unwrap(), 0, "somebody has claimed it since");
    assert_eq!(delete(&client, &second).await.unwrap(), 1);
    assert_eq!(delete(&client, &second).await.unwrap(), 0);
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_relays_at_once_send_each_message_once() {
    let database = TestDatabase::new().await;
    let (_, product) = fresh(&database).await;
    let wishes: Vec<_> = buyers(3_000).into_iter().map(|buyer| (buyer, quick(1))).collect();
    orders(&database.app(4), &product, &wishes, 4).await;
    make_due(&database).await;
    let chain = Chain::new(&database, 4, 100, randomness::seed());
    let (one, other) = tokio::join!(chain.reconcile(), chain.reconcile());
    assert_eq!(one.published + other.published, 3_000, "{one:?} {other:?}");
    assert_eq!(chain.queues.len(Queue::ReserveNumbers), 3_000);
    assert_eq!(count(&database, ROWS).await, 0);
    chain.run().await;
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_queue_refuses_stays_owed() {
    let database = TestDatabase::new().await;
    let (_, product) = fresh(&database).await;
    let wishes: Vec<_> = buyers(300).into_iter().map(|buyer| (buyer, quick(1))).collect();
    orders(&database.app(4), &product, &wishes, 4).await;
    make_due(&database).await;
    let chain = Chain::new(&database, 2, 100, randomness::seed());
    chain.queues.refuse_every(3);
    let report = chain.reconcile().await;
    assert_eq!((report.published, report.unpublished), (200, 100));
    assert_eq!(count(&database, ROWS).await, 100);
    chain.run().await;
    chain.queues.refuse_every(0);
    assert_eq!(chain.reconcile().await.published, 0, "not before its backoff");
    make_due(&database).await;
    assert_eq!(chain.reconcile().await.published, 100);
    chain.run().await;
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_that_nobody_needs_are_deleted_when_due() {
    let database = TestDatabase::new().await;
    let (mut client, product) = fresh(&database).await;
    let people = buyers(3);
    let wishes: Vec<_> = people.iter().map(|buyer| (*buyer, quick(1))).collect();
    let ids = orders(&database.app(1), &product, &wishes, 1).await;
    seed::cancel(&mut client, product.described.tenant_id, people[0], ids[0]).await.unwrap();
    assert_eq!(delete_needless(&client).await.unwrap(), 0, "left to its own request");
    make_due(&database).await;
    assert_eq!(delete_needless(&client).await.unwrap(), 1);
    let chain = Chain::new(&database, 1, 10, randomness::seed());
    chain.put(&product, ids[1]);
    chain.run().await;
    seed::cancel(&mut client, product.described.tenant_id, people[1], ids[1]).await.unwrap();
    make_due(&database).await;
    assert_eq!(delete_needless(&client).await.unwrap(), 1, "reserved: the first message; its release is still owed");
    assert_eq!(chain.reconcile().await.published, 2);
    chain.run().await;
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn silent_orders_are_owed_again_at_two_four_and_eight_minutes() {
    let database = TestDatabase::new().await;
    let (client, product) = fresh(&database).await;
    let id = order(&client, &product, buyers(1)[0], &exact(&[1])).await;
    change(&database, "delete from outbox", 1).await;
    let mut owed = Vec::new();
    for age in ["1 min", "119 s", "121 s", "3 min", "239 s", "241 s", "7 min", "481 s", "14 min"] {
        change(&database, &format!("update orders set created_at = now() - interval '{age}'"), 1).await;
        owed.push(owe_silent(&client).await.unwrap());
    }
    assert_eq!(owed, [0, 0, 1, 0, 0, 1, 0, 1, 0]);
    let chain = Chain::new(&database, 1, 10, randomness::seed());
    assert_eq!(chain.reconcile().await.published, 3);
    chain.run().await;
    assert_eq!(tests::look::order(&database, id).await.numbers, [1]);
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_next_insert_acknowledges_what_was_published_and_waits_for_nobody() {
    let database = TestDatabase::new().await;
    let (mut client, product) = fresh(&database).await;
    let wishes: Vec<_> = buyers(3).into_iter().map(|buyer| (buyer, quick(1))).collect();
    let published = orders(&database.app(1), &product, &wishes, 1).await;
    let relay = client.transaction().await.unwrap();
    relay.execute("select from outbox where id = $1 for no key update", &[&published[0]]).await.unwrap();
    let (product_id, tenant_id) = (product.described.id, product.described.tenant_id);
    let new =
        NewOrder { id: Uuid::now_v7(), product_id, tenant_id, buyer_id: buyers(1)[0], request: &quick(1), key: "k" };
    place(&database.app_client().await, &new, &published).await.unwrap();
    relay.rollback().await.unwrap();
    let rows = "select count(*) from outbox where id = any(array(select id from orders order by created_at limit 3))";
    assert_eq!(count(&database, rows).await, 1, "the row in the relay's hands is left to the relay");
    assert_eq!(count(&database, ROWS).await, 2);
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_for_a_queue_of_a_newer_version_is_left_to_it() {
    let database = TestDatabase::new().await;
    let (client, product) = fresh(&database).await;
    let known = order(&client, &product, buyers(1)[0], &exact(&[1])).await;
    let unknown = order(&client, &product, buyers(1)[0], &exact(&[2])).await;
    // A newer version has widened it.
    let widened = "alter table outbox drop constraint outbox_queue_known";
    database.owner().batch_execute(widened).await.unwrap();
    let renamed = format!("update outbox set queue = 'tell-tales' where order_id = '{unknown}'");
    change(&database, &renamed, 1).await;
    make_due(&database).await;
    assert_eq!(delete_needless(&client).await.unwrap(), 0, "whether it is needed is not known here");
    let claimed = claim(&client).await.unwrap();
    assert_eq!(claimed.iter().map(|owed| owed.message.order_id).collect::<Vec<_>>(), [known]);
    assert_eq!(count(&database, "select count(*) from outbox where queue = 'tell-tales' and attempts = 0").await, 1);
    change(&database, "update outbox set queue = 'reserve-numbers' where queue = 'tell-tales'", 1).await;
    database.finish_under_way().await;
}
