//! Money: every accepted order ends paid, refunded or released, whatever the gateway does.

mod any_order;
mod disputes;
mod expiry;
mod fairness;
mod late;
mod pay;
mod refunds;
mod strange;
mod unanswered;
mod webhook;

use store::payments::{Refund, RefundRequest};
use tests::http::Buyer;
use tests::operator;
use tests::seed::exact;
use tests::till::Till;
use uuid::Uuid;

/// A paid order of five numbers, 1,250 in all, and its attempt.
async fn paid(till: &Till, method: &str) -> (Buyer, Uuid, Uuid) {
    let buyer = till.buyer();
    let order = till.reserve(&buyer, &exact(&[1, 2, 3, 4, 5])).await;
    let attempt = till.open_payment(&buyer, order, "first", method).await;
    till.gateway.pay(attempt).unwrap();
    till.settle().await;
    till.is(order, "paid").await;
    (buyer, order, attempt)
}

/// Staff ask for money back: for these numbers, or for all that are left.
async fn refund(till: &Till, order_id: Uuid, numbers: Option<&[i32]>) -> domain::Result<Refund> {
    let tenant_id = till.product.described.tenant_id;
    let request = RefundRequest { tenant_id, order_id, numbers, note: "as agreed", refund_id: Uuid::now_v7() };
    operator::refund(&mut till.database.app_client().await, &request).await
}

/// The one failed refund that nobody has tried again.
async fn owed_refund(till: &Till) -> Uuid {
    let sql = "select id from refunds where state = 'failed' and retried_as is null";
    till.database.owner().query_one(sql, &[]).await.unwrap().get(0)
}
