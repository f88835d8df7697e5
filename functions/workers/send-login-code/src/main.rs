//! Wiring of the `send-login-code` function.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsEvent;
use domain::messages::Queue;
use edge::queue::SqsQueue;
use edge::{Deadline, Environment, Kind};
use lambda_runtime::{LambdaEvent, service_fn};
use send_login_code::{Sender, State};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let config = edge::start(Kind::Worker)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let sender = Sender::from_config(&config, &environment)?;
    let queue = Arc::new(SqsQueue::new(&config, &environment, &[Queue::SendLoginCode])?);
    let state = &State::new(database, config.login_keys(&environment)?, sender, queue);
    let handler = |event: LambdaEvent<SqsEvent>| async move {
        let deadline = Deadline::of(&event.context);
        send_login_code::handle(state, event.payload, deadline).await
    };
    lambda_runtime::run(service_fn(handler)).await
}
