//! Writing an export: claimed for a while, saved part by part, finished once.

use domain::exports::{Failure, Format, Kind};
use domain::limits::{EXPORT_CLAIM, EXPORT_KEPT, EXPORT_TRIES_MAX, LOOKS_PER_PASS_MAX};
use domain::login::Language;
use domain::messages::ExportMessage;
use domain::{Error, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{BOOL, FLOAT8, INT2, INT4, INT8, TEXT, UUID};

/// An export that this caller writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The store.
    pub tenant_id: Uuid,
    /// The export.
    pub id: Uuid,
    /// This claim.
    pub claim: Uuid,
    /// What is exported.
    pub kind: Kind,
    /// How.
    pub format: Format,
    /// The language of its headings.
    pub language: Language,
    /// When it was asked for: later orders are not in it.
    pub created_at: OffsetDateTime,
    /// The upload that was begun.
    pub upload_id: Option<String>,
    /// ETags of its parts so far.
    pub parts: Vec<String>,
    /// Where the rows of the last part ended.
    pub cursor: Option<String>,
    /// Rows in them.
    pub rows: i64,
    /// Whether the last part is written, so that the upload has only to be completed.
    pub is_written: bool,
    /// The product.
    pub product: Product,
}

impl Claimed {
    /// Where its file is in the bucket.
    #[must_use]
    pub fn key(&self) -> String {
        domain::exports::object_key(self.tenant_id, self.id, self.format)
    }

    /// What the file is called where it is saved. Nothing that somebody chose is in it.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}-{}.{}", self.kind.word(), self.id.simple(), self.format.word())
    }
}

/// What rows need to know of their product.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// Its key in the wide tables.
    pub key: i32,
    /// Its name.
    pub name: String,
    /// Its smallest number.
    pub first: i32,
    /// How many numbers it has.
    pub count: i32,
    /// Digits of a printed number.
    pub padding: i16,
    /// When it was made: no order is older.
    pub created_at: OffsetDateTime,
}

/// What there is to do for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This caller writes.
    Yours(Box<Claimed>),
    /// Nothing, or somebody else is writing and its row will be looked at again.
    Nothing,
    /// It was tried too often and has failed now.
    GaveUp,
}

/// Exports that are due: new ones, and those whose writer has died or put them down. They are due again later, if
/// nobody has claimed them by then.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim_due(client: &Client) -> Result<Vec<ExportMessage>> {
    let sql = "update exports e set look_at = now() + make_interval(secs => $1)
        from (select id from exports where look_at <= now() and state in ('queued', 'writing')
            order by look_at limit $2 for no key update skip locked) as due
        where e.id = due.id
        returning e.tenant_id, e.id";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&EXPORT_CLAIM.as_secs_f64(), FLOAT8), (&LOOKS_PER_PASS_MAX, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| Ok(ExportMessage::new(column(row, "tenant_id")?, column(row, "id")?))).collect()
}

/// Claims an export under a new id, unless somebody has it.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim(client: &Client, message: &ExportMessage, claim: Uuid) -> Result<Claim> {
    let sql = "update exports e set state = 'writing', claim = $3, claimed_until = now() + make_interval(secs => $4),
            look_at = now() + make_interval(secs => $4), tries = e.tries + 1
        from products p
        where e.id = $2 and e.tenant_id = $1 and p.id = e.product_id and e.state in ('queued', 'writing')
            and (e.claimed_until is null or e.claimed_until <= now())
        returning e.tenant_id, e.id, e.claim, e.kind, e.format, e.language, e.created_at, e.tries, e.upload_id, e.parts,
            e.cursor, e.rows_done, e.written_at is not null as is_written, p.key, p.name, p.first_number, p.number_count, p.padding,
            p.created_at as product_created_at";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&message.tenant_id, UUID), (&message.export_id, UUID), (&claim, UUID), (&EXPORT_CLAIM.as_secs_f64(), FLOAT8)];
    let Some(row) = client.query_typed_opt(sql, &params).await.map_err(from_postgres)? else {
        return Ok(Claim::Nothing);
    };
    let claimed = claimed(&row)?;
    if column::<i16>(&row, "tries")? > EXPORT_TRIES_MAX {
        fail(client, &claimed, Failure::GaveUp).await?;
        return Ok(Claim::GaveUp);
    }
    Ok(Claim::Yours(Box::new(claimed)))
}

/// Says that a writer lives, and how far a workbook is. False when the claim is somebody else's now.
///
/// # Errors
/// Busy or fault from the database.
pub async fn renew(client: &Client, claimed: &Claimed, rows: i64, percent: i16) -> Result<bool> {
    let sql = "update exports set claimed_until = now() + make_interval(secs => $4),
            look_at = now() + make_interval(secs => $4), rows_done = $5, percent = $6
        where id = $1 and tenant_id = $2 and claim = $3";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&claimed.id, UUID),
        (&claimed.tenant_id, UUID),
        (&claimed.claim, UUID),
        (&EXPORT_CLAIM.as_secs_f64(), FLOAT8),
        (&rows, INT8),
        (&percent, INT2),
    ];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

/// Begins an export from nothing, with an upload of its own. False when the claim is somebody else's now.
///
/// # Errors
/// Busy or fault from the database.
pub async fn begin(client: &Client, claimed: &Claimed, upload_id: &str) -> Result<bool> {
    let sql = "update exports set upload_id = $4, parts = '{}', cursor = null, rows_done = 0, bytes_done = 0,
            percent = 0, written_at = null
        where id = $1 and tenant_id = $2 and claim = $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&claimed.id, UUID), (&claimed.tenant_id, UUID), (&claimed.claim, UUID), (&upload_id, TEXT)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

/// A part that the bucket has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part<'a> {
    /// Its number, from 1 on.
    pub number: i32,
    /// What the bucket calls its content.
    pub etag: &'a str,
    /// Where its rows ended; none when they are not kept count of.
    pub cursor: Option<&'a str>,
    /// Rows in it.
    pub rows: i64,
    /// Its bytes.
    pub bytes: i64,
    /// How much is done now.
    pub percent: i16,
    /// Whether nothing comes after it.
    pub is_last: bool,
}

/// Saves a part: it is not written again. False when the claim is somebody else's now, or the part is not the next.
///
/// # Errors
/// Busy or fault from the database.
pub async fn save_part(client: &Client, claimed: &Claimed, part: &Part<'_>) -> Result<bool> {
    let sql = "update exports set parts = array_append(parts, $5), cursor = coalesce($6, cursor),
            rows_done = rows_done + $7, bytes_done = bytes_done + $8, percent = $9,
            written_at = case when $10 then now() end, tries = 0,
            claimed_until = now() + make_interval(secs => $11), look_at = now() + make_interval(secs => $11)
        where id = $1 and tenant_id = $2 and claim = $3 and cardinality(parts) = $4 - 1 and written_at is null";
    let params: [(&(dyn ToSql + Sync), _); 11] = [
        (&claimed.id, UUID),
        (&claimed.tenant_id, UUID),
        (&claimed.claim, UUID),
        (&part.number, INT4),
        (&part.etag, TEXT),
        (&part.cursor, TEXT),
        (&part.rows, INT8),
        (&part.bytes, INT8),
        (&part.percent, INT2),
        (&part.is_last, BOOL),
        (&EXPORT_CLAIM.as_secs_f64(), FLOAT8),
    ];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

/// The file is there. False when the claim is somebody else's now.
///
/// # Errors
/// Busy or fault from the database.
pub async fn finish(client: &Client, claimed: &Claimed) -> Result<bool> {
    let sql = "update exports set state = 'ready', percent = 100, finished_at = now(), claim = null,
            claimed_until = null, expires_at = now() + make_interval(secs => $4)
        where id = $1 and tenant_id = $2 and claim = $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&claimed.id, UUID), (&claimed.tenant_id, UUID), (&claimed.claim, UUID), (&EXPORT_KEPT.as_secs_f64(), FLOAT8)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

/// There will be no file. False when the claim is somebody else's now.
///
/// # Errors
/// Busy or fault from the database.
pub async fn fail(client: &Client, claimed: &Claimed, failure: Failure) -> Result<bool> {
    let sql =
        "update exports set state = 'failed', failure = $4, finished_at = now(), claim = null, claimed_until = null
        where id = $1 and tenant_id = $2 and claim = $3";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&claimed.id, UUID), (&claimed.tenant_id, UUID), (&claimed.claim, UUID), (&failure.word(), TEXT)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

/// Puts an export down although nothing is wrong: whoever comes next goes on at once, and this counts as no try.
///
/// # Errors
/// Busy or fault from the database. Then the claim ends by itself.
pub async fn put_down(client: &Client, claimed: &Claimed) -> Result<()> {
    let sql = "update exports set claim = null, claimed_until = null, look_at = now(), tries = greatest(tries - 1, 0)
        where id = $1 and tenant_id = $2 and claim = $3";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&claimed.id, UUID), (&claimed.tenant_id, UUID), (&claimed.claim, UUID)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Puts an export down because something failed: its message comes again, and this counts as a try.
///
/// # Errors
/// Busy or fault from the database. Then the claim ends by itself.
pub async fn put_down_failed(client: &Client, claimed: &Claimed) -> Result<()> {
    let sql = "update exports set claim = null, claimed_until = null where id = $1 and tenant_id = $2 and claim = $3";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&claimed.id, UUID), (&claimed.tenant_id, UUID), (&claimed.claim, UUID)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

fn claimed(row: &Row) -> Result<Claimed> {
    let claim: Option<Uuid> = column(row, "claim")?;
    Ok(Claimed {
        tenant_id: column(row, "tenant_id")?,
        id: column(row, "id")?,
        claim: claim.ok_or_else(|| Error::fault("a claimed export without a claim"))?,
        kind: one_word(row, "kind", Kind::from_word)?,
        format: one_word(row, "format", Format::from_word)?,
        language: one_word(row, "language", Language::from_tag)?,
        created_at: column(row, "created_at")?,
        upload_id: column(row, "upload_id")?,
        parts: column(row, "parts")?,
        cursor: column(row, "cursor")?,
        rows: column(row, "rows_done")?,
        is_written: column(row, "is_written")?,
        product: Product {
            key: column(row, "key")?,
            name: column(row, "name")?,
            first: column(row, "first_number")?,
            count: column(row, "number_count")?,
            padding: column(row, "padding")?,
            created_at: column(row, "product_created_at")?,
        },
    })
}
