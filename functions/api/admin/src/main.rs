//! Wiring of the `admin` function.

use edge::storage::Bucket;
use edge::{Environment, Kind};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let exports = Bucket::from_config(&config, &environment, "TIRADA_EXPORTS_BUCKET")?;
    let uploads = Bucket::from_config(&config, &environment, "TIRADA_UPLOADS_BUCKET")?;
    edge::http::serve(admin::router(admin::State::new(database, config.token_keys()?, exports, uploads))).await
}
