//! Wiring of the `settle-payment` function.

use std::sync::Arc;

use aws_lambda_events::sqs::SqsEvent;
use cashier::Cashier;
use domain::messages::Queue;
use edge::queue::SqsQueue;
use edge::{Deadline, Environment, Kind};
use lambda_runtime::{LambdaEvent, service_fn};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let config = edge::start(Kind::Worker)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let cashier = Cashier::from_config(&config, &environment, database.clone())?;
    let queue = Arc::new(SqsQueue::new(&config, &environment, &[Queue::SettlePayment])?);
    let state = &settle_payment::State::new(database, cashier, queue);
    let handler = |event: LambdaEvent<SqsEvent>| async move {
        let deadline = Deadline::of(&event.context);
        settle_payment::handle(state, event.payload, deadline).await
    };
    lambda_runtime::run(service_fn(handler)).await
}
