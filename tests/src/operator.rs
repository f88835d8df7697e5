//! What the platform's operator does by command, with its line in the audit log.

use std::collections::BTreeSet;

use domain::Result;
use domain::roles::Action;
use store::acts::{NewAct, Subject};
use store::catalog::Product;
use store::numbers;
use store::payments::{self, Refund, RefundRequest};
use tokio_postgres::Client;
use uuid::Uuid;

/// Blocks numbers of a product.
///
/// # Errors
/// Those of the store.
pub async fn block(client: &mut Client, product: &Product, numbers: &BTreeSet<i32>) -> Result<()> {
    numbers::block(client, product, numbers, &on_product(product, Action::BlockNumbers)).await
}

/// Unblocks numbers of a product.
///
/// # Errors
/// Those of the store.
pub async fn unblock(client: &mut Client, product: &Product, numbers: &BTreeSet<i32>) -> Result<()> {
    numbers::unblock(client, product, numbers, &on_product(product, Action::UnblockNumbers)).await
}

/// Asks for a refund.
///
/// # Errors
/// Those of the store.
pub async fn refund(client: &mut Client, request: &RefundRequest<'_>) -> Result<Refund> {
    let act = act(request.tenant_id, Action::RefundOrder, Subject::Order, request.order_id);
    payments::request_refund(client, request, &act).await
}

/// Takes all numbers back that an order got for nothing.
///
/// # Errors
/// Those of the store.
pub async fn withdraw(client: &mut Client, tenant_id: Uuid, order_id: Uuid) -> Result<Vec<i32>> {
    payments::withdraw(client, None, &act(tenant_id, Action::RefundOrder, Subject::Order, order_id)).await
}

fn on_product(product: &Product, action: Action) -> NewAct {
    act(product.described.tenant_id, action, Subject::Product, product.described.id)
}

fn act(tenant_id: Uuid, action: Action, subject: Subject, subject_id: Uuid) -> NewAct {
    NewAct { tenant_id, staff_id: None, action, subject, subject_id, detail: None, reason: None, keyed: None }
}
