//! PgBouncer in transaction mode, one process per test: stricter than RDS Proxy, which pins where this breaks.
//!
//! Reached over a socket in a directory of its own, so that parallel tests need no ports.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio_postgres::config::Host;
use tokio_postgres::{Config, NoTls};
use uuid::Uuid;

use super::APP_PASSWORD;

/// Server connections that all clients of a test share. Few, so that clients really take turns on them.
pub(super) const SERVER_CONNECTIONS: usize = 6;

pub(super) struct Pooler {
    process: Child,
    directory: PathBuf,
    database: String,
}

impl Pooler {
    pub(super) fn start(program: &str, server: &Config, database: &str) -> Self {
        let directory = std::env::temp_dir().join(format!("tirada-{}", Uuid::now_v7().simple()));
        fs::create_dir(&directory).expect("a directory");
        // The socket is made after root's rights are given up.
        fs::set_permissions(&directory, fs::Permissions::from_mode(0o1777)).expect("permissions");
        let role = store::migrations::APP_ROLE;
        let users = directory.join("users.txt");
        fs::write(&users, format!("\"{role}\" \"{APP_PASSWORD}\"\n")).expect("users");
        let Some(Host::Tcp(host)) = server.get_hosts().first() else { panic!("the test server has no TCP address") };
        let port = server.get_ports().first().copied().unwrap_or(5432);
        let settings = format!(
            "[databases]\n{database} = host={host} port={port}\n[pgbouncer]\nlisten_addr =\n\
            unix_socket_dir = {directory}\nlisten_port = 5432\nauth_type = md5\nauth_file = {users}\n\
            pool_mode = transaction\ndefault_pool_size = {SERVER_CONNECTIONS}\nmax_client_conn = 1000\n\
            server_lifetime = 86400\nserver_idle_timeout = 86400\nquery_wait_timeout = 30\n",
            directory = directory.display(),
            users = users.display(),
        );
        let file = directory.join("pgbouncer.ini");
        fs::write(&file, settings).expect("settings");
        let mut command = Command::new(program);
        if fs::metadata("/proc/self").expect("this process").uid() == 0 {
            command.args(["-u", "nobody"]);
        }
        let log = fs::File::create(directory.join("log")).expect("a log");
        let process = command.arg(&file).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log).spawn();
        Self { process: process.expect("start PgBouncer"), directory, database: database.to_owned() }
    }

    pub(super) async fn wait_until_ready(&self) {
        let mut config = self.config();
        config.dbname(&self.database).user(store::migrations::APP_ROLE).password(APP_PASSWORD);
        for _ in 0..200 {
            if config.connect(NoTls).await.is_ok() {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("PgBouncer does not answer:\n{}", fs::read_to_string(self.directory.join("log")).unwrap_or_default());
    }

    /// Where clients connect.
    pub(super) fn config(&self) -> Config {
        let mut config = Config::new();
        config.host_path(&self.directory).port(5432);
        config
    }
}

impl Drop for Pooler {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.directory);
    }
}
