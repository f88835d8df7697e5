//! Who works for a store: invited, changed, removed. A store always keeps an owner who has joined.

use domain::limits::STAFF_PER_STORE_MAX;
use domain::roles::Role;
use domain::staff::{Email, LinkPurpose};
use domain::{Reason, Result};
use time::OffsetDateTime;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row, Transaction};
use uuid::Uuid;

use super::links::{NewLink, end_links, make_enrolment};
use super::sessions::end_all;
use super::sign_in::{id, role};
use crate::acts::{NewAct, claim_key, log, record};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{INT8, TEXT, UUID};

/// Somebody of a store's staff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    /// Who.
    pub id: Uuid,
    /// Their address.
    pub email: String,
    /// Their role.
    pub role: Role,
    /// When they were invited.
    pub created_at: OffsetDateTime,
    /// When they accepted.
    pub joined_at: Option<OffsetDateTime>,
}

/// A store's staff by id, after one of them; removed ones not.
///
/// # Errors
/// Busy or fault from the database.
pub async fn list(client: &Client, tenant_id: Uuid, after: Option<Uuid>, limit: usize) -> Result<Vec<Member>> {
    let sql = "select id, email, role, created_at, joined_at from staff
        where tenant_id = $1 and removed_at is null and ($2::uuid is null or id > $2) order by id limit $3";
    let limit = i64::try_from(limit).unwrap_or(STAFF_PER_STORE_MAX);
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&after, UUID), (&limit, INT8)];
    let rows = client.query_typed(sql, &params).await.map_err(from_postgres)?;
    rows.iter().map(member_from).collect()
}

/// Somebody of a store's staff by their address.
///
/// # Errors
/// Busy or fault from the database.
pub async fn find_by_email(client: &Client, tenant_id: Uuid, email: &Email) -> Result<Option<Member>> {
    let sql = "select id, email, role, created_at, joined_at from staff
        where tenant_id = $1 and email = $2 and removed_at is null";
    let row = client.query_typed_opt(sql, &[(&tenant_id, UUID), (&email.as_str(), TEXT)]).await;
    row.map_err(from_postgres)?.as_ref().map(member_from).transpose()
}

fn member_from(row: &Row) -> Result<Member> {
    Ok(Member {
        id: id(row)?,
        email: column(row, "email")?,
        role: role(row)?,
        created_at: column(row, "created_at")?,
        joined_at: column(row, "joined_at")?,
    })
}

/// Somebody about to be invited.
#[derive(Debug, Clone, Copy)]
pub struct Invite<'a> {
    /// Id of a new member of staff.
    pub id: Uuid,
    /// Where the link goes.
    pub email: &'a Email,
    /// As what.
    pub role: Role,
    /// The link.
    pub link: NewLink<'a>,
}

/// What became of an invitation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Invited {
    /// The link is good now.
    Now {
        /// Who.
        id: Uuid,
        /// Name of the store.
        store: String,
    },
    /// The same was done under the key before.
    Before {
        /// Who.
        id: Uuid,
    },
}

/// Invites somebody, or invites them once more as long as they have not joined: then only the last link is good.
///
/// # Errors
/// Staff-exists when they have joined, limit-exceeded when the store has too many; busy or fault from the database.
pub async fn invite(client: &mut Client, invite: &Invite<'_>, act: &NewAct) -> Result<Invited> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let is_new = claim_key(&tx, act).await?;
    if !is_new {
        let known = find_by_email(tx.client(), act.tenant_id, invite.email).await?.ok_or(Reason::NotFound)?;
        return Ok(Invited::Before { id: known.id });
    }
    let sql = "insert into staff (id, tenant_id, email, role)
        select $1, $2, $3, $4
        where (select count(*) from staff where tenant_id = $2 and email <> $3 and removed_at is null) < $5
        on conflict (tenant_id, email) where removed_at is null
            do update set role = excluded.role where staff.joined_at is null
        returning id, (select name from tenants where id = $2) as store";
    let params: [(&(dyn ToSql + Sync), _); 5] = [
        (&invite.id, UUID),
        (&act.tenant_id, UUID),
        (&invite.email.as_str(), TEXT),
        (&invite.role.word(), TEXT),
        (&STAFF_PER_STORE_MAX, INT8),
    ];
    let Some(row) = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)? else {
        let known = find_by_email(tx.client(), act.tenant_id, invite.email).await?;
        let has_joined = known.is_some_and(|known| known.joined_at.is_some());
        return Err(if has_joined { Reason::StaffExists } else { Reason::LimitExceeded }.into());
    };
    let (staff_id, store) = (id(&row)?, column(&row, "store")?);
    make_enrolment(&tx, act.tenant_id, staff_id, LinkPurpose::Invitation, invite.link).await?;
    log(&tx, &NewAct { subject_id: staff_id, ..act.clone() }).await?;
    tx.commit().await.map_err(from_postgres)?;
    Ok(Invited::Now { id: staff_id, store })
}

/// Gives somebody another role, from their next request on.
///
/// # Errors
/// Not-found, last-owner when nobody else would own the store; busy or fault from the database.
pub async fn change_role(client: &mut Client, role: Role, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    if role != Role::Owner {
        keep_an_owner(&tx, act).await?;
    }
    let sql = "update staff set role = $3 where tenant_id = $1 and id = $2 and removed_at is null";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&act.tenant_id, UUID), (&act.subject_id, UUID), (&role.word(), TEXT)];
    if tx.execute_typed(sql, &params).await.map_err(from_postgres)? == 0 {
        return Err(Reason::NotFound.into());
    }
    record(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)
}

/// Removes somebody: nothing of theirs is good from their next request on.
///
/// # Errors
/// Not-found, last-owner when nobody else would own the store; busy or fault from the database.
pub async fn remove(client: &mut Client, act: &NewAct) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    keep_an_owner(&tx, act).await?;
    let sql = "update staff set removed_at = now() where tenant_id = $1 and id = $2 and removed_at is null";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&act.tenant_id, UUID), (&act.subject_id, UUID)];
    if tx.execute_typed(sql, &params).await.map_err(from_postgres)? == 0 {
        return Err(Reason::NotFound.into());
    }
    end_all(&tx, act.tenant_id, act.subject_id, "removal").await?;
    end_links(&tx, act.tenant_id, act.subject_id).await?;
    record(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)
}

/// Locks a store's owners, so that two of them cannot remove each other; refuses when the act would leave none.
async fn keep_an_owner(tx: &Transaction<'_>, act: &NewAct) -> Result<()> {
    let sql = "select id from staff
        where tenant_id = $1 and role = 'owner' and removed_at is null and joined_at is not null
        order by id for no key update";
    let rows = tx.query_typed(sql, &[(&act.tenant_id, UUID)]).await.map_err(from_postgres)?;
    let owners: Vec<Uuid> = rows.iter().map(id).collect::<Result<_>>()?;
    if owners == [act.subject_id] { Err(Reason::LastOwner.into()) } else { Ok(()) }
}

/// Makes a link with which somebody sets one-time passwords up again. The old ones are good until they do.
///
/// # Errors
/// Not-found when they have not joined; busy or fault from the database.
pub async fn recover(client: &mut Client, link: NewLink<'_>, act: &NewAct) -> Result<Option<(Email, String)>> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    if !record(&tx, act).await? {
        return Ok(None);
    }
    let sql = "select s.email, t.name from staff s join tenants t on t.id = s.tenant_id
        where s.tenant_id = $1 and s.id = $2 and s.removed_at is null and s.joined_at is not null
        for no key update of s";
    let params: [(&(dyn ToSql + Sync), _); 2] = [(&act.tenant_id, UUID), (&act.subject_id, UUID)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?.ok_or(Reason::NotFound)?;
    make_enrolment(&tx, act.tenant_id, act.subject_id, LinkPurpose::Recovery, link).await?;
    tx.commit().await.map_err(from_postgres)?;
    let email = Email::parse(column(&row, "email")?).ok_or_else(|| domain::Error::fault("no address"))?;
    Ok(Some((email, column(&row, "name")?)))
}
