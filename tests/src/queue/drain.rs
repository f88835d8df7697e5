//! Event source mappings: workers at once on one queue until it is empty.

use std::collections::HashSet;
use std::sync::Arc;

use aws_lambda_events::sqs::{SqsBatchResponse, SqsEvent};
use domain::messages::Queue;

use super::{Queues, Received};

/// Feeds a queue to `workers` handlers at once, `batch_max` messages at a time, until nothing is left. What a handler
/// reports as failed comes again; when it answers an error, its whole batch does.
pub async fn drain<H, F, E>(queues: &Arc<Queues>, queue: Queue, workers: usize, batch_max: usize, handle: H)
where
    H: Fn(SqsEvent) -> F + Clone + Send + 'static,
    F: Future<Output = Result<SqsBatchResponse, E>> + Send + 'static,
    E: std::fmt::Debug + Send + 'static,
{
    let mut tasks = tokio::task::JoinSet::new();
    for _ in 0..workers {
        tasks.spawn(work(Arc::clone(queues), queue, batch_max, handle.clone()));
    }
    while let Some(ended) = tasks.join_next().await {
        ended.expect("no worker panics outside its handler");
    }
}

async fn work<H, F, E>(queues: Arc<Queues>, queue: Queue, batch_max: usize, handle: H)
where
    H: Fn(SqsEvent) -> F + Send + 'static,
    F: Future<Output = Result<SqsBatchResponse, E>> + Send + 'static,
    E: std::fmt::Debug + Send + 'static,
{
    loop {
        let event = match queues.receive(queue, batch_max) {
            Received::Batch(event) => event,
            Received::Wait => {
                queues.wait().await;
                continue;
            }
            Received::Empty => return,
        };
        let records = event.records.clone();
        let done = match handle(event).await {
            Ok(response) => {
                let failures = response.batch_item_failures.into_iter();
                let failed: HashSet<String> = failures.map(|failure| failure.item_identifier).collect();
                let done = records
                    .into_iter()
                    .filter(|record| record.message_id.as_ref().is_none_or(|id| !failed.contains(id)));
                done.filter_map(|record| record.receipt_handle).collect()
            }
            Err(error) => {
                eprintln!("a handler failed: {error:?}");
                Vec::new()
            }
        };
        queues.finish(queue, &done);
    }
}
