//! One measurement of reserving: orders are placed on a fresh product, then the handler decides them.

use rand::rngs::StdRng;
use tests::look;

use crate::rate::{Rate, Wal, settle};
use crate::shop::{Mix, Shop};
use crate::workers;

/// What is reserved, and how.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Load {
    /// Numbers of the product.
    pub(crate) numbers: i32,
    pub(crate) orders: usize,
    pub(crate) mix: Mix,
    /// Messages in an event.
    pub(crate) batch: usize,
    pub(crate) workers: usize,
}

/// What came of it.
#[derive(Debug)]
pub(crate) struct Ours {
    /// Orders.
    pub(crate) rate: Rate,
    pub(crate) numbers: u64,
    /// Bytes for each number.
    pub(crate) wal: f64,
    /// The same by kind of record.
    pub(crate) kinds: Vec<(String, f64)>,
}

impl Ours {
    pub(crate) fn numbers_per_second(&self) -> f64 {
        self.numbers as f64 / self.rate.time.as_secs_f64()
    }
}

/// Measures, and lets the auditor look.
pub(crate) async fn measure(load: Load, rng: &mut StdRng) -> Ours {
    let (shop, ours) = measure_in_shop(load, rng).await;
    shop.database.finish().await;
    ours
}

/// Measures, and leaves the shop for more. Every order must get every number that it asks for.
pub(crate) async fn measure_in_shop(load: Load, rng: &mut StdRng) -> (Shop, Ours) {
    let shop = Shop::open(load.numbers).await;
    // As for the baselines, no page that is written here was last written before a checkpoint: orders wait seconds,
    // checkpoints are minutes apart.
    settle(&shop.database).await;
    let placed = shop.place(load.orders, load.mix, rng).await;
    let events = shop.events(&placed, load.batch);
    let sql = "select sum(cardinality(requested_numbers) + requested_quantity)::bigint from orders";
    let asked = look::count(&shop.database, sql).await;
    let owner = shop.database.owner();
    owner.batch_execute("analyze").await.unwrap();
    let before = Wal::now(owner).await;
    let rate = workers::reserve(&shop.database, load.workers, events).await;
    let wal = before.bytes_since(owner).await;
    let kinds = before.kinds_since(owner).await;
    let reserved = look::outcomes(&shop.database, &shop.product).await.get("reserved").copied();
    let taken = look::taken(&shop.database, &shop.product).await;
    let wanted = (load.orders as u64, i64::try_from(load.orders).ok(), asked);
    assert_eq!((rate.count, reserved, taken), wanted, "orders handled and reserved, numbers taken");
    let numbers = taken as f64;
    let kinds = kinds.into_iter().map(|(kind, bytes)| (kind, bytes / numbers)).collect();
    (shop, Ours { rate, numbers: taken.unsigned_abs(), wal: wal / numbers, kinds })
}
