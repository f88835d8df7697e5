//! Wiring of the `payments` function.

use cashier::Cashier;
use edge::{Environment, Kind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let cashier = Cashier::from_config(&config, &environment, database.clone())?;
    edge::http::serve(payments::router(payments::State::new(database, config.token_keys()?, cashier))).await
}
