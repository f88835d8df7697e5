//! One bitmap per product: one transaction per order locks the row, chooses free numbers, and writes it back.
//!
//! Half of the numbers are sold, at random, so that no compression helps.

use std::time::{Duration, Instant};

use rand::RngExt;
use tests::TestDatabase;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::prepared;
use crate::rate::{Rate, Wal, for_some_time, settle};
use crate::settings::{CONNECTIONS, NUMBERS, NUMBERS_PER_ORDER};

/// How the column is stored: `extended`, as every column of bytes is unless somebody says otherwise, or `external`,
/// which does not try to compress.
pub(crate) type Storage = &'static str;

/// Orders in that time, and the bytes of WAL for each number.
pub(crate) async fn measure(database: &TestDatabase, storage: Storage, time: Duration) -> (Rate, f64) {
    let owner = database.owner();
    let sql = format!(
        "drop table if exists bitmap_products, bitmap_orders;
        create table bitmap_products (id integer primary key, bits bytea not null);
        alter table bitmap_products alter column bits set storage {storage};
        create table bitmap_orders (id uuid primary key, product_id integer not null, buyer_id uuid not null,
            numbers integer[] not null, created_at timestamptz not null default now())"
    );
    owner.batch_execute(&sql).await.unwrap();
    let mut half_sold = vec![0_u8; usize::try_from(NUMBERS).unwrap().div_ceil(8)];
    rand::rng().fill(&mut half_sold[..]);
    owner.execute("insert into bitmap_products values (1, $1)", &[&half_sold]).await.unwrap();
    let sql = "select bits from bitmap_products where id = 1 for no key update";
    let readers = prepared(database, CONNECTIONS, sql).await;
    let mut clients = Vec::new();
    for (client, read) in readers {
        let sql = "with placed as (
                insert into bitmap_orders (id, product_id, buyer_id, numbers) values ($1, 1, $2, $3)
            )
            update bitmap_products set bits = $4 where id = 1";
        let write = client.prepare(sql).await.unwrap();
        clients.push((client, read, write));
    }
    settle(database).await;
    let before = Wal::now(owner).await;
    let rate = for_some_time(time, clients, |(client, read, write), until| sell(client, read, write, until)).await;
    let wal = before.bytes_since(owner).await;
    let numbers: i64 =
        owner.query_one("select coalesce(sum(cardinality(numbers)), 0) from bitmap_orders", &[]).await.unwrap().get(0);
    (rate, wal / numbers as f64)
}

async fn sell(mut client: Client, read: Statement, write: Statement, until: Instant) -> u64 {
    let mut orders = 0;
    while Instant::now() < until {
        let tx = client.transaction().await.unwrap();
        let mut bits: Vec<u8> = tx.query_one(&read, &[]).await.unwrap().get(0);
        let numbers = take(&mut bits);
        orders += tx.execute(&write, &[&Uuid::now_v7(), &Uuid::now_v7(), &numbers, &bits]).await.unwrap();
        tx.commit().await.unwrap();
    }
    orders
}

/// Sets the bits of an order's numbers.
fn take(bits: &mut [u8]) -> Vec<i32> {
    let mut rng = rand::rng();
    let wanted = rng.random_range(1..=NUMBERS_PER_ORDER);
    let mut numbers = Vec::new();
    while i32::try_from(numbers.len()).is_ok_and(|count| count < wanted) {
        let position = rng.random_range(0..bits.len());
        let free = !bits[position];
        if free != 0 {
            let bit = free.trailing_zeros();
            bits[position] |= 1 << bit;
            numbers.push(i32::try_from(position * 8).unwrap_or(0) + bit.cast_signed());
        }
    }
    numbers
}
