//! Wiring of the `reconcile-orders` function.

use std::sync::Arc;

use domain::messages::Queue;
use edge::queue::{MessageQueue, SqsQueue};
use edge::{Deadline, Environment, Kind};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let config = edge::start(Kind::Worker)?;
    let environment = Environment::process();
    let database = &wiring::database(&config, &environment)?;
    let queue: &Arc<dyn MessageQueue> = &(Arc::new(SqsQueue::new(&config, &environment, &Queue::ALL)?) as _);
    // The schedule's payload says nothing that matters.
    let handler = |event: LambdaEvent<Value>| async move {
        let report = reconcile_orders::run(database, queue, Deadline::of(&event.context)).await;
        reconcile_orders::emit(&report);
        Ok::<_, lambda_runtime::Error>(report)
    };
    lambda_runtime::run(service_fn(handler)).await
}
