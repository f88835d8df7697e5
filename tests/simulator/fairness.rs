//! One store floods the queue; another's orders are reserved as soon as ever.

use std::time::Duration;

use domain::messages::Queue;
use domain::orders::State;
use futures::stream::{self, StreamExt};
use store::catalog::Product;
use tests::look;
use tests::simulator::{Setup, World, wish};
use uuid::Uuid;

const BOUND: Duration = Duration::from_secs(60);
/// Orders of the flood for each one of the other store.
const FLOOD: usize = 50;
/// Messages of a batch: far fewer than come in each turn, so that the flood's queue grows all the time.
const BATCH: usize = 10;
const TURNS: usize = 20;
/// How many times as long the other store's orders may take as without the flood.
const LONGER_MAX: usize = 3;
const AT_ONCE: usize = 8;

/// Orders of a product, of a buyer each, through the API.
async fn place(world: &World, product: &Product, count: usize) -> Vec<Uuid> {
    let one = |_| async move {
        let order = world.shopper(product).place(product.described.id, &wish(&[], 1, "reject")).await;
        order.expect("it is accepted")
    };
    stream::iter((0..count).map(one)).buffer_unordered(AT_ONCE).collect().await
}

/// In each turn the store places one order, the flood its many if there is one, and the worker serves one batch. After
/// how many batches the store's orders were reserved, the slowest of them.
async fn slowest(world: &World, product: &Product, flood: Option<&Product>) -> usize {
    let (mut waiting, mut slowest) = (Vec::new(), 0);
    for turn in 0..TURNS * LONGER_MAX {
        if turn < TURNS {
            if let Some(flood) = flood {
                place(world, flood, FLOOD).await;
            }
            waiting.extend(place(world, product, 1).await.into_iter().map(|order| (order, turn)));
        } else if waiting.is_empty() {
            return slowest;
        }
        let batch = world.mapping("reserve-numbers").run_once();
        tokio::time::timeout(BOUND, batch).await.expect("there is a batch, and it is served");
        let mut left = Vec::new();
        for (order, placed) in waiting {
            if look::order(&world.database, order).await.state == State::Reserved {
                slowest = slowest.max(turn - placed + 1);
            } else {
                left.push((order, placed));
            }
        }
        waiting = left;
    }
    panic!("{} orders of the quiet store still wait behind the flood", waiting.len());
}

/// Fault 30: a store sends fifty orders for each one of another, more than the worker can serve. The other's orders
/// take no more than three times as many batches as alone, because the message group is the store and groups take
/// turns, in the queue and within a batch. The flood is served as well.
#[tokio::test(flavor = "multi_thread")]
async fn a_store_floods_the_queue() {
    let world = World::start(Setup { duplicates: 0.0, fair: true, ..Setup::default() }).await;
    let (product, flood) = (world.product(1_000).await, world.product(10_000).await);
    let mut usual = 0;
    world.mapping("reserve-numbers").set(|polling| usual = std::mem::replace(&mut polling.batch_max, BATCH));
    let alone = slowest(&world, &product, None).await;
    let beside = slowest(&world, &product, Some(&flood)).await;
    println!("reserved by batch {alone} alone, by batch {beside} beside the flood");
    assert!(beside <= LONGER_MAX * alone, "{beside} batches instead of {alone}");
    assert!(world.sqs.len(Queue::ReserveNumbers) > FLOOD, "it was a flood");
    let served = look::outcomes(&world.database, &flood).await.get("reserved").copied().unwrap_or_default();
    assert!(served > 0, "the flood is served as well");
    world.mapping("reserve-numbers").set(|polling| polling.batch_max = usual);
    world.drain(BOUND).await;
    let all = i64::try_from(FLOOD * TURNS).unwrap();
    assert_eq!(look::outcomes(&world.database, &flood).await, look::expected([("reserved", all)]));
    world.finish(BOUND).await;
}
