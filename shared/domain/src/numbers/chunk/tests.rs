use std::collections::BTreeMap;

use proptest::prelude::*;
use rand::SeedableRng;
use rand::rngs::StdRng;

use super::*;

/// Sizes at the edges of words, bytes and the chunk itself.
const SIZES: [i32; 8] = [1, 7, 8, 63, 64, 65, 8_191, 8_192];

fn kinds() -> impl Strategy<Value = Kind> {
    prop_oneof![Just(Kind::Reserved), Just(Kind::Paid), Just(Kind::Blocked)]
}

proptest! {
    #[test]
    fn agrees_with_a_naive_model(
        size in prop::sample::select(&SIZES[..]),
        first in 0..1_000_i32,
        steps in prop::collection::vec((any::<bool>(), 0..8_192_i32, kinds()), 0..300),
    ) {
        let range = Range { first, count: size };
        let mut chunk = Chunk::new(range, 0);
        let mut model: BTreeMap<i32, Kind> = BTreeMap::new();
        for (take, offset, kind) in steps {
            let number = first + offset % size;
            if take {
                let free = !model.contains_key(&number);
                prop_assert_eq!(chunk.take(number, kind), free);
                if free { model.insert(number, kind); }
            } else if let Some(held) = model.remove(&number) {
                prop_assert!(chunk.give_back(number, held));
            } else {
                prop_assert!(!chunk.give_back(number, kind));
            }
            prop_assert_eq!(chunk.is_free(number), !model.contains_key(&number));
        }
        let rows: Vec<_> = model.iter().map(|(n, k)| (*n, *k)).collect();
        prop_assert!(chunk.compare(&rows).is_none());
        prop_assert_eq!(chunk.counters().total(), size);
        let stored = Chunk::from_stored(range, 0, &chunk.bits(), chunk.counters()).unwrap();
        prop_assert!(stored.compare(&rows).is_none());
    }

    #[test]
    fn one_wrong_bit_is_named(size in prop::sample::select(&SIZES[..]), offset in 0..8_192_i32, taken in any::<bool>()) {
        let range = Range { first: 100, count: size };
        let number = 100 + offset % size;
        let mut chunk = Chunk::new(range, 0);
        let rows = if taken { vec![] } else { vec![(number, Kind::Reserved)] };
        if taken { chunk.take(number, Kind::Reserved); }
        let found = chunk.compare(&rows);
        prop_assert_eq!(found.wrongly_taken, if taken { vec![number] } else { vec![] });
        prop_assert_eq!(found.wrongly_free, if taken { vec![] } else { vec![number] });
        prop_assert!(found.counters.is_some());
        prop_assert!(chunk.rebuilt(&rows).compare(&rows).is_none());
    }
}

#[test]
fn padding_is_set_and_never_picked() {
    let range = Range { first: 0, count: 8_193 };
    let mut last = Chunk::new(range, 1);
    assert_eq!(last.counters().available, 1);
    let mut rng = StdRng::seed_from_u64(1);
    assert_eq!(last.random_free(&mut rng), Some(8_192));
    assert!(last.take(8_192, Kind::Paid));
    assert_eq!(last.random_free(&mut rng), None);
    assert!(last.bits().iter().all(|byte| *byte == 0xff));
}

#[test]
fn cleared_padding_is_found() {
    let range = Range { first: 0, count: 100 };
    let chunk = Chunk::new(range, 0);
    let mut bits = chunk.bits();
    bits[1_000] = 0;
    let broken = Chunk::from_stored(range, 0, &bits, chunk.counters()).unwrap();
    assert!(broken.compare(&[]).padding);
}

#[test]
fn a_bitmap_of_the_wrong_length_is_a_fault() {
    assert!(Chunk::from_stored(Range { first: 0, count: 8 }, 0, &[0; 1_023], Counters::default()).is_err());
}

/// Pearson's statistic over 4,000 free numbers with a fixed seed. With 3,999 degrees of freedom its standard
/// deviation is about 89, so 4,400 is 4.5 deviations away: a biased picker fails, chance does not.
#[test]
fn random_free_is_uniform() {
    let range = Range { first: 0, count: 8_000 };
    let mut chunk = Chunk::new(range, 0);
    for number in (0..8_000).step_by(2) {
        chunk.take(number, Kind::Reserved);
    }
    let mut rng = StdRng::seed_from_u64(42);
    let mut seen = vec![0_u32; 8_000];
    for _ in 0..400_000 {
        let number = chunk.random_free(&mut rng).unwrap();
        seen[usize::try_from(number).unwrap()] += 1;
    }
    assert!(seen.iter().step_by(2).all(|count| *count == 0));
    let expected = 100.0;
    let statistic: f64 = seen.iter().skip(1).step_by(2).map(|c| (f64::from(*c) - expected).powi(2) / expected).sum();
    assert!((3_600.0..4_400.0).contains(&statistic), "chi-square {statistic}");
}
