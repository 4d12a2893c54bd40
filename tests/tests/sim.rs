//! Two queue managers and a channel in virtual time. See `ferrymq_tests::sim`.
//!
//! `FERRYMQ_SEED=n` runs one seed and prints all that happens; `FERRYMQ_SIM_FIRST` and `FERRYMQ_SIM_SEEDS` choose how many.
#![allow(clippy::print_stdout, reason = "a failure prints what happened")]

mod sim {
    mod faults;
    mod seeds;
    mod support;
}
