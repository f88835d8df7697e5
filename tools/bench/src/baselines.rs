//! What others do: the ways of selling finite stock that are compared with ours, each tuned as its users would tune
//! it. Same server, same durability, prepared statements.

pub(crate) mod hot_row;
pub(crate) mod insert_ceiling;
pub(crate) mod plain_bitmap;
pub(crate) mod row_per_number;

use tests::TestDatabase;
use tokio_postgres::{Client, Statement};

/// So many connections with a statement prepared on each.
pub(crate) async fn prepared(database: &TestDatabase, count: usize, sql: &str) -> Vec<(Client, Statement)> {
    let mut clients = Vec::with_capacity(count);
    for _ in 0..count {
        let client = database.another_owner().await;
        let statement = client.prepare(sql).await.unwrap();
        clients.push((client, statement));
    }
    clients
}
