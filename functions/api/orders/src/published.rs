//! Acknowledging the outbox without a second commit per order.
//!
//! Ids of outbox rows whose messages were sent stay in memory until the next insert deletes the rows in its own
//! commit. What is forgotten, because the environment ends or the list is full, the relay clears.

use std::sync::{Mutex, PoisonError};

use domain::limits::PUBLISHED_IDS_MAX;
use uuid::Uuid;

/// Rows deleted by one insert, at most: its cost must not depend on what came before.
const PER_INSERT_MAX: usize = 32;

/// Ids of rows to delete.
#[derive(Debug, Default)]
pub(crate) struct Published(Mutex<Vec<Uuid>>);

impl Published {
    /// Remembers a row.
    pub(crate) fn remember(&self, id: Uuid) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if ids.len() < PUBLISHED_IDS_MAX {
            ids.push(id);
        }
    }

    /// The rows for the next insert. They stay remembered until [`Self::forget`].
    pub(crate) fn next(&self) -> Vec<Uuid> {
        let ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.iter().take(PER_INSERT_MAX).copied().collect()
    }

    /// Forgets rows whose deletion was committed.
    pub(crate) fn forget(&self, deleted: &[Uuid]) {
        let mut ids = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        ids.retain(|id| !deleted.contains(id));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn is_bounded_and_forgets_only_what_was_deleted() {
        let published = Published::default();
        for n in 0..1_000 {
            published.remember(Uuid::from_u128(n));
        }
        let batch = published.next();
        assert_eq!(batch.len(), PER_INSERT_MAX);
        assert_eq!(published.next(), batch, "an insert that failed leaves them for the next one");
        published.forget(&batch);
        assert!(published.next().iter().all(|id| !batch.contains(id)));
        let mut rest = 0;
        while !published.next().is_empty() {
            rest += published.next().len();
            published.forget(&published.next());
        }
        assert_eq!(rest, PUBLISHED_IDS_MAX - PER_INSERT_MAX);
    }
}
