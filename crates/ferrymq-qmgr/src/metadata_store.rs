//! Log and state of the definitions: a journal of their own, and RocksDB under the state machine.

use std::path::Path;

use ferrymq_journal::{Journal, JournalOptions};
use ferrymq_metadata::{StateBatch, StateStore};
use ferrymq_store::StoreError;
use ferrymq_store_rocksdb::KeyValueStore;

/// Size of a segment of the definitions' log, in bytes: a command has at most 64 KiB.
const SEGMENT_BYTES: u64 = 4 * 1024 * 1024;

/// Size of the definitions' log, in bytes.
const LOG_BYTES: u64 = 64 * 1024 * 1024;

/// The state machine's rows.
#[derive(Debug)]
pub(crate) struct RocksState(KeyValueStore);

/// Opens both under `directory`.
pub(crate) fn open(directory: &Path) -> Result<(Journal, RocksState), StoreError> {
    let log = directory.join("log");
    let options = JournalOptions {
        segment_bytes: SEGMENT_BYTES,
        journal_bytes: LOG_BYTES,
        ..JournalOptions::default()
    };
    let log = Journal::open(&log, options)?;
    Ok((log, RocksState(KeyValueStore::open(&directory.join("state"))?)))
}

impl StateStore for RocksState {
    fn scan(
        &self,
        visit: &mut dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.0.scan(visit)
    }

    fn write(&self, batch: StateBatch) -> Result<(), StoreError> {
        self.0.write(batch.deletes, batch.puts)
    }
}
