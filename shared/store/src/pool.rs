//! Connections: few, checked, and never handed on with somebody else's transaction.

use std::sync::Arc;
use std::time::Duration;

use deadpool_postgres::{Connect, Hook, Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime};
use domain::limits::BORROW_TIMEOUT;
use domain::{Error, Result};
use futures::future::BoxFuture;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use secrecy::{ExposeSecret, SecretString};
use tokio::task::JoinHandle;
use tokio_postgres::config::{SslMode, TargetSessionAttrs};
use tokio_postgres::{Config, NoTls};
use tokio_postgres_rustls::MakeRustlsConnect;

use crate::errors::{from_pool, from_postgres};

/// A borrowed connection.
pub type Client = Object;

/// Makes the password of one new connection, for tokens that live minutes.
pub type PasswordSource = Arc<dyn Fn() -> Result<SecretString> + Send + Sync>;

/// How connections are encrypted.
#[derive(Clone)]
pub enum Tls {
    /// Plain TCP: loopback only.
    Off,
    /// TLS that trusts the certificates of the operating system and these, in DER.
    On(Vec<Vec<u8>>),
}

/// Where the database is and how many connections this process may hold.
#[derive(Clone)]
pub struct Settings {
    /// Host, port, database, user; the password too unless `password` is set.
    pub config: Config,
    /// Encryption.
    pub tls: Tls,
    /// Password per connection, if it changes.
    pub password: Option<PasswordSource>,
    /// Longest wait for a connection, creation included.
    pub borrow_timeout: Duration,
    /// Connections this process may hold. One in a Lambda environment, which serves one request at a time.
    pub connections_max: usize,
}

impl Settings {
    /// Settings of a database URL, one connection. `sslmode=require` in the URL turns TLS on.
    ///
    /// # Errors
    /// A fault when the text is no database URL.
    pub fn from_url(url: &str) -> Result<Self> {
        let config: Config = url.parse().map_err(|_| Error::fault("the database URL cannot be read"))?;
        let tls = if config.get_ssl_mode() == SslMode::Require { Tls::On(Vec::new()) } else { Tls::Off };
        Ok(Self { config, tls, password: None, borrow_timeout: BORROW_TIMEOUT, connections_max: 1 })
    }
}

/// A bounded pool of connections.
#[derive(Clone)]
pub struct Database {
    pool: Pool,
}

impl Database {
    /// Makes the pool; connects only when first asked.
    ///
    /// # Errors
    /// A fault when TLS cannot be set up.
    pub fn new(settings: Settings) -> Result<Self> {
        let Settings { mut config, tls, password, borrow_timeout, connections_max } = settings;
        config
            .connect_timeout(Duration::from_secs(3))
            .tcp_user_timeout(Duration::from_secs(10))
            .keepalives_idle(Duration::from_secs(30))
            // After a failover an old address may answer for a while as a replica.
            .target_session_attrs(TargetSessionAttrs::ReadWrite);
        let connector = Connector { tls: tls_connector(tls)?, password };
        // ROLLBACK, because a future dropped in the wrong moment leaves a transaction open and the next borrower
        // would write into it. It is also the liveness check after a freeze.
        let recycling_method = RecyclingMethod::Custom("ROLLBACK".into());
        let manager = Manager::from_connect(config, connector, ManagerConfig { recycling_method });
        let pool = Pool::builder(manager)
            .max_size(connections_max)
            .runtime(Runtime::Tokio1)
            .wait_timeout(Some(borrow_timeout))
            .create_timeout(Some(borrow_timeout))
            .recycle_timeout(Some(Duration::from_secs(1)))
            .pre_recycle(Hook::sync_fn(|_, _| {
                fail::fail_point!("pool.recycle");
                Ok(())
            }))
            .build()
            .map_err(|error| Error::Fault(Box::new(error)))?;
        Ok(Self { pool })
    }

    /// Borrows a connection.
    ///
    /// # Errors
    /// Busy when none is free in time or the database does not answer.
    pub async fn client(&self) -> Result<Client> {
        self.pool.get().await.map_err(from_pool)
    }
}

/// Opens one connection outside any pool, for work that needs a session of its own.
///
/// # Errors
/// Busy when the database does not answer, a fault when TLS cannot be set up.
pub async fn connect(settings: Settings) -> Result<tokio_postgres::Client> {
    let Settings { mut config, tls, password, borrow_timeout, .. } = settings;
    config.connect_timeout(borrow_timeout);
    let connector = Connector { tls: tls_connector(tls)?, password };
    let (client, _) = connector.connect(&config).await.map_err(from_postgres)?;
    Ok(client)
}

impl Tls {
    /// TLS that also trusts the certificates in a PEM text, as RDS needs: its roots are in no operating system.
    ///
    /// # Errors
    /// A fault when the text is no PEM.
    pub fn with_roots(pem: &str) -> Result<Self> {
        let roots: std::result::Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
        let roots = roots.map_err(|error| Error::Fault(Box::new(error)))?;
        Ok(Self::On(roots.into_iter().map(|root| root.to_vec()).collect()))
    }
}

struct Connector {
    tls: Option<MakeRustlsConnect>,
    password: Option<PasswordSource>,
}

type Connected = std::result::Result<(tokio_postgres::Client, JoinHandle<()>), tokio_postgres::Error>;

impl Connect for Connector {
    fn connect(&self, config: &Config) -> BoxFuture<'_, Connected> {
        let mut config = config.clone();
        Box::pin(async move {
            if let Some(source) = &self.password {
                // Without a token the server's refusal names the problem; there is no better error to return here.
                match source() {
                    Ok(password) => {
                        config.password(password.expose_secret());
                    }
                    Err(error) => tracing::error!(error = error.chain(), "no database token"),
                }
            }
            match &self.tls {
                Some(tls) => {
                    config.ssl_mode(SslMode::Require);
                    let (client, connection) = config.connect(tls.clone()).await?;
                    Ok((client, tokio::spawn(drive(connection))))
                }
                None => {
                    let (client, connection) = config.connect(NoTls).await?;
                    Ok((client, tokio::spawn(drive(connection))))
                }
            }
        })
    }
}

async fn drive<S, T>(connection: tokio_postgres::Connection<S, T>)
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
    T: tokio::io::AsyncRead + tokio::io::AsyncWrite + Unpin,
{
    if let Err(error) = connection.await {
        tracing::warn!(%error, "database connection ended");
    }
}

fn tls_connector(tls: Tls) -> Result<Option<MakeRustlsConnect>> {
    let Tls::On(extra) = tls else { return Ok(None) };
    let mut roots = rustls::RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    roots.add_parsable_certificates(extra.into_iter().map(Into::into));
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = rustls::ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| Error::Fault(Box::new(error)))?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Some(MakeRustlsConnect::new(config)))
}
