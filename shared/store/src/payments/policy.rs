//! How a product's orders may be paid, and what becomes of money that does not come as it should.

use domain::payments::{CaptureMode, Gateway, LateMoney};
use domain::{Error, Reason, Result};
use serde_json::json;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::acts::{OperatorAct, Subject, log_of_operator_with};
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{BOOL, TEXT, TEXTS, UUID};

/// A product's rules for money.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Policy {
    /// With whom its orders may be paid; the first that serves the buyer's method is taken.
    pub gateways: Vec<Gateway>,
    /// When money is taken.
    pub capture: CaptureMode,
    /// What to do with money that arrives when the numbers have gone back to stock.
    pub late_money: LateMoney,
    /// Whether a buyer keeps the numbers whose money a lost dispute took away.
    pub keeps_disputed: bool,
}

pub(super) const COLUMNS: &str = "p.gateways, p.capture, p.late_money, p.keeps_disputed";

pub(super) fn policy_from(row: &Row) -> Result<Policy> {
    let words: Vec<&str> = column(row, "gateways")?;
    let gateway = |word: &&str| {
        Gateway::from_word(word).ok_or_else(|| Error::fault(format!("gateways has the unknown value {word:?}")))
    };
    Ok(Policy {
        gateways: words.iter().map(gateway).collect::<Result<_>>()?,
        capture: one_word(row, "capture", CaptureMode::from_word)?,
        late_money: one_word(row, "late_money", LateMoney::from_word)?,
        keeps_disputed: column(row, "keeps_disputed")?,
    })
}

/// A product's policy.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_policy(client: &Client, tenant_id: Uuid, product_id: Uuid) -> Result<Option<Policy>> {
    let sql = format!("select {COLUMNS} from products p where p.id = $1 and p.tenant_id = $2");
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&product_id, UUID), (&tenant_id, UUID)];
    let row = client.query_typed_opt(&sql, &params).await.map_err(from_postgres)?;
    row.as_ref().map(policy_from).transpose()
}

/// Saves a product's policy. Whether its gateways can serve it is for the caller to check. Payments that have begun go
/// on with the gateway and the capture that they began with.
///
/// # Errors
/// Not-found when there is no such product, or busy or fault from the database.
pub async fn save_policy(client: &Client, tenant_id: Uuid, product_id: Uuid, policy: &Policy) -> Result<()> {
    let gateways: Vec<&str> = policy.gateways.iter().map(|gateway| gateway.word()).collect();
    let sql = "update products set gateways = $2, capture = $3, late_money = $4, keeps_disputed = $5,
            version = version + 1
        where id = $1 and tenant_id = $6";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&product_id, UUID),
        (&gateways, TEXTS),
        (&policy.capture.word(), TEXT),
        (&policy.late_money.word(), TEXT),
        (&policy.keeps_disputed, BOOL),
        (&tenant_id, UUID),
    ];
    match client.execute_typed(sql, &params).await.map_err(from_postgres)? {
        0 => Err(Reason::NotFound.into()),
        _ => Ok(()),
    }
}

/// The same as an act of the platform's operator.
///
/// # Errors
/// As [`save_policy`].
pub async fn save_policy_as_operator(
    client: &mut Client,
    tenant_id: Uuid,
    product_id: Uuid,
    policy: &Policy,
) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    save_policy(tx.client(), tenant_id, product_id, policy).await?;
    let detail = json!({
        "gateways": policy.gateways, "capture": policy.capture, "late_money": policy.late_money,
        "keeps_disputed": policy.keeps_disputed,
    });
    let product = (Subject::Product, product_id);
    log_of_operator_with(&tx, tenant_id, OperatorAct::SetPayments, product, &detail, None).await?;
    tx.commit().await.map_err(from_postgres)
}
