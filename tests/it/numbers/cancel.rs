//! A buyer cancels while a worker reserves.

use std::collections::BTreeMap;
use std::time::Duration;

use futures::stream::{self, StreamExt};
use rand::RngExt;
use store::catalog::Product;
use store::numbers::{Served, reserve};
use store::orders::Cancelled;
use tests::chain::Chain;
use tests::look::{expected, outcomes, taken};
use tests::seed::{buyers, cancel, exact, product, store};
use tests::{TestDatabase, randomness, seed};
use uuid::Uuid;

const PAIRS: u64 = 1_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_thousand_pairs_of_cancel_and_reserve() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 30_000).insert(&mut client).await;
    let app = database.app(8);
    let pairs = stream::iter(0..PAIRS).map(|pair| tokio::spawn(run_pair(app.clone(), product.clone(), seed, pair)));
    let ends: Vec<_> = pairs.buffer_unordered(4).map(Result::unwrap).collect().await;
    let mut seen: BTreeMap<&str, u64> = BTreeMap::new();
    let chain = Chain::new(&database, 4, 10, seed);
    for (id, buyer_id, end) in ends {
        let end = match end {
            Ok(end) => end,
            // A worker had it: 409, and the buyer tries again.
            Err(domain::Error::Rejected(domain::Reason::Busy)) => {
                *seen.entry("busy").or_default() += 1;
                cancel(&mut client, tenant, buyer_id, id).await.unwrap()
            }
            Err(error) => panic!("{}", error.chain()),
        };
        match end {
            Cancelled::Now => *seen.entry("before").or_default() += 1,
            Cancelled::Requested { .. } => {
                *seen.entry("after").or_default() += 1;
                chain.put_release(&product, id);
            }
            Cancelled::Already | Cancelled::Replayed => panic!("{id} was cancelled by nobody else"),
        }
        // A worker that met the cancellation wanted the message to come again; so it does.
        chain.put(&product, id);
    }
    chain.run().await;
    assert!(seen["before"] > 20 && seen["after"] > 20, "both orders of events were tried: {seen:?}");
    assert_eq!(outcomes(&database, &product).await, expected([("cancelled", 1_000)]), "{seen:?}");
    assert_eq!(taken(&database, &product).await, 0);
    database.finish().await;
}

async fn run_pair(
    app: store::Database,
    product: Product,
    seed: u64,
    pair: u64,
) -> (Uuid, Uuid, domain::Result<Cancelled>) {
    let mut rng = randomness::stream(seed, pair);
    let (mut one, mut other) = (app.client().await.unwrap(), app.client().await.unwrap());
    let buyer_id = buyers(1)[0];
    let number = i32::try_from(pair).unwrap() * 30 + 1;
    let id = seed::order(&one, &product, buyer_id, &exact(&[number])).await;
    let (cancel_waits, reserve_waits) = (rng.random_range(0..4_000), rng.random_range(0..2_000));
    let cancelling = async {
        tokio::time::sleep(Duration::from_micros(cancel_waits)).await;
        cancel(&mut one, product.described.tenant_id, buyer_id, id).await
    };
    let reserving = async {
        tokio::time::sleep(Duration::from_micros(reserve_waits)).await;
        reserve(&mut other, product.described.tenant_id, product.described.id, &[id], &mut rng).await.unwrap().served
    };
    let (cancelled, served) = tokio::join!(cancelling, reserving);
    assert_ne!(served, [(id, Served::Unknown)]);
    (id, buyer_id, cancelled)
}
