//! What a store tells its buyers, and where a buyer wants it.

use domain::login::Phone;
use domain::notices::Kind;
use domain::staff::Email;
use domain::{Error, Reason, Result};
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{TEXT, TEXTS, UUID};

/// The kinds of notices that a store's buyers get.
///
/// # Errors
/// Not-found when there is no such store, or busy or fault from the database.
pub async fn list_kinds(client: &Client, tenant_id: Uuid) -> Result<Vec<Kind>> {
    let sql = "select notices from tenants where id = $1";
    let row = client.query_typed_opt(sql, &[(&tenant_id, UUID)]).await.map_err(from_postgres)?;
    let words: Vec<String> = column(&row.ok_or(Reason::NotFound)?, "notices")?;
    let kinds: Option<Vec<Kind>> = words.iter().map(|word| Kind::from_word(word)).collect();
    kinds.ok_or_else(|| Error::fault("a store has an unknown kind of notices"))
}

/// Puts other kinds in their place. Owed notices of kinds that are gone are not sent.
///
/// # Errors
/// Not-found when there is no such store, or busy or fault from the database.
pub async fn save_kinds(client: &Client, tenant_id: Uuid, kinds: &[Kind]) -> Result<()> {
    let words: Vec<&str> = kinds.iter().map(|kind| kind.word()).collect();
    let sql = "update tenants set notices = $2 where id = $1";
    let changed = client.execute_typed(sql, &[(&tenant_id, UUID), (&words, TEXTS)]).await.map_err(from_postgres)?;
    if changed == 1 { Ok(()) } else { Err(Reason::NotFound.into()) }
}

/// Where a buyer's notices go beside the phone; nowhere with none.
///
/// # Errors
/// Not-found when no buyer of the store has that phone, or busy or fault from the database.
pub async fn save_email(client: &Client, tenant_id: Uuid, phone: &Phone, email: Option<&Email>) -> Result<()> {
    let sql = "update buyers set email = $3 where tenant_id = $1 and phone = $2";
    let email = email.map(Email::as_str);
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&phone.as_str(), TEXT), (&email, TEXT)];
    let changed = client.execute_typed(sql, &params).await.map_err(from_postgres)?;
    if changed == 1 { Ok(()) } else { Err(Reason::NotFound.into()) }
}
