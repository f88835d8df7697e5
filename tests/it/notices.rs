//! Buyers are told what became of their orders: once, in their language, and never at an order's expense.

mod logs;
mod owing;
mod sending;
mod trouble;

use tests::http::Buyer;
use tests::notices::{Told, log_in};
use tests::till::Till;

const PHONE: &str = "+34600000001";

/// A buyer who has logged in.
async fn known(till: &Till) -> Buyer {
    let buyer = till.buyer();
    log_in(&till.database, till.product.described.tenant_id, buyer.id, PHONE).await;
    buyer
}

/// Hands over what is owed, and sends it.
async fn tell(till: &Till, told: &Told) {
    till.chain.reconcile().await;
    told.send(&till.database, &till.chain.queues).await;
}

/// Kind and outcome of every notice, oldest first.
async fn ends(till: &Till) -> Vec<(String, Option<String>)> {
    let sql = "select kind, outcome from notices order by created_at, kind";
    till.database.owner().query(sql, &[]).await.unwrap().iter().map(|row| (row.get(0), row.get(1))).collect()
}

/// In the form of [`ends`].
fn ended(kind: &str, outcome: &str) -> (String, Option<String>) {
    (kind.to_owned(), Some(outcome.to_owned()))
}
