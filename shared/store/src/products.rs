//! What staff do to products and to their store: each act with its entry in the audit log, in one transaction.

use domain::catalog::{Intake, NewProduct, Reserving};
use domain::limits::{NUMBERS_PER_STORE_MAX, PRODUCTS_PER_STORE_MAX};
use domain::{Reason, Result};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::acts::{NewAct, record};
use crate::catalog::{Product, find_of_store, insert_with_chunks};
use crate::errors::{constraint_of, from_postgres};
use crate::rows::column;
use crate::switches::{Switch, set_intake, set_reserving};
use crate::types::{INT2, INT4, INT8, TEXT, TIMESTAMPTZ, UUID};

/// A product of a store; those of others do not exist.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn find(client: &Client, tenant_id: Uuid, id: Uuid) -> Result<Product> {
    find_of_store(client, tenant_id, id).await?.ok_or_else(|| Reason::NotFound.into())
}

/// Makes a product, everything available. False when it was made under the act's key before.
///
/// # Errors
/// Invalid when a rule of [`NewProduct::validate`] is broken, limit-exceeded when the store has no room for it, those of a
/// key, or busy or fault from the database.
pub async fn create(client: &mut Client, product: &NewProduct, act: &NewAct) -> Result<bool> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    if !record(&tx, act).await? {
        return Ok(false);
    }
    // Counted without a lock: two at the same instant may pass it by one.
    let sql = "select count(*) < $2 and coalesce(sum(number_count), 0) + $3::integer <= $4 as fits
        from products where tenant_id = $1";
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&act.tenant_id, UUID),
        (&PRODUCTS_PER_STORE_MAX, INT8),
        (&product.range.count, INT4),
        (&NUMBERS_PER_STORE_MAX, INT8),
    ];
    if !column::<bool>(&tx.query_typed_one(sql, &params).await.map_err(from_postgres)?, "fits")? {
        return Err(Reason::LimitExceeded.into());
    }
    insert_with_chunks(&tx, product).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(true)
}

/// Writes a product's new description over the version that it was made from. Its range stays.
///
/// # Errors
/// Precondition-failed when somebody changed it first; frozen for what can no longer change; not-found, or busy or
/// fault from the database.
pub async fn edit(client: &mut Client, new: &NewProduct, version: i64, act: &NewAct) -> Result<Product> {
    new.validate().map_err(|_| Reason::Invalid)?;
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update products set campaign = $4, name = $5, padding = $6, price_minor = $7, currency = $8,
            opens_at = $9, closes_at = $10, zone = $11, hold_seconds = $12, numbers_per_order_max = $13,
            numbers_per_buyer_max = $14, version = version + 1
        where id = $1 and tenant_id = $2 and version = $3";
    let params: [(&(dyn ToSql + Sync), _); 14] = [
        (&new.id, UUID),
        (&act.tenant_id, UUID),
        (&version, INT8),
        (&new.campaign, TEXT),
        (&new.name, TEXT),
        (&new.padding, INT2),
        (&new.price.minor, INT8),
        (&new.price.currency, TEXT),
        (&new.opens_at, TIMESTAMPTZ),
        (&new.closes_at, TIMESTAMPTZ),
        (&new.zone, TEXT),
        (&new.hold_seconds, INT4),
        (&new.numbers_per_order_max, INT4),
        (&new.numbers_per_buyer_max, INT4),
    ];
    let changed = tx.execute_typed(sql, &params).await.map_err(|error| match constraint_of(&error) {
        Some("products_frozen" | "products_opening_passed") => Reason::Frozen.into(),
        _ => from_postgres(error),
    })?;
    let now = find(tx.client(), act.tenant_id, new.id).await?;
    if changed == 0 {
        return Err(Reason::PreconditionFailed.into());
    }
    record(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(now)
}

/// Ends a sale now. Orders that are queued are refused, those that hold numbers go on.
///
/// # Errors
/// Not-found; not-open before the opening, which can be moved instead; sale-closed when it has ended; those of a key;
/// busy or fault from the database.
pub async fn close(client: &mut Client, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    if !record(&tx, act).await? {
        return Ok(());
    }
    let sql = "select opens_at < now() as opened, closes_at <= now() as closed from products
        where id = $1 and tenant_id = $2 for no key update";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&act.subject_id, UUID), (&act.tenant_id, UUID)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?.ok_or(Reason::NotFound)?;
    if !column::<bool>(&row, "opened")? {
        return Err(Reason::NotOpen.into());
    }
    if column(&row, "closed")? {
        return Err(Reason::SaleClosed.into());
    }
    let sql = "update products set closes_at = now(), version = version + 1 where id = $1 and tenant_id = $2";
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    tx.commit().await.map_err(from_postgres)
}

/// Opens or pauses the intake of one product, or of the whole store when the act is about it.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn switch_intake(client: &mut Client, product_id: Option<Uuid>, intake: Intake, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let switch = product_id.map_or(Switch::Tenant(act.tenant_id), |id| Switch::Product(act.tenant_id, id));
    set_intake(tx.client(), switch, intake, act.reason.as_deref()).await?;
    record(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)
}

/// Halts or resumes whatever changes a product's numbers.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn switch_reserving(client: &mut Client, reserving: Reserving, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    set_reserving(tx.client(), act.tenant_id, act.subject_id, reserving, act.reason.as_deref()).await?;
    record(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)
}
