//! A log and a row store in memory that can lose what a power cut would take: for the simulator and the conformance suite.
//!
//! Everything is deterministic: what a crash keeps of what was not durable follows from its seed.

mod log;
mod rows;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use log::{MemoryLog, MemoryLogRead, MemoryLogSync};
pub use rows::MemoryRows;

use crate::{Recovered, StoreError};

/// Limits of a log in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryOptions {
    /// Bytes of payload that the log may hold.
    pub log_bytes_max: u64,
    /// Bytes of payload that one record may have.
    pub payload_bytes_max: u64,
}

impl Default for MemoryOptions {
    /// 64 MiB, and records up to 16 MiB.
    fn default() -> Self {
        Self {
            log_bytes_max: 64 * 1024 * 1024,
            payload_bytes_max: 16 * 1024 * 1024,
        }
    }
}

#[derive(Debug, Default)]
struct State {
    /// Crashes so far: handles of an earlier run are dead.
    run: u64,
    log: log::LogState,
    rows: rows::RowsState,
    full: bool,
    fail_next_sync: bool,
}

/// What survives a crash: the disk of one queue manager.
#[derive(Debug, Clone, Default)]
pub struct MemoryDisk {
    state: Arc<Mutex<State>>,
}

impl MemoryDisk {
    /// An empty disk.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Opens the log.
    #[must_use]
    pub fn open_log(&self, options: MemoryOptions) -> MemoryLog {
        MemoryLog::open(self.clone(), options)
    }

    /// Opens the row store, if it is what the log says that it must be.
    ///
    /// # Errors
    /// As [`crate::compare_with_guard`].
    pub fn open_rows(&self, recovered: &Recovered) -> Result<MemoryRows, StoreError> {
        let rows = MemoryRows::open(self.clone());
        crate::compare_with_guard(
            &crate::RowStore::name(&rows),
            &crate::RowStore::state(&rows)?,
            recovered,
        )?;
        Ok(rows)
    }

    /// The power fails: what was not synced or flushed is gone, but for a first part of it that `seed` chooses; every handle is
    /// dead.
    pub fn crash(&self, seed: u64) {
        let mut state = self.lock();
        state.run = state.run.saturating_add(1);
        let mut random = Random::new(seed);
        state.log.crash(&mut random);
        state.rows.crash(&mut random);
        state.full = false;
        state.fail_next_sync = false;
    }

    /// The disk is full, or has room again.
    pub fn set_full(&self, full: bool) {
        self.lock().full = full;
    }

    /// The next sync fails, and with it every later one until the disk is opened anew.
    pub fn fail_next_sync(&self) {
        self.lock().fail_next_sync = true;
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves at worst a crash's disk behind, and it happens in tests only.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The state, for a handle of run `run`.
    fn live(&self, run: u64) -> Result<MutexGuard<'_, State>, StoreError> {
        let state = self.lock();
        if state.run != run {
            return Err(StoreError::Failed {
                cause: "the disk crashed since it was opened".to_owned(),
            });
        }
        Ok(state)
    }
}

/// A small generator of numbers (SplitMix64), so that a seed tells the whole run.
#[derive(Debug, Clone)]
pub struct Random(u64);

impl Random {
    /// From a seed.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next number.
    pub fn number(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number below `end`; 0 if that is 0.
    pub fn below(&mut self, end: u64) -> u64 {
        self.number().checked_rem(end).unwrap_or(0)
    }
}
