//! The one place where gateways and the database meet: asks, outside any transaction, and brings the answer home.
//!
//! Borrows a connection only to read or write, never while a gateway is asked. An answer that does not come changes
//! nothing: the attempt's next look is already written down.

mod accounts;
mod refunds;
mod silence;
mod steps;

use std::sync::Arc;

use domain::payments::Gateway;
use domain::{Error, Result};
use edge::sealing::SealingKeys;
use edge::{Config, ConfigError, Environment, Stage};
use gateways::{Credentials, Endpoints, GatewayClient, Gateways};
use store::Database;
use uuid::Uuid;

use accounts::Accounts;
use silence::Silences;
pub use steps::Asked;

/// Asks the gateways of all stores.
#[derive(Clone)]
pub struct Cashier {
    database: Database,
    gateways: Gateways,
    accounts: Arc<Accounts>,
    silences: Arc<Silences>,
}

impl Cashier {
    /// A cashier that has not asked anybody yet.
    #[must_use]
    pub fn new(database: Database, gateways: Gateways, keys: SealingKeys) -> Self {
        Self { database, gateways, accounts: Arc::new(Accounts::new(keys)), silences: Arc::default() }
    }

    /// A cashier as configured: TIRADA_SEALING_KEYS, and where gateways are if not at their public addresses. The
    /// sandbox gives numbers away, so that production refuses it.
    ///
    /// # Errors
    /// A fault when something is missing or unusable.
    pub fn from_config(config: &Config, environment: &Environment, database: Database) -> Result<Self> {
        Self::from_environment(config.stage, environment, database)
    }

    /// As [`Cashier::from_config`], for what is no function.
    ///
    /// # Errors
    /// A fault when something is missing or unusable.
    pub fn from_environment(stage: Stage, environment: &Environment, database: Database) -> Result<Self> {
        let keys = environment.required("TIRADA_SEALING_KEYS").map_err(Error::fault)?;
        let keys = SealingKeys::from_json(&keys, stage).map_err(Error::fault)?;
        let mut endpoints = Endpoints::default();
        if let Some(url) = environment.optional("TIRADA_STRIPE_URL") {
            endpoints.stripe = url;
        }
        if let Some(url) = environment.optional("TIRADA_MERCADO_PAGO_URL") {
            endpoints.mercado_pago = url;
        }
        endpoints.sandbox = environment.optional("TIRADA_SANDBOX_URL");
        if endpoints.sandbox.is_some() && stage == Stage::Prod {
            let error = ConfigError::LocalOnly { what: "the sandbox gateway", stage: stage.word() };
            return Err(Error::fault(error));
        }
        Ok(Self::new(database, Gateways::new(endpoints)?, keys))
    }

    /// A store's credentials at a gateway.
    ///
    /// # Errors
    /// Not-found when it has none, a fault when they cannot be opened, or busy or fault from the database.
    pub async fn credentials(&self, tenant_id: Uuid, gateway: Gateway) -> Result<Arc<Credentials>> {
        self.accounts.credentials(&self.database, tenant_id, gateway).await
    }

    /// A store's credentials read anew, when the remembered ones do not work; none when that was a moment ago.
    ///
    /// # Errors
    /// As [`Cashier::credentials`].
    pub async fn credentials_again(&self, tenant_id: Uuid, gateway: Gateway) -> Result<Option<Arc<Credentials>>> {
        self.accounts.read_again(&self.database, tenant_id, gateway).await
    }

    /// The gateway of an account; none when the store has no credentials that work. Then nobody can be asked, and what
    /// waits for an answer waits for its next look, as if the gateway were silent.
    async fn client(&self, tenant_id: Uuid, gateway: Gateway) -> Result<Option<GatewayClient>> {
        let opened = match self.credentials(tenant_id, gateway).await {
            Ok(credentials) => self.gateways.client(&credentials),
            Err(error) => Err(error),
        };
        match opened {
            Ok(client) => Ok(Some(client)),
            Err(Error::Busy(busy)) => Err(Error::Busy(busy)),
            Err(error) => {
                tracing::error!(store.id = %tenant_id, gateway = gateway.word(), error.message = error.chain(), "no credentials");
                Ok(None)
            }
        }
    }
}
