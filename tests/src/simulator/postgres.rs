//! A Postgres server of a test's own, to be stopped, killed and started again.
//!
//! `TIRADA_TEST_POSTGRES_BIN` names the folder of its programs, `TIRADA_TEST_POSTGRES_AS` the words that a command is
//! prefixed with so that it does not run as root, which Postgres refuses. `python3 -m local simulate` sets both.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Config, NoTls};
use uuid::Uuid;

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Open transactions are rolled back, connections cut.
    Fast,
    /// As if the power failed; the next start recovers.
    Immediate,
}

/// A server on a port of its own, removed when it is dropped.
pub struct OwnPostgres {
    folder: PathBuf,
    port: u16,
}

impl OwnPostgres {
    /// Makes a cluster and starts it.
    pub async fn start() -> Self {
        let folder = std::env::temp_dir().join(format!("tirada-postgres-{}", Uuid::now_v7().simple()));
        fs::create_dir(&folder).expect("a folder");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o1777)).expect("permissions");
        let port = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("a port").port();
        let server = Self { folder, port };
        let data = server.data();
        let arguments = ["-D", &data, "-U", "postgres", "--auth=trust", "--encoding=UTF8", "--no-sync"];
        let locale = ["--locale-provider=builtin", "--builtin-locale=C.UTF-8", "--locale=C"];
        run(command("initdb", &server.folder).args(arguments).args(locale));
        server.go().await;
        server
    }

    /// Where it is, as its superuser.
    #[must_use]
    pub fn config(&self) -> Config {
        let mut config = Config::new();
        config.host("127.0.0.1").port(self.port).user("postgres").dbname("postgres");
        config
    }

    /// From now on everybody but the superuser proves with a password who they are; who is connected stays so.
    pub async fn ask_for_passwords(&self) {
        let (client, connection) = self.config().connect(NoTls).await.expect("it answers");
        tokio::spawn(connection);
        let file: String =
            client.query_one("select current_setting('hba_file')", &[]).await.expect("the file of its rules").get(0);
        let rules = "('host all postgres 127.0.0.1/32 trust'), ('host all all 127.0.0.1/32 scram-sha-256')";
        client.batch_execute(&format!("copy (values {rules}) to '{file}'")).await.expect("the rules are written");
        client.batch_execute("select pg_reload_conf()").await.expect("they are read");
        let mut nobody = self.config();
        nobody.user("nobody").password("a-guess");
        for _ in 0..500 {
            let refused = nobody.connect(NoTls).await.err().and_then(|error| error.code().cloned());
            if refused == Some(SqlState::INVALID_PASSWORD) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the server asks for no password");
    }

    /// Stops it and waits until it has ended.
    pub fn stop(&self, how: Stop) {
        let mode = if how == Stop::Fast { "fast" } else { "immediate" };
        run(command("pg_ctl", &self.folder).args(["-D", &self.data(), "-m", mode, "-w", "stop"]));
    }

    /// Starts it again and waits until it answers.
    pub async fn go(&self) {
        let options = format!(
            "-c port={} -c listen_addresses=127.0.0.1 -c unix_socket_directories= -c max_connections=200 -c fsync=off \
            -c timezone=UTC -c shared_buffers=128MB",
            self.port
        );
        let log = self.folder.join("log").display().to_string();
        run(command("pg_ctl", &self.folder).args(["-D", &self.data(), "-l", &log, "-o", &options, "-w", "start"]));
        for _ in 0..500 {
            if let Ok((client, connection)) = self.config().connect(NoTls).await {
                tokio::spawn(connection);
                if client.simple_query("select 1").await.is_ok() {
                    return;
                }
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("the server does not answer: {}", fs::read_to_string(log).unwrap_or_default());
    }

    fn data(&self) -> String {
        self.folder.join("data").display().to_string()
    }
}

impl Drop for OwnPostgres {
    fn drop(&mut self) {
        let mut stop = command("pg_ctl", &self.folder);
        let _ = stop.args(["-D", &self.data(), "-m", "immediate", "-w", "stop"]).status();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program of Postgres, by a user that may run it.
fn command(program: &str, folder: &Path) -> Command {
    let programs = std::env::var("TIRADA_TEST_POSTGRES_BIN").expect("TIRADA_TEST_POSTGRES_BIN is not set");
    let user = std::env::var("TIRADA_TEST_POSTGRES_AS").unwrap_or_default();
    let mut words = user.split_whitespace().map(str::to_owned).chain([format!("{programs}/{program}")]);
    let mut command = Command::new(words.next().expect("a program"));
    command.args(words).current_dir(folder).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn run(command: &mut Command) {
    let status = command.status().unwrap_or_else(|error| panic!("{command:?}: {error}"));
    assert!(status.success(), "{command:?} ended with {status}");
}
