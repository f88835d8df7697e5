//! Wiring of the `order-status` function.

use edge::{Environment, Kind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let database = wiring::database(&config, &Environment::process())?;
    let state = order_status::State::new(database, config.token_keys()?);
    edge::http::serve(order_status::router(state)).await
}
