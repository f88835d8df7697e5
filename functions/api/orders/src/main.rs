//! Wiring of the `orders` function.

use std::sync::Arc;

use domain::messages::Queue;
use edge::queue::SqsQueue;
use edge::{Environment, Kind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let queue = Arc::new(SqsQueue::new(&config, &environment, &Queue::OF_ORDERS)?);
    let state = orders::State::new(database, config.token_keys()?, queue);
    edge::http::serve(orders::router(state)).await
}
