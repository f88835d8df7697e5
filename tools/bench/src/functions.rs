//! The release bootstraps as processes: their size, the time until they ask for their first event, and the memory that
//! they hold after it.

use std::fs;

use serde_json::{Value, json};
use tests::files;
use tests::http::Buyer;
use tests::simulator::bootstrap;
use tests::staff;
use tests::template::Template;

use crate::environment::Environment;
use crate::run::{Run, median_ms};
use crate::settings::{NUMBERS, PATIENCE, STARTS};
use crate::shop::{Mix, Shop};

/// One round.
pub(crate) async fn round(run: &mut Run) {
    let shop = Shop::open(NUMBERS).await;
    let template = Template::read("template.yaml");
    for function in template.functions() {
        let name = function.name();
        run.step(&format!("starts of {name}"));
        let mut times = Vec::with_capacity(STARTS);
        for _ in 0..STARTS {
            times.push(Environment::start(&template, function, &shop, PATIENCE, &[]).await.init);
        }
        let mut environment = Environment::start(&template, function, &shop, PATIENCE, &[]).await;
        let event = event(name, &shop, run).await;
        environment.invoke(event).await;
        run.add(&format!("bootstrap_bytes.{name}"), fs::metadata(bootstrap(name)).unwrap().len() as f64);
        run.add(&format!("init_ms.{name}"), median_ms(&times));
        run.add(&format!("rss_bytes.{name}"), environment.rss_bytes());
    }
    shop.database.finish_under_way().await;
}

/// Something real to do: it connects to the database, and to the queue where the function sends.
async fn event(name: &str, shop: &Shop, run: &mut Run) -> Value {
    let file = match name {
        "catalog" => "http-read-availability",
        "orders" => "http-place-order",
        "order-status" => "http-list-orders",
        "payments" => "http-pay-order",
        "payment-webhook" => "http-receive-webhook",
        "login" => "http-ask-login-code",
        "staff" => "http-ask-staff-link",
        "admin" => "http-list-store-products",
        "send-login-code" => "sqs-send-login-code",
        "send-notice" => "sqs-send-notice",
        "write-exports" => "sqs-write-exports",
        "check-uploads" => "sqs-check-uploads",
        "reserve-numbers" => {
            let placed = shop.place(BATCH_AT_START, Mix::Both, &mut run.rng).await;
            return serde_json::from_str(&shop.events(&placed, BATCH_AT_START)[0]).unwrap();
        }
        "release-numbers" => "sqs-release-numbers",
        "settle-payment" => "sqs-settle-payment",
        "expire-reservations" => "scheduler-expire-reservations",
        "reconcile-orders" => "scheduler-reconcile-orders",
        _ => return json!({}),
    };
    let described = &shop.product.described;
    let buyer = Buyer::new(described.tenant_id);
    // The example's product and token, wherever they stand in it.
    let text = files::read(format!("events/{file}.json"))
        .replace("01995b1f-0a40-7c33-9d4e-5f60718293a4", &described.id.to_string())
        // Of a session that nobody has: the database is asked all the same.
        .replace("Bearer replace-with-a-token-of-staff", &staff::bearer(described.tenant_id, buyer.id, described.id))
        .replace("Bearer replace-with-a-token", &buyer.bearer);
    serde_json::from_str(&text).unwrap()
}

/// Orders in the first batch: what a queue that has just begun to fill gives.
const BATCH_AT_START: usize = 10;
