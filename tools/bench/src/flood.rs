//! A store that floods the queue beside a quiet one: how long the quiet one's orders wait until they are reserved.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::{Message, OrderMessage};
use tests::queue::{Settings, StandardQueue};
use tests::template::Template;
use tests::{chain, randomness, seed};
use tokio::time::interval;
use uuid::Uuid;

use crate::rate::settle;
use crate::run::{Run, median_ms};
use crate::settings::{BATCH, FLOOD, NUMBERS, PATIENCE, QUIET_EVERY};
use crate::shop::{Mix, Shop};
use crate::workers::Worker;

/// How often the event source mapping looks for messages.
const POLL: Duration = Duration::from_millis(1);
/// How often a batch is served again that was not done.
const TRIES: usize = 10;

/// One round: the quiet store alone, and then beside the flood, on one database.
pub(crate) async fn round(run: &mut Run) {
    run.step("orders of a quiet store and of a flood");
    let mut shop = Shop::open(NUMBERS).await;
    let orders = run.volumes.quiet_orders;
    let first = messages(&shop, orders, run).await;
    let second = messages(&shop, orders, run).await;
    let mut owner = shop.database.another_owner().await;
    let tenant_id = seed::store(&owner).await;
    shop.product = seed::product(tenant_id, NUMBERS).insert(&mut owner).await;
    let flood = messages(&shop, orders * FLOOD, run).await;
    run.step("a quiet store alone");
    let alone = median_ms(&waits(&shop, first, Vec::new()).await);
    run.step("a quiet store beside a flood");
    let beside = median_ms(&waits(&shop, second, flood).await);
    run.add("tenant_flood", beside / alone);
    run.add("tenant_flood_p50_ms", beside);
    run.add("tenant_alone_p50_ms", alone);
    shop.database.finish_under_way().await;
}

async fn messages(shop: &Shop, count: usize, run: &mut Run) -> Vec<OrderMessage> {
    let placed = shop.place(count, Mix::Quick, &mut run.rng).await;
    placed.into_iter().map(|id| chain::message(&shop.product, id)).collect()
}

/// Sends the messages of both stores at their pace, and lets one worker serve them as its mapping would: a batch goes
/// when it is full, or when its window has passed. How long each message of the quiet store waited to be done.
async fn waits(shop: &Shop, quiet: Vec<OrderMessage>, flood: Vec<OrderMessage>) -> Vec<Duration> {
    let template = Template::read("template.yaml");
    let mapping = template.function("reserve-numbers").messages().expect("it is a worker");
    let window = Duration::from_secs(mapping.number("/MaximumBatchingWindowInSeconds"));
    let worker = Worker::new(&shop.database).await;
    settle(&shop.database).await;
    let (line, all) = (Arc::new(Line::new()), quiet.len());
    let sending = tokio::spawn(send(Arc::clone(&line), quiet, flood));
    let mut waits = Vec::with_capacity(all);
    while waits.len() < all {
        let batch = line.batch(window).await;
        serve(&worker, &batch).await;
        waits.extend(line.done(&batch));
    }
    sending.await.unwrap();
    waits
}

async fn send(line: Arc<Line>, quiet: Vec<OrderMessage>, flood: Vec<OrderMessage>) {
    let (mut turns, mut flood) = (interval(QUIET_EVERY), flood.into_iter());
    for message in quiet {
        turns.tick().await;
        flood.by_ref().take(FLOOD).for_each(|message| line.send(&message));
        line.sent.lock().unwrap().insert(message.order_id, Instant::now());
        line.send(&message);
    }
}

async fn serve(worker: &Worker, batch: &SqsEvent) {
    let mut text = serde_json::to_string(batch).unwrap();
    for _ in 0..TRIES {
        match worker.serve(&text).await.1 {
            None => return,
            Some(again) => text = again,
        }
    }
    panic!("a batch was not served");
}

/// The queue, which treats groups fairly, and when the quiet store's messages were sent.
struct Line {
    began: Instant,
    queue: Mutex<StandardQueue>,
    sent: Mutex<HashMap<Uuid, Instant>>,
}

impl Line {
    fn new() -> Self {
        let settings = Settings { duplicates: 0.0, out_of_order: 0.0, fair: true, ..Settings::default() };
        let queue = StandardQueue::new("reserve-numbers", settings, randomness::stream(1, 0));
        Self { began: Instant::now(), queue: Mutex::new(queue), sent: Mutex::default() }
    }

    fn send(&self, message: &OrderMessage) {
        let (body, group) = (message.body(), message.tenant_id.to_string());
        let mut queue = self.queue.lock().unwrap();
        queue.send(self.began.elapsed(), body, group, Duration::ZERO).expect("no delay is too long");
    }

    async fn batch(&self, window: Duration) -> SqsEvent {
        let (mut batch, mut first) = (SqsEvent::default(), None);
        let deadline = Instant::now() + PATIENCE;
        loop {
            self.fill(&mut batch);
            if !batch.records.is_empty() {
                let began = *first.get_or_insert_with(Instant::now);
                if batch.records.len() >= BATCH || began.elapsed() >= window {
                    return batch;
                }
            }
            assert!(Instant::now() < deadline, "no message comes");
            tokio::time::sleep(POLL).await;
        }
    }

    fn fill(&self, batch: &mut SqsEvent) {
        let mut queue = self.queue.lock().unwrap();
        while batch.records.len() < BATCH
            && let Some(record) = queue.receive(self.began.elapsed())
        {
            batch.records.push(record);
        }
    }

    /// Deletes a batch's messages; how long those of the quiet store waited.
    fn done(&self, batch: &SqsEvent) -> Vec<Duration> {
        let (mut queue, mut sent) = (self.queue.lock().unwrap(), self.sent.lock().unwrap());
        let receipts = batch.records.iter().filter_map(|record| record.receipt_handle.as_deref());
        receipts.for_each(|receipt| queue.delete(receipt));
        let bodies = batch.records.iter().filter_map(|record| record.body.as_deref());
        let messages = bodies.map(|body| OrderMessage::parse(body).expect("it was sent so"));
        messages.filter_map(|message| Some(sent.remove(&message.order_id)?.elapsed())).collect()
    }
}
