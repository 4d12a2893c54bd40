//! The net holds: every fault that is planted in the driver is found.

use ferrymq_tests::sim::Fault;

use crate::sim::support::run_seeds;

/// In so many seeds each must be found.
const SEEDS: u64 = 300;

#[test]
fn planted_faults_are_found() {
    let mut missed = Vec::new();
    for fault in Fault::ALL {
        match run_seeds(1, SEEDS, Some(fault)) {
            (_, Some(outcome)) => {
                let what = outcome
                    .violation
                    .map_or_else(String::new, |v| v.to_string());
                println!("{fault:?} is found by seed {}: {what}", outcome.seed);
            }
            (_, None) => missed.push(fault),
        }
    }
    assert!(missed.is_empty(), "not found in {SEEDS} seeds: {missed:?}");
}
