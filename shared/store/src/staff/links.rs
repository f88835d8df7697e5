//! One-time links: asked for, set up with, tried.

use std::time::Duration;

use domain::limits::{INVITATION_LIVES, SIGN_IN_LINK_LIVES, STAFF_TRIES_MAX};
use domain::login::Share;
use domain::staff::{Email, LinkPurpose};
use domain::{Error, Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::passwords::{Tried, count};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{BYTEA, FLOAT8, FLOAT8S, INT2, TEXT, UUID, UUIDS};

/// A link about to be made.
#[derive(Debug, Clone, Copy)]
pub struct NewLink<'a> {
    /// Its id.
    pub id: Uuid,
    /// What it is recognised by.
    pub hash: &'a [u8],
}

/// Takes a message from each of some pots, or from none when one is empty: then how long to wait.
///
/// # Errors
/// Busy or fault from the database.
pub async fn take_from_pots(client: &Client, pots: &[(Uuid, Share)]) -> Result<Option<Duration>> {
    let subjects: Vec<Uuid> = pots.iter().map(|(subject, _)| *subject).collect();
    let intervals: Vec<f64> = pots.iter().map(|(_, share)| share.one_per.as_secs_f64()).collect();
    let tolerances: Vec<f64> =
        pots.iter().map(|(_, share)| share.one_per.as_secs_f64() * f64::from(share.messages)).collect();
    let sql = "select wait_seconds from take_from_pots($1, $2, $3)";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&subjects, UUIDS), (&intervals, FLOAT8S), (&tolerances, FLOAT8S)];
    let row = client.query_typed_one(sql, &params).await.map_err(from_postgres)?;
    let seconds: Option<f64> = column(&row, "wait_seconds")?;
    seconds.map(|seconds| Duration::try_from_secs_f64(seconds).map_err(Error::fault)).transpose()
}

/// Who wants a link to sign in.
#[derive(Debug, Clone, Copy)]
pub struct AskLink<'a> {
    /// Slug of the store.
    pub store: &'a str,
    /// Where the link would go.
    pub email: &'a Email,
    /// The link.
    pub link: NewLink<'a>,
}

/// Makes a link to sign in, if the address is that of somebody who has joined; then the store's name. One statement for
/// all addresses.
///
/// # Errors
/// Busy or fault from the database.
pub async fn ask(client: &Client, ask: &AskLink<'_>) -> Result<Option<String>> {
    let sql = "with known as (
            select s.id, s.tenant_id, t.name from tenants t join staff s on s.tenant_id = t.id
            where t.slug = $1 and s.email = $2 and s.removed_at is null and s.joined_at is not null
        ), made as (
            insert into staff_links (id, tenant_id, staff_id, purpose, hash, expires_at)
            select $3, tenant_id, id, $4, $5, now() + make_interval(secs => $6) from known
        )
        select name from known";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&ask.store, TEXT),
        (&ask.email.as_str(), TEXT),
        (&ask.link.id, UUID),
        (&LinkPurpose::SignIn.word(), TEXT),
        (&ask.link.hash, BYTEA),
        (&SIGN_IN_LINK_LIVES.as_secs_f64(), FLOAT8),
    ];
    let row = client.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    row.map(|row| column(&row, "name")).transpose()
}

/// Makes a link to set one-time passwords up with; earlier ones of that kind are good no more.
pub(super) async fn make_enrolment(
    tx: &Transaction<'_>,
    tenant_id: Uuid,
    staff_id: Uuid,
    purpose: LinkPurpose,
    link: NewLink<'_>,
) -> Result<()> {
    end_links(tx, tenant_id, staff_id).await?;
    let sql = "insert into staff_links (id, tenant_id, staff_id, purpose, hash, expires_at)
        values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))";
    let params: [(&(dyn ToSql + Sync), _); 6] = [
        (&link.id, UUID),
        (&tenant_id, UUID),
        (&staff_id, UUID),
        (&purpose.word(), TEXT),
        (&link.hash, BYTEA),
        (&INVITATION_LIVES.as_secs_f64(), FLOAT8),
    ];
    tx.execute_typed(sql, &params).await.map_err(from_postgres)?;
    Ok(())
}

/// From now on none of somebody's links is good.
pub(super) async fn end_links(tx: &Transaction<'_>, tenant_id: Uuid, staff_id: Uuid) -> Result<()> {
    let sql = "update staff_links set expires_at = now()
        where tenant_id = $1 and staff_id = $2 and used_at is null and expires_at > now()";
    tx.execute_typed(sql, &[(&tenant_id, UUID), (&staff_id, UUID)]).await.map_err(from_postgres)?;
    Ok(())
}

/// Somebody who sets one-time passwords up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Enrolment {
    /// The link.
    pub link_id: Uuid,
    /// The store.
    pub tenant_id: Uuid,
    /// Who.
    pub staff_id: Uuid,
    /// Their address.
    pub email: String,
    /// Name of the store.
    pub store: String,
    /// The sealed secret, if the link was opened before.
    pub totp: Option<Vec<u8>>,
}

/// Whose one-time passwords a link sets up.
///
/// # Errors
/// Link-wrong when it is no such link, or is used or old; busy or fault from the database.
pub async fn find_enrolment(client: &Client, hash: &[u8]) -> Result<Enrolment> {
    let sql = "select l.id, l.tenant_id, l.staff_id, l.totp, s.email, t.name
        from staff_links l join staff s on s.tenant_id = l.tenant_id and s.id = l.staff_id
            join tenants t on t.id = l.tenant_id
        where l.hash = $1 and l.purpose <> 'sign-in' and l.used_at is null and l.expires_at > now()
            and s.removed_at is null";
    let row = client.query_typed_opt(sql, &[(&hash, BYTEA)]).await.map_err(from_postgres)?.ok_or(Reason::LinkWrong)?;
    Ok(Enrolment {
        link_id: column(&row, "id")?,
        tenant_id: column(&row, "tenant_id")?,
        staff_id: column(&row, "staff_id")?,
        email: column(&row, "email")?,
        store: column(&row, "name")?,
        totp: column(&row, "totp")?,
    })
}

/// Keeps the sealed secret that is being set up, unless there is one; the one that is kept.
///
/// # Errors
/// Link-wrong when the link has ended meanwhile; busy or fault from the database.
pub async fn save_enrolment(client: &Client, link_id: Uuid, sealed: &[u8]) -> Result<Vec<u8>> {
    let sql = "update staff_links set totp = coalesce(totp, $2)
        where id = $1 and used_at is null and expires_at > now() returning totp";
    let row = client.query_typed_opt(sql, &[(&link_id, UUID), (&sealed, BYTEA)]).await.map_err(from_postgres)?;
    column(&row.ok_or(Reason::LinkWrong)?, "totp")
}

/// What a one-time password is to be checked with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Password {
    /// The link or session that it comes with.
    pub id: Uuid,
    /// The store.
    pub tenant_id: Uuid,
    /// Who.
    pub staff_id: Uuid,
    /// The sealed secret; none when none was set up.
    pub totp: Option<Vec<u8>>,
    /// The database's time, in seconds since 1970.
    pub now: i64,
}

fn password_from(row: &Row) -> Result<Password> {
    Ok(Password {
        id: column(row, "id")?,
        tenant_id: column(row, "tenant_id")?,
        staff_id: column(row, "staff_id")?,
        totp: column(row, "totp")?,
        now: column(row, "now")?,
    })
}

/// Uses one of a link's tries up, unless its owner's passwords were wrong too often.
///
/// # Errors
/// Link-wrong when it is none of ours, or is used or old; too-many-attempts when it has no tries left; busy or fault.
pub async fn try_link(client: &mut Client, hash: &[u8]) -> Result<Tried> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update staff_links l set tries = l.tries + 1 from staff s
        where l.hash = $1 and l.used_at is null and l.expires_at > now() and l.tries < $2
            and s.tenant_id = l.tenant_id and s.id = l.staff_id and s.removed_at is null
        returning l.id, l.tenant_id, l.staff_id, case when l.purpose = 'sign-in' then s.totp else l.totp end as totp,
            extract(epoch from clock_timestamp())::int8 as now";
    let row = tx.query_typed_opt(sql, &[(&hash, BYTEA), (&STAFF_TRIES_MAX, INT2)]).await.map_err(from_postgres)?;
    match row {
        Some(row) => count(tx, password_from(&row)?).await,
        None => Err(why(tx.client(), hash).await?.into()),
    }
}

async fn why(client: &Client, hash: &[u8]) -> Result<Reason> {
    let sql =
        "select tries >= $2 as used_up from staff_links where hash = $1 and used_at is null and expires_at > now()";
    let row = client.query_typed_opt(sql, &[(&hash, BYTEA), (&STAFF_TRIES_MAX, INT2)]).await.map_err(from_postgres)?;
    let used_up = row.map(|row| column::<bool>(&row, "used_up")).transpose()?;
    Ok(if used_up == Some(true) { Reason::TooManyAttempts } else { Reason::LinkWrong })
}
