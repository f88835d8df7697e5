//! The least that the arbiter costs: one transaction that only inserts random numbers under the same unique index.

use std::time::Instant;

use futures::pin_mut;
use rand::seq::SliceRandom;
use tests::TestDatabase;
use tokio_postgres::Client;
use tokio_postgres::binary_copy::BinaryCopyInWriter;
use tokio_postgres::types::Type;
use uuid::Uuid;

use crate::rate::{Rate, Wal, settle};
use crate::settings::NUMBERS;

/// How the rows are sent.
#[derive(Debug, Clone, Copy)]
pub(crate) enum By {
    /// One `insert … select from unnest`, the kind of statement that we send.
    Insert,
    /// Binary `copy`, which needs a named statement and so does not pass through poolers.
    Copy,
}

/// So many numbers, and the bytes of WAL for each.
pub(crate) async fn measure(database: &TestDatabase, by: By, count: u64) -> (Rate, f64) {
    let owner = database.owner();
    let sql = "drop table if exists ceiling_numbers; create table ceiling_numbers (like taken_numbers including all)";
    owner.batch_execute(sql).await.unwrap();
    let mut numbers: Vec<i32> = (1..=NUMBERS).collect();
    numbers.shuffle(&mut rand::rng());
    numbers.truncate(usize::try_from(count).unwrap());
    let orders: Vec<Uuid> = numbers.iter().map(|_| Uuid::now_v7()).collect();
    let client = database.another_owner().await;
    settle(database).await;
    let before = Wal::now(owner).await;
    let started = Instant::now();
    let count = match by {
        By::Copy => copy(client, &numbers, &orders).await,
        By::Insert => insert(client, &numbers, &orders).await,
    };
    let rate = Rate { count, time: started.elapsed() };
    (rate, before.bytes_since(owner).await / count as f64)
}

async fn copy(client: Client, numbers: &[i32], orders: &[Uuid]) -> u64 {
    let sql = "copy ceiling_numbers (product_key, number, order_id) from stdin binary";
    let writer = BinaryCopyInWriter::new(client.copy_in(sql).await.unwrap(), &[Type::INT4, Type::INT4, Type::UUID]);
    pin_mut!(writer);
    for (number, order) in numbers.iter().zip(orders) {
        writer.as_mut().write(&[&1, number, order]).await.unwrap();
    }
    writer.finish().await.unwrap()
}

async fn insert(client: Client, numbers: &[i32], orders: &[Uuid]) -> u64 {
    let sql = "insert into ceiling_numbers (product_key, number, order_id)
        select 1, number, order_id from unnest($1::integer[], $2::uuid[]) as new (number, order_id)";
    client.execute(sql, &[&numbers, &orders]).await.unwrap()
}
