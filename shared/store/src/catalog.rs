//! Stores and products, and what the public may know about their numbers.

use domain::catalog::{Intake, Money, NewProduct, Range, Reserving, is_label};
use domain::numbers::{Chunk, Counters};
use domain::{Error, Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use crate::errors::{constraint_of, from_postgres};
use crate::rows::{column, one_word};
use crate::types::{BYTEAS, INT2, INT4, INT4S, INT8, TEXT, TIMESTAMPTZ, UUID};

/// A tenant as the public sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// Its id.
    pub id: Uuid,
    /// Its name in URLs.
    pub slug: String,
    /// Its name for people.
    pub name: String,
    /// Its own switch.
    pub intake: Intake,
}

/// A product as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// Small key for the wide tables.
    pub key: i32,
    /// Slug of its store.
    pub store: String,
    /// What the seller described.
    pub described: NewProduct,
    /// Whether new orders are accepted, by the product's own switch.
    pub intake: Intake,
    /// Whether its numbers may change hands.
    pub reserving: Reserving,
    /// Grows with every change of the product's row.
    pub version: i64,
}

/// Makes a store, or gives the one that has the slug already.
///
/// # Errors
/// Invalid when the slug has another form; busy or fault from the database.
pub async fn insert_store(client: &Client, id: Uuid, slug: &str, name: &str) -> Result<Store> {
    let sql = "insert into tenants (id, slug, name) values ($1, $2, $3)
        on conflict (slug) do update set name = excluded.name
        returning id, slug, name, intake";
    match client.query_typed_one(sql, &[(&id, UUID), (&slug, TEXT), (&name, TEXT)]).await {
        Ok(row) => store_from(&row),
        Err(error) if constraint_of(&error) == Some("tenants_slug_form") => Err(Reason::Invalid.into()),
        Err(error) => Err(from_postgres(error)),
    }
}

/// The store with this slug. What cannot be one is not looked up: it may be no text for the database.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_store(client: &Client, slug: &str) -> Result<Option<Store>> {
    if !is_label(slug) {
        return Ok(None);
    }
    let sql = "select id, slug, name, intake from tenants where slug = $1";
    let row = client.query_typed_opt(sql, &[(&slug, TEXT)]).await.map_err(from_postgres)?;
    row.as_ref().map(store_from).transpose()
}

/// Stores by slug, `limit` at most, after the one that `after` names; for operators, so across tenants.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_stores(client: &Client, after: Option<&str>, limit: i64) -> Result<Vec<Store>> {
    let sql = "select id, slug, name, intake from tenants
        where $1::text is null or slug > $1 order by slug limit $2";
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 2] = [(&after, TEXT), (&limit, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(store_from).collect()
}

/// Makes a product and its chunks, everything available.
///
/// # Errors
/// Invalid when a rule of [`NewProduct::validate`] is broken, not-found when there is no such tenant.
pub async fn insert_product(client: &mut Client, product: &NewProduct) -> Result<i32> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let key = insert_with_chunks(&tx, product).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(key)
}

pub(crate) async fn insert_with_chunks(tx: &Transaction<'_>, product: &NewProduct) -> Result<i32> {
    product.validate().map_err(|_| Reason::Invalid)?;
    let sql = "insert into products (id, tenant_id, campaign, name, first_number, number_count, padding, price_minor,
            currency, opens_at, closes_at, zone, hold_seconds, numbers_per_order_max, numbers_per_buyer_max)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
        returning key";
    let row = tx
        .query_typed_one(
            sql,
            &[
                (&product.id, UUID),
                (&product.tenant_id, UUID),
                (&product.campaign, TEXT),
                (&product.name, TEXT),
                (&product.range.first, INT4),
                (&product.range.count, INT4),
                (&product.padding, INT2),
                (&product.price.minor, INT8),
                (&product.price.currency, TEXT),
                (&product.opens_at, TIMESTAMPTZ),
                (&product.closes_at, TIMESTAMPTZ),
                (&product.zone, TEXT),
                (&product.hold_seconds, INT4),
                (&product.numbers_per_order_max, INT4),
                (&product.numbers_per_buyer_max, INT4),
            ],
        )
        .await
        .map_err(|error| match constraint_of(&error) {
            Some("products_tenant_exists") => Reason::NotFound.into(),
            // Ids are made from keys: one that was used before its key was forgotten.
            Some("products_pkey") => Reason::KeyReused.into(),
            _ => from_postgres(error),
        })?;
    let key: i32 = column(&row, "key")?;
    insert_chunks(tx, key, product.range).await?;
    Ok(key)
}

async fn insert_chunks(tx: &Transaction<'_>, product_key: i32, range: Range) -> Result<()> {
    let chunks: Vec<Chunk> = (0..range.chunk_count()).map(|index| Chunk::new(range, index)).collect();
    let indexes: Vec<i32> = chunks.iter().map(Chunk::index).collect();
    let sizes: Vec<i32> = chunks.iter().map(|chunk| chunk.counters().available).collect();
    let bits: Vec<Vec<u8>> = chunks.iter().map(Chunk::bits).collect();
    let sql = "insert into number_chunks (product_key, chunk, bits, size, available)
        select $1, chunk, bits, size, size from unnest($2, $3, $4) as new (chunk, bits, size)";
    tx.execute_typed(sql, &[(&product_key, INT4), (&indexes, INT4S), (&bits, BYTEAS), (&sizes, INT4S)])
        .await
        .map_err(from_postgres)?;
    Ok(())
}

const PRODUCT_COLUMNS: &str = "id, key, tenant_id, campaign, name, first_number, number_count, padding, price_minor,
    currency, opens_at, closes_at, zone, hold_seconds, numbers_per_order_max, numbers_per_buyer_max, intake, reserving,
    version, (select slug from tenants where id = products.tenant_id) as store";

/// The product with this id; for the public and for operators, so across tenants.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_product(client: &Client, id: Uuid) -> Result<Option<Product>> {
    let sql = format!("select {PRODUCT_COLUMNS} from products where id = $1");
    let row = client.query_typed_opt(&sql, &[(&id, UUID)]).await.map_err(from_postgres)?;
    row.as_ref().map(product_from).transpose()
}

/// A product of a store; those of others do not exist.
pub(crate) async fn find_of_store(client: &Client, tenant_id: Uuid, id: Uuid) -> Result<Option<Product>> {
    let sql = format!("select {PRODUCT_COLUMNS} from products where id = $1 and tenant_id = $2");
    let row = client.query_typed_opt(&sql, &[(&id, UUID), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
    row.as_ref().map(product_from).transpose()
}

/// Products of a store by opening time, `limit` at most, after the one that `after` names.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list_products(client: &Client, tenant_id: Uuid, after: Option<Uuid>, limit: i64) -> Result<Vec<Product>> {
    let sql = format!(
        "select {PRODUCT_COLUMNS} from products
        where tenant_id = $1 and ($2::uuid is null
            or (opens_at, id) > (select opens_at, id from products where id = $2 and tenant_id = $1))
        order by opens_at, id limit $3"
    );
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 3] =
        [(&tenant_id, UUID), (&after, UUID), (&limit, INT8)];
    let rows = client.query_typed(&sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(product_from).collect()
}

/// A product's counters over all chunks, with the version of its availability.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Availability {
    /// Counters of the whole product.
    pub counters: Counters,
    /// Sum of the chunks' versions: grows with every change.
    pub version: i64,
}

/// Counters and version of a product, without its bits.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_availability(client: &Client, product_key: i32) -> Result<Availability> {
    let sql = "select coalesce(sum(available), 0)::int4 as available, coalesce(sum(reserved), 0)::int4 as reserved,
            coalesce(sum(paid), 0)::int4 as paid, coalesce(sum(blocked), 0)::int4 as blocked,
            coalesce(sum(version), 0)::int8 as version
        from number_chunks where product_key = $1";
    let row = client.query_typed_one(sql, &[(&product_key, INT4)]).await.map_err(from_postgres)?;
    Ok(Availability { counters: counters_from(&row)?, version: column(&row, "version")? })
}

/// A product's counters and bits, all from one snapshot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bitmap {
    /// Counters and version of the whole product.
    pub availability: Availability,
    /// The bits of every chunk, ascending; none when the version is the one already known.
    pub chunks: Option<Vec<Vec<u8>>>,
}

/// Counters and version of a product; its bits too, unless the version is `known_version`.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_bitmap(client: &Client, product_key: i32, known_version: Option<i64>) -> Result<Bitmap> {
    let sql = "select available, reserved, paid, blocked, version,
            case when (sum(version) over ())::int8 is distinct from $2 then bits end as bits
        from number_chunks where product_key = $1 order by chunk";
    let rows = client.query_typed(sql, &[(&product_key, INT4), (&known_version, INT8)]).await.map_err(from_postgres)?;
    let mut availability = Availability { counters: Counters::default(), version: 0 };
    let mut chunks = Vec::with_capacity(rows.len());
    for row in &rows {
        let counters = counters_from(row)?;
        availability.counters.available += counters.available;
        availability.counters.reserved += counters.reserved;
        availability.counters.paid += counters.paid;
        availability.counters.blocked += counters.blocked;
        availability.version += column::<i64>(row, "version")?;
        chunks.extend(column::<Option<Vec<u8>>>(row, "bits")?);
    }
    let chunks = (known_version != Some(availability.version)).then_some(chunks);
    Ok(Bitmap { availability, chunks })
}

/// One chunk's version and bits; the bits only when the version is not `known_version`.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_chunk(
    client: &Client,
    product_key: i32,
    chunk: i32,
    known_version: Option<i64>,
) -> Result<Option<(i64, Option<Vec<u8>>)>> {
    let sql = "select version, case when version is distinct from $3 then bits end as bits
        from number_chunks where product_key = $1 and chunk = $2";
    let params: [(&(dyn tokio_postgres::types::ToSql + Sync), _); 3] =
        [(&product_key, INT4), (&chunk, INT4), (&known_version, INT8)];
    let row = client.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    row.map(|row| Ok((column(&row, "version")?, column(&row, "bits")?))).transpose()
}

/// The database's clock, which decides everything that depends on time.
///
/// # Errors
/// Busy or fault from the database.
pub async fn now(client: &Client) -> Result<OffsetDateTime> {
    let row = client.query_typed_one("select clock_timestamp() as now", &[]).await.map_err(from_postgres)?;
    column(&row, "now")
}

pub(crate) fn counters_from(row: &Row) -> Result<Counters> {
    Ok(Counters {
        available: column(row, "available")?,
        reserved: column(row, "reserved")?,
        paid: column(row, "paid")?,
        blocked: column(row, "blocked")?,
    })
}

fn store_from(row: &Row) -> Result<Store> {
    Ok(Store {
        id: column(row, "id")?,
        slug: column(row, "slug")?,
        name: column(row, "name")?,
        intake: one_word(row, "intake", Intake::from_word)?,
    })
}

fn product_from(row: &Row) -> Result<Product> {
    Ok(Product {
        key: column(row, "key")?,
        store: column(row, "store")?,
        described: NewProduct {
            id: column(row, "id")?,
            tenant_id: column(row, "tenant_id")?,
            campaign: column(row, "campaign")?,
            name: column(row, "name")?,
            range: Range { first: column(row, "first_number")?, count: column(row, "number_count")? },
            padding: column(row, "padding")?,
            price: Money { minor: column(row, "price_minor")?, currency: column(row, "currency")? },
            opens_at: column(row, "opens_at")?,
            closes_at: column(row, "closes_at")?,
            zone: column(row, "zone")?,
            hold_seconds: column(row, "hold_seconds")?,
            numbers_per_order_max: column(row, "numbers_per_order_max")?,
            numbers_per_buyer_max: column(row, "numbers_per_buyer_max")?,
        },
        intake: one_word(row, "intake", Intake::from_word)?,
        reserving: one_word(row, "reserving", Reserving::from_word)?,
        version: column(row, "version")?,
    })
}

/// The product that must exist; as [`find_product`].
///
/// # Errors
/// Not-found when it does not.
pub async fn require_product(client: &Client, id: Uuid) -> Result<Product> {
    find_product(client, id).await?.ok_or(Error::Rejected(Reason::NotFound))
}
