//! Faults of the worker that reserves numbers, and of the one that gives them back.

use std::time::Duration;

use tests::look;
use tests::simulator::{Setup, World, wish};

const BOUND: Duration = Duration::from_secs(40);

/// Fault 6: the worker is killed before or after its commit. Its batch is redelivered, the effect is there exactly
/// once.
#[tokio::test(flavor = "multi_thread")]
async fn killed_around_its_commit() {
    for failpoint in ["reserve.before_commit=kill", "reserve.after_commit=kill", "reserve.before_commit=1*off->kill"] {
        let world = World::start(Setup { scale: 240.0, ..Setup::default() }).await;
        let product = world.product(1_000).await;
        let shopper = world.shopper(&product);
        let worker = world.function("reserve-numbers");
        world.mapping("reserve-numbers").set(|polling| (polling.batch_max, polling.concurrency) = (4, 1));
        for _ in 1..=8 {
            shopper.place(product.described.id, &wish(&[], 2, "reject")).await.unwrap();
        }
        worker.arm(failpoint);
        world.run();
        let reserved = "select count(*) from orders where state = 'reserved'";
        world.until("all are reserved", BOUND, async || look::count(&world.database, reserved).await == 8).await;
        assert_eq!(worker.counts().crashes, 1, "{failpoint}");
        assert_eq!(look::taken(&world.database, &product).await, 16, "{failpoint}");
        let steps = "select count(*) from order_events where to_state = 'reserved'";
        assert_eq!(look::count(&world.database, steps).await, 8, "{failpoint}: each was reserved once");
        world.finish(BOUND).await;
    }
}

/// The same for the worker that gives numbers back, and for the sweep.
#[tokio::test(flavor = "multi_thread")]
async fn killed_while_numbers_go_back() {
    let world = World::start(Setup::default()).await;
    let product = world.product(1_000).await;
    let shopper = world.shopper(&product);
    world.run();
    let mut orders = Vec::new();
    for number in 1..=6 {
        let order = shopper.place(product.described.id, &wish(&[number], 0, "reject")).await.unwrap();
        assert_eq!(shopper.follow(order).await.unwrap()["state"], "reserved");
        orders.push(order);
    }
    world.function("release-numbers").arm("release.before_commit=kill");
    for order in &orders[..3] {
        assert!(shopper.cancel(*order).await);
    }
    for failpoint in ["expire.before_commit=kill", "expire.after_commit=kill"] {
        world.function("expire-reservations").arm(failpoint);
    }
    world.pass(Duration::from_secs(1_000)).await;
    world.until("all numbers are back", BOUND, async || look::taken(&world.database, &product).await == 0).await;
    world
        .until("both jobs were killed", BOUND, async || {
            world.function("expire-reservations").counts().crashes + world.function("release-numbers").counts().crashes
                >= 2
        })
        .await;
    world.finish(BOUND).await;
}
