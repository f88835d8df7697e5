//! Brings a database to the schema of this build, and prepares the role that the functions use.
//!
//! Runs over a direct connection, never through a pooler: it needs a session lock and `alter role`.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use domain::limits::{IDLE_IN_TRANSACTION_TIMEOUT, LOCK_TIMEOUT, STATEMENT_TIMEOUT};
use domain::{Error, Result};
use secrecy::{ExposeSecret, SecretString};

use crate::errors::{from_postgres, is_lock_timeout, said_by_the_server};

mod embedded {
    refinery::embed_migrations!("../../migrations");
}

/// The role that the functions connect as.
pub const APP_ROLE: &str = "tirada_app";

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
    include_str!("migrations.rs").hash(&mut hash);
    hash.finish()
}

/// Makes the functions' role or brings it up to date: password, timeouts, and the least rights that work.
///
/// The timeouts belong to the role because start-up options do not pass through RDS Proxy and SET pins a session.
///
/// # Errors
/// Busy when the database is away, a fault when the owner may not do this.
pub async fn prepare_role(client: &tokio_postgres::Client, password: Option<&SecretString>) -> Result<()> {
    let lock_ms = LOCK_TIMEOUT.as_millis();
    let statement_ms = STATEMENT_TIMEOUT.as_millis();
    let idle_ms = IDLE_IN_TRANSACTION_TIMEOUT.as_millis();
    let password = password.map_or(String::new(), |password| {
        // The verifier, not the password: statements end up in logs.
        let verifier = postgres_protocol::password::scram_sha_256(password.expose_secret().as_bytes());
        format!("alter role {APP_ROLE} password '{verifier}';")
    });
    let sql = format!(
        "select pg_advisory_xact_lock({MIGRATION_LOCK});
        do $$ begin
            if not exists (select from pg_roles where rolname = '{APP_ROLE}') then create role {APP_ROLE} login; end if;
        end $$;
        {password}
        alter role {APP_ROLE} set lock_timeout = {lock_ms};
        alter role {APP_ROLE} set statement_timeout = {statement_ms};
        alter role {APP_ROLE} set idle_in_transaction_session_timeout = {idle_ms};
        -- Storage is solid-state and what is hot is cached: an index look-up costs little more than the next page.
        alter role {APP_ROLE} set random_page_cost = 1.1;
        -- A plan made while a table was small is kept by a function and must be right at the peak a minute later.
        alter role {APP_ROLE} set enable_seqscan = off;
        -- Statements are short; compiling one costs more than running it.
        alter role {APP_ROLE} set jit = off;
        grant usage on schema public to {APP_ROLE};
        revoke all on all tables in schema public from {APP_ROLE};
        grant select, insert, update, delete on all tables in schema public to {APP_ROLE};
        -- Orders come from place_order, which runs as the owner. Granted first, so that nobody is without it.
        grant execute on all functions in schema public to {APP_ROLE};
        revoke execute on all functions in schema public from public;
        revoke create on schema public from public;
        revoke insert on orders from {APP_ROLE};
        -- No row moves to another tenant, product, buyer or order: every column may be changed but these. How far the
        -- audit has come is no row of theirs.
        do $$ declare
            owned record;
            whose text[] := '{{tenant_id,product_id,product_key,buyer_id,order_id}}';
        begin
            for owned in
                select c.oid::regclass as relation,
                    string_agg(quote_ident(a.attname), ', ') filter (where a.attname <> all(whose)) as others
                from pg_class c join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
                where c.relkind = 'r' and c.relnamespace = 'public'::regnamespace and c.relname <> 'audit_cursor'
                group by c.oid having bool_or(a.attname = any(whose))
            loop
                execute format('revoke update on %s from {APP_ROLE}', owned.relation);
                execute format('grant update (%s) on %s to {APP_ROLE}', owned.others, owned.relation);
            end loop;
        end $$;
        revoke update, delete, truncate on order_events, audit_log from {APP_ROLE};
        revoke insert, update, delete on refinery_schema_history from {APP_ROLE};
        revoke delete on tenants, products, number_chunks, orders, staff from {APP_ROLE};"
    );
    client.batch_execute(&format!("begin; {sql} commit;")).await.map_err(from_postgres)
}
