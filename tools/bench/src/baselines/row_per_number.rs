//! A row per number: a statement locks any five free ones that nobody else holds, and marks them.

use std::time::{Duration, Instant};

use rand::RngExt;
use tests::TestDatabase;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::prepared;
use crate::rate::{Rate, for_some_time, settle};
use crate::settings::{CONNECTIONS, NUMBERS, ROWS_AT_ONCE};

/// Where a statement looks for free rows.
#[derive(Debug, Clone, Copy)]
pub(crate) enum From {
    /// At the beginning of the index, as the statement is mostly written: everybody passes over the rows that others
    /// hold or have just taken.
    First,
    /// From a random number on, which is the remedy.
    Random,
}

/// Numbers in that time.
pub(crate) async fn measure(database: &TestDatabase, from: From, time: Duration) -> Rate {
    let sql = format!(
        "drop table if exists number_rows;
        create table number_rows (number integer primary key, state text not null default 'free', order_id uuid)
            with (fillfactor = 80);
        insert into number_rows (number) select number from generate_series(1, {NUMBERS}) as number;
        create index number_rows_free on number_rows (number) where state = 'free'"
    );
    database.owner().batch_execute(&sql).await.unwrap();
    let sql = format!(
        "with free as (
            select number from number_rows where state = 'free' and number >= $1
            order by number limit {ROWS_AT_ONCE} for no key update skip locked
        )
        update number_rows r set state = 'reserved', order_id = $2 from free where r.number = free.number"
    );
    let clients = prepared(database, CONNECTIONS, &sql).await;
    settle(database).await;
    for_some_time(time, clients, |(client, statement): (Client, Statement), until| async move {
        let mut numbers = 0;
        while Instant::now() < until {
            let start = match from {
                From::First => 1,
                From::Random => rand::rng().random_range(1..=NUMBERS),
            };
            numbers += client.execute(&statement, &[&start, &Uuid::now_v7()]).await.unwrap();
        }
        numbers
    })
    .await
}
