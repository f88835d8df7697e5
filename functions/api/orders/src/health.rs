//! Whether intake is open, judged by the age of what already waits.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use domain::Result;
use domain::limits::{HEALTH_CACHE, INTAKE_CLOSES_AT_AGE};
use store::health::{self, Health};
use uuid::Uuid;

/// Products whose health one environment remembers.
const PRODUCTS_MAX: usize = 1_000;

/// The last look at each product's queue.
#[derive(Debug, Default)]
pub(crate) struct HealthCache(Mutex<HashMap<Uuid, (Instant, Health)>>);

impl HealthCache {
    /// Whether the product's queue, or the outbox, is too old to take more. Looks at most once a second.
    pub(crate) async fn is_overloaded(&self, client: &store::Client, product_id: Uuid) -> Result<bool> {
        if let Some(health) = self.recent(product_id) {
            return Ok(is_too_old(health));
        }
        let health = health::find(client, product_id).await?;
        let mut seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if seen.len() >= PRODUCTS_MAX {
            seen.clear();
        }
        seen.insert(product_id, (Instant::now(), health));
        Ok(is_too_old(health))
    }

    fn recent(&self, product_id: Uuid) -> Option<Health> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        seen.get(&product_id).filter(|(at, _)| at.elapsed() < HEALTH_CACHE).map(|(_, health)| *health)
    }
}

fn is_too_old(health: Health) -> bool {
    [health.oldest_queued, health.oldest_unpublished].into_iter().flatten().any(|age| age > INTAKE_CLOSES_AT_AGE)
}
