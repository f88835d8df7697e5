//! One chunk of a product's bitmap with its counters.

use rand::{Rng, RngExt};

use crate::catalog::Range;
use crate::errors::{Error, Result};
use crate::limits::{BYTES_PER_CHUNK, NUMBERS_PER_CHUNK};

const WORDS: usize = BYTES_PER_CHUNK / 8;

/// Numbers looked at by chance before the free ones are counted: counting costs about as much as eight looks.
const RANDOM_TRIES: u32 = 8;

/// In whose hands a number is. Numbers in nobody's hands have no kind: they are available.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// Held for an order until its hold expires.
    Reserved,
    /// Paid.
    Paid,
    /// Withdrawn from sale by staff.
    Blocked,
}

impl Kind {
    /// The word used in the database.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Reserved => "reserved",
            Self::Paid => "paid",
            Self::Blocked => "blocked",
        }
    }

    /// The kind with this word.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        [Self::Reserved, Self::Paid, Self::Blocked].into_iter().find(|kind| kind.word() == word)
    }
}

/// How many numbers are in whose hands. They always add up to the size of what they count.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counters {
    /// Free to take.
    pub available: i32,
    /// Held for orders.
    pub reserved: i32,
    /// Paid.
    pub paid: i32,
    /// Withdrawn.
    pub blocked: i32,
}

impl Counters {
    /// Numbers counted.
    #[must_use]
    pub const fn total(&self) -> i32 {
        self.available + self.reserved + self.paid + self.blocked
    }

    const fn of(&mut self, kind: Kind) -> &mut i32 {
        match kind {
            Kind::Reserved => &mut self.reserved,
            Kind::Paid => &mut self.paid,
            Kind::Blocked => &mut self.blocked,
        }
    }
}

/// What a comparison of a chunk with the rows behind it found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Disagreement {
    /// The bit says free, a row says taken.
    pub wrongly_free: Vec<i32>,
    /// The bit says taken, there is no row.
    pub wrongly_taken: Vec<i32>,
    /// Counters as they should be, when they are not.
    pub counters: Option<Counters>,
    /// Bits beyond the range are not all set, or the stored size is wrong.
    pub padding: bool,
}

impl Disagreement {
    /// Whether bits, counters and rows agree.
    #[must_use]
    pub const fn is_none(&self) -> bool {
        self.wrongly_free.is_empty() && self.wrongly_taken.is_empty() && self.counters.is_none() && !self.padding
    }
}

/// One chunk. Bit `i % 8` of byte `i / 8` belongs to the chunk's i-th number; 1 = not available. Bits beyond the
/// range are always 1, belong to no counter and are never picked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chunk {
    index: i32,
    first: i32,
    size: i32,
    words: [u64; WORDS],
    counters: Counters,
    changed: bool,
}

impl Chunk {
    /// A chunk of a new product: everything available.
    #[must_use]
    pub fn new(range: Range, index: i32) -> Self {
        let size = range.chunk_size(index);
        let counters = Counters { available: size, ..Counters::default() };
        Self { index, first: range.chunk_first(index), size, words: padding(size), counters, changed: false }
    }

    /// A chunk as stored.
    ///
    /// # Errors
    /// A fault when the bitmap has not exactly [`BYTES_PER_CHUNK`] bytes.
    pub fn from_stored(range: Range, index: i32, bits: &[u8], counters: Counters) -> Result<Self> {
        if bits.len() != BYTES_PER_CHUNK {
            return Err(Error::fault(format!("chunk {index} has {} bytes", bits.len())));
        }
        let mut words = [0_u64; WORDS];
        for (word, bytes) in words.iter_mut().zip(bits.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Ok(Self {
            index,
            first: range.chunk_first(index),
            size: range.chunk_size(index),
            words,
            counters,
            changed: false,
        })
    }

    /// The bitmap as stored.
    #[must_use]
    pub fn bits(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(BYTES_PER_CHUNK);
        for word in &self.words {
            bytes.extend_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Position among the product's chunks.
    #[must_use]
    pub const fn index(&self) -> i32 {
        self.index
    }

    /// The counters.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Whether anything changed since it was loaded.
    #[must_use]
    pub const fn is_changed(&self) -> bool {
        self.changed
    }

    /// Whether bits and counters agree on how many numbers are available. Cheap, and false for most damage: a chunk
    /// that does not add up must not answer sold-out.
    #[must_use]
    pub fn adds_up(&self) -> bool {
        let free: u32 = self.words.iter().map(|word| word.count_zeros()).sum();
        i32::try_from(free) == Ok(self.counters.available) && self.counters.total() == self.size
    }

    /// Whether the number, which must lie in this chunk, is available.
    #[must_use]
    pub fn is_free(&self, number: i32) -> bool {
        let (word, mask) = self.place(number);
        self.words[word] & mask == 0
    }

    /// Takes an available number; false, and no change, when it is not available.
    pub fn take(&mut self, number: i32, kind: Kind) -> bool {
        let (word, mask) = self.place(number);
        if self.words[word] & mask != 0 {
            return false;
        }
        self.words[word] |= mask;
        self.counters.available -= 1;
        *self.counters.of(kind) += 1;
        self.changed = true;
        true
    }

    /// Makes a reserved number paid; false, and no change, when it is available. Only the counters show it.
    pub fn pay(&mut self, number: i32) -> bool {
        let (word, mask) = self.place(number);
        if self.words[word] & mask == 0 {
            return false;
        }
        self.counters.reserved -= 1;
        self.counters.paid += 1;
        self.changed = true;
        true
    }

    /// Gives a taken number back; false, and no change, when it is available already.
    pub fn give_back(&mut self, number: i32, kind: Kind) -> bool {
        let (word, mask) = self.place(number);
        if self.words[word] & mask == 0 {
            return false;
        }
        self.words[word] &= !mask;
        self.counters.available += 1;
        *self.counters.of(kind) -= 1;
        self.changed = true;
        true
    }

    /// A uniformly random available number, if the bitmap has one.
    ///
    /// First some numbers at random: one that is available is as likely as any other available one. Only where few
    /// are left are they counted.
    pub fn random_free(&self, rng: &mut impl Rng) -> Option<i32> {
        for _ in 0..RANDOM_TRIES {
            let number = self.first + rng.random_range(0..self.size);
            if self.is_free(number) {
                return Some(number);
            }
        }
        let free: u32 = self.words.iter().map(|word| word.count_zeros()).sum();
        if free == 0 {
            return None;
        }
        let mut skip = rng.random_range(0..free);
        for (position, word) in self.words.iter().enumerate() {
            let zeros = word.count_zeros();
            if skip >= zeros {
                skip -= zeros;
                continue;
            }
            let mut free_bits = !word;
            for _ in 0..skip {
                free_bits &= free_bits - 1;
            }
            return Some(self.number(position, free_bits.trailing_zeros()));
        }
        None
    }

    /// Compares bits and counters with the rows behind them: (number, kind) of every taken number of this chunk.
    #[must_use]
    pub fn compare(&self, rows: &[(i32, Kind)]) -> Disagreement {
        let truth = self.rebuilt(rows);
        let mut found = Disagreement::default();
        for (position, (mine, right)) in self.words.iter().zip(&truth.words).enumerate() {
            let mut differs = mine ^ right;
            while differs != 0 {
                let bit = differs.trailing_zeros();
                differs &= differs - 1;
                let number = self.number(position, bit);
                if number - self.first >= self.size {
                    found.padding = true;
                } else if right & (1 << bit) != 0 {
                    found.wrongly_free.push(number);
                } else {
                    found.wrongly_taken.push(number);
                }
            }
        }
        found.counters = (self.counters != truth.counters).then_some(truth.counters);
        found
    }

    /// The chunk as the rows say it should be.
    #[must_use]
    pub fn rebuilt(&self, rows: &[(i32, Kind)]) -> Self {
        let counters = Counters { available: self.size, ..Counters::default() };
        let mut truth = Self { words: padding(self.size), counters, changed: false, ..*self };
        for (number, kind) in rows {
            truth.take(*number, *kind);
        }
        truth.changed = truth.words != self.words || truth.counters != self.counters;
        truth
    }

    fn place(&self, number: i32) -> (usize, u64) {
        let offset = number - self.first;
        assert!((0..self.size).contains(&offset), "number {number} is not in chunk {}", self.index);
        let offset = usize::try_from(offset).unwrap_or(0);
        (offset / 64, 1 << (offset % 64))
    }

    fn number(&self, position: usize, bit: u32) -> i32 {
        let word_first = i32::try_from(position * 64).unwrap_or(i32::MAX);
        self.first + word_first + bit.cast_signed()
    }
}

/// A bitmap of `size` available numbers: zeros, then ones to the end.
fn padding(size: i32) -> [u64; WORDS] {
    let mut words = [0_u64; WORDS];
    for offset in size..NUMBERS_PER_CHUNK {
        let offset = usize::try_from(offset).unwrap_or(0);
        words[offset / 64] |= 1 << (offset % 64);
    }
    words
}

#[cfg(test)]
mod tests;
