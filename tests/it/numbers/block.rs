//! Staff block numbers while workers reserve them.

use std::collections::BTreeSet;

use domain::orders::State;
use domain::{Error, Reason};
use rand::RngExt;
use store::numbers::reserve;
use tests::look::taken;
use tests::operator::{block, unblock};
use tests::seed::{buyers, exact, product, store};
use tests::{TestDatabase, look, randomness, seed};

#[tokio::test(flavor = "multi_thread")]
async fn block_against_reserve() {
    let database = TestDatabase::new().await;
    let seed = randomness::seed();
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 9_000).insert(&mut client).await;
    let app = database.app(2);
    let mut wins = (0, 0);
    for round in 0..200 {
        let mut rng = randomness::stream(seed, round);
        let first = i32::try_from(round).unwrap() * 40 + 1;
        let id = seed::order(&client, &product, buyers(1)[0], &exact(&[first, first + 1])).await;
        let (mut staff, mut worker) = (app.client().await.unwrap(), app.client().await.unwrap());
        let numbers = BTreeSet::from([first + 1, first + 2]);
        let waits = [rng.random_range(0..3_000), rng.random_range(0..1_500)].map(std::time::Duration::from_micros);
        let blocking = async {
            tokio::time::sleep(waits[0]).await;
            block(&mut staff, &product, &numbers).await
        };
        let reserving = async {
            tokio::time::sleep(waits[1]).await;
            reserve(&mut worker, product.described.tenant_id, product.described.id, &[id], &mut rng).await.unwrap()
        };
        let (blocked, _) = tokio::join!(blocking, reserving);
        let order = look::order(&database, id).await;
        match (blocked, order.state) {
            (Ok(()), State::Rejected) => {
                wins.0 += 1;
                assert_eq!((order.reason, order.lost_numbers), (Some(Reason::NumbersTaken), vec![first + 1]));
            }
            (Err(Error::Rejected(Reason::NumbersTaken)), State::Reserved) => wins.1 += 1,
            other => panic!("round {round}: {other:?}"),
        }
    }
    assert!(wins.0 > 5 && wins.1 > 5, "both orders of events were tried: {wins:?}");
    database.finish().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn blocking_is_all_or_nothing_and_never_touches_sold_numbers() {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    let tenant = store(&client).await;
    let product = product(tenant, 20_000).insert(&mut client).await;
    let id = seed::order(&client, &product, buyers(1)[0], &exact(&[7])).await;
    let mut rng = randomness::stream(randomness::seed(), 0);
    reserve(&mut client, product.described.tenant_id, product.described.id, &[id], &mut rng).await.unwrap();
    let set = |numbers: &[i32]| numbers.iter().copied().collect::<BTreeSet<i32>>();
    let refused = |result: domain::Result<()>| match result {
        Err(Error::Rejected(reason)) => reason,
        other => panic!("{other:?}"),
    };
    assert_eq!(refused(block(&mut client, &product, &set(&[6, 7, 8])).await), Reason::NumbersTaken);
    assert_eq!(refused(block(&mut client, &product, &set(&[0])).await), Reason::OutOfRange);
    assert_eq!(refused(unblock(&mut client, &product, &set(&[7])).await), Reason::NumbersTaken);
    assert_eq!(refused(unblock(&mut client, &product, &set(&[9])).await), Reason::NumbersTaken);
    assert_eq!(taken(&database, &product).await, 1);
    block(&mut client, &product, &set(&[1, 8_192, 8_193, 20_000])).await.unwrap();
    assert_eq!(taken(&database, &product).await, 5);
    unblock(&mut client, &product, &set(&[1, 20_000])).await.unwrap();
    assert_eq!(taken(&database, &product).await, 3);
    database.finish().await;
}
