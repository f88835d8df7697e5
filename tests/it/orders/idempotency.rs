//! One key, one order, whatever the network does.

use std::time::Duration;

use domain::Reason;
use domain::orders::Request;
use store::catalog::Product;
use store::orders::{NewOrder, Placed, place};
use tests::TestDatabase;
use tests::look::{change, count};
use tests::seed::{buyers, exact, product, store};
use tokio_postgres::Client;
use uuid::Uuid;

async fn with_key(client: &Client, product: &Product, buyer_id: Uuid, request: &Request, key: &str) -> (Uuid, Placed) {
    let id = Uuid::now_v7();
    let (product_id, tenant_id) = (product.described.id, product.described.tenant_id);
    let order = NewOrder { id, product_id, tenant_id, buyer_id, request, key };
    (id, place(client, &order, &[]).await.unwrap())
}

async fn fresh(database: &TestDatabase) -> (Client, Product, Uuid) {
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    (client, product, buyers(1)[0])
}

const fn refused(reason: Reason) -> Placed {
    Placed::Refused { reason, retry_after: None }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_same_key_in_parallel_makes_one_order() {
    let database = TestDatabase::new().await;
    let (_, product, buyer_id) = fresh(&database).await;
    let app = database.app(8);
    for round in 0..50 {
        let key = format!("key {round}");
        let mut tasks = tokio::task::JoinSet::new();
        for _ in 0..8 {
            let (app, product, key) = (app.clone(), product.clone(), key.clone());
            // Each round another buyer, because open orders are counted.
            let buyer_id = Uuid::from_u128(buyer_id.as_u128() + round);
            tasks.spawn(async move {
                with_key(&app.client().await.unwrap(), &product, buyer_id, &exact(&[3, 4]), &key).await
            });
        }
        let answers = tasks.join_all().await;
        let accepted: Vec<Uuid> =
            answers.iter().filter(|(_, placed)| matches!(placed, Placed::Accepted { .. })).map(|(id, _)| *id).collect();
        assert_eq!(accepted.len(), 1, "round {round}: {answers:?}");
        for (_, placed) in &answers {
            assert!(
                matches!(placed, Placed::Accepted { .. })
                    || *placed == Placed::Replayed { id: accepted[0], only_held_stock: false },
                "round {round}: {placed:?}"
            );
        }
    }
    assert_eq!(count(&database, "select count(*) from orders").await, 50);
    assert_eq!(count(&database, "select count(*) from outbox").await, 50);
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_belongs_to_the_content_the_buyer_and_the_product() {
    let database = TestDatabase::new().await;
    let (mut client, product, buyer) = fresh(&database).await;
    let other_product = tests::seed::product(product.described.tenant_id, 100).insert(&mut client).await;
    let (id, first) = with_key(&client, &product, buyer, &exact(&[3, 4]), "k").await;
    assert!(matches!(first, Placed::Accepted { .. }));
    let again = with_key(&client, &product, buyer, &exact(&[4, 3]), "k").await.1;
    assert_eq!(again, Placed::Replayed { id, only_held_stock: false }, "the order of the numbers does not matter");
    let reused = refused(Reason::KeyReused);
    assert_eq!(with_key(&client, &product, buyer, &exact(&[3, 5]), "k").await.1, reused);
    assert_eq!(with_key(&client, &other_product, buyer, &exact(&[3, 4]), "k").await.1, reused);
    let other = with_key(&client, &product, buyers(1)[0], &exact(&[3, 5]), "k").await.1;
    assert!(matches!(other, Placed::Accepted { .. }), "keys are each buyer's own: {other:?}");
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_refusal_does_not_use_the_key_up() {
    let database = TestDatabase::new().await;
    let (client, product, buyer) = fresh(&database).await;
    change(&database, "update products set intake = 'paused'", 1).await;
    let (_, first) = with_key(&client, &product, buyer, &exact(&[3]), "k").await;
    assert!(matches!(first, Placed::Refused { reason: Reason::SalesPaused, .. }), "{first:?}");
    assert_eq!(count(&database, "select count(*) from orders").await, 0);
    change(&database, "update products set intake = 'open'", 1).await;
    let (id, second) = with_key(&client, &product, buyer, &exact(&[3]), "k").await;
    assert!(matches!(second, Placed::Accepted { .. }), "{second:?}");
    // From now on the first answer stands, whatever the sale has come to.
    change(&database, "update products set closes_at = now()", 1).await;
    assert_eq!(
        with_key(&client, &product, buyer, &exact(&[3]), "k").await.1,
        Placed::Replayed { id, only_held_stock: false }
    );
    assert_eq!(with_key(&client, &product, buyer, &exact(&[4]), "k").await.1, refused(Reason::KeyReused));
    assert_eq!(with_key(&client, &product, buyer, &exact(&[4]), "l").await.1, refused(Reason::SaleClosed));
    database.finish_under_way().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_twin_that_does_not_commit_in_time_is_in_flight() {
    let database = TestDatabase::new().await;
    let (_, product, buyer) = fresh(&database).await;
    let twin = database.app_client().await;
    twin.batch_execute("begin").await.unwrap();
    let (id, first) = with_key(&twin, &product, buyer, &exact(&[3]), "k").await;
    assert!(matches!(first, Placed::Accepted { .. }));
    let app = database.app(1);
    let second = with_key(&app.client().await.unwrap(), &product, buyer, &exact(&[3]), "k").await.1;
    let retry_after = Some(Duration::from_secs(1));
    assert_eq!(second, Placed::Refused { reason: Reason::KeyInFlight, retry_after });
    twin.batch_execute("commit").await.unwrap();
    let third = with_key(&app.client().await.unwrap(), &product, buyer, &exact(&[3]), "k").await.1;
    assert_eq!(third, Placed::Replayed { id, only_held_stock: false });
    database.finish_under_way().await;
}
