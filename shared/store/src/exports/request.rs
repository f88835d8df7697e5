//! Asking for an export, and following it.

use domain::exports::{Failure, Format, Kind, State};
use domain::limits::{EXPORTS_OPEN_MAX, PAGE_MAX};
use domain::login::Language;
use domain::{Error, Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::acts::{NewAct, record};
use crate::errors::{constraint_of, from_postgres};
use crate::products;
use crate::rows::{column, one_word};
use crate::types::{INT8, TEXT, UUID};

/// A file to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewExport {
    /// Its id.
    pub id: Uuid,
    /// The product.
    pub product_id: Uuid,
    /// Who asks.
    pub staff_id: Uuid,
    /// What of it.
    pub kind: Kind,
    /// How.
    pub format: Format,
    /// The language of its headings.
    pub language: Language,
}

/// An export as its store sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Export {
    /// Its id.
    pub id: Uuid,
    /// The store.
    pub tenant_id: Uuid,
    /// The product.
    pub product_id: Uuid,
    /// Who asked for it.
    pub staff_id: Uuid,
    /// What of the product.
    pub kind: Kind,
    /// How it is written.
    pub format: Format,
    /// Where it is.
    pub state: State,
    /// Rows that are written for good, or that a workbook has so far.
    pub rows: i64,
    /// Bytes that are written.
    pub bytes: i64,
    /// How much of it is done, roughly.
    pub percent: i16,
    /// When it was asked for.
    pub created_at: OffsetDateTime,
    /// When it was over.
    pub finished_at: Option<OffsetDateTime>,
    /// Until when its file is kept.
    pub expires_at: Option<OffsetDateTime>,
    /// Whether the file can be fetched now.
    pub is_there: bool,
    /// Why there is none.
    pub failure: Option<Failure>,
}

impl Export {
    /// Where its file is in the bucket.
    #[must_use]
    pub fn key(&self) -> String {
        domain::exports::object_key(self.tenant_id, self.id, self.format)
    }
}

const COLUMNS: &str = "id, tenant_id, product_id, staff_id, kind, format, state, rows_done, bytes_done, percent,
    created_at, finished_at, expires_at, state = 'ready' and expires_at > now() as is_there, failure";

/// Asks for an export. False when the same was asked for under the act's key before.
///
/// # Errors
/// Not-found for a product that is not the store's; too-many-requests while others of the store are unfinished; those
/// of a key; busy or fault from the database.
pub async fn request(client: &mut Client, new: &NewExport, act: &NewAct) -> Result<bool> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    products::find(tx.client(), act.tenant_id, new.product_id).await?;
    if !record(&tx, act).await? {
        return Ok(false);
    }
    // Counted without a lock: requests in flight at the same instant can pass it by a few.
    let sql = "insert into exports (id, tenant_id, product_id, staff_id, kind, format, language)
        select $1, $2, $3, $4, $5, $6, $7
        where (select count(*) from exports where tenant_id = $2 and state in ('queued', 'writing')) < $8";
    let params: [(&(dyn ToSql + Sync), _); 8] = [
        (&new.id, UUID),
        (&act.tenant_id, UUID),
        (&new.product_id, UUID),
        (&new.staff_id, UUID),
        (&new.kind.word(), TEXT),
        (&new.format.word(), TEXT),
        (&new.language.tag(), TEXT),
        (&EXPORTS_OPEN_MAX, INT8),
    ];
    let inserted = tx.execute_typed(sql, &params).await.map_err(|error| match constraint_of(&error) {
        // Ids are made from keys: one that was used before its key was forgotten.
        Some("exports_pkey") => Reason::KeyReused.into(),
        _ => from_postgres(error),
    })?;
    if inserted == 0 {
        return Err(Reason::TooManyRequests.into());
    }
    tx.commit().await.map_err(from_postgres)?;
    Ok(true)
}

/// An export of a store; those of others do not exist.
///
/// # Errors
/// Not-found, or busy or fault from the database.
pub async fn find(client: &Client, tenant_id: Uuid, id: Uuid) -> Result<Export> {
    let sql = format!("select {COLUMNS} from exports where tenant_id = $1 and id = $2");
    let row = client.query_typed_opt(&sql, &[(&tenant_id, UUID), (&id, UUID)]).await.map_err(from_postgres)?;
    export_from(&row.ok_or(Reason::NotFound)?)
}

/// A store's exports, newest first, after one of them.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list(client: &Client, tenant_id: Uuid, after: Option<Uuid>, limit: usize) -> Result<Vec<Export>> {
    let sql = format!(
        "select {COLUMNS} from exports where tenant_id = $1 and ($2::uuid is null or (created_at, id)
            < (select last.created_at, last.id from exports last where last.tenant_id = $1 and last.id = $2))
        order by created_at desc, id desc limit $3"
    );
    let limit = i64::try_from(limit).unwrap_or(PAGE_MAX);
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&after, UUID), (&limit, INT8)];
    let rows = client.query_typed(&sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(export_from).collect()
}

fn export_from(row: &Row) -> Result<Export> {
    let failure: Option<&str> = column(row, "failure")?;
    let known = |word| Failure::from_word(word).ok_or_else(|| Error::fault(format!("failure {word:?} is unknown")));
    Ok(Export {
        id: column(row, "id")?,
        tenant_id: column(row, "tenant_id")?,
        product_id: column(row, "product_id")?,
        staff_id: column(row, "staff_id")?,
        kind: one_word(row, "kind", Kind::from_word)?,
        format: one_word(row, "format", Format::from_word)?,
        state: one_word(row, "state", State::from_word)?,
        rows: column(row, "rows_done")?,
        bytes: column(row, "bytes_done")?,
        percent: column(row, "percent")?,
        created_at: column(row, "created_at")?,
        finished_at: column(row, "finished_at")?,
        expires_at: column(row, "expires_at")?,
        is_there: column::<Option<bool>>(row, "is_there")?.unwrap_or(false),
        failure: failure.map(known).transpose()?,
    })
}
