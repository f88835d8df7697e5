//! Logins beside intake: people ask for codes all the time, and the provider takes none of their messages.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use domain::messages::LoginCodeMessage;
use edge::Deadline;
use send_login_code::{Sender, State};
use serde_json::json;
use tests::http::{self, Api};
use tests::login::{keys, request};
use tokio::task::JoinHandle;
use tokio::time::interval;
use uuid::Uuid;

use crate::settings::{BUDGET, CODE_BATCH, CODE_BATCHES_PER_S, CODES_ASKED_PER_S, PHONES_PER_TURN};
use crate::shop::Shop;
use crate::workers::Recording;

/// A file that cannot be: a provider that takes nothing.
const NOWHERE: &str = "/dev/null/phones.jsonl";

/// Asking sessions whose codes nobody has sent.
type Unsent = Mutex<Vec<Uuid>>;

/// People of other phones and other addresses ask for codes, and the worker tries to send those that were asked for
/// last, each with a connection of its own, until they are told to stop. How many sends a second were refused. Each turn
/// is of people of its own.
pub(crate) fn fail(shop: &Shop, turn: u32, stop: Arc<AtomicBool>) -> JoinHandle<f64> {
    let api = http::login(shop.database.app(1), keys(), Arc::new(Recording));
    let sender = Sender::local(NOWHERE);
    let worker = State::new(shop.database.app(1), keys().login, sender, Arc::new(Recording));
    let (tenant_id, store) = (shop.product.described.tenant_id, shop.product.store.clone());
    tokio::spawn(async move {
        let (started, unsent) = (Instant::now(), Unsent::default());
        let (refused, ()) =
            futures::join!(send(&worker, tenant_id, &unsent, &stop), ask(&api, &store, turn, &unsent, &stop));
        refused as f64 / started.elapsed().as_secs_f64()
    })
}

async fn ask(api: &Api, store: &str, turn: u32, unsent: &Unsent, stop: &AtomicBool) {
    let mut turns = interval(Duration::from_secs(1) / CODES_ASKED_PER_S);
    let path = format!("/v1/stores/{store}/login-codes");
    for number in turn * PHONES_PER_TURN.. {
        turns.tick().await;
        if stop.load(Relaxed) {
            return;
        }
        let address = format!("2001:db8:{:x}:{:x}::1", number >> 16, number & 0xffff);
        let body = json!({ "phone": format!("+34600{number:06}") });
        let answer = api.call(request("POST", &path, &address, &[], &body)).await;
        assert_eq!(answer.status, 202, "{}", answer.text());
        let asking = answer.json()["asking_session"].as_str().unwrap().parse().unwrap();
        unsent.lock().unwrap().push(asking);
    }
}

/// Tries the youngest ones again and again, as the queue would after their backoff; how many sends were refused.
async fn send(worker: &State, tenant_id: Uuid, unsent: &Unsent, stop: &AtomicBool) -> u64 {
    let mut turns = interval(Duration::from_secs(1) / CODE_BATCHES_PER_S);
    let mut refused = 0;
    loop {
        turns.tick().await;
        if stop.load(Relaxed) {
            return refused;
        }
        let youngest: Vec<Uuid> = unsent.lock().unwrap().iter().rev().take(CODE_BATCH).copied().collect();
        let mut event = SqsEvent::default();
        event.records = youngest.iter().map(|asking| record(tenant_id, *asking)).collect();
        let response = send_login_code::handle(worker, event, Deadline::after(BUDGET)).await.unwrap();
        assert_eq!(response.batch_item_failures.len(), youngest.len(), "nothing can be sent");
        refused += youngest.len() as u64;
    }
}

fn record(tenant_id: Uuid, asking: Uuid) -> SqsMessage {
    let message = LoginCodeMessage::new(tenant_id, asking);
    let mut record = SqsMessage::default();
    record.message_id = Some(asking.to_string());
    record.body = Some(serde_json::to_string(&message).unwrap());
    record
}
