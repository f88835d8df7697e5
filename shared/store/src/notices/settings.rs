//! What a store tells its buyers, and where a buyer wants it.

use domain::login::Phone;
use domain::notices::Kind;
use domain::staff::Email;
use domain::{Error, Reason, Result};
use serde_json::json;
use tokio_postgres::Client;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use crate::acts::{OperatorAct, Subject, log_of_operator_with};
use crate::errors::from_postgres;
use crate::rows::column;
use crate::types::{TEXT, UUID};

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

/// Says, as the platform's operator, where a buyer's notices go beside the phone; nowhere with none.
///
/// # Errors
/// Not-found when no buyer of the store has that phone, or busy or fault from the database.
pub async fn save_email(client: &mut Client, tenant_id: Uuid, phone: &Phone, email: Option<&Email>) -> Result<()> {
    let tx = client.transaction().await.map_err(from_postgres)?;
    let sql = "update buyers set email = $3 where tenant_id = $1 and phone = $2 returning id";
    let email = email.map(Email::as_str);
    let params: [(&(dyn ToSql + Sync), _); 3] = [(&tenant_id, UUID), (&phone.as_str(), TEXT), (&email, TEXT)];
    let row = tx.query_typed_opt(sql, &params).await.map_err(from_postgres)?;
    let buyer = (Subject::Buyer, column(&row.ok_or(Reason::NotFound)?, "id")?);
    let detail = json!({ "mails": email.is_some() });
    log_of_operator_with(&tx, tenant_id, OperatorAct::SetBuyerEmail, buyer, &detail, None).await?;
    tx.commit().await.map_err(from_postgres)
}
