//! Harness and simulator for the suites in `tests/`.

pub mod cluster;
pub mod traffic;
