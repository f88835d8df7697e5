//! Wiring of the `login` function.

use std::sync::Arc;

use domain::messages::Queue;
use edge::http::OriginSecret;
use edge::queue::SqsQueue;
use edge::{Environment, Kind};
use login::{Keys, State};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), lambda_http::Error> {
    let config = edge::start(Kind::Http)?;
    let environment = Environment::process();
    let database = wiring::database(&config, &environment)?;
    let keys = Keys {
        public: config.token_keys()?,
        signing: config.signing_keys(&environment)?,
        login: config.login_keys(&environment)?,
        origin: OriginSecret::from_environment(&environment)?,
    };
    let queue = Arc::new(SqsQueue::new(&config, &environment, &[Queue::SendLoginCode])?);
    edge::http::serve(login::router(State::new(database, keys, queue))).await
}
