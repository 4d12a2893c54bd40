//! Harness and simulator for the suites in `tests/`.

pub mod chaos;
pub mod cluster;
pub mod command_line;
mod invariants;
mod oracle;
pub mod sim;
pub mod small_disk;
pub mod traffic;
