//! Log and state of the definitions: a journal of their own, and RocksDB under the state machine.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrymq_journal::{Journal, JournalOptions, JournalSync, OsDisk};
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

/// What a backup of the definitions is made from.
#[derive(Debug, Clone)]
pub(crate) struct CopyDefinitions {
    pub(crate) log: JournalSync<OsDisk>,
    pub(crate) state: Arc<RocksState>,
    pub(crate) directory: PathBuf,
}

impl CopyDefinitions {
    /// Copies log, state and the small files beside them. The state comes last: it may be ahead of the log, as after a crash,
    /// and not behind what the log has given up.
    pub(crate) fn copy(&self, to: &Path, pace: &mut dyn FnMut(usize)) -> Result<(), StoreError> {
        std::fs::create_dir_all(to).map_err(|e| StoreError::io("create", to.display(), e))?;
        let log = self.log.begin_copy()?;
        log.write(&to.join("log"), pace)?;
        self.state.0.checkpoint(&to.join("state"))?;
        let list = |e| StoreError::io("list", self.directory.display(), e);
        for entry in std::fs::read_dir(&self.directory).map_err(list)? {
            let from = entry.map_err(list)?.path();
            let Some(name) = from.file_name().filter(|_| from.is_file()) else {
                continue;
            };
            match std::fs::copy(&from, to.join(name)) {
                Ok(_) => {}
                // One that was being received.
                Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
                Err(e) => return Err(StoreError::io("copy", from.display(), e)),
            }
        }
        Ok(())
    }
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
