//! SQS standard queues in this process, with what makes them hard: at-least-once delivery, no order, visibility that
//! runs out, receive counts and a dead-letter queue.
//!
//! Time is virtual: it stands still while a worker is busy and jumps when all would only wait, so that backoffs of
//! minutes take no time and are still kept.

mod drain;
mod message;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::{OrderMessage, Queue};
use domain::{Error, Result};
use edge::queue::{Delay, MessageQueue, Outgoing};
use futures::future::BoxFuture;
use rand::RngExt;
use rand::rngs::StdRng;
use tokio::sync::Notify;

use crate::randomness;
pub use drain::drain;
use message::Message;

/// What a queue promises, as its template would say.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// How long a received message stays invisible.
    pub visibility: Duration,
    /// Receives after which a message goes to the dead-letter queue.
    pub receives_max: u32,
    /// Part of the receives that leave the message visible, so that another worker gets it at the same time.
    pub duplicates: f64,
    /// Part of the receives that do not take the oldest message.
    pub out_of_order: f64,
}

impl Default for Settings {
    fn default() -> Self {
        Self { visibility: Duration::from_secs(180), receives_max: 10, duplicates: 0.01, out_of_order: 0.2 }
    }
}

/// All queues of a system.
pub struct Queues {
    settings: Settings,
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    now: Duration,
    rng: StdRng,
    next_id: u64,
    queues: HashMap<Queue, One>,
    /// Every this-many-th sent message is refused; 0 = none.
    refused_every: u64,
    sends: u64,
}

#[derive(Default)]
struct One {
    messages: Vec<Message>,
    dead: Vec<Message>,
    batches_under_way: usize,
}

/// What a worker's poll brought.
pub(crate) enum Received {
    Batch(SqsEvent),
    /// Nothing is visible, but another worker's batch is under way and may come back.
    Wait,
    /// The queue is empty.
    Empty,
}

impl Queues {
    /// Empty queues.
    #[must_use]
    pub fn new(settings: Settings, seed: u64) -> Self {
        let rng = randomness::stream(seed, 0x7175_6575);
        let queues = Queue::ALL.into_iter().map(|queue| (queue, One::default())).collect();
        let state = State { now: Duration::ZERO, rng, next_id: 0, queues, refused_every: 0, sends: 0 };
        Self { settings, state: Mutex::new(state), changed: Notify::new() }
    }

    /// From now on every `every`-th message is refused when sent; 0 = none.
    pub fn refuse_every(&self, every: u64) {
        self.state().refused_every = every;
    }

    /// Sends a message about an order, as the outbox relay would.
    pub fn put(&self, queue: Queue, message: &OrderMessage) {
        self.put_body(queue, message.body(), message.tenant_id.to_string());
    }

    /// Sends any text.
    pub fn put_body(&self, queue: Queue, body: String, group: String) {
        let mut state = self.state();
        state.next_id += 1;
        let message = Message::new(state.next_id, body, group, state.now);
        state.one(queue).messages.push(message);
    }

    /// Messages that are visible or in flight.
    #[must_use]
    pub fn len(&self, queue: Queue) -> usize {
        self.state().one(queue).messages.len()
    }

    /// Bodies in the dead-letter queue.
    #[must_use]
    pub fn dead(&self, queue: Queue) -> Vec<String> {
        self.state().one(queue).dead.iter().map(|message| message.body.clone()).collect()
    }

    pub(crate) fn receive(&self, queue: Queue, batch_max: usize) -> Received {
        let mut state = self.state();
        let mut batch = SqsEvent::default();
        loop {
            while batch.records.len() < batch_max
                && let Some(record) = state.receive_one(queue, &self.settings)
            {
                batch.records.push(record);
            }
            let now = state.now;
            let one = state.one(queue);
            if !batch.records.is_empty() {
                one.batches_under_way += 1;
                return Received::Batch(batch);
            }
            if one.batches_under_way > 0 {
                return Received::Wait;
            }
            match one.messages.iter().map(|message| message.visible_at).min() {
                Some(next) => state.now = next.max(now),
                None => return Received::Empty,
            }
        }
    }

    /// A worker has finished its batch: what it does not report as failed is deleted.
    pub(crate) fn finish(&self, queue: Queue, batch: &[String], failed: &[String]) {
        let mut state = self.state();
        let one = state.one(queue);
        one.batches_under_way -= 1;
        one.messages.retain(|message| !batch.contains(&message.id()) || failed.contains(&message.id()));
        drop(state);
        self.changed.notify_waiters();
    }

    pub(crate) async fn wait(&self) {
        let _ = tokio::time::timeout(Duration::from_millis(20), self.changed.notified()).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no test panics while it has the queue")
    }
}

impl State {
    fn one(&mut self, queue: Queue) -> &mut One {
        self.queues.get_mut(&queue).expect("every queue is there")
    }

    fn receive_one(&mut self, queue: Queue, settings: &Settings) -> Option<aws_lambda_events::sqs::SqsMessage> {
        let shuffled = self.rng.random_bool(settings.out_of_order);
        let duplicate = self.rng.random_bool(settings.duplicates);
        let skip: usize = if shuffled { self.rng.random_range(0..64) } else { 0 };
        let now = self.now;
        let one = self.one(queue);
        loop {
            let visible = |message: &&mut Message| message.visible_at <= now;
            let waiting = one.messages.iter().filter(|message| message.visible_at <= now).take(skip + 1).count();
            let message = one.messages.iter_mut().filter(visible).nth(skip.min(waiting.checked_sub(1)?))?;
            if message.receives < settings.receives_max {
                let hidden = if duplicate { Duration::ZERO } else { settings.visibility };
                return Some(message.receive(queue, now, hidden));
            }
            let id = message.id();
            let position = one.messages.iter().position(|message| message.id() == id)?;
            let message = one.messages.remove(position);
            one.dead.push(message);
        }
    }
}

impl MessageQueue for Queues {
    fn send<'a>(&'a self, queue: Queue, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<Result<()>>> {
        let send = move |message: &Outgoing| {
            let mut state = self.state();
            state.sends += 1;
            if state.refused_every > 0 && state.sends.is_multiple_of(state.refused_every) {
                return Err(Error::busy("the queue refuses this message"));
            }
            drop(state);
            self.put_body(queue, message.body.clone(), message.group.clone());
            Ok(())
        };
        Box::pin(async move { messages.iter().map(send).collect() })
    }

    fn delay<'a>(&'a self, queue: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<Result<()>>> {
        let delay = move |delay: &Delay| {
            let mut state = self.state();
            let visible_at = state.now + delay.time;
            let found = state.one(queue).messages.iter_mut().find(|message| message.has_receipt(&delay.receipt_handle));
            let message = found.ok_or_else(|| Error::fault("no message has this receipt handle"))?;
            message.visible_at = visible_at;
            Ok(())
        };
        Box::pin(async move { delays.iter().map(delay).collect() })
    }
}

#[cfg(test)]
mod tests;
