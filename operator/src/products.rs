//! Products across stores.

use domain::limits::PAGE_MAX;
use domain::{Error, Reason};
use serde_json::{Value, json};
use store::Client;
use store::catalog::{Availability, Product, Store};
use uuid::Uuid;

use crate::failure::Failure;
use crate::output::{Output, instant, table};

/// Stores read at once.
const STORES_PER_PAGE: i64 = 100;

/// A product and its store's slug.
pub(crate) struct Listed {
    pub(crate) store: String,
    pub(crate) product: Product,
}

/// `tirada products`
pub(crate) async fn list(client: &Client, store: Option<&str>, limit: u16) -> Result<Output, Failure> {
    let limit = usize::from(limit);
    let mut found = find(client, store, limit + 1).await?;
    let more = found.len() > limit;
    found.truncate(limit);
    let mut rows = Vec::with_capacity(found.len());
    let mut products = Vec::with_capacity(found.len());
    for listed in &found {
        let availability = store::catalog::find_availability(client, listed.product.key).await?;
        rows.push(row(listed, &availability));
        products.push(in_json(listed, &availability));
    }
    let header = ["ID", "STORE", "NAME", "OPENS", "AVAILABLE", "RESERVED", "PAID", "BLOCKED", "INTAKE", "RESERVING"];
    let mut text = table(header, rows);
    if more {
        text.push_str(&format!("\nonly the first {limit}; there are more (--limit)"));
    }
    Ok(Output::new(text, json!({"products": products, "more": more})))
}

/// The product, or a refusal that names it.
pub(crate) async fn require(client: &Client, id: Uuid) -> Result<Product, Failure> {
    let found = store::catalog::require_product(client, id).await;
    found.map_err(|error| Failure::explained(error, Reason::NotFound, format!("there is no product {id}")))
}

/// The store, or a refusal that names it.
pub(crate) async fn require_store(client: &Client, slug: &str) -> Result<Store, Failure> {
    let found = store::catalog::find_store(client, slug).await?;
    found.ok_or_else(|| Failure::refused(format!("there is no store {slug:?}")))
}

/// Products of a store, or of all, `limit` at most.
pub(crate) async fn find(client: &Client, store: Option<&str>, limit: usize) -> Result<Vec<Listed>, Failure> {
    let mut found = Vec::new();
    if let Some(slug) = store {
        add_products(client, &require_store(client, slug).await?, limit, &mut found).await?;
        return Ok(found);
    }
    let mut after: Option<String> = None;
    loop {
        let stores = store::catalog::list_stores(client, after.as_deref(), STORES_PER_PAGE).await?;
        for store in &stores {
            add_products(client, store, limit, &mut found).await?;
        }
        after = stores.last().map(|store| store.slug.clone());
        if after.is_none() || found.len() >= limit {
            return Ok(found);
        }
    }
}

async fn add_products(client: &Client, store: &Store, limit: usize, found: &mut Vec<Listed>) -> Result<(), Error> {
    let mut after = None;
    while found.len() < limit {
        let wanted = i64::try_from(limit - found.len()).map_or(PAGE_MAX, |rest| rest.min(PAGE_MAX));
        let page = store::catalog::list_products(client, store.id, after, wanted).await?;
        after = page.last().map(|product| product.described.id);
        if after.is_none() {
            break;
        }
        found.extend(page.into_iter().map(|product| Listed { store: store.slug.clone(), product }));
    }
    Ok(())
}

fn row(listed: &Listed, availability: &Availability) -> [String; 10] {
    let Listed { store, product } = listed;
    let counters = availability.counters;
    [
        product.described.id.to_string(),
        store.clone(),
        product.described.name.clone(),
        instant(product.described.opens_at),
        counters.available.to_string(),
        counters.reserved.to_string(),
        counters.paid.to_string(),
        counters.blocked.to_string(),
        product.intake.word().to_owned(),
        product.reserving.word().to_owned(),
    ]
}

fn in_json(listed: &Listed, availability: &Availability) -> Value {
    let Listed { store, product } = listed;
    let counters = availability.counters;
    json!({
        "id": product.described.id,
        "store": store,
        "name": product.described.name,
        "first": product.described.range.first,
        "count": product.described.range.count,
        "opens_at": instant(product.described.opens_at),
        "closes_at": instant(product.described.closes_at),
        "zone": product.described.zone,
        "counters": {
            "available": counters.available, "reserved": counters.reserved,
            "paid": counters.paid, "blocked": counters.blocked,
        },
        "version": availability.version,
        "intake": product.intake.word(),
        "reserving": product.reserving.word(),
    })
}
