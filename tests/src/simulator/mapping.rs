//! An event source mapping: feeds a queue's messages to a function and deletes what it reports as done.

use std::collections::HashSet;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use aws_lambda_events::sqs::{SqsEvent, SqsMessage};
use domain::messages::Queue;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::JoinHandle;

use super::function::Function;
use super::instance::Outcome;
use super::sqs::Sqs;

/// How a mapping polls. A change counts from the next start.
#[derive(Debug, Clone, Copy)]
pub struct Polling {
    /// Messages of one invocation, at most.
    pub batch_max: usize,
    /// How long a batch waits to fill, in the queue's time.
    pub window: Duration,
    /// Invocations at once.
    pub concurrency: usize,
}

/// A mapping. It does nothing until it is started.
pub struct Mapping {
    sqs: Sqs,
    queue: Queue,
    function: Function,
    polling: Mutex<Polling>,
    running: Mutex<Option<JoinHandle<()>>>,
}

impl Mapping {
    /// A mapping from a queue to a function.
    #[must_use]
    pub fn new(sqs: Sqs, queue: Queue, function: Function, polling: Polling) -> Self {
        Self { sqs, queue, function, polling: Mutex::new(polling), running: Mutex::default() }
    }

    /// Changes how it polls.
    pub fn set(&self, change: impl FnOnce(&mut Polling)) {
        change(&mut self.polling.lock().unwrap());
    }

    /// Sends the queue's messages to another function: a deployment.
    pub fn replace(&mut self, function: Function) {
        self.function = function;
    }

    /// Starts polling, unless it does.
    pub fn start(&self) {
        let polling = *self.polling.lock().unwrap();
        let mut running = self.running.lock().unwrap();
        if running.is_none() {
            let (sqs, queue, function) = (self.sqs.clone(), self.queue, self.function.clone());
            *running = Some(tokio::spawn(async move { poll(&sqs, queue, &function, polling).await }));
        }
    }

    /// Takes one batch, now, and waits until it was served; for a mapping that was not started. The batch.
    pub async fn run_once(&self) -> SqsEvent {
        let polling = *self.polling.lock().unwrap();
        let batch = self.sqs.receive(self.queue, polling.batch_max, polling.window).await;
        serve(&self.sqs, self.queue, &self.function, &batch).await;
        batch
    }

    /// Stops polling. Invocations under way end on their own.
    pub fn stop(&self) {
        if let Some(task) = self.running.lock().unwrap().take() {
            task.abort();
        }
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        self.stop();
    }
}

async fn poll(sqs: &Sqs, queue: Queue, function: &Function, polling: Polling) {
    let permits = Arc::new(Semaphore::new(polling.concurrency));
    loop {
        let permit = Arc::clone(&permits).acquire_owned().await.expect("never closed");
        let batch = sqs.receive(queue, polling.batch_max, polling.window).await;
        let (sqs, function) = (sqs.clone(), function.clone());
        tokio::spawn(async move {
            serve(&sqs, queue, &function, &batch).await;
            drop(permit);
        });
    }
}

/// Invokes a function with a batch, and deletes what it reports as done.
async fn serve(sqs: &Sqs, queue: Queue, function: &Function, batch: &SqsEvent) {
    let event = serde_json::to_value(batch).expect("an event is JSON");
    let outcome = function.invoke(event).await;
    sqs.delete(queue, done(&batch.records, &outcome));
}

/// Receipts of the messages that are deleted.
///
/// AWS Lambda Developer Guide, "Handling errors for an SQS event source in Lambda": without an error and with an empty
/// or null list of failures, or an empty or null response, the batch was a success; with invalid JSON or an item
/// identifier that is empty, null or unknown, all of it failed. What failed becomes visible after its timeout.
fn done<'a>(records: &'a [SqsMessage], outcome: &Outcome) -> Vec<&'a str> {
    let Outcome::Answer(response) = outcome else { return Vec::new() };
    let failures = match response {
        Value::Null => &Vec::new(),
        Value::Object(members) => match members.get("batchItemFailures") {
            None | Some(Value::Null) => &Vec::new(),
            Some(Value::Array(failures)) => failures,
            Some(_) => return Vec::new(),
        },
        _ => return Vec::new(),
    };
    let known: HashSet<&str> = records.iter().filter_map(|record| record.message_id.as_deref()).collect();
    let mut failed = HashSet::new();
    for failure in failures {
        match failure["itemIdentifier"].as_str() {
            Some(id) if known.contains(id) => failed.insert(id),
            _ => return Vec::new(),
        };
    }
    let is_done = |record: &&SqsMessage| record.message_id.as_deref().is_none_or(|id| !failed.contains(id));
    records.iter().filter(is_done).filter_map(|record| record.receipt_handle.as_deref()).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn records() -> Vec<SqsMessage> {
        let record = |id: &str| {
            let mut record = SqsMessage::default();
            record.message_id = Some(id.into());
            record.receipt_handle = Some(format!("receipt-{id}"));
            record
        };
        ["a", "b"].map(record).to_vec()
    }

    /// AWS Lambda Developer Guide, "Success and failure conditions" of partial batch responses.
    #[test]
    fn a_response_says_what_is_deleted() {
        let records = records();
        let done = |outcome: Outcome| done(&records, &outcome).join(" ");
        let answer = |value: Value| done(Outcome::Answer(value));
        let failures = |ids: Value| answer(json!({ "batchItemFailures": ids }));
        let all = "receipt-a receipt-b";
        for success in
            [Value::Null, json!({}), json!({ "batchItemFailures": [] }), json!({ "batchItemFailures": null })]
        {
            assert_eq!(answer(success), all);
        }
        assert_eq!(failures(json!([{ "itemIdentifier": "a" }])), "receipt-b");
        for failure in [
            json!([{ "itemIdentifier": "" }]),
            json!([{ "itemIdentifier": null }]),
            json!([{ "badKey": "a" }]),
            json!([{ "itemIdentifier": "c" }]),
            json!("a"),
        ] {
            assert_eq!(failures(failure), "");
        }
        for failed in [
            Outcome::Answer(json!("not JSON")),
            Outcome::Error(json!({})),
            Outcome::TimedOut,
            Outcome::Crashed,
            Outcome::Throttled,
        ] {
            assert_eq!(done(failed), "");
        }
    }
}
