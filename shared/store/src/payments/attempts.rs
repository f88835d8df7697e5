//! Attempts as stored.

use std::time::Duration;

use domain::payments::{AttemptState, CaptureMode, Gateway, Instructions, Method, Use};
use domain::{Error, Result};
use time::OffsetDateTime;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{TEXT, UUID};

/// One try to pay an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// Its id, which is also the reference that the gateway keeps.
    pub id: Uuid,
    /// Its tenant.
    pub tenant_id: Uuid,
    /// The order.
    pub order_id: Uuid,
    /// 1 for the order's first.
    pub number: i16,
    /// With whom.
    pub gateway: Gateway,
    /// How.
    pub method: Method,
    /// When money is taken.
    pub capture: CaptureMode,
    /// Minor units.
    pub amount_minor: i64,
    /// ISO 4217 code.
    pub currency: String,
    /// Where the gateway's page sends the buyer afterwards.
    pub return_url: Option<String>,
    /// End of the order's hold when it was made, or of the time that the gateway lets it wait.
    pub expires_at: OffsetDateTime,
    /// When it was recorded.
    pub created_at: OffsetDateTime,
    /// Since then, by the database's clock.
    pub age: Duration,
    /// Where it is.
    pub state: AttemptState,
    /// What its money counts as.
    pub used: Option<Use>,
    /// Minor units taken.
    pub captured_minor: i64,
    /// Minor units given back, as the gateway says.
    pub refunded_minor: i64,
    /// The gateway's id.
    pub payment_id: Option<String>,
    /// What the buyer has to do.
    pub instructions: Option<Instructions>,
    /// The gateway's word for why a try was refused.
    pub decline_code: Option<String>,
    /// The buyer wants to pay another way.
    pub is_given_up: bool,
    /// Its turn to be looked at has come and nobody has looked since.
    pub is_look_owed: bool,
    /// Looks so far.
    pub looks: i16,
    /// When its gateway was last asked how it is and answered.
    pub looked_at: Option<OffsetDateTime>,
}

impl Attempt {
    /// When it was read, by the database's clock.
    #[must_use]
    pub fn read_at(&self) -> OffsetDateTime {
        self.created_at + self.age
    }
}

pub(super) const COLUMNS: &str =
    "id, tenant_id, order_id, number, gateway, method, capture, amount_minor, currency, return_url,
    expires_at, created_at, extract(epoch from now() - created_at)::float8 as age, state, used, captured_minor,
    refunded_minor, payment_id, instructions, decline_code, given_up_at is not null as given_up,
    look_owed, looks, looked_at";

pub(super) fn attempt_from(row: &Row) -> Result<Attempt> {
    let used: Option<&str> = column(row, "used")?;
    let instructions: Option<&str> = column(row, "instructions")?;
    Ok(Attempt {
        id: column(row, "id")?,
        tenant_id: column(row, "tenant_id")?,
        order_id: column(row, "order_id")?,
        number: column(row, "number")?,
        gateway: one_word(row, "gateway", Gateway::from_word)?,
        method: one_word(row, "method", Method::from_word)?,
        capture: one_word(row, "capture", CaptureMode::from_word)?,
        amount_minor: column(row, "amount_minor")?,
        currency: column(row, "currency")?,
        return_url: column(row, "return_url")?,
        expires_at: column(row, "expires_at")?,
        created_at: column(row, "created_at")?,
        age: Duration::try_from_secs_f64(column(row, "age")?).unwrap_or_default(),
        state: one_word(row, "state", AttemptState::from_word)?,
        used: used
            .map(|word| Use::from_word(word).ok_or_else(|| Error::fault(format!("unknown use {word:?}"))))
            .transpose()?,
        captured_minor: column(row, "captured_minor")?,
        refunded_minor: column(row, "refunded_minor")?,
        payment_id: column(row, "payment_id")?,
        instructions: instructions
            .map(|text| serde_json::from_str(text).map_err(|error| Error::Fault(Box::new(error))))
            .transpose()?,
        decline_code: column(row, "decline_code")?,
        is_given_up: column(row, "given_up")?,
        is_look_owed: column(row, "look_owed")?,
        looks: column(row, "looks")?,
        looked_at: column(row, "looked_at")?,
    })
}

/// An attempt of a store.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_attempt(client: &Client, tenant_id: Uuid, id: Uuid) -> Result<Option<Attempt>> {
    let sql = format!("select {COLUMNS} from payment_attempts where id = $1 and tenant_id = $2");
    let row = client.query_typed_opt(&sql, &[(&id, UUID), (&tenant_id, UUID)]).await.map_err(from_postgres)?;
    row.as_ref().map(attempt_from).transpose()
}

/// The attempt that a store's gateway knows under this id.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_attempt_of_payment(
    client: &Client,
    tenant_id: Uuid,
    gateway: Gateway,
    payment_id: &str,
) -> Result<Option<Attempt>> {
    let sql =
        format!("select {COLUMNS} from payment_attempts where tenant_id = $1 and gateway = $2 and payment_id = $3");
    let row = client
        .query_typed_opt(&sql, &[(&tenant_id, UUID), (&gateway.word(), TEXT), (&payment_id, TEXT)])
        .await
        .map_err(from_postgres)?;
    row.as_ref().map(attempt_from).transpose()
}
