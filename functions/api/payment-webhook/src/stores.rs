//! Which tenant a store's address means. Slugs do not change hands, so an instance may remember some.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use domain::limits::ACCOUNTS_REMEMBERED_MAX;
use domain::{Reason, Result};
use store::Database;
use uuid::Uuid;

/// The last stores of this instance.
#[derive(Debug, Default)]
pub(crate) struct Stores(Mutex<HashMap<String, Uuid>>);

impl Stores {
    pub(crate) async fn tenant(&self, database: &Database, slug: &str) -> Result<Uuid> {
        if let Some(known) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(slug) {
            return Ok(*known);
        }
        let store = store::catalog::find_store(&*database.client().await?, slug).await?.ok_or(Reason::NotFound)?;
        let mut stores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if stores.len() >= ACCOUNTS_REMEMBERED_MAX {
            stores.clear();
        }
        stores.insert(slug.to_owned(), store.id);
        Ok(store.id)
    }
}
