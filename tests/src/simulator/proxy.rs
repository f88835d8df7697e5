//! A TCP proxy in front of Postgres that does what networks and poolers do on bad days.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::Instant;

/// Where the proxy leads.
#[derive(Debug, Clone)]
pub enum Upstream {
    /// Host and port.
    Tcp(String, u16),
    /// A Unix socket.
    Unix(PathBuf),
}

/// What goes wrong. Changes count at once, for open connections too.
#[derive(Debug, Clone, Default)]
struct Faults {
    refuses: bool,
    stalls: bool,
    to_server: Duration,
    to_client: Duration,
    /// Statements whose answers are lost, each with how often still.
    losing: Vec<(String, u32)>,
}

/// A proxy on a port of its own, until it is dropped.
#[derive(Clone)]
pub struct Proxy(Arc<Inner>);

struct Inner {
    port: u16,
    faults: Mutex<Faults>,
    connections: Mutex<HashMap<u64, Connection>>,
    lost: Mutex<u64>,
    accepting: Mutex<Option<JoinHandle<()>>>,
}

struct Connection {
    cut: Arc<Notify>,
    used: Arc<Mutex<Instant>>,
}

impl Proxy {
    /// Starts a proxy.
    pub async fn start(upstream: Upstream) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let inner = Arc::new(Inner {
            port,
            faults: Mutex::default(),
            connections: Mutex::default(),
            lost: Mutex::default(),
            accepting: Mutex::default(),
        });
        let weak = Arc::downgrade(&inner);
        let accepting = tokio::spawn(async move {
            let mut number = 0;
            while let (Ok((client, _)), Some(inner)) = (listener.accept().await, weak.upgrade()) {
                number += 1;
                if !inner.faults().refuses {
                    tokio::spawn(connect(inner, number, client, upstream.clone()));
                }
            }
        });
        *inner.accepting.lock().unwrap() = Some(accepting);
        Self(inner)
    }

    /// Its port on 127.0.0.1.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.0.port
    }

    /// Open connections.
    #[must_use]
    pub fn connections(&self) -> usize {
        self.0.connections.lock().unwrap().len()
    }

    /// Answers that were lost on purpose so far.
    #[must_use]
    pub fn lost(&self) -> u64 {
        *self.0.lost.lock().unwrap()
    }

    /// Whether new connections are closed at once.
    pub fn refuse(&self, refuses: bool) {
        self.0.faults().refuses = refuses;
    }

    /// The database is gone: every connection is cut, and no new one is accepted until [`Self::heal`].
    pub fn down(&self) {
        self.refuse(true);
        self.cut();
    }

    /// Cuts every connection.
    pub fn cut(&self) {
        self.cut_idle(Duration::ZERO);
    }

    /// Cuts connections over which nothing has gone for so long.
    pub fn cut_idle(&self, idle: Duration) {
        for connection in self.0.connections.lock().unwrap().values() {
            if connection.used.lock().unwrap().elapsed() >= idle {
                connection.cut.notify_one();
            }
        }
    }

    /// Whether everything is held back, in both directions; connections stay open.
    pub fn stall(&self, stalls: bool) {
        self.0.faults().stalls = stalls;
    }

    /// Delays what goes to the server, and what comes back.
    pub fn delay(&self, to_server: Duration, to_client: Duration) {
        let mut faults = self.0.faults();
        (faults.to_server, faults.to_client) = (to_server, to_client);
    }

    /// Loses the answers of the next statements that contain a text, in whatever case: each is executed to its end,
    /// and then the connection is cut. `commit` is the end of a transaction; a statement of its own commits as well.
    pub fn lose_answers(&self, text: &str, times: u32) {
        self.0.faults().losing.push((text.to_lowercase(), times));
    }

    /// Ends all faults. What was cut stays cut.
    pub fn heal(&self) {
        *self.0.faults() = Faults::default();
    }
}

impl Inner {
    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }

    /// Whether the answer of what a client sends is to be lost.
    fn loses(&self, sent: &[u8]) -> bool {
        let mut faults = self.faults();
        if faults.losing.is_empty() {
            return false;
        }
        let sent = String::from_utf8_lossy(sent).to_lowercase();
        let found = faults.losing.iter_mut().find(|(text, left)| *left > 0 && sent.contains(text.as_str()));
        let found = found.map(|(_, left)| *left -= 1).is_some();
        *self.lost.lock().unwrap() += u64::from(found);
        found
    }

    async fn pass(&self, to_server: bool) {
        loop {
            let (stalls, wait) = {
                let faults = self.faults();
                (faults.stalls, if to_server { faults.to_server } else { faults.to_client })
            };
            if !stalls {
                return tokio::time::sleep(wait).await;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        if let Some(task) = self.accepting.lock().unwrap().take() {
            task.abort();
        }
    }
}

async fn connect(inner: Arc<Inner>, number: u64, client: TcpStream, upstream: Upstream) {
    let _ = client.set_nodelay(true);
    match upstream {
        Upstream::Tcp(host, port) => {
            if let Ok(server) = TcpStream::connect((host, port)).await {
                let _ = server.set_nodelay(true);
                let (read, write) = server.into_split();
                carry(&inner, number, client, read, write).await;
            }
        }
        Upstream::Unix(path) => {
            if let Ok(server) = UnixStream::connect(path).await {
                let (read, write) = server.into_split();
                carry(&inner, number, client, read, write).await;
            }
        }
    }
}

async fn carry(
    inner: &Arc<Inner>,
    number: u64,
    client: TcpStream,
    mut from_server: impl AsyncRead + Unpin,
    mut to_server: impl AsyncWrite + Unpin,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let (cut, used, losing) = (Arc::new(Notify::new()), Arc::new(Mutex::new(Instant::now())), Mutex::new(false));
    let connection = Connection { cut: Arc::clone(&cut), used: Arc::clone(&used) };
    inner.connections.lock().unwrap().insert(number, connection);
    let up = async {
        let mut bytes = vec![0; 64 * 1_024];
        while let Ok(count @ 1..) = from_client.read(&mut bytes).await {
            *used.lock().unwrap() = Instant::now();
            inner.pass(true).await;
            if inner.loses(&bytes[..count]) {
                *losing.lock().unwrap() = true;
            }
            if to_server.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    let down = async {
        let mut bytes = vec![0; 64 * 1_024];
        while let Ok(count @ 1..) = from_server.read(&mut bytes).await {
            *used.lock().unwrap() = Instant::now();
            if *losing.lock().unwrap() {
                // ReadyForQuery ends every answer: until then the statement may still be at work.
                if bytes[..count].windows(5).any(|window| window == b"Z\0\0\0\x05") {
                    return;
                }
                continue;
            }
            inner.pass(false).await;
            if to_client.write_all(&bytes[..count]).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = up => {}
        () = down => {}
        () = cut.notified() => {}
    }
    inner.connections.lock().unwrap().remove(&number);
}

#[cfg(test)]
mod tests {
    use tokio_postgres::{Client, Config, NoTls};

    use super::*;
    use crate::TestDatabase;

    async fn through(database: &TestDatabase) -> (Proxy, Config) {
        let proxy = Proxy::start(database.upstream()).await;
        let mut config = database.app_config();
        config = {
            let mut through = Config::new();
            through
                .host("127.0.0.1")
                .port(proxy.port())
                .user(config.get_user().unwrap())
                .dbname(config.get_dbname().unwrap());
            through.password(config.get_password().unwrap());
            through
        };
        (proxy, config)
    }

    async fn client(config: &Config) -> Result<Client, tokio_postgres::Error> {
        let (client, connection) = config.connect(NoTls).await?;
        tokio::spawn(connection);
        Ok(client)
    }

    #[tokio::test]
    async fn connections_are_refused_and_cut() {
        let database = TestDatabase::new().await;
        let (proxy, config) = through(&database).await;
        let first = client(&config).await.unwrap();
        first.simple_query("select 1").await.unwrap();
        assert_eq!(proxy.connections(), 1);
        proxy.cut_idle(Duration::from_secs(60));
        first.simple_query("select 1").await.unwrap();
        proxy.down();
        assert!(first.simple_query("select 1").await.is_err());
        assert!(client(&config).await.is_err());
        proxy.heal();
        client(&config).await.unwrap().simple_query("select 1").await.unwrap();
        database.finish().await;
    }

    #[tokio::test]
    async fn a_lost_answer_is_that_of_a_statement_that_was_executed() {
        let database = TestDatabase::new().await;
        let (proxy, config) = through(&database).await;
        let mut client = client(&config).await.unwrap();
        proxy.lose_answers("COMMIT", 1);
        let tx = client.transaction().await.unwrap();
        tx.execute("update platform set intake_reason = 'seen'", &[]).await.unwrap();
        assert!(tx.commit().await.is_err(), "nobody learns of the commit");
        assert_eq!(proxy.lost(), 1);
        assert_eq!(
            crate::look::count(&database, "select count(*) from platform where intake_reason = 'seen'").await,
            1
        );
        database.finish().await;
    }
}
