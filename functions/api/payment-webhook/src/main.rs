//! Wiring of the `payment-webhook` function.

use std::sync::Arc;

use cashier::Cashier;
use domain::messages::Queue;
use edge::queue::SqsQueue;
use edge::{Environment, Kind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let cashier = Cashier::from_config(&config, &environment, database.clone())?;
    let queue = Arc::new(SqsQueue::new(&config, &environment, &[Queue::SettlePayment])?);
    edge::http::serve(payment_webhook::router(payment_webhook::State::new(database, cashier, queue))).await
}
