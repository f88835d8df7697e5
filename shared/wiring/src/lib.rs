//! The one place where `edge` and `store` meet: a function's configuration becomes its database.
//!
//! Both stay ignorant of each other; every function's `main` calls [`database`].

use std::sync::Arc;
use std::time::SystemTime;

use domain::{Error, Result};
use edge::config::DatabaseLocation;
use edge::iam::DatabaseTokens;
use edge::{Config, Environment};
use secrecy::ExposeSecret;
use store::{Database, Settings, Tls};

/// The database of a function: one connection, because a Lambda environment serves one event at a time.
///
/// # Errors
/// A fault when the location cannot be used.
pub fn database(config: &Config, environment: &Environment) -> Result<Database> {
    let settings = match &config.database {
        DatabaseLocation::Url(url) => Settings::from_url(url.expose_secret())?,
        DatabaseLocation::Iam { host, port, name, user, region } => {
            let credentials = edge::iam::credentials(environment).map_err(Error::fault)?;
            let tokens = DatabaseTokens::new(host, *port, user, region, credentials);
            let mut location = tokio_postgres::Config::new();
            location.host(host).port(*port).dbname(name).user(user);
            Settings {
                config: location,
                tls: Tls::On(Vec::new()),
                password: Some(Arc::new(move || tokens.token(SystemTime::now()))),
                borrow_timeout: config.borrow_timeout,
                connections_max: 1,
            }
        }
    };
    Database::new(Settings { borrow_timeout: config.borrow_timeout, ..settings })
}
