//! Opened credentials, kept for a minute: a rotation is followed soon, and a sale does not read them per payment.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::SystemTime;

use domain::limits::{ACCOUNTS_READ_AGAIN_AFTER, ACCOUNTS_REMEMBERED_FOR, ACCOUNTS_REMEMBERED_MAX};
use domain::payments::Gateway;
use domain::{Reason, Result};
use edge::sealing::SealingKeys;
use gateways::Credentials;
use store::{Database, payments};
use uuid::Uuid;

type Account = (Uuid, Gateway);

/// The credentials of this instance's last stores. Times are of the wall clock, because a frozen environment's
/// monotonic clock may stand still.
pub(crate) struct Accounts {
    keys: SealingKeys,
    opened: Mutex<HashMap<Account, (SystemTime, Arc<Credentials>)>>,
}

impl Accounts {
    pub(crate) fn new(keys: SealingKeys) -> Self {
        Self { keys, opened: Mutex::default() }
    }

    pub(crate) async fn credentials(
        &self,
        database: &Database,
        tenant_id: Uuid,
        gateway: Gateway,
    ) -> Result<Arc<Credentials>> {
        let account = (tenant_id, gateway);
        if let Some(known) = self.known(account, SystemTime::now()) {
            return Ok(known);
        }
        let credentials = if gateway == Gateway::Manual {
            Credentials::Manual
        } else {
            let sealed = payments::find_account(&*database.client().await?, tenant_id, gateway).await?;
            let json = self.keys.open(&edge::sealing::context(tenant_id, gateway), &sealed.ok_or(Reason::NotFound)?)?;
            Credentials::parse(gateway, &json)?
        };
        let credentials = Arc::new(credentials);
        self.remember(account, Arc::clone(&credentials), SystemTime::now());
        Ok(credentials)
    }

    /// The credentials read anew, because what is remembered does not work: after a rotation. None when they were read
    /// a moment ago, so that nobody can make us read them all the time.
    pub(crate) async fn read_again(
        &self,
        database: &Database,
        tenant_id: Uuid,
        gateway: Gateway,
    ) -> Result<Option<Arc<Credentials>>> {
        if !self.forget((tenant_id, gateway), SystemTime::now()) {
            return Ok(None);
        }
        self.credentials(database, tenant_id, gateway).await.map(Some)
    }

    /// Forgets credentials unless they were read a moment ago; whether it did.
    fn forget(&self, account: Account, now: SystemTime) -> bool {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let is_old = opened
            .get(&account)
            .is_some_and(|(at, _)| now.duration_since(*at).map_or(true, |age| age >= ACCOUNTS_READ_AGAIN_AFTER));
        if is_old {
            opened.remove(&account);
        }
        is_old
    }

    fn known(&self, account: Account, now: SystemTime) -> Option<Arc<Credentials>> {
        let opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        let (at, credentials) = opened.get(&account)?;
        is_fresh(*at, now).then(|| Arc::clone(credentials))
    }

    fn remember(&self, account: Account, credentials: Arc<Credentials>, now: SystemTime) {
        let mut opened = self.opened.lock().unwrap_or_else(PoisonError::into_inner);
        if opened.len() >= ACCOUNTS_REMEMBERED_MAX {
            opened.retain(|_, (at, _)| is_fresh(*at, now));
            if opened.len() >= ACCOUNTS_REMEMBERED_MAX {
                opened.clear();
            }
        }
        opened.insert(account, (now, credentials));
    }
}

/// A clock set back ends the memory.
fn is_fresh(at: SystemTime, now: SystemTime) -> bool {
    now.duration_since(at).is_ok_and(|age| age < ACCOUNTS_REMEMBERED_FOR)
}
