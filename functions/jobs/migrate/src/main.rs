//! Wiring of the `migrate` function, and the command of the same name.

use edge::{Deadline, Environment};
use lambda_runtime::{LambdaEvent, service_fn};
use serde_json::Value;

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_runtime::Error> {
    edge::telemetry::init();
    let environment = Environment::process();
    if environment.optional("AWS_LAMBDA_RUNTIME_API").is_none() {
        let report = migrate::migrate(&environment).await?;
        println!("{}", serde_json::to_string(&report)?);
        return Ok(());
    }
    let environment = &environment;
    let handler = |event: LambdaEvent<Value>| async move {
        let answer = migrate::handle(environment, event.payload, Deadline::of(&event.context)).await?;
        Ok::<_, lambda_runtime::Error>(answer)
    };
    lambda_runtime::run(service_fn(handler)).await
}
