//! One order that can never be served, among others that can.

use std::collections::BTreeMap;

use store::numbers::{Served, release, reserve};
use tests::look::{change, expected, outcomes};
use tests::seed::{buyers, exact, product, store};
use tests::{TestDatabase, randomness, seed};
use uuid::Uuid;

#[tokio::test(flavor = "multi_thread")]
async fn reserving_around_it() {
    let database = TestDatabase::new().await;
    let mut rng = randomness::stream(randomness::seed(), 0);
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let ids = place_ten(&database, &product).await;
    // Its total does not fit into the column.
    let poison = format!("update orders set unit_price_minor = 9223372036854775807 where id = '{}'", ids[4]);
    change(&database, &poison, 1).await;
    let served = reserve(&mut client, tenant, product.described.id, &ids, &mut rng).await.unwrap().served;
    let served: BTreeMap<Uuid, Served> = served.into_iter().collect();
    for id in &ids {
        assert_eq!(served[id], if *id == ids[4] { Served::Again } else { Served::Done });
    }
    assert_eq!(outcomes(&database, &product).await, expected([("reserved", 9), ("queued", 1)]));
    change(&database, "update orders set queue_deadline = now() where state = 'queued'", 1).await;
    reserve(&mut client, tenant, product.described.id, &ids, &mut rng).await.unwrap();
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn releasing_around_it() {
    let database = TestDatabase::new().await;
    let mut rng = randomness::stream(randomness::seed(), 0);
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 100).insert(&mut client).await;
    let ids = place_ten(&database, &product).await;
    reserve(&mut client, tenant, product.described.id, &ids, &mut rng).await.unwrap();
    // Somebody else has its numbers, and no repair can know who is right.
    let nobody = Uuid::now_v7();
    let give = |from, to| format!("update taken_numbers set order_id = '{to}' where order_id = '{from}'");
    change(&database, &give(ids[4], nobody), 2).await;
    change(&database, "update orders set cancel_requested_at = now()", 10).await;
    let served = release(&mut client, tenant, product.described.id, &ids).await.unwrap();
    let served: BTreeMap<Uuid, Served> = served.into_iter().collect();
    for id in &ids {
        assert_eq!(served[id], if *id == ids[4] { Served::Again } else { Served::Done });
    }
    assert_eq!(outcomes(&database, &product).await, expected([("cancelled", 9), ("reserved", 1)]));
    // Somebody puts its rows right; then it is released as well.
    change(&database, &give(nobody, ids[4]), 2).await;
    let served = release(&mut client, tenant, product.described.id, &ids[4..5]).await.unwrap();
    assert_eq!(served, [(ids[4], Served::Done)]);
    database.finish().await;
}

async fn place_ten(database: &TestDatabase, product: &store::catalog::Product) -> Vec<Uuid> {
    let wish = |(i, buyer)| (buyer, exact(&[2 * i + 1, 2 * i + 2]));
    let wishes: Vec<_> = (0..).zip(buyers(10)).map(wish).collect();
    seed::orders(&database.app(1), product, &wishes, 1).await
}
