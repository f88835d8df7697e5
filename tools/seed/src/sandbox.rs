//! Stores of the local cloud that are paid at the pretended gateway.

use domain::payments::{CaptureMode, Gateway, LateMoney};
use domain::{Error, Result};
use edge::Stage;
use edge::sealing::{DEVELOPMENT_KEYS, SealingKeys, context};
use serde_json::json;
use store::payments::{Policy, save_account, save_policy};
use tokio_postgres::Client;
use uuid::Uuid;

/// Gives a store an account there: its key, and what signs the events. Sealed with the development keys.
///
/// # Errors
/// Busy or fault from the database.
pub async fn save(client: &Client, tenant_id: Uuid, key: &str, webhook_secret: &str) -> Result<()> {
    let credentials = json!({ "secret_key": key, "webhook_secrets": [webhook_secret] }).to_string();
    let keys = SealingKeys::from_json(DEVELOPMENT_KEYS, Stage::Local).map_err(Error::fault)?;
    let sealed = keys.seal(&context(tenant_id, Gateway::Sandbox), credentials.as_bytes())?;
    save_account(client, tenant_id, Gateway::Sandbox, &sealed).await
}

/// Lets a product's orders be paid there. Late money gets the same numbers if they are free.
///
/// # Errors
/// Not-found when there is no such product, or busy or fault from the database.
pub async fn sell(client: &Client, tenant_id: Uuid, product_id: Uuid) -> Result<()> {
    let policy = Policy {
        gateways: vec![Gateway::Sandbox],
        capture: CaptureMode::Automatic,
        late_money: LateMoney::Retake,
        keeps_disputed: false,
    };
    save_policy(client, tenant_id, product_id, &policy).await
}
