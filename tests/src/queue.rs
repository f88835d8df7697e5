//! SQS standard queues in this process, with what makes them hard: at-least-once delivery, no order, visibility that
//! runs out, receive counts and a dead-letter queue.
//!
//! What one queue does is in [`standard`]. Here time is virtual: it stands still while a worker is busy and jumps when
//! all would only wait, so that backoffs of minutes take no time and are still kept. The simulator gives the same
//! queues a real clock.

mod drain;
pub mod standard;

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::{OrderMessage, Queue};
use domain::{Error, Result};
use edge::queue::{Delay, MessageQueue, Outgoing};
use futures::future::BoxFuture;
use tokio::sync::Notify;

use crate::randomness;
pub use drain::drain;
pub use standard::{Settings, StandardQueue};

/// All queues of a system.
pub struct Queues {
    state: Mutex<State>,
    changed: Notify,
}

struct State {
    now: Duration,
    queues: HashMap<Queue, One>,
    /// Every this-many-th sent message is refused; 0 = none.
    refused_every: u64,
    sends: u64,
}

struct One {
    messages: StandardQueue,
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
        let one = |(queue, stream): (Queue, u64)| {
            let rng = randomness::stream(seed, 0x7175_6575 + stream);
            (queue, One { messages: StandardQueue::new(queue.name(), settings, rng), batches_under_way: 0 })
        };
        let queues = Queue::ALL.into_iter().zip(0..).map(one).collect();
        let state = State { now: Duration::ZERO, queues, refused_every: 0, sends: 0 };
        Self { state: Mutex::new(state), changed: Notify::new() }
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
        let now = state.now;
        state.one(queue).messages.send(now, body, group, Duration::ZERO).expect("no delay is too long");
    }

    /// Messages that are visible or in flight.
    #[must_use]
    pub fn len(&self, queue: Queue) -> usize {
        self.state().one(queue).messages.len()
    }

    /// Bodies in the dead-letter queue.
    #[must_use]
    pub fn dead(&self, queue: Queue) -> Vec<String> {
        self.state().one(queue).messages.dead()
    }

    /// Bodies that are visible or in flight.
    #[must_use]
    pub fn bodies(&self, queue: Queue) -> Vec<String> {
        self.state().one(queue).messages.bodies()
    }

    pub(crate) fn receive(&self, queue: Queue, batch_max: usize) -> Received {
        let mut state = self.state();
        let mut batch = SqsEvent::default();
        loop {
            let now = state.now;
            let one = state.one(queue);
            batch.records.extend(std::iter::from_fn(|| one.messages.receive(now)).take(batch_max));
            if !batch.records.is_empty() {
                one.batches_under_way += 1;
                return Received::Batch(batch);
            }
            if one.batches_under_way > 0 {
                return Received::Wait;
            }
            match one.messages.next_visible() {
                Some(next) => state.now = next.max(now),
                None => return Received::Empty,
            }
        }
    }

    /// A worker has finished its batch: these receipts are done with.
    pub(crate) fn finish(&self, queue: Queue, done: &[String]) {
        let mut state = self.state();
        let one = state.one(queue);
        one.batches_under_way -= 1;
        done.iter().for_each(|receipt| one.messages.delete(receipt));
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
            let now = state.now;
            let changed = state.one(queue).messages.change_visibility(now, &delay.receipt_handle, delay.time);
            changed.map_err(|refusal| Error::fault(refusal.code()))
        };
        Box::pin(async move { delays.iter().map(delay).collect() })
    }
}

#[cfg(test)]
mod tests;
