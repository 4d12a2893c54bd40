//! Log and state of the definitions: a journal of their own, and RocksDB under the state machine.

use std::path::Path;

use ferrymq_journal::{Journal, JournalOptions, OsDisk};
use ferrymq_metadata::{StateBatch, StateStore, VisitRow};
use ferrymq_store::StoreError;
use ferrymq_store_rocksdb::{Durability, Kv, KvBatch, RocksOptions};

use crate::queue_manager::open_journal;

/// Size of a segment of the definitions' log, in bytes: a command has at most 64 KiB.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Segments of the definitions' log.
const SEGMENTS: u32 = 16;

/// What is given back when the disk is full, in bytes.
const RESERVE_BYTES: u64 = 4 * 1024 * 1024;

/// The table of the state machine's rows.
const TABLE: &str = "definitions";

/// The state machine's rows.
#[derive(Debug)]
pub(crate) struct RocksState(Kv);

/// Opens both under `directory`.
pub(crate) fn open(directory: &Path) -> Result<(Journal<OsDisk>, RocksState), StoreError> {
    let options = JournalOptions {
        segment_bytes: SEGMENT_BYTES,
        segments_max: SEGMENTS,
        reserve_bytes: RESERVE_BYTES,
        ..JournalOptions::DEFAULTS
    };
    let log = open_journal(&directory.join("log"), &directory.join("state"), options)?;
    let state = Kv::open(&directory.join("state"), &[TABLE], RocksOptions::default())?;
    Ok((log, RocksState(state)))
}

/// Examines the state machine's rows and changes nothing.
///
/// # Errors
/// What is wrong with them, or what the disk says.
pub(crate) fn check_state(directory: &Path) -> Result<(), StoreError> {
    let state = directory.join("state");
    if !state.is_dir() {
        return Ok(());
    }
    let rows = Kv::open_read_only(&state, &[TABLE], RocksOptions::default())?;
    rows.scan(TABLE, &[], None, &mut |_, _| Ok(()))
}

impl StateStore for RocksState {
    fn scan(&self, visit: &mut VisitRow<'_>) -> Result<(), StoreError> {
        self.0.scan(TABLE, &[], None, visit)
    }

    fn write(&self, batch: StateBatch) -> Result<(), StoreError> {
        let mut out = KvBatch::new();
        for key in &batch.deletes {
            out.delete(TABLE, key);
        }
        for (key, value) in &batch.puts {
            out.put(TABLE, key, value);
        }
        self.0.write(&out, Durability::Synced)
    }
}
