//! The edges of a sale's window, by the database's clock.

use std::time::Duration;

use domain::Reason;
use store::catalog::now;
use store::orders::Placed;
use tests::TestDatabase;
use tests::look::count;
use tests::seed::{buyers, exact, product, store, try_order};

const SHORT: Duration = Duration::from_millis(400);
const LONG: Duration = Duration::from_secs(3_600);

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_accepted_before_the_opening_and_everything_from_then_on() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let opens_at = now(&client).await.unwrap() + SHORT;
    let product = product(tenant, 100).window(opens_at, opens_at + LONG).insert(&mut client).await;
    let buyer = buyers(1)[0];
    let mut refused = 0;
    let accepted_at = loop {
        let before = now(&client).await.unwrap();
        match try_order(&client, &product, buyer, &exact(&[1])).await.1 {
            Placed::Accepted { created_at, .. } => break created_at,
            Placed::Refused { reason, retry_after } => {
                refused += 1;
                assert_eq!(reason, Reason::NotOpen);
                assert!(before < opens_at, "it was open already");
                assert!(retry_after.unwrap() <= SHORT, "{retry_after:?}");
            }
            Placed::Replayed { .. } => unreachable!("every order has a key of its own"),
        }
    };
    assert!(accepted_at >= opens_at, "{accepted_at} {opens_at}");
    assert!(refused > 0, "it was tried before, too");
    assert_eq!(count(&database, "select count(*) from orders").await, 1, "what was refused left nothing behind");
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_is_accepted_from_the_closing_on() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let closes_at = now(&client).await.unwrap() + SHORT;
    let product = product(tenant, 100).window(closes_at - LONG, closes_at).insert(&mut client).await;
    let mut accepted = 0;
    loop {
        match try_order(&client, &product, buyers(1)[0], &exact(&[1])).await.1 {
            Placed::Accepted { created_at, .. } => {
                accepted += 1;
                assert!(created_at < closes_at, "{created_at} {closes_at}");
            }
            Placed::Refused { reason, .. } => {
                assert_eq!(reason, Reason::SaleClosed);
                break;
            }
            Placed::Replayed { .. } => unreachable!("every order has a key of its own"),
        }
    }
    assert!(now(&client).await.unwrap() >= closes_at);
    assert!(accepted > 0, "it was tried before, too");
    database.finish_under_way().await;
}
