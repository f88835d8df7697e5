//! What staff and the platform's operator do: the audit log, and the idempotency keys of staff's requests, both in the
//! transaction of the effect.

use domain::limits::PAGE_MAX;
use domain::roles::Action;
use domain::{Error, Result};
use serde_json::Value;
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::idempotency::{Scope, claim};
use crate::rows::{column, one_word};
use crate::types::{INT8, TEXT, UUID};

/// Status kept under the key of an act; the handler knows the true one.
const STATUS: i16 = 204;

/// What an act is done to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Subject {
    /// The store itself.
    Store,
    /// A product.
    Product,
    /// An order.
    Order,
    /// A member of staff.
    Staff,
    /// A session of staff.
    Session,
    /// An export.
    Export,
    /// An upload.
    Upload,
    /// A buyer.
    Buyer,
}

impl Subject {
    const ALL: [Self; 8] =
        [Self::Store, Self::Product, Self::Order, Self::Staff, Self::Session, Self::Export, Self::Upload, Self::Buyer];

    /// The word used in the database and in JSON.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Store => "store",
            Self::Product => "product",
            Self::Order => "order",
            Self::Staff => "staff",
            Self::Session => "session",
            Self::Export => "export",
            Self::Upload => "upload",
            Self::Buyer => "buyer",
        }
    }

    fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|subject| subject.word() == word)
    }
}

/// The idempotency key of a request, and what tells it from others.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Keyed {
    /// The key.
    pub key: String,
    /// SHA-256 of what is asked for.
    pub fingerprint: [u8; 32],
}

/// An act about to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewAct {
    /// The store.
    pub tenant_id: Uuid,
    /// Who; none for the platform's operator.
    pub staff_id: Option<Uuid>,
    /// What.
    pub action: Action,
    /// To what.
    pub subject: Subject,
    /// To which.
    pub subject_id: Uuid,
    /// What of it, as JSON. Nothing personal.
    pub detail: Option<String>,
    /// Why.
    pub reason: Option<String>,
    /// Under which key, if the request has one.
    pub keyed: Option<Keyed>,
}

/// Claims the act's key, if it has one. False when the same was done under it before.
pub(crate) async fn claim_key(tx: &Transaction<'_>, act: &NewAct) -> Result<bool> {
    let Some(Keyed { key, fingerprint }) = &act.keyed else { return Ok(true) };
    let subject_id = act.staff_id.ok_or_else(|| Error::fault("a key that belongs to nobody"))?;
    let scope = Scope { tenant_id: act.tenant_id, subject_id, route: act.action.word(), key };
    claim(tx, scope, fingerprint, STATUS).await
}

/// What only the platform's operator does, who has no token. The word is none of an [`Action`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OperatorAct {
    /// Open a store.
    OpenStore,
    /// Say which countries a store serves.
    SetCountries,
    /// Save a store's credentials at a gateway.
    SaveCredentials,
    /// Say how a product may be paid.
    SetPayments,
    /// Try a failed refund again.
    RetryRefund,
    /// Rebuild what is derived of a product.
    RebuildProduct,
    /// Close a finding about a product.
    CloseFinding,
    /// Say where a buyer's notices go.
    SetBuyerEmail,
    /// End a buyer's sessions.
    LogOutBuyer,
    /// Forget a buyer.
    EraseBuyer,
    /// Forget somebody who is not staff any more.
    EraseStaff,
}

impl OperatorAct {
    const fn word(self) -> &'static str {
        match self {
            Self::OpenStore => "open_store",
            Self::SetCountries => "set_countries",
            Self::SaveCredentials => "save_credentials",
            Self::SetPayments => "set_payments",
            Self::RetryRefund => "retry_refund",
            Self::RebuildProduct => "rebuild_product",
            Self::CloseFinding => "close_finding",
            Self::SetBuyerEmail => "set_buyer_email",
            Self::LogOutBuyer => "log_out_buyer",
            Self::EraseBuyer => "erase_buyer",
            Self::EraseStaff => "erase_staff",
        }
    }
}

/// A line of the audit log.
struct Entry<'a> {
    tenant_id: Uuid,
    staff_id: Option<Uuid>,
    action: &'static str,
    subject: Subject,
    subject_id: Uuid,
    detail: Option<&'a str>,
    reason: Option<&'a str>,
}

/// Writes the act into the audit log.
pub(crate) async fn log(tx: &Transaction<'_>, act: &NewAct) -> Result<()> {
    let entry = Entry {
        tenant_id: act.tenant_id,
        staff_id: act.staff_id,
        action: act.action.word(),
        subject: act.subject,
        subject_id: act.subject_id,
        detail: act.detail.as_deref(),
        reason: act.reason.as_deref(),
    };
    write(tx, &entry).await
}

/// Writes into the audit log what the operator did, to whom or what, and nothing else.
pub(crate) async fn log_of_operator(
    tx: &Transaction<'_>,
    tenant_id: Uuid,
    act: OperatorAct,
    subject: Subject,
    subject_id: Uuid,
) -> Result<()> {
    let action = act.word();
    let entry = Entry { tenant_id, staff_id: None, action, subject, subject_id, detail: None, reason: None };
    write(tx, &entry).await
}

/// Writes into the audit log that a member's one-time password was given wrong too often; by whom, nobody knows.
pub(crate) async fn log_wrong_passwords(tx: &Transaction<'_>, tenant_id: Uuid, member: Uuid) -> Result<()> {
    let entry = Entry {
        tenant_id,
        staff_id: None,
        action: "wrong_passwords",
        subject: Subject::Staff,
        subject_id: member,
        detail: None,
        reason: None,
    };
    write(tx, &entry).await
}

/// The same with what of it, and why if the command wants a reason.
pub(crate) async fn log_of_operator_with(
    tx: &Transaction<'_>,
    tenant_id: Uuid,
    act: OperatorAct,
    (subject, subject_id): (Subject, Uuid),
    detail: &Value,
    reason: Option<&str>,
) -> Result<()> {
    let (action, detail) = (act.word(), detail.to_string());
    let detail = Some(detail.as_str());
    write(tx, &Entry { tenant_id, staff_id: None, action, subject, subject_id, detail, reason }).await
}

async fn write(tx: &Transaction<'_>, entry: &Entry<'_>) -> Result<()> {
    let sql = "insert into audit_log (id, tenant_id, staff_id, action, subject, subject_id, detail, reason)
        values ($1, $2, $3, $4, $5, $6, $7, $8)";
    let params: [(&(dyn ToSql + Sync), _); 8] = [
        (&Uuid::now_v7(), UUID),
        (&entry.tenant_id, UUID),
        (&entry.staff_id, UUID),
        (&entry.action, TEXT),
        (&entry.subject.word(), TEXT),
        (&entry.subject_id, UUID),
        (&entry.detail, TEXT),
        (&entry.reason, TEXT),
    ];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Writes an act into the audit log that changes nothing else: something was shown.
///
/// # Errors
/// Busy or fault from the database.
pub async fn note(client: &mut Client, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    log(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)
}

/// Claims the act's key and writes it into the audit log. False when the same was done under the key before: then
/// nothing is to be done.
pub(crate) async fn record(tx: &Transaction<'_>, act: &NewAct) -> Result<bool> {
    let is_new = claim_key(tx, act).await?;
    if is_new {
        log(tx, act).await?;
    }
    Ok(is_new)
}

/// An act that was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Act {
    /// Its id.
    pub id: Uuid,
    /// When.
    pub at: OffsetDateTime,
    /// Who; none for the platform's operator.
    pub staff_id: Option<Uuid>,
    /// The id of the API's operation. Text, because older acts may be gone from the API.
    pub action: String,
    /// To what.
    pub subject: Subject,
    /// To which.
    pub subject_id: Uuid,
    /// What of it, as JSON.
    pub detail: Option<String>,
    /// Why.
    pub reason: Option<String>,
}

/// Acts on a store, newest first, after one of them.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list(client: &Client, tenant_id: Uuid, after: Option<Uuid>, limit: usize) -> Result<Vec<Act>> {
    let sql = "select id, at, staff_id, action, subject, subject_id, detail, reason from audit_log
        where tenant_id = $1 and ($2::uuid is null or id < $2) order by id desc limit $3";
    let limit = i64::try_from(limit).unwrap_or(PAGE_MAX);
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&after, UUID), (&limit, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(act_from).collect()
}

fn act_from(row: &Row) -> Result<Act> {
    Ok(Act {
        id: column(row, "id")?,
        at: column(row, "at")?,
        staff_id: column(row, "staff_id")?,
        action: column(row, "action")?,
        subject: one_word(row, "subject", Subject::from_word)?,
        subject_id: column(row, "subject_id")?,
        detail: column(row, "detail")?,
        reason: column(row, "reason")?,
    })
}
