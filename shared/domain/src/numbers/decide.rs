//! Who gets which numbers, order by order, inside locked chunks.

use std::collections::HashMap;

use rand::{Rng, RngExt};
use uuid::Uuid;

use crate::catalog::Range;
use crate::errors::Reason;
use crate::limits::SUGGESTIONS_MAX;
use crate::numbers::{Chunk, Kind, Scope};
use crate::orders::Fallback;

/// One order's wish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ask {
    /// The order.
    pub order_id: Uuid,
    /// Its buyer.
    pub buyer_id: Uuid,
    /// Exact numbers, ascending, no duplicates.
    pub numbers: Vec<i32>,
    /// Numbers to pick at random.
    pub quantity: i32,
    /// What to do when exact numbers are taken.
    pub fallback: Fallback,
}

/// What an order gets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decision {
    /// Numbers are taken in its name.
    Reserved {
        /// Numbers of the order, ascending.
        numbers: Vec<i32>,
        /// Exact numbers that others have.
        lost: Vec<i32>,
        /// Which of `numbers` stand in for lost ones.
        substitutes: Vec<i32>,
    },
    /// It gets nothing.
    Rejected {
        /// Why.
        reason: Reason,
        /// Exact numbers that others have.
        lost: Vec<i32>,
    },
}

/// The locked chunks hold too few numbers for a pick. The group must be planned again over every chunk, because
/// locking one more chunk now could break the lock order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooNarrow;

/// Hands out numbers of one product inside one transaction. Orders are decided in the order of the calls.
#[derive(Debug)]
pub struct Decider<'a, R> {
    range: Range,
    /// Ascending.
    chunks: Vec<Chunk>,
    /// Positions of the chunks that picks may come from.
    drawn: Vec<usize>,
    every_chunk: bool,
    held: HashMap<Uuid, i32>,
    per_buyer_max: i32,
    rng: &'a mut R,
    taken: Vec<i32>,
}

impl<'a, R: Rng> Decider<'a, R> {
    /// A decider over locked chunks, ascending, and locked holdings (numbers held per buyer; absent = 0).
    pub fn new(
        range: Range,
        scope: Scope,
        chunks: Vec<Chunk>,
        held: HashMap<Uuid, i32>,
        per_buyer_max: i32,
        rng: &'a mut R,
    ) -> Self {
        let in_scope = |chunk: &Chunk| match &scope {
            Scope::Every => true,
            Scope::Drawn(drawn) => drawn.contains(&chunk.index()),
        };
        let drawn = chunks.iter().enumerate().filter(|(_, chunk)| in_scope(chunk)).map(|(at, _)| at).collect();
        let every_chunk = scope == Scope::Every;
        Self { range, chunks, drawn, every_chunk, held, per_buyer_max, rng, taken: Vec::new() }
    }

    /// Decides one order and takes its numbers.
    ///
    /// # Errors
    /// [`TooNarrow`] when a pick needs chunks that are not locked; nothing of this order stays taken then.
    pub fn decide(&mut self, ask: &Ask) -> Result<Decision, TooNarrow> {
        self.taken.clear();
        let decision = self.attempt(ask);
        if !matches!(decision, Ok(Decision::Reserved { .. })) {
            self.undo();
        } else {
            *self.held.entry(ask.buyer_id).or_default() += count(&self.taken);
            self.taken.clear();
        }
        decision
    }

    /// Gives back what an order that did not finish had taken. Called after a panic inside [`Self::decide`].
    pub fn undo(&mut self) {
        for number in std::mem::take(&mut self.taken) {
            if let Some(at) = self.position(number) {
                self.chunks[at].give_back(number, Kind::Reserved);
            }
        }
    }

    /// Up to [`SUGGESTIONS_MAX`] free numbers for an order that lost some, spread at random over the chunks of the
    /// lost numbers: were they always the nearest, all losers would meet again at the same number.
    pub fn suggest(&mut self, lost: &[i32]) -> Vec<i32> {
        let mut suggestions = Vec::new();
        for number in lost.iter().cycle().take(if lost.is_empty() { 0 } else { 2 * SUGGESTIONS_MAX }) {
            if suggestions.len() == SUGGESTIONS_MAX {
                break;
            }
            let at = self.position(*number);
            if let Some(free) = at.and_then(|at| self.chunks[at].random_free(self.rng))
                && !suggestions.contains(&free)
            {
                suggestions.push(free);
            }
        }
        suggestions.sort_unstable();
        suggestions
    }

    /// The chunks, changed ones among them.
    #[must_use]
    pub fn into_chunks(self) -> Vec<Chunk> {
        self.chunks
    }

    /// Where the chunk of a number is; none when it is not locked or there is no such number.
    fn position(&self, number: i32) -> Option<usize> {
        let index = self.range.contains(number).then(|| self.range.chunk_of(number))?;
        self.chunks.binary_search_by_key(&index, Chunk::index).ok()
    }

    fn attempt(&mut self, ask: &Ask) -> Result<Decision, TooNarrow> {
        let room = (self.per_buyer_max - self.held.get(&ask.buyer_id).copied().unwrap_or(0)).max(0);
        let all_or_nothing = ask.fallback == Fallback::Reject;
        let asked = count(&ask.numbers).saturating_add(ask.quantity);
        if room == 0 || (all_or_nothing && asked > room) {
            return Ok(Decision::Rejected { reason: Reason::LimitExceeded, lost: Vec::new() });
        }
        let (got, lost) = self.take_exact(&ask.numbers, room);
        if all_or_nothing && !lost.is_empty() {
            return Ok(Decision::Rejected { reason: Reason::NumbersTaken, lost });
        }
        let wanted_substitutes = if ask.fallback == Fallback::Replace { count(&lost) } else { 0 };
        let substitutes = self.pick(wanted_substitutes.min(room - count(&got)))?;
        let picks = self.pick(ask.quantity.min(room - count(&got) - count(&substitutes)))?;
        if all_or_nothing && count(&picks) < ask.quantity {
            return Ok(Decision::Rejected { reason: Reason::SoldOut, lost });
        }
        let mut numbers = [got, picks].concat();
        numbers.extend(&substitutes);
        numbers.sort_unstable();
        if numbers.is_empty() {
            let wanted_picks = ask.quantity > 0 || ask.fallback == Fallback::Replace;
            let reason = if wanted_picks { Reason::SoldOut } else { Reason::NumbersTaken };
            return Ok(Decision::Rejected { reason, lost });
        }
        Ok(Decision::Reserved { numbers, lost, substitutes })
    }

    /// Takes exact numbers up to `room`; the rest of the free ones are given up, the others are lost.
    fn take_exact(&mut self, numbers: &[i32], room: i32) -> (Vec<i32>, Vec<i32>) {
        let (mut got, mut lost) = (Vec::new(), Vec::new());
        for &number in numbers {
            match self.position(number) {
                Some(at) if self.chunks[at].is_free(number) => {
                    if count(&got) < room {
                        self.chunks[at].take(number, Kind::Reserved);
                        self.taken.push(number);
                        got.push(number);
                    }
                }
                _ => lost.push(number),
            }
        }
        (got, lost)
    }

    /// Takes `wanted` random numbers, or as many as there are when every chunk is in scope.
    fn pick(&mut self, wanted: i32) -> Result<Vec<i32>, TooNarrow> {
        let mut picks = Vec::new();
        for _ in 0..wanted.max(0) {
            let Some(number) = self.pick_one() else { if self.every_chunk { break } else { return Err(TooNarrow) } };
            self.taken.push(number);
            picks.push(number);
        }
        Ok(picks)
    }

    fn pick_one(&mut self) -> Option<i32> {
        let share = |chunk: &Chunk| i64::from(chunk.counters().available.max(0));
        let total: i64 = self.drawn.iter().map(|at| share(&self.chunks[*at])).sum();
        if total == 0 {
            return None;
        }
        let mut ticket = self.rng.random_range(0..total);
        for at in &self.drawn {
            let chunk = &mut self.chunks[*at];
            let share = share(chunk);
            if ticket < share {
                let number = chunk.random_free(self.rng)?;
                chunk.take(number, Kind::Reserved);
                return Some(number);
            }
            ticket -= share;
        }
        None
    }
}

fn count(numbers: &[i32]) -> i32 {
    i32::try_from(numbers.len()).unwrap_or(i32::MAX)
}

#[cfg(test)]
mod tests;
