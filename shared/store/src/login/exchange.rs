//! A code for a session: one conditional update decides, so that any number of exchanges at once give one session.

use domain::limits::{LOGIN_TRIES_MAX, SESSION_IDLE_MAX};
use domain::login::{Language, Phone};
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Transaction};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT2, TEXT, TEXTS, UUID};

/// A code that somebody gives.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// Slug of the store.
    pub store: &'a str,
    /// The asking session.
    pub asking_id: Uuid,
    /// The keys under which the code is right. Empty for a wrong one.
    pub right_under: &'a [&'a str],
    /// Id of the session to be.
    pub session_id: Uuid,
    /// Id of the buyer to be, if the phone has none at this store.
    pub buyer_id: Uuid,
    /// The device.
    pub device_id: Uuid,
}

/// What became of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum LoggedIn {
    /// The code was right, and is used now.
    Yes {
        /// The buyer.
        buyer_id: Uuid,
        /// Their store.
        tenant_id: Uuid,
        /// Their phone.
        phone: Phone,
    },
    /// The code was wrong, or is used or old; or there is no such asking session at this store.
    WrongCode,
    /// The asking session has no tries left.
    TriesUsedUp,
}

/// Uses a code up, or one of its tries.
///
/// # Errors
/// Busy or fault from the database.
pub async fn exchange(client: &mut Client, exchange: &Exchange<'_>) -> Result<LoggedIn> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update login_codes c set tries = c.tries + 1, used_at = case when c.key_id = any($3) then now() end
        from tenants t
        where t.slug = $1 and c.tenant_id = t.id and c.id = $2 and c.used_at is null and c.expires_at > now()
            and c.tries < $4
        returning c.tenant_id, c.phone, c.language, c.used_at is not null as is_right";
    let params: [(&(dyn ToSql + Sync), _); 4] = [
        (&exchange.store, TEXT),
        (&exchange.asking_id, UUID),
        (&exchange.right_under, TEXTS),
        (&LOGIN_TRIES_MAX, INT2),
    ];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    let Some(row) = row else { return why(&tx, exchange).await };
    if !column::<bool>(&row, "is_right")? {
        tx.commit().await.map_err(from_postgres)?;
        return Ok(LoggedIn::WrongCode);
    }
    let (tenant_id, phone): (Uuid, &str) = (column(&row, "tenant_id")?, column(&row, "phone")?);
    let phone = Phone::parse(phone).ok_or_else(|| Error::fault("a phone is not in E.164"))?;
    let language = one_word(&row, "language", Language::from_tag)?;
    let buyer_id = find_or_insert_buyer(&tx, exchange.buyer_id, tenant_id, (&phone, language)).await?;
    insert_session(&tx, exchange, tenant_id, buyer_id).await?;
    fail::fail_point!("login.before_commit");
    tx.commit().await.map_err(from_postgres)?;
    Ok(LoggedIn::Yes { buyer_id, tenant_id, phone })
}

/// Why a code could not be tried.
async fn why(tx: &Transaction<'_>, exchange: &Exchange<'_>) -> Result<LoggedIn> {
    let sql = "select c.tries >= $3 as used_up from login_codes c join tenants t on t.id = c.tenant_id
        where t.slug = $1 and c.id = $2 and c.used_at is null and c.expires_at > now()";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&exchange.store, TEXT), (&exchange.asking_id, UUID), (&LOGIN_TRIES_MAX, INT2)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    let used_up = row.map(|row| column::<bool>(&row, "used_up")).transpose()?;
    Ok(if used_up == Some(true) { LoggedIn::TriesUsedUp } else { LoggedIn::WrongCode })
}

/// Notices are written in the language of the last code.
async fn find_or_insert_buyer(
    tx: &Transaction<'_>,
    id: Uuid,
    tenant_id: Uuid,
    (phone, language): (&Phone, Language),
) -> Result<Uuid> {
    let sql = "insert into buyers (id, tenant_id, phone, language) values ($1, $2, $3, $4)
        on conflict on constraint buyers_phone_unique do update set language = excluded.language
        returning id";
    let params: [(&(dyn ToSql + Sync), _); 4] =
        [(&id, UUID), (&tenant_id, UUID), (&phone.as_str(), TEXT), (&language.tag(), TEXT)];
    let row = tx.query_typed_one(sql, &params).await.map_err(from_postgres)?;
    column(&row, "id")
}

async fn insert_session(tx: &Transaction<'_>, exchange: &Exchange<'_>, tenant_id: Uuid, buyer_id: Uuid) -> Result<()> {
    let sql = "insert into sessions (id, tenant_id, buyer_id, device_id, expires_at)
        values ($1, $2, $3, $4, now() + make_interval(secs => $5))";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&exchange.session_id, UUID),
        (&tenant_id, UUID),
        (&buyer_id, UUID),
        (&exchange.device_id, UUID),
        (&SESSION_IDLE_MAX.as_secs_f64(), FLOAT8),
    ];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}
