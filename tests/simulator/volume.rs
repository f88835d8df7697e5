//! A hundred thousand of what jobs repair, while buyers keep coming. Time is real.

use std::time::Duration;

use tests::look;
use tests::simulator::{Setup, World};
use tokio::time::Instant;

use crate::bulk;
use crate::crowd::Crowd;

const ROWS: i32 = 100_000;
const BOUND: Duration = Duration::from_secs(120);
/// Of each buyer of the crowd until the next one comes.
const PAUSE: Duration = Duration::from_millis(50);
/// Fewest orders a second that must go on being accepted beside the work.
const ORDERS_PER_S_MIN: f64 = 10.0;

async fn world() -> World {
    World::start(Setup { scale: 1.0, ..Setup::default() }).await
}

/// Waits until a statement counts nothing any more; how long that took. Orders keep coming all the while.
async fn time_until_none(world: &World, crowd: Crowd, what: &str, sql: &str, bound: Duration) -> usize {
    let began = Instant::now();
    let mut left = i64::from(ROWS);
    while left > 0 {
        assert!(began.elapsed() < bound, "after {bound:?} there are still {left} {what}");
        tokio::time::sleep(Duration::from_millis(200)).await;
        left = look::count(&world.database, sql).await;
    }
    let elapsed = began.elapsed();
    let orders = crowd.leave().await;
    let pace = orders as f64 / elapsed.as_secs_f64();
    println!("{ROWS} {what}: {:.1} s, beside {pace:.0} orders/s", elapsed.as_secs_f64());
    assert!(pace >= ORDERS_PER_S_MIN, "only {orders} orders were accepted in {elapsed:?}");
    orders
}

/// What comes after need not be waited for in real time.
fn hurry(world: &World) {
    world.halt();
    world.jobs_at_once(1, Duration::from_secs(1));
}

/// 100,000 unpublished rows of the outbox are sent in less than five minutes, by the relay on its schedule of every
/// minute, while the workers serve what it sends and orders keep coming.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_unpublished_messages() {
    let world = world().await;
    let product = world.product(1_000_000).await;
    bulk::owe(&world.database, &product, ROWS).await;
    world.run();
    let crowd = Crowd::gather(&world, &product, 4, PAUSE);
    let owed = "select count(*) from outbox x join orders o on o.id = x.order_id where o.idempotency_key = 'bulk'";
    let orders = time_until_none(&world, crowd, "unpublished messages", owed, Duration::from_secs(300)).await;
    let sent = world.sqs.take_calls().into_iter().filter(|(call, _)| call == "SendMessageBatch");
    let sent: usize = sent.map(|(_, input)| input["Entries"].as_array().map_or(0, Vec::len)).sum();
    assert!(sent >= ROWS as usize + orders, "{sent} messages were sent");
    hurry(&world);
    world.drain(BOUND).await;
    let reserved = i64::from(ROWS) + i64::try_from(orders).unwrap();
    assert_eq!(look::outcomes(&world.database, &product).await, look::expected([("reserved", reserved)]));
    world.finish(BOUND).await;
}

/// 100,000 holds that are over are freed in less than two minutes, by the sweep on its schedule of every minute, while
/// orders of the same product keep coming and take numbers out of the same chunks.
#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_thousand_due_holds() {
    let world = world().await;
    let product = world.product(1_000_000).await;
    bulk::hold(&world.database, &product, ROWS).await;
    world.run();
    let crowd = Crowd::gather(&world, &product, 4, PAUSE);
    let held = "select count(*) from orders where state = 'reserved' and idempotency_key = 'bulk'";
    let orders = time_until_none(&world, crowd, "due holds", held, Duration::from_secs(120)).await;
    hurry(&world);
    world.drain(BOUND).await;
    let reserved = i64::try_from(orders).unwrap();
    let outcomes = look::outcomes(&world.database, &product).await;
    assert_eq!(outcomes, look::expected([("reserved", reserved), ("expired", i64::from(ROWS))]));
    assert_eq!(look::taken(&world.database, &product).await, reserved);
    world.finish(BOUND).await;
}
