//! The paths that repair: the outbox relay, the expiry of holds, the audit of a product, and its rebuild.

use std::sync::Arc;
use std::time::{Duration, Instant};

use edge::Deadline;
use edge::queue::MessageQueue;
use tests::look;

use crate::rate::settle;
use crate::run::Run;
use crate::settings::{BATCH, BUDGET, NUMBERS, PATIENCE};
use crate::shop::{Acknowledge, Mix, Shop};
use crate::workers::{self, Recording};

/// Seconds that numbers are held: the fewest allowed, because the expiry is waited for.
const HOLD_SECONDS: i32 = domain::limits::HOLD_SECONDS_MIN;

/// One round.
pub(crate) async fn round(run: &mut Run) {
    let shop = Shop::with(NUMBERS, |product| product.hold_seconds(HOLD_SECONDS)).await;
    let orders = run.volumes.repair_orders;
    run.step("relay");
    let placed = shop.place_with(orders, Mix::Both, Acknowledge::Never, &mut run.rng).await;
    let rows = relay(&shop, orders).await;
    run.add("relay_rows_per_s", rows);
    workers::reserve(&shop.database, 1, shop.events(&placed, BATCH)).await;
    run.step("audit and rebuild");
    run.add("audit_numbers_per_s", audit(&shop).await);
    run.add("rebuild_ms", rebuild(&shop).await.as_secs_f64() * 1_000.0);
    run.step("expiry");
    run.add("expire_numbers_per_s", expire(&shop, orders).await);
    shop.database.finish().await;
}

/// Rows a second, all steps of the job included.
async fn relay(shop: &Shop, orders: usize) -> f64 {
    let database = shop.database.app(1);
    let queue: Arc<dyn MessageQueue> = Arc::new(Recording);
    let owner = shop.database.owner();
    owner.execute("update outbox set next_attempt_at = now()", &[]).await.unwrap();
    settle(&shop.database).await;
    let started = Instant::now();
    let report = reconcile_orders::run(&database, &queue, Deadline::after(BUDGET)).await;
    let time = started.elapsed();
    assert_eq!((report.published, report.failed_steps.len()), (orders as u64, 0), "{report:?}");
    orders as f64 / time.as_secs_f64()
}

/// Numbers a second.
async fn audit(shop: &Shop) -> f64 {
    let database = shop.database.app(1);
    let mut client = database.client().await.unwrap();
    settle(&shop.database).await;
    let started = Instant::now();
    let audit = store::audit::product(&mut client, &shop.product).await.unwrap();
    let time = started.elapsed();
    assert_eq!(audit.findings, []);
    audit.numbers as f64 / time.as_secs_f64()
}

/// How long it takes to bring back every bit of a product.
async fn rebuild(shop: &Shop) -> Duration {
    let sql = "update number_chunks set bits = decode(repeat('00', 1024), 'hex')";
    shop.database.owner().execute(sql, &[]).await.unwrap();
    let database = shop.database.app(1);
    let mut client = database.client().await.unwrap();
    settle(&shop.database).await;
    let started = Instant::now();
    let mended = store::numbers::rebuild(&mut client, &shop.product).await.unwrap();
    let time = started.elapsed();
    assert_eq!(Some(mended), usize::try_from(shop.product.described.range.chunk_count()).ok());
    time
}

/// Numbers a second, once all holds have run out.
async fn expire(shop: &Shop, orders: usize) -> f64 {
    let database = shop.database.app(1);
    let deadline = Instant::now() + PATIENCE;
    let held = "select count(*) from orders where state = 'reserved' and expires_at > now()";
    while look::count(&shop.database, held).await > 0 {
        assert!(Instant::now() < deadline, "the holds do not run out");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    settle(&shop.database).await;
    let started = Instant::now();
    let report = expire_reservations::run(&database, Deadline::after(BUDGET)).await.unwrap();
    let time = started.elapsed();
    assert_eq!((report.orders, report.failed), (orders as u64, 0), "{report:?}");
    report.numbers as f64 / time.as_secs_f64()
}
