//! Brings a database to the schema of this build, and prepares the role that the functions use.
//!
//! Runs over a direct connection, never through a pooler: it needs a session lock and `alter role`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use domain::{Error, Result};
use secrecy::{ExposeSecret, SecretString};

use crate::errors::{from_postgres, is_lock_timeout, said_by_the_server};

mod embedded {
    refinery::embed_migrations!("../../migrations");
}

/// The role that the functions connect as.
pub const APP_ROLE: &str = "tirada_app";

/// Makes that role, and sets its timeouts and rights. Lies beside the migrations, because a new hash of that folder
/// makes a deployment run this.
const RIGHTS: &str = include_str!("../../../migrations/rights.sql");

/// Key of the session lock under which migrations run: "tirada" in ASCII.
const MIGRATION_LOCK: i64 = 0x7469_7261_6461;

/// What a run did.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Report {
    /// Versions applied now, ascending.
    pub applied: Vec<i32>,
    /// Version of the schema afterwards.
    pub version: i32,
}

/// How long a migration waits for a lock before it steps back: everybody who comes after it waits as long.
const LOCK_WAIT: Duration = Duration::from_secs(2);

/// How long it then lets the others pass.
const LOCK_PAUSE: Duration = Duration::from_secs(1);

/// How often it tries.
const LOCK_TRIES: u32 = 40;

/// Applies what is missing, one process at a time, each migration in its own transaction.
///
/// An older build on a newer schema is accepted, so that a rollback of the code works; a changed migration is not. A
/// table that somebody reads for long does not stop the others: the migration gives up its place and tries again.
///
/// # Errors
/// Busy when the database is away or a table is never free, a fault when a migration fails or its text has changed
/// since it was applied.
pub async fn run(client: &mut tokio_postgres::Client) -> Result<Report> {
    client.batch_execute(&format!("select pg_advisory_lock({MIGRATION_LOCK})")).await.map_err(from_postgres)?;
    client.batch_execute(&format!("set lock_timeout = {}", LOCK_WAIT.as_millis())).await.map_err(from_postgres)?;
    let outcome = apply(client).await;
    let unlock = format!("reset lock_timeout; select pg_advisory_unlock({MIGRATION_LOCK})");
    let unlocked = client.batch_execute(&unlock).await;
    let applied = outcome?;
    unlocked.map_err(from_postgres)?;
    Ok(Report { applied, version: latest() })
}

/// The versions that were applied, over all tries.
async fn apply(client: &mut tokio_postgres::Client) -> Result<Vec<i32>> {
    let mut applied = Vec::new();
    for tried in 1.. {
        let outcome = embedded::migrations::runner().set_abort_missing(false).run_async(client).await;
        let report = match &outcome {
            Ok(report) => Some(report),
            Err(error) => error.report(),
        };
        applied.extend(report.into_iter().flat_map(|r| r.applied_migrations()).map(refinery::Migration::version));
        match outcome {
            Ok(_) => break,
            Err(error) if tried < LOCK_TRIES && waited_for_a_lock(&error) => {
                tracing::warn!(migration.tried = tried, "a migration waits for a lock");
                tokio::time::sleep(LOCK_PAUSE).await;
            }
            Err(error) if waited_for_a_lock(&error) => return Err(Error::busy(told(&error))),
            Err(error) => return Err(Error::fault(told(&error))),
        }
    }
    Ok(applied)
}

fn waited_for_a_lock(error: &refinery::Error) -> bool {
    from_the_server(error).is_some_and(is_lock_timeout)
}

/// The error with what the server said, rows that it quotes left out.
fn told(error: &refinery::Error) -> String {
    let said = from_the_server(error).and_then(tokio_postgres::Error::as_db_error).map(said_by_the_server);
    said.map_or_else(|| error.to_string(), |said| format!("{error}: {said}"))
}

fn from_the_server(error: &refinery::Error) -> Option<&tokio_postgres::Error> {
    let mut source = std::error::Error::source(error);
    while let Some(error) = source {
        if let Some(found) = error.downcast_ref::<tokio_postgres::Error>() {
            return Some(found);
        }
        source = error.source();
    }
    None
}

/// Newest version that this build knows.
#[must_use]
pub fn latest() -> i32 {
    embedded::migrations::runner().get_migrations().iter().map(|migration| migration.version()).max().unwrap_or(0)
}

/// What this build would make of an empty database, as one number: the same for the same schema and rights.
#[must_use]
pub fn fingerprint() -> u64 {
    let mut hash = DefaultHasher::new();
    for migration in embedded::migrations::runner().get_migrations() {
        (migration.version(), migration.checksum()).hash(&mut hash);
    }
    RIGHTS.hash(&mut hash);
    hash.finish()
}

/// Makes the functions' role or brings it up to date: password, timeouts, and the least rights that work.
///
/// # Errors
/// Busy when the database is away, a fault when the owner may not do this.
pub async fn prepare_role(client: &tokio_postgres::Client, password: Option<&SecretString>) -> Result<()> {
    let password = password.map_or(String::new(), |password| {
        // The verifier, not the password: statements end up in logs.
        let verifier = postgres_protocol::password::scram_sha_256(password.expose_secret().as_bytes());
        format!("alter role {APP_ROLE} password '{verifier}';")
    });
    let sql = format!("begin; select pg_advisory_xact_lock({MIGRATION_LOCK}); {RIGHTS} {password} commit;");
    client.batch_execute(&sql).await.map_err(from_postgres)
}

#[cfg(test)]
mod tests;
