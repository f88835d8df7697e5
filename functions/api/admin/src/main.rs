//! Wiring of the `admin` function.

use edge::{Environment, Kind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let database = wiring::database(&config, &Environment::process())?;
    edge::http::serve(admin::router(admin::State::new(database, config.token_keys()?))).await
}
