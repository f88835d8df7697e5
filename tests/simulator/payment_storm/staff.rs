//! Who else has to do with money during the storm: staff who give it back, banks, and somebody who forges events.

use std::sync::Arc;
use std::time::Duration;

use domain::Error;
use rand::RngExt;
use rand::rngs::StdRng;
use rand::seq::IndexedRandom;
use store::catalog::Product;
use store::payments::{RefundRequest, retry_refund};
use tests::operator;
use tests::randomness;
use tests::simulator::{HttpRequest, World};
use tokio::time::sleep;
use uuid::Uuid;

const PAID: &str = "select o.id, o.numbers, a.id from orders o join payment_attempts a on a.order_id = o.id
    where o.product_key = $1 and o.state = 'paid' and a.used = 'payment'";
const FAILED: &str = "select r.order_id, r.id from refunds r join orders o on o.id = r.order_id
    where o.product_key = $1 and r.state = 'failed' and r.retried_as is null";

/// Gives money back here and in the gateway's dashboard, tries again what failed, and loses and wins disputes, until it
/// is stopped.
pub(super) async fn work(world: Arc<World>, products: Vec<Product>) {
    let mut rng = randomness::stream(world.seed, 3);
    loop {
        sleep(Duration::from_millis(rng.random_range(100..600))).await;
        // Where staff give money back here, nobody does in the dashboard: each would not know of the other.
        let (product, elsewhere) = if rng.random_bool(0.6) { (&products[0], false) } else { (&products[1], true) };
        let rows = world.database.owner().query(PAID, &[&product.key]).await.unwrap();
        let Some(row) = rows.choose(&mut rng) else { continue };
        let (order_id, numbers, attempt): (Uuid, Vec<i32>, Uuid) = (row.get(0), row.get(1), row.get(2));
        match rng.random_range(0..4) {
            0..3 if !elsewhere => refund(&world, &mut rng, product, order_id, &numbers).await,
            _ if !elsewhere => try_again(&world, &mut rng, product).await,
            0..2 => {
                // In full, or one number of some.
                let amount = rng.random_bool(0.5).then_some(250);
                let _ = world.bank.refund_in_dashboard(attempt, amount);
            }
            _ => {
                if world.bank.dispute(attempt, None).is_ok() {
                    sleep(Duration::from_millis(rng.random_range(0..500))).await;
                    world.bank.close_dispute(attempt, rng.random_bool(0.5)).unwrap();
                }
            }
        }
    }
}

async fn refund(world: &World, rng: &mut StdRng, product: &Product, order_id: Uuid, numbers: &[i32]) {
    let some = rng.random_bool(0.5).then(|| &numbers[..1]);
    let tenant_id = product.described.tenant_id;
    let request = RefundRequest { tenant_id, order_id, numbers: some, note: "as agreed", refund_id: Uuid::now_v7() };
    allow_refusal(operator::refund(&mut world.database.app_client().await, &request).await);
}

async fn try_again(world: &World, rng: &mut StdRng, product: &Product) {
    let rows = world.database.owner().query(FAILED, &[&product.key]).await.unwrap();
    if let Some(row) = rows.choose(rng) {
        let mut client = world.database.app_client().await;
        let again = retry_refund(&mut client, product.described.tenant_id, row.get(0), row.get(1)).await;
        allow_refusal(again);
    }
}

/// Somebody else was first, or has the order now. Staff's own mistakes are none of this storm's faults.
fn allow_refusal<T>(done: domain::Result<T>) {
    if let Err(error @ Error::Fault(_)) = done {
        panic!("staff met a fault: {}", error.chain());
    }
}

/// Sends events that nobody signed, with everything in them that no log may show, until it is stopped.
pub(super) async fn forge(world: Arc<World>) {
    let sql = "select slug from tenants";
    let slug: String = world.database.owner().query(sql, &[]).await.unwrap()[0].get(0);
    let body = r#"{"id":"evt_forged","type":"payment_intent.succeeded","note":"whsec_forged","phone":"+5511987654321",
        "data":{"object":{"id":"pi_1","card":"4242424242424242"}}}"#;
    loop {
        for gateway in ["stripe", "mercado-pago"] {
            let path = format!("/v1/webhooks/{gateway}/{slug}?data.id=4242424242424242&card=4242424242424242");
            let headers = [
                ("stripe-signature", "t=4242424242424242,v1=whsec_forged"),
                ("x-signature", "ts=4242424242424242,v1=whsec_forged"),
                ("x-request-id", "+5511987654321"),
                ("authorization", "Bearer sk_test_forged"),
            ];
            let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
            let answer = world.gateway.send(HttpRequest { method: "POST", path, headers, body: body.into() }).await;
            assert!(answer.status >= 400, "a forged event was taken: {} {}", answer.status, answer.text());
        }
        sleep(Duration::from_millis(700)).await;
    }
}
