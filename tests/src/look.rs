//! Looking at what happened.

use std::collections::BTreeMap;

use store::catalog::Product;
use store::orders::{Order, history};
use uuid::Uuid;

use crate::TestDatabase;

/// An order as stored.
pub async fn order(database: &TestDatabase, id: Uuid) -> Order {
    history(database.owner(), id).await.unwrap().0
}

/// Many orders as stored, in the order of the ids.
pub async fn orders(database: &TestDatabase, ids: &[Uuid]) -> Vec<Order> {
    let mut orders = Vec::new();
    for id in ids {
        orders.push(order(database, *id).await);
    }
    orders
}

/// Orders of a product by outcome: the state, or the reason of a rejection.
pub async fn outcomes(database: &TestDatabase, product: &Product) -> BTreeMap<String, i64> {
    let sql = "select coalesce(reason, state), count(*) from orders where product_key = $1 group by 1";
    let rows = database.owner().query(sql, &[&product.key]).await.unwrap();
    rows.iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// Outcomes in the form of [`outcomes`].
#[must_use]
pub fn expected<const N: usize>(outcomes: [(&str, i64); N]) -> BTreeMap<String, i64> {
    outcomes.into_iter().filter(|(_, count)| *count > 0).map(|(word, count)| (word.to_owned(), count)).collect()
}

/// How many numbers of a product are taken.
pub async fn taken(database: &TestDatabase, product: &Product) -> i64 {
    count(database, &format!("select count(*) from taken_numbers where product_key = {}", product.key)).await
}

/// The one number that a statement gives.
pub async fn count(database: &TestDatabase, sql: &str) -> i64 {
    database.owner().query_one(sql, &[]).await.expect(sql).get(0)
}

/// Runs a statement that must change as many rows. If it moves orders in time, their places in the lists of waiting
/// orders move with them.
pub async fn change(database: &TestDatabase, sql: &str, rows: u64) {
    let client = database.owner();
    client.batch_execute("begin").await.unwrap();
    assert_eq!(client.execute(sql, &[]).await.expect(sql), rows, "{sql}");
    client.batch_execute(FOLLOW_TIMES).await.unwrap();
    client.batch_execute("commit").await.unwrap();
}

/// Moves the places of waiting orders to where the orders' times say.
pub const FOLLOW_TIMES: &str = "update order_queue q set created_at = o.created_at from orders o
        where o.id = q.order_id and q.created_at <> o.created_at;
    insert into holds (product_key, sweep_at, order_ids) select product_key, sweep_at, array[id] from (
        select id, product_key, sweep_at from orders where state in ('reserved', 'paying')
        except select unnest(order_ids), product_key, sweep_at from holds) as unlisted;";
