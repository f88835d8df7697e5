//! SQS with a real clock, faults and the JSON protocol that the functions' client speaks.
//!
//! Time in the queues runs faster than the clock, by a factor: a visibility of six minutes need not be waited for. The
//! functions know nothing of it, only their messages come back earlier.

mod protocol;
mod script;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::{OrderMessage, Queue};
use serde_json::Value;
use tokio::time::Instant;

use crate::queue::{Settings, StandardQueue};
use crate::randomness;
use crate::server::Server;
use script::Script;
pub use script::{Call, Fault};

/// What Lambda hands to one invocation, at most, less room for the event around the bodies.
const BATCH_BYTES_MAX: usize = 6 * 1_024 * 1_024 - 512 * 1_024;
/// How often a long poll looks again.
const POLL: Duration = Duration::from_millis(5);

/// The queues of one world.
#[derive(Clone)]
pub struct Sqs(Arc<Inner>);

struct Inner {
    began: Instant,
    scale: f64,
    skipped: Mutex<Duration>,
    queues: Mutex<HashMap<Queue, StandardQueue>>,
    script: Mutex<Script>,
    calls: Mutex<Vec<(String, Value)>>,
    server: Mutex<Option<Server>>,
}

impl Sqs {
    /// Queues with these settings. Their time runs `scale` times as fast as the clock.
    pub async fn start(settings: &HashMap<Queue, Settings>, scale: f64, seed: u64) -> Self {
        let queue = |(queue, stream): (Queue, u64)| {
            let rng = randomness::stream(seed, 0x7371_7300 + stream);
            (queue, StandardQueue::new(queue.name(), settings[&queue], rng))
        };
        let inner = Arc::new(Inner {
            began: Instant::now(),
            scale,
            skipped: Mutex::default(),
            queues: Mutex::new(Queue::ALL.into_iter().zip(0..).map(queue).collect()),
            script: Mutex::new(Script::new(seed)),
            calls: Mutex::default(),
            server: Mutex::default(),
        });
        let weak = Arc::downgrade(&inner);
        let server = Server::start(move |request| {
            let sqs = weak.upgrade().map(Sqs);
            async move {
                match sqs {
                    Some(sqs) => protocol::answer(&sqs, &request).await,
                    None => protocol::internal_error(),
                }
            }
        })
        .await;
        *inner.server.lock().unwrap() = Some(server);
        Self(inner)
    }

    /// The address of the API.
    #[must_use]
    pub fn endpoint(&self) -> String {
        let server = self.0.server.lock().unwrap();
        format!("http://{}", server.as_ref().expect("it was started").address())
    }

    /// A queue's URL.
    #[must_use]
    pub fn url(&self, queue: Queue) -> String {
        format!("{}/123456789012/{}", self.endpoint(), queue.name())
    }

    /// Sends a message about an order, past all faults.
    pub fn put(&self, queue: Queue, message: &OrderMessage) {
        self.put_body(queue, message.body(), message.tenant_id.to_string());
    }

    /// Sends any text, past all faults.
    pub fn put_body(&self, queue: Queue, body: String, group: String) {
        self.with(queue, |queue, now| queue.send(now, body, group, Duration::ZERO)).expect("no delay is too long");
    }

    /// Messages that are visible, delayed or in flight.
    #[must_use]
    pub fn len(&self, queue: Queue) -> usize {
        self.with(queue, |queue, _| queue.len())
    }

    /// Bodies in the dead-letter queue.
    #[must_use]
    pub fn dead(&self, queue: Queue) -> Vec<String> {
        self.with(queue, |queue, _| queue.dead())
    }

    /// Moves a dead-letter queue's messages back, as new ones; how many.
    pub fn redrive(&self, queue: Queue) -> usize {
        self.with(queue, StandardQueue::redrive)
    }

    /// The queues' time jumps to the moment at which every message is visible that is there now.
    pub fn skip(&self) {
        let wait = |queue| self.with(queue, |queue, now| queue.last_visible().map(|at| at.saturating_sub(now)));
        if let Some(time) = Queue::ALL.into_iter().filter_map(wait).max() {
            *self.0.skipped.lock().unwrap() += time;
        }
    }

    /// From now on a call of this kind fails in this way, so many times (`u32::MAX`: until [`Self::heal`]). Later
    /// faults wait until earlier ones of the same kind are used up.
    pub fn fail(&self, call: Call, fault: Fault, times: u32) {
        self.0.script.lock().unwrap().add(call, fault, times, 1.0);
    }

    /// As [`Self::fail`] until [`Self::heal`], but only a part of the calls.
    pub fn fail_some(&self, call: Call, fault: Fault, part: f64) {
        self.0.script.lock().unwrap().add(call, fault, u32::MAX, part);
    }

    /// Ends all faults.
    pub fn heal(&self) {
        self.0.script.lock().unwrap().clear();
    }

    /// Calls of the API since the last look: operation and input.
    #[must_use]
    pub fn take_calls(&self) -> Vec<(String, Value)> {
        std::mem::take(&mut self.0.calls.lock().unwrap())
    }

    /// Waits for a batch: until it is full, or a window has passed since its first message. The window is the queue's
    /// time.
    pub async fn receive(&self, queue: Queue, batch_max: usize, window: Duration) -> SqsEvent {
        let mut batch = SqsEvent::default();
        let (mut bytes, mut first): (usize, Option<Instant>) = (0, None);
        loop {
            self.with(queue, |queue, now| {
                while batch.records.len() < batch_max
                    && bytes < BATCH_BYTES_MAX - 1_024 * 1_024
                    && let Some(record) = queue.receive(now)
                {
                    bytes += record.body.as_ref().map_or(0, String::len);
                    batch.records.push(record);
                }
            });
            let is_full = batch.records.len() >= batch_max || bytes >= BATCH_BYTES_MAX - 1_024 * 1_024;
            if !batch.records.is_empty() {
                let began = *first.get_or_insert_with(Instant::now);
                if is_full || began.elapsed() >= window.div_f64(self.0.scale) {
                    return batch;
                }
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Deletes messages by their receipts.
    pub fn delete<'a>(&self, queue: Queue, receipts: impl IntoIterator<Item = &'a str>) {
        self.with(queue, |queue, _| receipts.into_iter().for_each(|receipt| queue.delete(receipt)));
    }

    fn with<T>(&self, queue: Queue, act: impl FnOnce(&mut StandardQueue, Duration) -> T) -> T {
        let now = self.0.began.elapsed().mul_f64(self.0.scale) + *self.0.skipped.lock().unwrap();
        let mut queues: MutexGuard<'_, _> = self.0.queues.lock().unwrap();
        act(queues.get_mut(&queue).expect("every queue is there"), now)
    }
}
