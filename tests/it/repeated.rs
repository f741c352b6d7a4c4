//! Configuration of properties, with the same cases in every run.

use proptest::prelude::ProptestConfig;
use proptest::test_runner::RngSeed;

/// Draws from a fixed seed, or from `PROPTEST_RNG_SEED`, which `make fuzz` sets; writes no files.
///
/// `cases` is the number for each 256 of `PROPTEST_CASES`, proptest's own default: `make test` runs fewer.
pub fn config(cases: u32) -> ProptestConfig {
    let default = ProptestConfig::default();
    let rng_seed = match default.rng_seed {
        RngSeed::Random => RngSeed::Fixed(0),
        RngSeed::Fixed(_) => default.rng_seed,
    };
    let cases = cases.saturating_mul(default.cases).div_ceil(256);
    ProptestConfig { cases, rng_seed, failure_persistence: None, ..default }
}
