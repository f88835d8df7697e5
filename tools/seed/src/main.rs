//! Seeds a database with a store, its account at the pretended gateway and a product on sale, and prints what a person
//! needs to try it, as one JSON object. Run again, it finds what it made before.

use std::error::Error;
use std::time::Duration;

use domain::catalog::{Money, NewProduct, Range};
use edge::auth::development::sign_buyer;
use seed::sandbox;
use serde_json::json;
use time::OffsetDateTime;
use uuid::Uuid;

/// The seeded store.
const STORE: &str = "demo";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let mut client = store::connect(store::Settings::from_url(&std::env::var("TIRADA_DATABASE_URL")?)?).await?;
    let tenant = store::catalog::insert_store(&client, Uuid::now_v7(), STORE, "Demonstration store").await?;
    let (key, secret) = (std::env::var("TIRADA_SANDBOX_KEY")?, std::env::var("TIRADA_SANDBOX_WEBHOOK_SECRET")?);
    sandbox::save(&client, tenant.id, &key, &secret).await?;
    let now = store::catalog::now(&client).await?;
    let products = store::catalog::list_products(&client, tenant.id, None, domain::limits::PAGE_MAX).await?;
    let on_sale =
        products.into_iter().map(|product| product.described).find(|p| p.name == "Raffle" && p.closes_at > now);
    let product = match on_sale {
        Some(product) => product,
        None => {
            let product = raffle(tenant.id, now);
            store::catalog::insert_product(&mut client, &product).await?;
            product
        }
    };
    sandbox::sell(&client, tenant.id, product.id).await?;
    let issuer = std::env::var("TIRADA_TOKEN_ISSUER")?;
    let token = sign_buyer(tenant.id, Uuid::now_v7(), &issuer, Duration::from_secs(24 * 3_600))?;
    println!("{}", json!({ "store": tenant.slug, "product": product.id, "token": token }));
    Ok(())
}

fn raffle(tenant_id: Uuid, now: OffsetDateTime) -> NewProduct {
    NewProduct {
        id: Uuid::now_v7(),
        tenant_id,
        campaign: "demo".into(),
        name: "Raffle".into(),
        range: Range { first: 0, count: 1_000_000 },
        padding: 6,
        price: Money { minor: 500, currency: "BRL".into() },
        opens_at: now,
        closes_at: now + time::Duration::days(30),
        zone: "America/Sao_Paulo".into(),
        hold_seconds: 900,
        numbers_per_order_max: 100,
        numbers_per_buyer_max: 1_000,
    }
}
