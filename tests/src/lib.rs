//! Harness and simulator for the suites in `tests/`.
