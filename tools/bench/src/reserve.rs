//! Reserving, in batches of 500 and of 10, against four other ways to sell finite stock.

use tests::TestDatabase;

use crate::baselines::insert_ceiling::By;
use crate::baselines::row_per_number::From;
use crate::baselines::{hot_row, insert_ceiling, plain_bitmap, row_per_number};
use crate::ours::{self, Load};
use crate::run::Run;
use crate::settings::{BATCH, NUMBERS, SMALL_BATCH};
use crate::shop::Mix;

/// What is kept between rounds.
pub(crate) struct Reserve {
    workers: usize,
    baselines: TestDatabase,
}

impl Reserve {
    /// Finds the best count of these workers, which also warms up the server.
    pub(crate) async fn prepare(run: &mut Run, counts: &[usize]) -> Self {
        let mut best = (0.0, 0);
        for &workers in counts {
            run.step(&format!("reserving with {workers} workers"));
            let ours = ours::measure(load(run.volumes.orders, BATCH, workers), &mut run.rng).await;
            run.note(&format!("{workers} workers: {:.0} orders/s", ours.rate.per_second()));
            if ours.rate.per_second() > best.0 {
                best = (ours.rate.per_second(), workers);
            }
        }
        Self { workers: best.1, baselines: TestDatabase::new().await }
    }

    /// One round: ours, then each baseline.
    pub(crate) async fn round(&self, run: &mut Run) {
        let rate_for = run.volumes.rate_for;
        run.step("reserving in batches of 500");
        let ours = ours::measure(load(run.volumes.orders, BATCH, self.workers), &mut run.rng).await;
        run.step("hot row");
        let hot_row = hot_row::in_two_statements(&self.baselines, rate_for).await;
        let hot_statement = hot_row::in_one_statement(&self.baselines, rate_for).await;
        run.step("plain bitmap");
        let (bitmap, bitmap_wal) = plain_bitmap::measure(&self.baselines, "extended", rate_for).await;
        let (external_bitmap, _) = plain_bitmap::measure(&self.baselines, "external", rate_for).await;
        run.step("row per number");
        let rows = row_per_number::measure(&self.baselines, From::First, rate_for).await;
        let random_rows = row_per_number::measure(&self.baselines, From::Random, rate_for).await;
        run.step("insert ceiling");
        let (ceiling, ceiling_wal) = insert_ceiling::measure(&self.baselines, By::Insert, ours.numbers).await;
        let (copy, copy_wal) = insert_ceiling::measure(&self.baselines, By::Copy, ours.numbers).await;
        run.step("reserving in batches of 10");
        let small_load = load(run.volumes.small_batch_orders, SMALL_BATCH, self.workers);
        let small = ours::measure(small_load, &mut run.rng).await;

        let orders = ours.rate.per_second();
        run.add("reserve_vs_hot_row", orders / hot_row.per_second());
        run.add("reserve_vs_plain_bitmap", orders / bitmap.per_second());
        run.add("reserve_vs_row_per_number", ours.numbers_per_second() / rows.per_second());
        run.add("reserve_vs_insert_ceiling", ours.numbers_per_second() / ceiling.per_second());
        run.add("wal_per_number_vs_ceiling", ours.wal / ceiling_wal);
        run.add("reserve_small_batch", small.rate.per_second() / orders);
        run.add("reserve_workers", self.workers as f64);
        run.add("reserve_orders_per_s", orders);
        run.add("reserve_numbers_per_s", ours.numbers_per_second());
        run.add("reserve_small_batch_orders_per_s", small.rate.per_second());
        run.add("reserve_wal_per_number", ours.wal);
        run.add("reserve_small_batch_wal_per_number", small.wal);
        run.add("hot_row_orders_per_s", hot_row.per_second());
        run.add("hot_row_in_one_statement_orders_per_s", hot_statement.per_second());
        run.add("plain_bitmap_orders_per_s", bitmap.per_second());
        run.add("plain_bitmap_uncompressed_orders_per_s", external_bitmap.per_second());
        run.add("plain_bitmap_wal_per_number", bitmap_wal);
        run.add("row_per_number_numbers_per_s", rows.per_second());
        run.add("row_per_number_from_random_numbers_per_s", random_rows.per_second());
        run.add("insert_ceiling_numbers_per_s", ceiling.per_second());
        run.add("insert_ceiling_wal_per_number", ceiling_wal);
        run.add("copy_numbers_per_s", copy.per_second());
        run.add("copy_wal_per_number", copy_wal);
        run.explain("WAL per number, batches of 500", ours.kinds);
        run.explain("WAL per number, batches of 10", small.kinds);
    }

    pub(crate) async fn finish(self) {
        self.baselines.finish().await;
    }
}

fn load(orders: usize, batch: usize, workers: usize) -> Load {
    Load { numbers: NUMBERS, orders, mix: Mix::Both, batch, workers }
}
