//! Counts available numbers in buckets of equal width. Pure.

use domain::catalog::Range;
use domain::limits::{BUCKETS_MAX, NUMBERS_PER_CHUNK};

const BITS: i32 = u64::BITS.cast_signed();

/// Available numbers per bucket, from the product's first number on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Buckets {
    /// Numbers in each bucket; the last one may have fewer.
    pub(crate) width: i32,
    /// How many of them are available.
    pub(crate) available: Vec<i32>,
}

/// The smallest round width (1, 2 or 5 and zeros) that needs at most [`BUCKETS_MAX`] buckets: people read the edges.
pub(crate) fn width(range: Range) -> i32 {
    let buckets_max = i32::try_from(BUCKETS_MAX).unwrap_or(i32::MAX);
    let round = (0..9).flat_map(|zeros| [1, 2, 5].map(|digit| digit * 10_i32.pow(zeros)));
    round.into_iter().find(|width| (range.count + width - 1) / width <= buckets_max).unwrap_or(range.count)
}

/// Counts the zeros of a product's chunks, 64 bits at a time. Missing chunks count as not available.
pub(crate) fn count(range: Range, chunks: &[Vec<u8>]) -> Buckets {
    let width = width(range);
    let mut available = vec![0; usize::try_from((range.count + width - 1) / width).unwrap_or(0)];
    for (chunk, bits) in (0..).zip(chunks) {
        let words = bits.as_chunks::<8>().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
        for (word, bits) in (0..).zip(words) {
            add_word(&mut available, width, chunk * NUMBERS_PER_CHUNK + word * BITS, !bits);
        }
    }
    Buckets { width, available }
}

/// Adds the set bits of `free`, whose lowest bit is the number at `offset`. Bits beyond the range are never free.
fn add_word(available: &mut [i32], width: i32, offset: i32, mut free: u64) {
    while free != 0 {
        let bucket = (offset + free.trailing_zeros().cast_signed()) / width;
        let bits_left = (bucket + 1) * width - offset;
        let mine = if bits_left >= BITS { free } else { free & ((1 << bits_left) - 1) };
        free &= !mine;
        if let Some(count) = usize::try_from(bucket).ok().and_then(|bucket| available.get_mut(bucket)) {
            *count += mine.count_ones().cast_signed();
        }
    }
}

#[cfg(test)]
mod tests {
    use domain::numbers::{Chunk, Kind};
    use proptest::prelude::*;

    use super::*;

    fn bits(range: Range, taken: &[i32]) -> Vec<Vec<u8>> {
        let mut chunks: Vec<Chunk> = (0..range.chunk_count()).map(|chunk| Chunk::new(range, chunk)).collect();
        for number in taken {
            chunks[usize::try_from(range.chunk_of(*number)).unwrap()].take(*number, Kind::Reserved);
        }
        chunks.iter().map(Chunk::bits).collect()
    }

    fn naive(range: Range, taken: &[i32]) -> Vec<i32> {
        let numbers: Vec<i32> = (range.first..=range.last()).collect();
        let free = |numbers: &[i32]| i32::try_from(numbers.iter().filter(|n| !taken.contains(n)).count()).unwrap();
        numbers.chunks(usize::try_from(width(range)).unwrap()).map(free).collect()
    }

    #[test]
    fn widths_are_round_and_buckets_few() {
        let of = |count| width(Range { first: 1, count });
        assert_eq!([1, 64, 1_000, 10_000, 100_000].map(of), [1, 1, 1, 10, 100]);
        assert_eq!([300_000, 1_000_000, 10_000_000].map(of), [500, 1_000, 10_000]);
        for count in (1..10_000_000).step_by(9_973) {
            let buckets = (count + of(count) - 1) / of(count);
            assert!(usize::try_from(buckets).unwrap() <= BUCKETS_MAX, "{count}: {buckets}");
        }
    }

    #[test]
    fn a_fresh_product_is_all_available() {
        for count in [1, 63, 64, 65, 1_024, 1_025, 8_192, 8_193, 20_000] {
            let range = Range { first: 1, count };
            let buckets = count_of(range, &[]);
            assert_eq!(buckets.available.iter().sum::<i32>(), count);
            assert!(buckets.available[..buckets.available.len() - 1].iter().all(|n| *n == buckets.width));
        }
    }

    #[test]
    fn missing_and_short_chunks_are_not_available() {
        let range = Range { first: 1, count: 10_000 };
        assert_eq!(count(range, &[]).available, vec![0; 1_000]);
        assert_eq!(count(range, &[vec![0; 16]]).available.iter().sum::<i32>(), 128);
        assert_eq!(count(range, &vec![vec![0; 1_024]; 3]).available.iter().sum::<i32>(), 10_000, "padding left at 0");
    }

    fn count_of(range: Range, taken: &[i32]) -> Buckets {
        count(range, &bits(range, taken))
    }

    proptest! {
        #[test]
        fn counts_equal_a_naive_count(
            first in 0..1_000_i32,
            count in 1..30_000_i32,
            offsets in prop::collection::vec(0..30_000_i32, 0..300),
        ) {
            let range = Range { first, count };
            let taken: Vec<i32> = offsets.iter().map(|offset| first + offset % count).collect();
            prop_assert_eq!(count_of(range, &taken).available, naive(range, &taken));
        }
    }
}
