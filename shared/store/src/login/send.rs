//! Sending what asking sessions owe: claimed before, marked after. A sender that dies between the two has its message
//! sent again by whoever comes next; none is lost while its code is good.

use domain::limits::{LOGIN_CODE_CLAIM, LOGIN_CODE_GRACE, LOOKS_PER_PASS_MAX};
use domain::login::{Language, Phone};
use domain::messages::LoginCodeMessage;
use domain::{Error, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{FLOAT8, INT2, INT8, UUID};

/// A message to send now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claimed {
    /// The store.
    pub tenant_id: Uuid,
    /// The asking session.
    pub asking_id: Uuid,
    /// How many messages are asked for; after this one all of them have left.
    pub asked: i16,
    /// Where it goes.
    pub phone: Phone,
    /// The language of the text.
    pub language: Language,
    /// The key that the code is derived with.
    pub key_id: String,
    /// Name of the store.
    pub store: String,
    /// Somebody else had claimed it and not said what became of it: it may be sent twice.
    pub is_repeat: bool,
}

/// What there is to do for a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Claim {
    /// This caller sends.
    Yours(Box<Claimed>),
    /// Somebody else is sending.
    Busy,
    /// Nothing is owed: it was sent, or used.
    Nothing,
    /// It was not sent while its code was good.
    TooLate,
}

/// Claims what an asking session owes, for as long as sending may take.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim(client: &Client, message: &LoginCodeMessage) -> Result<Claim> {
    // Both sides of the join have the claim as it was before.
    let sql = "update login_codes c set claimed_until = now() + make_interval(secs => $3)
        from login_codes before join tenants t on t.id = before.tenant_id
        where c.id = $2 and c.tenant_id = $1 and before.id = c.id
            and c.sent < c.asked and c.used_at is null and c.expires_at > now()
            and (c.claimed_until is null or c.claimed_until <= now())
        returning c.tenant_id, c.id, c.asked, c.phone, c.language, c.key_id, t.name as store,
            before.claimed_until is not null as is_repeat";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&message.tenant_id, UUID), (&message.asking_id, UUID), (&LOGIN_CODE_CLAIM.as_secs_f64(), FLOAT8)];
    match client.query_typed_opt(sql, &params).await.map_err(from_postgres)? {
        Some(row) => Ok(Claim::Yours(Box::new(claimed(&row)?))),
        None => why_not(client, message).await,
    }
}

async fn why_not(client: &Client, message: &LoginCodeMessage) -> Result<Claim> {
    let sql = "select sent < asked and used_at is null as is_owed, expires_at > now() as is_good
        from login_codes where id = $1 and tenant_id = $2";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&message.asking_id, UUID), (&message.tenant_id, UUID)];
    let Some(row) = client.query_typed_opt(sql, &params).await.map_err(from_postgres)? else {
        // Asking sessions are kept for longer than their codes are good.
        return Ok(Claim::Nothing);
    };
    Ok(match (column(&row, "is_owed")?, column(&row, "is_good")?) {
        (false, _) => Claim::Nothing,
        (true, false) => Claim::TooLate,
        (true, true) => Claim::Busy,
    })
}

/// Marks what was claimed as sent. One statement for everything that was asked for meanwhile would lose a message, so
/// that only what was claimed counts.
///
/// # Errors
/// Busy or fault from the database. Then the message may be sent again.
pub async fn mark_sent(client: &Client, claimed: &Claimed) -> Result<()> {
    let sql = "update login_codes set sent = greatest(sent, $3), claimed_until = null where id = $1 and tenant_id = $2";
    let params: [(&(dyn ToSql + Sync), _); 3] =
        [(&claimed.asking_id, UUID), (&claimed.tenant_id, UUID), (&claimed.asked, INT2)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Gives a claim back: the message was surely not sent.
///
/// # Errors
/// Busy or fault from the database. Then the claim ends by itself.
pub async fn release(client: &Client, claimed: &Claimed) -> Result<()> {
    let sql = "update login_codes set claimed_until = null where id = $1 and tenant_id = $2";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&claimed.asking_id, UUID), (&claimed.tenant_id, UUID)];
    client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// Messages that should have left by now and have not: those that no queue took, for the most part. They are owed
/// again later, if they have not left by then either.
///
/// # Errors
/// Busy or fault from the database.
pub async fn claim_unsent(client: &Client) -> Result<Vec<LoginCodeMessage>> {
    let sql = "update login_codes c set look_at = now() + make_interval(secs => $1)
        from (select id from login_codes where look_at <= now() and sent < asked and used_at is null
            and expires_at > now() order by look_at limit $2 for no key update skip locked) as due
        where c.id = due.id
        returning c.tenant_id, c.id";
    let params: [(&(dyn ToSql + Sync), _); 2] =
        [(&LOGIN_CODE_GRACE.as_secs_f64(), FLOAT8), (&LOOKS_PER_PASS_MAX, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(|row| Ok(LoginCodeMessage::new(column(row, "tenant_id")?, column(row, "id")?))).collect()
}

fn claimed(row: &Row) -> Result<Claimed> {
    Ok(Claimed {
        tenant_id: column(row, "tenant_id")?,
        asking_id: column(row, "id")?,
        asked: column(row, "asked")?,
        phone: Phone::parse(column(row, "phone")?).ok_or_else(|| Error::fault("a phone is not in E.164"))?,
        language: one_word(row, "language", Language::from_tag)?,
        key_id: column(row, "key_id")?,
        store: column(row, "store")?,
        is_repeat: column(row, "is_repeat")?,
    })
}
