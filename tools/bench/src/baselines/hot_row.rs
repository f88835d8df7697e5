//! A counter per product: one transaction per order takes from it and records the order.

use std::time::{Duration, Instant};

use rand::RngExt;
use tests::TestDatabase;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Statement};
use uuid::Uuid;

use super::prepared;
use crate::rate::{Rate, for_some_time, settle};
use crate::settings::{CONNECTIONS, NUMBERS_PER_ORDER};

const TABLES: &str = "drop table if exists hot_products, hot_orders;
    create table hot_products (id integer primary key, available integer not null) with (fillfactor = 10);
    create table hot_orders (id uuid primary key, product_id integer not null, buyer_id uuid not null,
        quantity integer not null, created_at timestamptz not null default now());
    insert into hot_products values (1, 1000000000)";

/// Orders in that time, each one statement: the row is locked for no round trip, only for its commit.
pub(crate) async fn in_one_statement(database: &TestDatabase, time: Duration) -> Rate {
    database.owner().batch_execute(TABLES).await.unwrap();
    let sql = "with taken as (
            update hot_products set available = available - $3 where id = 1 and available >= $3 returning id
        )
        insert into hot_orders (id, product_id, buyer_id, quantity) select $1, id, $2, $3 from taken";
    let clients = prepared(database, CONNECTIONS, sql).await;
    settle(database).await;
    for_some_time(time, clients, |(client, statement): (Client, Statement), until| async move {
        let mut orders = 0;
        while Instant::now() < until {
            let quantity = rand::rng().random_range(1..=NUMBERS_PER_ORDER);
            let parameters: [&(dyn ToSql + Sync); 3] = [&Uuid::now_v7(), &Uuid::now_v7(), &quantity];
            orders += client.execute(&statement, &parameters).await.unwrap();
        }
        orders
    })
    .await
}

/// Orders in that time, each a transaction of two statements, as most shops write it.
pub(crate) async fn in_two_statements(database: &TestDatabase, time: Duration) -> Rate {
    database.owner().batch_execute(TABLES).await.unwrap();
    let take = "update hot_products set available = available - $1 where id = 1 and available >= $1";
    let mut clients = Vec::new();
    for (client, take) in prepared(database, CONNECTIONS, take).await {
        let record = "insert into hot_orders (id, product_id, buyer_id, quantity) values ($1, 1, $2, $3)";
        let record = client.prepare(record).await.unwrap();
        clients.push((client, take, record));
    }
    settle(database).await;
    for_some_time(time, clients, |(mut client, take, record): (Client, _, Statement), until| async move {
        let mut orders = 0;
        while Instant::now() < until {
            let quantity = rand::rng().random_range(1..=NUMBERS_PER_ORDER);
            let tx = client.transaction().await.unwrap();
            let taken = tx.execute(&take, &[&quantity]).await.unwrap();
            assert_eq!(taken, 1, "there is enough for everybody");
            orders += tx.execute(&record, &[&Uuid::now_v7(), &Uuid::now_v7(), &quantity]).await.unwrap();
            tx.commit().await.unwrap();
        }
        orders
    })
    .await
}
