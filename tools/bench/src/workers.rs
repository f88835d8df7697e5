//! Reservation workers in this process: the real handler, each with a connection of its own, fed with events in JSON.

use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::Queue;
use edge::Deadline;
use edge::queue::{Delay, MessageQueue, Outgoing};
use futures::future::BoxFuture;
use reserve_numbers::State;
use tests::TestDatabase;
use tokio::task::JoinSet;

use crate::rate::Rate;
use crate::settings::BUDGET;

/// A queue that takes everything and gives nothing.
pub(crate) struct Recording;

impl MessageQueue for Recording {
    fn send<'a>(&'a self, _: Queue, messages: &'a [Outgoing]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async move { messages.iter().map(|_| Ok(())).collect() })
    }

    fn delay<'a>(&'a self, _: Queue, delays: &'a [Delay]) -> BoxFuture<'a, Vec<domain::Result<()>>> {
        Box::pin(async move { delays.iter().map(|_| Ok(())).collect() })
    }
}

/// An environment of the reservation worker.
pub(crate) struct Worker {
    state: State,
    /// The server's process of its connection.
    pub(crate) pid: i32,
}

impl Worker {
    /// A warm one, connected: a queue that is backed up has woken it long ago.
    pub(crate) async fn new(database: &TestDatabase) -> Self {
        let database = database.app(1);
        let client = database.client().await.unwrap();
        let pid = client.query_one("select pg_backend_pid()", &[]).await.unwrap().get(0);
        drop(client);
        Self { state: State::new(database, Arc::new(Recording)), pid }
    }

    /// Serves an event: how many records are done, and an event with those that are not.
    pub(crate) async fn serve(&self, text: &str) -> (u64, Option<String>) {
        let event: SqsEvent = serde_json::from_str(text).unwrap();
        let records = event.records.len();
        let response = reserve_numbers::handle(&self.state, event, Deadline::after(BUDGET)).await.unwrap();
        let failed = response.batch_item_failures.into_iter().map(|failure| failure.item_identifier);
        let failed: HashSet<String> = failed.collect();
        if failed.is_empty() {
            return (records as u64, None);
        }
        let mut again: SqsEvent = serde_json::from_str(text).unwrap();
        again.records.retain(|record| record.message_id.as_ref().is_some_and(|id| failed.contains(id)));
        ((records - failed.len()) as u64, Some(serde_json::to_string(&again).unwrap()))
    }
}

/// Lets so many workers take the events one by one until none is left; orders in the time that took. What a worker
/// reports as failed comes again.
pub(crate) async fn reserve(database: &TestDatabase, workers: usize, events: Vec<String>) -> Rate {
    let mut idle = Vec::new();
    for _ in 0..workers {
        idle.push(Worker::new(database).await);
    }
    let events = Arc::new(Mutex::new(VecDeque::from(events)));
    let started = Instant::now();
    let mut tasks = JoinSet::new();
    for worker in idle {
        let events = Arc::clone(&events);
        tasks.spawn(async move { work(&worker, &events).await });
    }
    let mut count = 0;
    while let Some(ended) = tasks.join_next().await {
        count += ended.unwrap();
    }
    Rate { count, time: started.elapsed() }
}

async fn work(worker: &Worker, events: &Mutex<VecDeque<String>>) -> u64 {
    let mut done = 0;
    loop {
        let event = events.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
        let Some(event) = event else { return done };
        let (served, again) = worker.serve(&event).await;
        done += served;
        events.lock().unwrap_or_else(PoisonError::into_inner).extend(again);
    }
}
