//! What an instance knows about a product: read at most once a second, however many ask.
//!
//! Bounded in products and in time. Times are those of the wall clock, because a frozen environment's monotonic clock
//! may stand still, and minutes-old counters would look fresh after the thaw.

use std::collections::HashMap;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use domain::Result;
use domain::catalog::Intake;
use store::catalog::{Availability, Product};
use store::{Client, Database};
use tokio::sync::Mutex;
use uuid::Uuid;

use crate::availability::buckets::{self, Buckets};
use crate::products::effective;

/// How long an instance trusts its last look: as long as the answers' `max-age`.
const FRESH_FOR: Duration = Duration::from_secs(1);

/// Products that one instance remembers, a few KiB each.
const PRODUCTS_MAX: usize = 256;

/// A product at one moment.
#[derive(Debug, Clone)]
pub(crate) struct Snapshot {
    /// As its seller describes it.
    pub(crate) product: Product,
    /// Whether new orders are taken, by all three switches.
    pub(crate) intake: Intake,
    /// Its counters.
    pub(crate) availability: Availability,
    /// Where available numbers are.
    pub(crate) buckets: Arc<Buckets>,
}

impl Snapshot {
    /// A tag that changes with anything an answer says.
    pub(crate) fn tag(&self) -> String {
        format!("{}-{}-{}", self.product.version, self.availability.version, self.intake.word())
    }
}

/// The snapshots of one instance.
#[derive(Default)]
pub(crate) struct Snapshots(Mutex<HashMap<Uuid, Entry>>);

struct Entry {
    read_at: SystemTime,
    snapshot: Arc<Snapshot>,
}

impl Entry {
    fn is_fresh(&self, now: SystemTime) -> bool {
        now.duration_since(self.read_at).is_ok_and(|age| age < FRESH_FOR)
    }
}

impl Snapshots {
    /// The product as it was at most a second ago.
    ///
    /// The lock is held while reading, so that a burst reads once. That costs nothing: an environment serves one
    /// request at a time and has one connection.
    ///
    /// # Errors
    /// Not-found, or busy or fault from the database.
    pub(crate) async fn read(&self, database: &Database, id: Uuid) -> Result<Arc<Snapshot>> {
        let mut entries = self.0.lock().await;
        let now = SystemTime::now();
        let known = entries.get(&id);
        if let Some(entry) = known.filter(|entry| entry.is_fresh(now)) {
            return Ok(entry.snapshot.clone());
        }
        let known = known.map(|entry| entry.snapshot.clone());
        let snapshot = Arc::new(load(&database.client().await?, id, known.as_deref()).await?);
        make_room(&mut entries, id);
        entries.insert(id, Entry { read_at: now, snapshot: snapshot.clone() });
        Ok(snapshot)
    }
}

/// Reads what may have changed; the bits only if they have.
async fn load(client: &Client, id: Uuid, known: Option<&Snapshot>) -> Result<Snapshot> {
    let product = store::catalog::require_product(client, id).await?;
    let above = store::switches::find_intake_of_tenant(client, product.described.tenant_id).await?;
    let range = product.described.range;
    let known = known.filter(|known| known.product.described.range == range);
    let known_version = known.map(|known| known.availability.version);
    let bitmap = store::catalog::find_bitmap(client, product.key, known_version).await?;
    let buckets = match (bitmap.chunks, known) {
        (None, Some(known)) => known.buckets.clone(),
        (chunks, _) => Arc::new(buckets::count(range, &chunks.unwrap_or_default())),
    };
    Ok(Snapshot { intake: effective(&product, above), availability: bitmap.availability, product, buckets })
}

/// Forgets the oldest entry when a new product would be one too many.
fn make_room(entries: &mut HashMap<Uuid, Entry>, id: Uuid) {
    if entries.len() < PRODUCTS_MAX || entries.contains_key(&id) {
        return;
    }
    if let Some(oldest) = entries.iter().min_by_key(|(_, entry)| entry.read_at).map(|(id, _)| *id) {
        entries.remove(&oldest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tests::snapshot;

    #[test]
    fn a_snapshot_is_fresh_for_a_second_and_never_from_the_future() {
        let read_at = SystemTime::UNIX_EPOCH + Duration::from_secs(100);
        let entry = Entry { read_at, snapshot: Arc::new(snapshot()) };
        assert!(entry.is_fresh(read_at + Duration::from_millis(999)));
        assert!(!entry.is_fresh(read_at + Duration::from_secs(1)));
        assert!(!entry.is_fresh(read_at - Duration::from_millis(1)), "the clock was set back");
    }

    #[test]
    fn the_oldest_product_makes_room() {
        let mut entries = HashMap::new();
        let snapshot = Arc::new(snapshot());
        for n in 0..2 * PRODUCTS_MAX as u64 {
            let id = Uuid::from_u128(n.into());
            make_room(&mut entries, id);
            let read_at = SystemTime::UNIX_EPOCH + Duration::from_secs(n);
            entries.insert(id, Entry { read_at, snapshot: snapshot.clone() });
        }
        assert_eq!(entries.len(), PRODUCTS_MAX);
        assert!(entries.contains_key(&Uuid::from_u128(2 * PRODUCTS_MAX as u128 - 1)));
        assert!(!entries.contains_key(&Uuid::from_u128(PRODUCTS_MAX as u128 - 1)));
    }
}
