//! Wiring of the `send-notice` function.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::Queue;
use edge::queue::SqsQueue;
use edge::{Deadline, Environment, Kind};
use lambda_runtime::{LambdaEvent, service_fn};
use send_notice::{Senders, State};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let config = edge::start(Kind::Worker)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let senders = Senders::from_config(&config, &environment)?;
    let queue = Arc::new(SqsQueue::new(&config, &environment, &[Queue::SendNotice])?);
    let state = &State::new(database, senders, queue);
    let handler = |event: LambdaEvent<SqsEvent>| async move {
        let deadline = Deadline::of(&event.context);
        send_notice::handle(state, event.payload, deadline).await
    };
    lambda_runtime::run(service_fn(handler)).await
}
