//! What gateways tell us: the webhook's handler against the commit of one row, which is the least that writing it down
//! can take.

use std::time::Instant;

use tests::gateway::{Dialect, signatures};
use tests::http::ask;
use tests::till::{Policy, STRIPE_SECRET, Till};
use uuid::Uuid;

use crate::baselines::prepared;
use crate::rate::settle;
use crate::run::{Run, median_ms};
use crate::settings::WEBHOOKS;

/// One round. Both take turns on one connection each, so that both meet the same machine.
pub(crate) async fn round(run: &mut Run) {
    run.step("webhooks");
    let till = Till::open(Policy::default()).await;
    till.database.owner().batch_execute("create table single_rows (id uuid primary key)").await.unwrap();
    let (client, statement) =
        prepared(&till.database, 1, "insert into single_rows (id) values ($1)").await.pop().unwrap();
    settle(&till.database).await;
    let (mut handler, mut commit) = (Vec::new(), Vec::new());
    for number in 0..WEBHOOKS {
        let body = event(number);
        let now = time::OffsetDateTime::now_utc().unix_timestamp();
        let signature = signatures::stripe(STRIPE_SECRET, now, &body);
        let request = ask("POST", &till.webhook_path(Dialect::Stripe)).header("stripe-signature", signature);
        let started = Instant::now();
        let answer = till.webhook.send(request, body).await;
        handler.push(started.elapsed());
        assert_eq!(answer.status, 200, "{}", answer.text());
        let started = Instant::now();
        client.execute(&statement, &[&Uuid::now_v7()]).await.unwrap();
        commit.push(started.elapsed());
    }
    run.add("webhook_vs_commit", median_ms(&handler) / median_ms(&commit));
    run.add("webhook_p50_ms", median_ms(&handler));
    run.add("webhook_commit_p50_ms", median_ms(&commit));
    drop(client);
    till.database.finish_under_way().await;
}

/// A new event about a payment.
fn event(number: usize) -> String {
    serde_json::json!({
        "id": format!("evt_{number}"), "object": "event", "type": "payment_intent.succeeded",
        "data": {"object": {"id": format!("pi_{number}"), "object": "payment_intent"}},
    })
    .to_string()
}
