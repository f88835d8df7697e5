//! Releasing: numbers of orders that their buyers gave up go back to stock.

use std::collections::BTreeMap;

use domain::Result;
use domain::catalog::Reserving;
use domain::messages::Queue;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::catalog::{Product, find_of_store};
use crate::errors::from_postgres;
use crate::numbers::give_back::{Held, give_back, held_from};
use crate::numbers::mend::repair;
use crate::numbers::{Failure, Served};
use crate::rows::column;
use crate::types::{UUID, UUIDS};
use crate::{outbox, switches};

/// Gives back the numbers of orders whose cancellation was requested: together, or order by order when that fails, so
/// that one poisoned order costs only itself.
///
/// # Errors
/// Busy or fault; then nothing is known to have changed.
pub async fn release(
    client: &mut Client,
    tenant_id: Uuid,
    product_id: Uuid,
    order_ids: &[Uuid],
) -> Result<Vec<(Uuid, Served)>> {
    let Some(product) = find_of_store(client, tenant_id, product_id).await? else {
        return Ok(order_ids.iter().map(|id| (*id, Served::Unknown)).collect());
    };
    match mending(client, &product, order_ids).await {
        Err(failure) if failure.is_about_data() => each_alone(client, &product, order_ids).await,
        other => other.map_err(Failure::into_error),
    }
}

async fn each_alone(client: &mut Client, product: &Product, order_ids: &[Uuid]) -> Result<Vec<(Uuid, Served)>> {
    let mut served = Vec::new();
    for id in order_ids {
        match mending(client, product, &[*id]).await {
            Ok(one) => served.extend(one),
            Err(failure) => {
                tracing::error!(order.id = %id, error = failure.into_error().chain(), "order not released");
                served.push((*id, Served::Again));
            }
        }
    }
    Ok(served)
}

async fn mending(
    client: &mut Client,
    product: &Product,
    order_ids: &[Uuid],
) -> std::result::Result<Vec<(Uuid, Served)>, Failure> {
    match requested(client, product, order_ids).await {
        Err(failure @ (Failure::Disagreement(_) | Failure::Miscounted(_))) => {
            repair(client, product, &failure).await?;
            requested(client, product, order_ids).await
        }
        other => other,
    }
}

async fn requested(
    client: &mut Client,
    product: &Product,
    order_ids: &[Uuid],
) -> std::result::Result<Vec<(Uuid, Served)>, Failure> {
    let tx = client.transaction().await?;
    let sql = "select id, buyer_id, numbers, true as cancelled from orders
        where id = any($1) and product_id = $2 and state = 'reserved' and cancel_requested_at is not null
        order by id for no key update skip locked";
    let rows = tx.query_typed(sql, &[(&order_ids, UUIDS), (&product.described.id, UUID)]).await?;
    let held: Vec<Held> = rows.iter().map(held_from).collect::<Result<_>>()?;
    let ids: Vec<Uuid> = held.iter().map(|order| order.id).collect();
    let mut served = explain_missing(&tx, product.described.id, order_ids, &ids).await?;
    if switches::reserving(&tx, product.key).await? == Reserving::Halted {
        outbox::park(&tx, Queue::ReleaseNumbers, &ids).await?;
    } else {
        give_back(&tx, product, &held, "release-numbers").await?;
    }
    fail::fail_point!("release.before_commit");
    tx.commit().await?;
    served.extend(ids.into_iter().map(|id| (id, Served::Done)));
    Ok(served)
}

async fn explain_missing(
    tx: &Transaction<'_>,
    product_id: Uuid,
    order_ids: &[Uuid],
    locked: &[Uuid],
) -> Result<Vec<(Uuid, Served)>> {
    let missing: Vec<Uuid> = order_ids.iter().copied().filter(|id| !locked.contains(id)).collect();
    if missing.is_empty() {
        return Ok(Vec::new());
    }
    let sql = "select id, state = 'reserved' and cancel_requested_at is not null as waiting from orders
        where id = any($1) and product_id = $2";
    let mut waiting = BTreeMap::new();
    for row in &tx.query_typed(sql, &[(&missing, UUIDS), (&product_id, UUID)]).await.map_err(from_postgres)? {
        waiting.insert(column::<Uuid>(row, "id")?, column::<bool>(row, "waiting")?);
    }
    let explain = |id| match waiting.get(&id) {
        None => Served::Unknown,
        Some(true) => Served::Again,
        Some(false) => Served::Done,
    };
    Ok(missing.into_iter().map(|id| (id, explain(id))).collect())
}
