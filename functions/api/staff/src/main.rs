//! Wiring of the `staff` function.

use edge::http::OriginSecret;
use edge::sealing::SealingKeys;
use edge::{Environment, Kind};
use staff::{Keys, Post, State};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let keys = Keys {
        public: config.token_keys()?,
        signing: config.signing_keys(&environment)?,
        login: config.login_keys(&environment)?,
        sealing: SealingKeys::from_json(&environment.required("TIRADA_SEALING_KEYS")?, config.stage)?,
        origin: OriginSecret::from_environment(&environment)?,
    };
    let post = Post::from_config(&config, &environment)?;
    edge::http::serve(staff::router(State::new(database, keys, post))).await
}
