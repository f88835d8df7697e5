//! Wiring of the `expire-reservations` function.

use edge::{Deadline, Environment, Kind};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    let config = edge::start(Kind::Worker)?;
    let database = &wiring::database(&config, &Environment::process())?;
    // The schedule's payload says nothing that matters.
    let handler = |event: LambdaEvent<Value>| async move {
        let report = expire_reservations::run(database, Deadline::of(&event.context)).await?;
        expire_reservations::emit(&report);
        Ok::<_, lambda_runtime::Error>(report)
    };
    lambda_runtime::run(service_fn(handler)).await
}
