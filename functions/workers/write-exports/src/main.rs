//! Wiring of the `write-exports` function.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::Queue;
use edge::queue::SqsQueue;
use edge::{Deadline, Environment, Kind};
use lambda_runtime::{LambdaEvent, service_fn};
use write_exports::{Bucket, State};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let config = edge::start(Kind::Worker)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let bucket = Bucket::from_config(&config, &environment)?;
    let queue = Arc::new(SqsQueue::new(&config, &environment, &[Queue::WriteExports])?);
    let state = &State::new(database, bucket, queue);
    let handler = |event: LambdaEvent<SqsEvent>| async move {
        let deadline = Deadline::of(&event.context);
        // Boxed: one within the other, futures of an S3 client are deeper than the compiler counts.
        Box::pin(write_exports::handle(state, event.payload, deadline)).await
    };
    lambda_runtime::run(service_fn(handler)).await
}
