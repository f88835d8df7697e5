//! Stores: opened by the platform's operator, looked after by their owners.

use domain::catalog::{Intake, is_label};
use domain::notices::Kind;
use domain::text::is_store_name;
use domain::{Error, Reason, Result};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, Row};
use uuid::Uuid;

use crate::acts::{NewAct, OperatorAct, Subject, log, log_of_operator};
use crate::errors::from_postgres;
use crate::rows::{column, one_word};
use crate::types::{TEXT, TEXTS, UUID};

/// How a store works.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its name in URLs.
    pub slug: String,
    /// Its name for people.
    pub name: String,
    /// Whether new orders are taken.
    pub intake: Intake,
    /// Why not, or why again.
    pub intake_reason: Option<String>,
    /// Calling codes of the countries that login codes and notices are sent to.
    pub phone_prefixes: Vec<String>,
    /// What its buyers are told.
    pub notices: Vec<Kind>,
}

/// What is to change of it; what is absent stays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SettingsChange {
    /// Its name for people.
    pub name: Option<String>,
    /// What its buyers are told. Owed notices of kinds that are gone are not sent.
    pub notices: Option<Vec<Kind>>,
}

/// Opens a store that sells nothing yet and has no staff. False, and nothing changed, when its slug is taken.
///
/// # Errors
/// Invalid when slug or name have another form; busy or fault from the database.
pub async fn open(client: &mut Client, id: Uuid, slug: &str, name: &str) -> Result<bool> {
    if !is_label(slug) || !is_store_name(name) {
        return Err(Reason::Invalid.into());
    }
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "insert into tenants (id, slug, name) values ($1, $2, $3)
        on conflict on constraint tenants_slug_unique do nothing";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&id, UUID), (&slug, TEXT), (&name, TEXT)];
    let is_new = tx.execute_typed(sql, &params).await.map_err(from_postgres)? == 1;
    if is_new {
        log_of_operator(&tx, id, OperatorAct::OpenStore, Subject::Store, id).await?;
    }
    tx.commit().await.map_err(from_postgres)?;
    Ok(is_new)
}

/// How a store works.
///
/// # Errors
/// Not-found when there is no such store, or busy or fault from the database.
pub async fn find_settings(client: &Client, tenant_id: Uuid) -> Result<Settings> {
    let sql = "select slug, name, intake, intake_reason, phone_prefixes, notices from tenants where id = $1";
    let row = client.query_typed_opt(sql, &[(&tenant_id, UUID)]).await.map_err(from_postgres)?;
    settings_from(&row.ok_or(Reason::NotFound)?)
}

/// Changes how the store of an act works; how it works then.
///
/// # Errors
/// Invalid when a name has another form; not-found, or busy or fault from the database.
pub async fn change_settings(client: &mut Client, change: &SettingsChange, act: &NewAct) -> Result<Settings> {
    if change.name.as_deref().is_some_and(|name| !is_store_name(name)) {
        return Err(Reason::Invalid.into());
    }
    let kinds = change.notices.as_deref().map(|kinds| kinds.iter().map(|kind| kind.word()).collect::<Vec<_>>());
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update tenants set name = coalesce($2, name), notices = coalesce($3, notices) where id = $1
        returning slug, name, intake, intake_reason, phone_prefixes, notices";
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&act.tenant_id, UUID), (&change.name, TEXT), (&kinds, TEXTS)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?.ok_or(Reason::NotFound)?;
    log(&tx, act).await?;
    tx.commit().await.map_err(from_postgres)?;
    settings_from(&row)
}

fn settings_from(row: &Row) -> Result<Settings> {
    let words: Vec<String> = column(row, "notices")?;
    let kinds: Option<Vec<Kind>> = words.iter().map(|word| Kind::from_word(word)).collect();
    Ok(Settings {
        slug: column(row, "slug")?,
        name: column(row, "name")?,
        intake: one_word(row, "intake", Intake::from_word)?,
        intake_reason: column(row, "intake_reason")?,
        phone_prefixes: column(row, "phone_prefixes")?,
        notices: kinds.ok_or_else(|| Error::fault("a store has an unknown kind of notices"))?,
    })
}
