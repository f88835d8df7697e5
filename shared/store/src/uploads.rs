//! Images that staff upload: a row says what is awaited, and what became of it.

use domain::limits::{LOOKS_PER_PASS_MAX, UPLOAD_FORM_LIVES, UPLOAD_GRACE, UPLOADS_OPEN_MAX};
use domain::messages::UploadMessage;
use domain::uploads::{Image, Refusal, State};
use domain::{Error, Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::acts::{NewAct, record};
use crate::errors::{constraint_of, from_postgres};
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT8, TEXT, UUID};

/// An upload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Upload {
    /// Its id.
    pub id: Uuid,
    /// The store.
    pub tenant_id: Uuid,
    /// What it must be.
    pub image: Image,
    /// Where it is.
    pub state: State,
    /// Until when the bucket takes its bytes.
    pub expires_at: OffsetDateTime,
    /// Whether the bucket takes bytes now.
    pub is_open: bool,
    /// Whether bytes that have not come by now will not come.
    pub is_over: bool,
    /// Its size, once it is accepted.
    pub bytes: Option<i64>,
    /// Why it was not accepted.
    pub refusal: Option<Refusal>,
}

const COLUMNS: &str = "id, tenant_id, media_type, state, expires_at, expires_at > now() as is_open,
    expires_at + make_interval(secs => $3) <= now() as is_over, bytes, refusal";

/// Begins an upload. False when it was begun under the act's key before.
///
/// # Errors
/// Too-many-requests while others of the store wait; those of a key; busy or fault from the database.
pub async fn begin(client: &mut Client, id: Uuid, staff_id: Uuid, image: Image, act: &NewAct) -> Result<bool> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    if !record(&tx, act).await? {
        return Ok(false);
    }
    // Counted without a lock: requests in flight at the same instant can pass it by a few.
    let sql = "insert into uploads (id, tenant_id, staff_id, media_type, expires_at, look_at)
        select $1, $2, $3, $4, now() + make_interval(secs => $5), now() + make_interval(secs => $5 + $6)
        where (select count(*) from uploads where tenant_id = $2 and state = 'waiting') < $7";
    let params: [(&(dyn ToSql + Sync), _); 7] = [
        (&id, UUID),
        (&act.tenant_id, UUID),
        (&staff_id, UUID),
        (&image.media_type(), TEXT),
        (&UPLOAD_FORM_LIVES.as_secs_f64(), FLOAT8),
        (&UPLOAD_GRACE.as_secs_f64(), FLOAT8),
        (&UPLOADS_OPEN_MAX, INT8),
    ];
    let inserted = tx.execute_typed(sql, &params).await.map_err(|error| match constraint_of(&error) {
        // Ids are made from keys: one that was used before its key was forgotten.
        Some("uploads_pkey") => Reason::KeyReused.into(),
        _ => from_postgres(error),
    })?;
    if inserted == 0 {
        return Err(Reason::TooManyRequests.into());
    }
    tx.commit().await.map_err(from_postgres)?;
    Ok(true)
}

/// An upload of a store, if it is one; those of others are not.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find(client: &Client, tenant_id: Uuid, id: Uuid) -> Result<Option<Upload>> {
    let sql = format!("select {COLUMNS} from uploads where tenant_id = $1 and id = $2");
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&tenant_id, UUID), (&id, UUID), (&UPLOAD_GRACE.as_secs_f64(), FLOAT8)];
    let row = client.query_typed_opt(&sql, &params).await.map_err(from_postgres)?;
    row.as_ref().map(upload_from).transpose()
}

/// Uploads of which the bucket has told us nothing and whose time is over. They are due again later, if nobody has
/// looked at them by then.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim_due(client: &Client) -> Result<Vec<UploadMessage>> {
    let sql = "update uploads u set look_at = now() + make_interval(secs => $1)
        from (select id from uploads where look_at <= now() and state = 'waiting'
            order by look_at limit $2 for no key update skip locked) as due
        where u.id = due.id
        returning u.tenant_id, u.id";
    let params: [(&(dyn ToSql + Sync), _); 2] =
        [(&UPLOAD_FORM_LIVES.as_secs_f64(), FLOAT8), (&LOOKS_PER_PASS_MAX, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| Ok(UploadMessage::new(column(row, "tenant_id")?, column(row, "id")?))).collect()
}

/// It is an image of so many bytes, and public. False when it was decided before.
///
/// # Errors
/// Busy or fault from the database.
pub async fn accept(client: &Client, upload: &Upload, bytes: i64) -> Result<bool> {
    let sql = "update uploads set state = 'accepted', bytes = $3, finished_at = now()
        where id = $1 and tenant_id = $2 and state = 'waiting'";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&upload.id, UUID), (&upload.tenant_id, UUID), (&bytes, INT8)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

/// It is not what it claimed to be. False when it was decided before.
///
/// # Errors
/// Busy or fault from the database.
pub async fn reject(client: &Client, upload: &Upload, refusal: Refusal) -> Result<bool> {
    let sql = "update uploads set state = 'rejected', refusal = $3, finished_at = now()
        where id = $1 and tenant_id = $2 and state = 'waiting'";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&upload.id, UUID), (&upload.tenant_id, UUID), (&refusal.word(), TEXT)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

/// Nothing came in time. False when it was decided before.
///
/// # Errors
/// Busy or fault from the database.
pub async fn expire(client: &Client, upload: &Upload) -> Result<bool> {
    let sql = "update uploads set state = 'expired', finished_at = now()
        where id = $1 and tenant_id = $2 and state = 'waiting'";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&upload.id, UUID), (&upload.tenant_id, UUID)];
    Ok(client.execute_typed(sql, &params).await.map_err(from_postgres)? == 1)
}

fn upload_from(row: &Row) -> Result<Upload> {
    let refusal: Option<&str> = column(row, "refusal")?;
    let known = |word| Refusal::from_word(word).ok_or_else(|| Error::fault(format!("refusal {word:?} is unknown")));
    Ok(Upload {
        id: column(row, "id")?,
        tenant_id: column(row, "tenant_id")?,
        image: one_word(row, "media_type", Image::from_media_type)?,
        state: one_word(row, "state", State::from_word)?,
        expires_at: column(row, "expires_at")?,
        is_open: column(row, "is_open")?,
        is_over: column(row, "is_over")?,
        bytes: column(row, "bytes")?,
        refusal: refusal.map(known).transpose()?,
    })
}
