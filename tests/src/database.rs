//! One real database per test, cloned from a migrated template, dropped at the end.
//!
//! `TIRADA_TEST_POSTGRES_URL` names a server that may be littered: its user creates databases and roles. With
//! `TIRADA_TEST_THROUGH_PGBOUNCER=1`, and the program's path in `TIRADA_TEST_PGBOUNCER`, what the functions do goes
//! through PgBouncer in transaction mode.

mod pooler;
mod template;

use std::collections::HashSet;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use store::{Database, Settings, Tls};
use tokio_postgres::config::Host;
use tokio_postgres::{Client, Config, NoTls};
use uuid::Uuid;

use crate::auditor;
use crate::simulator::Upstream;
use pooler::Pooler;

/// Password of the functions' role on test servers.
pub(crate) const APP_PASSWORD: &str = "a-test-password";

/// Databases older than this belong to nobody: their test was killed.
const LEFT_OVER_AFTER: Duration = Duration::from_secs(2 * 3_600);

const PREFIX: &str = "tirada_test_";

/// A database of one test. End with [`Self::finish`]; a test that forgets it fails.
pub struct TestDatabase {
    name: String,
    server: Config,
    owner: Client,
    pooler: Option<Pooler>,
    finished: bool,
}

impl TestDatabase {
    /// A fresh database; through PgBouncer when the environment asks for it.
    pub async fn new() -> Self {
        let through = std::env::var("TIRADA_TEST_THROUGH_PGBOUNCER").is_ok_and(|text| text == "1");
        Self::with(through.then(|| pgbouncer().expect("TIRADA_TEST_PGBOUNCER is not set"))).await
    }

    /// A fresh database through PgBouncer, or none where there is no PgBouncer.
    pub async fn through_pgbouncer() -> Option<Self> {
        Some(Self::with(Some(pgbouncer()?)).await)
    }

    /// A fresh database on a server of the test's own.
    pub async fn on(server: Config) -> Self {
        Self::made(server, None).await
    }

    async fn with(pgbouncer: Option<String>) -> Self {
        Self::made(server(), pgbouncer).await
    }

    async fn made(server: Config, pgbouncer: Option<String>) -> Self {
        let admin = connect(&server).await;
        let template = template::ensure(&admin, &server).await;
        drop_left_overs(&admin).await;
        let name = format!("{PREFIX}{}_{}", seconds_now(), Uuid::now_v7().simple());
        admin
            .batch_execute(&format!("create database {name} template {template} strategy file_copy"))
            .await
            .expect("clone the template");
        let owner = connect(server.clone().dbname(&name)).await;
        let pooler = pgbouncer.map(|program| Pooler::start(&program, &server, &name));
        let database = Self { name, server, owner, pooler, finished: false };
        if let Some(pooler) = &database.pooler {
            pooler.wait_until_ready().await;
        }
        database
    }

    /// A connection with every right, past any pooler: for looking at things and for breaking them.
    #[must_use]
    pub const fn owner(&self) -> &Client {
        &self.owner
    }

    /// Connects again, after the server was restarted.
    pub async fn reconnect(&mut self) {
        self.owner = self.another_owner().await;
    }

    /// Another such connection.
    pub async fn another_owner(&self) -> Client {
        connect(self.server.clone().dbname(&self.name)).await
    }

    /// The database as functions see it: their role, a pool of so many connections.
    #[must_use]
    pub fn app(&self, connections_max: usize) -> Database {
        let borrow_timeout = Duration::from_secs(30);
        let settings =
            Settings { config: self.app_config(), tls: Tls::Off, password: None, borrow_timeout, connections_max };
        Database::new(settings).expect("a pool")
    }

    /// One connection of the functions' role that no pool cleans up.
    pub async fn app_client(&self) -> Client {
        connect(&self.app_config()).await
    }

    /// Where the functions connect to, the pooler if there is one.
    pub(crate) fn upstream(&self) -> Upstream {
        let config = self.app_config();
        let port = config.get_ports().first().copied().unwrap_or(5432);
        match config.get_hosts().first() {
            Some(Host::Tcp(host)) => Upstream::Tcp(host.clone(), port),
            Some(Host::Unix(folder)) => Upstream::Unix(folder.join(format!(".s.PGSQL.{port}"))),
            None => panic!("the server has no address"),
        }
    }

    /// Where a program of the functions' role connects to, for TIRADA_DATABASE_URL.
    #[must_use]
    pub fn app_location(&self) -> String {
        let config = self.app_config();
        let host = match config.get_hosts().first() {
            Some(Host::Tcp(host)) => host.clone(),
            Some(Host::Unix(folder)) => folder.display().to_string(),
            None => panic!("the server has no address"),
        };
        let port = config.get_ports().first().copied().unwrap_or(5432);
        let (role, name) = (store::migrations::APP_ROLE, &self.name);
        format!("host={host} port={port} user={role} password={APP_PASSWORD} dbname={name}")
    }

    pub(crate) fn app_config(&self) -> Config {
        let mut config = self.pooler.as_ref().map_or_else(|| self.server.clone(), Pooler::config);
        config.dbname(&self.name).user(store::migrations::APP_ROLE).password(APP_PASSWORD);
        config
    }

    /// Ends the test: everything has come to rest and the auditor finds nothing.
    pub async fn finish(mut self) {
        self.finish_in_place().await;
    }

    /// As [`Self::finish`], for a database that something else owns.
    pub(crate) async fn finish_in_place(&mut self) {
        auditor::assert_clean(self).await;
        self.leave().await;
    }

    /// Ends a test that leaves orders under way on purpose: the auditor finds nothing wrong with the rest.
    pub async fn finish_under_way(mut self) {
        auditor::assert_consistent(&self).await;
        self.leave().await;
    }

    async fn leave(&mut self) {
        self.finished = true;
        if self.pooler.is_some() {
            assert_eq!(self.prepared_statements().await, 0, "prepared statements were left on pooled connections");
        }
    }

    /// Prepared statements on all server connections of the pooler.
    pub async fn prepared_statements(&self) -> i64 {
        self.on_every_connection("select count(*) from pg_prepared_statements").await.into_iter().sum()
    }

    /// Throws them away.
    pub async fn deallocate(&self) {
        self.on_every_connection("deallocate all; select 0").await;
    }

    /// Runs a statement on each of the pooler's server connections: as many transactions at once as it has pin each
    /// of them, so none is missed.
    async fn on_every_connection(&self, sql: &str) -> Vec<i64> {
        let mut answers = Vec::new();
        let mut servers = HashSet::new();
        let mut pinned = Vec::new();
        for _ in 0..pooler::SERVER_CONNECTIONS {
            let client = self.app_client().await;
            client.batch_execute("begin").await.expect("begin");
            answers.push(number(&client, sql).await);
            servers.insert(number(&client, "select pg_backend_pid()").await);
            pinned.push(client);
        }
        for client in pinned {
            client.batch_execute("commit").await.expect("commit");
        }
        assert_eq!(servers.len(), pooler::SERVER_CONNECTIONS, "each transaction had a connection of its own");
        answers
    }
}

/// The number that a statement gives, by the simple protocol, which prepares nothing.
async fn number(client: &Client, sql: &str) -> i64 {
    let messages = client.simple_query(sql).await.expect(sql);
    messages.iter().find_map(count_of).expect("a row")
}

fn count_of(message: &tokio_postgres::SimpleQueryMessage) -> Option<i64> {
    let tokio_postgres::SimpleQueryMessage::Row(row) = message else { return None };
    row.get(0)?.parse().ok()
}

impl Drop for TestDatabase {
    fn drop(&mut self) {
        // First the pooler, which would connect again; then the database, from a thread with a runtime of its own
        // because a drop cannot wait.
        self.pooler = None;
        let (name, server) = (self.name.clone(), self.server.clone());
        let dropped = std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
            runtime.block_on(async { drop_database(&connect(&server).await, &name).await });
        });
        let dropped = dropped.join().is_ok();
        if !std::thread::panicking() {
            assert!(dropped, "the database {} could not be dropped", self.name);
            assert!(self.finished, "the test did not end with `finish`, so nobody audited it");
        }
    }
}

/// The server's configuration.
fn server() -> Config {
    let url = std::env::var("TIRADA_TEST_POSTGRES_URL").expect(
        "TIRADA_TEST_POSTGRES_URL is not set: `make test` sets it, or `python3 -m local postgres start` prints it",
    );
    url.parse().expect("TIRADA_TEST_POSTGRES_URL is a database URL")
}

fn pgbouncer() -> Option<String> {
    std::env::var("TIRADA_TEST_PGBOUNCER").ok().filter(|path| !path.is_empty())
}

pub(crate) async fn connect(config: &Config) -> Client {
    let (client, connection) = config.connect(NoTls).await.expect("connect to the test server");
    tokio::spawn(connection);
    client
}

fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs()
}

async fn drop_left_overs(admin: &Client) {
    let sql = "select datname from pg_database where datname like 'tirada\\_test\\_%'";
    let oldest = seconds_now() - LEFT_OVER_AFTER.as_secs();
    for row in admin.query(sql, &[]).await.expect("list databases") {
        let name: String = row.get(0);
        let made = name.strip_prefix(PREFIX).and_then(|rest| rest.split('_').next()).and_then(|text| text.parse().ok());
        if made.is_some_and(|made: u64| made < oldest) {
            drop_database(admin, &name).await;
        }
    }
}

async fn drop_database(admin: &Client, name: &str) {
    admin.batch_execute(&format!("drop database if exists {name} with (force)")).await.expect("drop the database");
}
