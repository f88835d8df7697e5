//! Randomness that can be repeated: `TIRADA_TEST_SEED=… cargo nextest run … <test>`.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

/// The seed of this test: from `TIRADA_TEST_SEED`, or a new one. Test runners show the printed line when the test
/// fails.
#[must_use]
pub fn seed() -> u64 {
    let given = std::env::var("TIRADA_TEST_SEED").ok();
    let seed = given.map_or_else(|| rand::rng().random(), |text| text.parse().expect("TIRADA_TEST_SEED is a number"));
    eprintln!("TIRADA_TEST_SEED={seed}");
    seed
}

/// The `stream`-th generator of a seed, so that parallel tasks do not share one.
#[must_use]
pub fn stream(seed: u64, stream: u64) -> StdRng {
    StdRng::seed_from_u64(seed ^ (stream + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15))
}
