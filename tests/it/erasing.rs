//! Forgetting somebody at the very moment at which they log in, or order.

use std::sync::Arc;
use std::time::Duration;

use domain::limits::LOCK_TIMEOUT;
use domain::login::Phone;
use edge::queue::MessageQueue;
use serde_json::{Value, json};
use store::erasing::{ErasedBuyer, Whom, erase_buyer};
use tests::chain::Chain;
use tests::http::{self, Buyer};
use tests::leaks::columns_with;
use tests::login::Door;
use tests::look::count;
use tests::{randomness, seed};
use uuid::Uuid;

/// Often enough that each of the two comes first.
const ROUNDS: usize = 12;
const PHONE: &str = "+34620000001";

/// Somebody of the functions or the operator who waits for another's lock.
const WAITING: &str =
    "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'";

async fn erase(door: &Door, phone: &str) -> domain::Result<ErasedBuyer> {
    let whom = Whom::Phone(Phone::parse(phone).unwrap());
    erase_buyer(&mut door.database.app_client().await, door.tenant_id, &whom).await
}

fn buyer_of(session: &Value) -> Buyer {
    Buyer {
        id: session["buyer"].as_str().unwrap().parse().unwrap(),
        bearer: format!("Bearer {}", session["access_token"].as_str().unwrap()),
    }
}

/// Erases, however busy it is.
async fn erase_at_last(door: &Door, phone: &str) -> ErasedBuyer {
    for _ in 0..10 {
        match erase(door, phone).await {
            Err(domain::Error::Busy(_)) => {}
            other => return other.unwrap(),
        }
    }
    panic!("always busy");
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_logs_in_meanwhile_is_forgotten_as_well_or_somebody_new() {
    let door = Door::open().await;
    for round in 0..ROUNDS {
        let phone = format!("+3460000{round:04}");
        let first = door.log_in(&phone).await;
        let asking = door.asking(&phone).await;
        door.send().await;
        let code = json!({ "asking_session": asking, "code": door.phones.code(&phone) });
        let (answer, erased) = tokio::join!(door.give(&code), erase_at_last(&door, &phone));
        assert!(matches!(erased, ErasedBuyer::Done(_)), "{erased:?}");
        assert!(matches!(answer.status, 201 | 422), "{}", answer.text());
        let refresh = door.refresh(&first["refresh_token"], &first["device"]).await;
        assert_eq!(refresh.status, 401, "the session from before is over");
        let orphans = "select count(*) from sessions s where not exists (select from buyers b where b.id = s.buyer_id)";
        assert_eq!(count(&door.database, orphans).await, 0);
        let again = door.log_in(&phone).await;
        assert_ne!(again["buyer"], first["buyer"], "somebody new");
        erase_at_last(&door, &phone).await;
        assert_eq!(columns_with(door.database.owner(), &phone).await, [], "in round {round}");
    }
    door.database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn whoever_orders_meanwhile_keeps_their_numbers_and_the_books_are_right() {
    let door = Door::open().await;
    let product = seed::product(door.tenant_id, 1_000).insert(&mut door.database.another_owner().await).await;
    let chain = Chain::new(&door.database, 2, 10, randomness::seed());
    let orders = http::orders(door.database.app(4), Arc::clone(&chain.queues) as Arc<dyn MessageQueue>);
    for round in 0..ROUNDS {
        let phone = format!("+3461000{round:04}");
        let buyer = buyer_of(&door.log_in(&phone).await);
        let key = Uuid::now_v7().to_string();
        let placing = buyer.place(&orders, product.described.id, &key, r#"{"quantity":1}"#);
        let (answer, erased) = tokio::join!(placing, erase_at_last(&door, &phone));
        let order = answer.accepted();
        chain.run().await;
        assert_eq!(tests::look::order(&door.database, order).await.buyer_id, buyer.id);
        match erased {
            // It was there first: there is somebody to be told of it.
            ErasedBuyer::UnderWay(orders) => assert_eq!(orders, [order]),
            ErasedBuyer::Done(_) => assert_eq!(columns_with(door.database.owner(), &phone).await, []),
        }
    }
    let held = format!("select count(*) from orders where product_key = {} and state = 'reserved'", product.key);
    assert_eq!(count(&door.database, &held).await, i64::try_from(ROUNDS).unwrap());
    door.database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_order_that_comes_before_the_last_step_keeps_its_buyer() {
    let door = Door::open().await;
    let product = seed::product(door.tenant_id, 1_000).insert(&mut door.database.another_owner().await).await;
    let chain = Chain::new(&door.database, 2, 10, randomness::seed());
    let orders = http::orders(door.database.app(4), Arc::clone(&chain.queues) as Arc<dyn MessageQueue>);
    let session = door.log_in(PHONE).await;
    let buyer = buyer_of(&session);
    // Nothing is under way when the erasure looks; it then waits for the row that it takes last.
    let mut owner = door.database.another_owner().await;
    let held_up = owner.transaction().await.unwrap();
    held_up.query("select id from buyers for no key update", &[]).await.unwrap();
    let order = async {
        let waits = async {
            while count(&door.database, WAITING).await == 0 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(LOCK_TIMEOUT, waits).await.expect("the erasure waits");
        let placed = buyer.place(&orders, product.described.id, "a-key-of-its-own", r#"{"quantity":1}"#).await;
        held_up.commit().await.unwrap();
        placed.accepted()
    };
    let (erased, order) = tokio::join!(erase(&door, PHONE), order);
    assert_eq!(erased.unwrap(), ErasedBuyer::UnderWay(vec![order]));
    assert_ne!(columns_with(door.database.owner(), PHONE).await, [], "there is somebody to be told of it");
    assert_eq!(door.refresh(&session["refresh_token"], &session["device"]).await.status, 200);
    door.database.finish_under_way().await;
}
