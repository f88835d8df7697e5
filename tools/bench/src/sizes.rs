//! What the size of a product costs: reserving, and the reads that buyers make.

use std::time::{Duration, Instant};

use tests::http::{self, Api, Buyer};
use uuid::Uuid;

use crate::ours::{self, Load};
use crate::run::{Run, median_ms};
use crate::settings::{BATCH, NUMBERS, READS};
use crate::shop::{Mix, Shop};

/// Ten times as many numbers, which is the most that a product may have.
const NUMBERS_MAX: i32 = 10 * NUMBERS;

/// One round.
pub(crate) async fn round(run: &mut Run) {
    let mut costs = Vec::new();
    for (numbers, size) in [(NUMBERS, "1m"), (NUMBERS_MAX, "10m")] {
        for (mix, kind) in [(Mix::Exact, "exact"), (Mix::Quick, "quick")] {
            run.step(&format!("{kind} numbers of a product of {numbers}"));
            let load = Load { numbers, orders: run.volumes.sizes_orders, mix, batch: BATCH, workers: 1 };
            let (shop, ours) = ours::measure_in_shop(load, &mut run.rng).await;
            let us = 1e6 / ours.numbers_per_second();
            run.add(&format!("us_per_number.{kind}.{size}"), us);
            costs.push(us);
            if mix == Mix::Quick {
                run.step(&format!("reads of a product of {numbers}"));
                reads(run, &shop, size).await;
            }
            shop.database.finish_under_way().await;
        }
    }
    run.add("cost_10m_vs_1m.exact", costs[2] / costs[0]);
    run.add("cost_10m_vs_1m.quick", costs[3] / costs[1]);
}

/// Each read by an environment that remembers nothing, the first ones not counted.
async fn reads(run: &mut Run, shop: &Shop, size: &str) {
    let described = &shop.product.described;
    let database = shop.database.app(1);
    let catalogs: Vec<Api> = (0..2 * READS).map(|_| http::catalog(database.clone())).collect();
    let (summaries, chunks) = catalogs.split_at(READS);
    let path = format!("/v1/products/{}/availability", described.id);
    let mut times = Vec::new();
    for api in summaries {
        times.push(timed(api.get(&path)).await);
    }
    run.add(&format!("summary_ms.{size}"), median_ms(&times[READS / 10..]));
    let mut times = Vec::new();
    for (position, api) in chunks.iter().enumerate() {
        let chunk = position % usize::try_from(described.range.chunk_count()).unwrap();
        times.push(timed(api.get(&format!("{path}/{chunk}"))).await);
    }
    run.add(&format!("chunk_ms.{size}"), median_ms(&times[READS / 10..]));

    // Orders that wait behind more than can be counted, and old enough for their place to be known.
    let waiting = shop.place(READS + 1_000, Mix::Quick, &mut run.rng).await;
    tokio::time::sleep(domain::limits::PLACE_KNOWN_AFTER).await;
    let looked_at = &waiting[1_000..];
    let buyers = buyers(shop, looked_at).await;
    let api = http::order_status(database);
    let mut times = Vec::new();
    for (buyer, id) in buyers.iter().zip(looked_at) {
        times.push(timed(buyer.read(&api, *id)).await);
    }
    run.add(&format!("order_status_ms.{size}"), median_ms(&times[READS / 10..]));
}

async fn buyers(shop: &Shop, orders: &[Uuid]) -> Vec<Buyer> {
    let sql = "select buyer_id from orders where id = any($1) order by id";
    let rows = shop.database.owner().query(sql, &[&orders]).await.unwrap();
    rows.iter().map(|row| Buyer::with_id(shop.product.described.tenant_id, row.get(0))).collect()
}

async fn timed(asked: impl Future<Output = http::Answer>) -> Duration {
    let started = Instant::now();
    let answer = asked.await;
    let time = started.elapsed();
    assert_eq!(answer.status, 200, "{}", answer.text());
    time
}
