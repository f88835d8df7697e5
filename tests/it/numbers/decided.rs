//! What a group reports for the metrics: each decision once, under the labels of its product.

use rand::SeedableRng;
use rand::rngs::StdRng;
use store::numbers::{Served, reserve};
use tests::TestDatabase;
use tests::seed::{self, buyers, exact, product, store};

#[tokio::test(flavor = "multi_thread")]
async fn each_decision_is_reported_once() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 10).insert(&mut client).await;
    let mut ids = Vec::new();
    for buyer in buyers(3) {
        ids.push(seed::order(&client, &product, buyer, &exact(&[3, 4])).await);
    }
    let mut rng = StdRng::seed_from_u64(1);
    let mut worker = database.app_client().await;
    let first = reserve(&mut worker, product.described.tenant_id, product.described.id, &ids, &mut rng).await.unwrap();
    let mut outcomes: Vec<_> = first.decided.iter().map(|decided| (decided.outcome, decided.numbers)).collect();
    outcomes.sort_unstable();
    assert_eq!(outcomes, [("numbers-taken", 0), ("numbers-taken", 0), ("reserved", 2)]);
    assert_eq!((&first.store, &first.campaign), (&product.store, &product.described.campaign));
    assert!(!first.store.is_empty() && first.decided.iter().all(|decided| decided.queued.as_secs() < 60));
    let again = reserve(&mut worker, product.described.tenant_id, product.described.id, &ids, &mut rng).await.unwrap();
    assert!(again.decided.is_empty(), "{again:?}");
    assert!(again.served.iter().all(|(_, served)| *served == Served::Done));
    database.finish().await;
}
