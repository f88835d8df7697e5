//! Which chunks a group of orders must lock.

use std::collections::BTreeSet;

use rand::{Rng, RngExt};

use crate::catalog::Range;
use crate::limits::CHUNKS_PER_GROUP_MAX;
use crate::numbers::Ask;
use crate::orders::Fallback;

/// Where quick picks and substitutes may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// The chunks drawn for this group.
    Drawn(BTreeSet<i32>),
    /// Every chunk of the product; only this scope may answer sold-out.
    Every,
}

/// Chunks to lock, ascending, and where picks may come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plan {
    /// Chunks to lock, ascending.
    pub chunks: Vec<i32>,
    /// Where picks may come from.
    pub scope: Scope,
}

impl Plan {
    /// How many picks a group may need: quick picks, and a substitute for each exact number that may be lost.
    #[must_use]
    pub fn picks_wanted(asks: &[Ask]) -> i64 {
        let may_replace = |ask: &Ask| if ask.fallback == Fallback::Replace { ask.numbers.len() } else { 0 };
        asks.iter().map(|ask| i64::from(ask.quantity) + i64::try_from(may_replace(ask)).unwrap_or(i64::MAX)).sum()
    }

    /// A narrow plan. Exact numbers name their chunks; the chunks for picks are drawn with probability proportional
    /// to `available` (chunk, available; from an unlocked read, so a hint), afresh for every group. That keeps
    /// each number equally likely while a group touches few chunks.
    pub fn draw(range: Range, asks: &[Ask], available: &[(i32, i32)], rng: &mut impl Rng) -> Self {
        let mut chunks = exact_chunks(range, asks);
        let mut drawn = BTreeSet::new();
        let total: i64 = available.iter().map(|(_, n)| i64::from((*n).max(0))).sum();
        let picks = Self::picks_wanted(asks);
        if picks > 0 && total > 0 {
            let tries = usize::try_from(picks).unwrap_or(usize::MAX).min(4 * CHUNKS_PER_GROUP_MAX);
            for _ in 0..tries {
                if drawn.len() == CHUNKS_PER_GROUP_MAX {
                    break;
                }
                drawn.insert(weighted(available, rng.random_range(0..total)));
            }
        }
        chunks.extend(&drawn);
        Self { chunks: chunks.into_iter().collect(), scope: Scope::Drawn(drawn) }
    }

    /// The wide plan: every chunk of the product.
    #[must_use]
    pub fn every(range: Range) -> Self {
        Self { chunks: (0..range.chunk_count()).collect(), scope: Scope::Every }
    }
}

fn exact_chunks(range: Range, asks: &[Ask]) -> BTreeSet<i32> {
    asks.iter().flat_map(|ask| &ask.numbers).filter(|n| range.contains(**n)).map(|n| range.chunk_of(*n)).collect()
}

fn weighted(available: &[(i32, i32)], mut ticket: i64) -> i32 {
    for (chunk, n) in available {
        let n = i64::from((*n).max(0));
        if ticket < n {
            return *chunk;
        }
        ticket -= n;
    }
    unreachable!("the ticket is below the sum")
}
