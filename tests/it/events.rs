//! Every file in `events/` goes through the parsing that real events go through, into the handler that it is for.

mod custom_resource;
mod requests;
mod schedules;
mod sqs;

use cashier::Cashier;
use domain::catalog::{Money, NewProduct, Range};
use domain::payments::Gateway;
use edge::Stage;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys, context};
use gateways::{Endpoints, Gateways};
use serde_json::{Value, json};
use store::orders::{NewOrder, Placed, place};
use store::payments::save_account;
use tests::gateway::{Account, Dialect, FakeGateway};
use tests::seed::exact;
use tests::{TestDatabase, files};
use uuid::{Uuid, uuid};

/// The ids that the files name.
const TENANT: Uuid = uuid!("01995b1e-6c00-7a10-8f21-3b5c7d9e1f02");
const PRODUCT: Uuid = uuid!("01995b1f-0a40-7c33-9d4e-5f60718293a4");
const ORDERS: [Uuid; 3] = [
    uuid!("01995b2a-4d10-7b21-8a3c-0d1e2f3a4b5c"),
    uuid!("01995b2a-4d11-7b22-9b4d-1e2f3a4b5c6d"),
    uuid!("01995b2a-4d15-7b23-aa5e-2f3a4b5c6d7e"),
];
const STORE: &str = "tirada-demo";
const BUYER: Uuid = uuid!("01995b20-0000-7000-8000-000000000001");
const WEBHOOK_SECRET: &str = "whsec_events";

fn event(name: &str) -> Value {
    serde_json::from_str(&files::read(format!("events/{name}.json"))).unwrap()
}

/// Names of the files that start like this.
fn names(prefix: &str) -> Vec<String> {
    let all = files::below("events", "json");
    let names = all.iter().map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned());
    names.filter(|name| name.starts_with(prefix)).collect()
}

/// A database with the store, the product and the orders that the files name; each order asks for numbers of its own.
async fn as_named() -> (TestDatabase, store::catalog::Product) {
    let database = TestDatabase::new().await;
    let mut client = database.another_owner().await;
    store::catalog::insert_store(&client, TENANT, STORE, "A store").await.unwrap();
    let now = time::OffsetDateTime::now_utc();
    let product = NewProduct {
        id: PRODUCT,
        tenant_id: TENANT,
        campaign: "spring".into(),
        name: "A raffle".into(),
        range: Range { first: 1, count: 1_000 },
        padding: 4,
        price: Money { minor: 1_000, currency: "BRL".into() },
        opens_at: now - time::Duration::hours(1),
        closes_at: now + time::Duration::hours(1),
        zone: "America/Sao_Paulo".into(),
        hold_seconds: 900,
        numbers_per_order_max: 10,
        numbers_per_buyer_max: 100,
    };
    store::catalog::insert_product(&mut client, &product).await.unwrap();
    for (id, number) in ORDERS.into_iter().zip([501, 502, 503]) {
        let (request, key) = (exact(&[number]), id.to_string());
        let order =
            NewOrder { id, product_id: PRODUCT, tenant_id: TENANT, buyer_id: BUYER, request: &request, key: &key };
        assert!(matches!(place(&client, &order, &[]).await.unwrap(), Placed::Accepted { .. }));
    }
    let product = store::catalog::require_product(&client, PRODUCT).await.unwrap();
    (database, product)
}

/// A pretended gateway where the store has an account, and who asks it.
async fn gateway(database: &TestDatabase) -> (FakeGateway, Cashier) {
    let (gateway, key) = (FakeGateway::start().await, "sk_test_events");
    gateway.add_account(Account {
        dialect: Dialect::Stripe,
        key: key.into(),
        webhook_url: String::new(),
        webhook_secret: WEBHOOK_SECRET.into(),
    });
    let credentials = json!({ "secret_key": key, "webhook_secrets": [WEBHOOK_SECRET] }).to_string();
    let keys = SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).unwrap();
    let sealed = keys.seal(&context(TENANT, Gateway::Stripe), credentials.as_bytes()).unwrap();
    save_account(&database.app_client().await, TENANT, Gateway::Stripe, &sealed).await.unwrap();
    database.owner().execute("update products set gateways = '{stripe,manual}'", &[]).await.unwrap();
    let endpoints = Endpoints { stripe: gateway.url(Dialect::Stripe), ..Endpoints::default() };
    (gateway, Cashier::new(database.app(1), Gateways::new(endpoints).unwrap(), keys))
}

#[test]
fn every_file_is_tested_by_one_of_these() {
    let known = ["http-", "sqs-", "scheduler-", "cloudformation-"];
    for name in names("") {
        assert_eq!(known.iter().filter(|prefix| name.starts_with(**prefix)).count(), 1, "{name}");
    }
    for (prefix, least) in known.into_iter().zip([14, 6, 2, 3]) {
        assert!(names(prefix).len() >= least, "{prefix}");
    }
}
