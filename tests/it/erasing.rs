//! Forgetting somebody at the very moment at which they log in, or order.

use std::sync::Arc;

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

async fn erase(door: &Door, phone: &str) -> domain::Result<ErasedBuyer> {
    let whom = Whom::Phone(Phone::parse(phone).unwrap());
    erase_buyer(&mut door.database.app_client().await, door.tenant_id, &whom).await
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
    let buyer_of = |session: &Value| Buyer {
        id: session["buyer"].as_str().unwrap().parse().unwrap(),
        bearer: format!("Bearer {}", session["access_token"].as_str().unwrap()),
    };
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
