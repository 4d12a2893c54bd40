//! Opens the store of a queue manager, rebuilds its engine from it, and starts its thread.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use ferrymq_engine::{EngineBuilder, Limits};
use ferrymq_journal::{Journal, JournalOptions, OsDisk};
use ferrymq_objects::QueueManager;
use ferrymq_store::{
    Finding, QueueManagerStore, RecordLog as _, RecoveredRow, StoreError, StoreOptions,
};
use ferrymq_store_rocksdb::{RocksOptions, RocksRows};
use ferrymq_types::{Epoch, Position, QueueManagerName, QueueName};
use tokio::sync::{mpsc, oneshot};
use tracing::info;

use crate::channels::with_causes;
use crate::clock::Clock;
use crate::config::StorageConfig;
use crate::engine_thread::{self, Events, Parts};
use crate::handle::{CopyStore, QueueManagerHandle};
use crate::known_stores::KnownStores;
use crate::spill::Spill;

/// Why a queue manager does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// Its directory cannot be made.
    #[error("cannot make directory {}: {source}", path.display())]
    Directory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Its store does not open: the error names the file and what to do.
    #[error("queue manager {name}: {}", with_causes(source))]
    Store {
        /// The queue manager.
        name: QueueManagerName,
        /// What is wrong.
        source: StoreError,
    },
    /// No thread for it.
    #[error("cannot start a thread for queue manager {name}: {source}")]
    Thread {
        /// The queue manager.
        name: QueueManagerName,
        /// Why.
        source: std::io::Error,
    },
}

/// A write set takes at most this part of the journal (rule U20).
pub(crate) const WRITE_SETS_IN_JOURNAL: u64 = 4;

/// Bytes of non-persistent messages that may be on their way to the disk: 64 MiB.
pub(crate) const SPILL_WINDOW: u64 = 64 * 1024 * 1024;

/// The directory of a queue manager: its name with what file systems treat specially written as `%` and two digits.
#[must_use]
pub(crate) fn directory(data_dir: &Path, name: &QueueManagerName) -> PathBuf {
    let mut encoded = String::new();
    for (index, c) in name.as_str().chars().enumerate() {
        match c {
            '/' => encoded.push_str("%2F"),
            '%' => encoded.push_str("%25"),
            '.' if index == 0 => encoded.push_str("%2E"),
            c => encoded.push(c),
        }
    }
    data_dir.join("qmgrs").join(encoded)
}

/// Opens a journal, or creates it where nothing was before. Rows without their journal are what is left of a store: taking the
/// journal for a new one would lose what was acknowledged without a word.
///
/// # Errors
/// [`StoreError::Corrupt`] if there are rows and no journal; what opening it says.
pub(crate) fn open_journal(
    journal: &Path,
    rows: &Path,
    options: JournalOptions,
) -> Result<Journal<OsDisk>, StoreError> {
    if let Some(finding) = journal_missing(journal, rows) {
        return Err(StoreError::corrupt(finding.file, None, finding.what));
    }
    let opened = Journal::open_directory(journal, options)?;
    // The journal's name is durable before there are rows, so that the check above never refuses a store that is just being made.
    if let Some(parent) = journal.parent() {
        std::fs::File::open(parent)
            .and_then(|directory| directory.sync_all())
            .map_err(|source| StoreError::io("sync", parent.display(), source))?;
    }
    Ok(opened)
}

/// What is wrong with a store that has rows and no journal.
pub(crate) fn journal_missing(journal: &Path, rows: &Path) -> Option<Finding> {
    let has_files = |directory: &Path| {
        std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some())
    };
    (has_files(rows) && !has_files(journal)).then(|| Finding {
        file: journal.display().to_string(),
        offset: None,
        what: "it is missing or empty, and its rows are there: what was acknowledged since the last checkpoint is gone; restore the directory".to_owned(),
        refuses_open: true,
    })
}

/// A queue manager that was started.
#[derive(Debug)]
pub(crate) struct Started {
    pub(crate) handle: QueueManagerHandle,
    /// Resolves when its thread has ended.
    pub(crate) end: oneshot::Receiver<Result<(), String>>,
    /// Queues whose deletion was begun and not finished before the last stop (rule U15).
    pub(crate) closed: Vec<QueueName>,
}

/// Rebuilds and starts a queue manager.
pub(crate) fn start(
    objects: Arc<QueueManager>,
    data_dir: &Path,
    storage: &StorageConfig,
    clock: Clock,
    events: Events,
    runtime: tokio::runtime::Handle,
) -> Result<Started, StartError> {
    let name = objects.attributes.name.clone();
    let path = directory(data_dir, &name);
    let store_error = |source| StartError::Store {
        name: name.clone(),
        source,
    };
    let mut known = KnownStores::read(data_dir).map_err(store_error)?;
    if let Some(finding) = known.missing(&path) {
        let refusal = StoreError::corrupt(finding.file, None, finding.what);
        return Err(store_error(refusal));
    }
    std::fs::create_dir_all(&path).map_err(|source| StartError::Directory {
        path: path.clone(),
        source,
    })?;
    let journal = open_journal(
        &path.join("journal"),
        &path.join("rows"),
        journal_options(storage),
    )
    .map_err(store_error)?;
    let spill = Spill::open(&path.join("spill"), storage.spill.0).map_err(store_error)?;
    let mut builder = EngineBuilder::new(objects.clone(), Epoch::ZERO, Position::ZERO, clock.now());
    builder.limits(Limits {
        // It fits in the journal beside what a checkpoint has not taken away yet.
        write_set_bytes_max: journal.usage().limit / WRITE_SETS_IN_JOURNAL,
        non_persistent_bytes_max: storage.non_persistent_memory.0,
        spill_window_bytes: if storage.spill.0 > 0 { SPILL_WINDOW } else { 0 },
        ..Limits::default()
    });
    let mut messages: u64 = 0;
    let mut closed = Vec::new();
    let (store, opened) = QueueManagerStore::open(
        journal,
        |recovered| RocksRows::open(&path.join("rows"), recovered, RocksOptions::default()),
        store_options(storage),
        &mut |row| {
            messages =
                messages.saturating_add(u64::from(matches!(row, RecoveredRow::Message { .. })));
            if let RecoveredRow::Queue { row, .. } = &row
                && row.closed
            {
                closed.push(row.name.clone());
            }
            feed(&mut builder, row);
            Ok(())
        },
    )
    .map_err(store_error)?;
    known.add(&path).map_err(store_error)?;
    if let Some(cut) = &opened.cut {
        info!(id = "FMQ9030I", qmgr = %name, "what was never acknowledged was cut off: {cut}");
    }
    builder.resume(opened.epoch, opened.position);
    let mut effects = Vec::new();
    let engine = builder.finish(&mut effects);
    info!(
        id = "AMQ8003I", qmgr = %name, messages, position = %opened.position, epoch = %opened.epoch,
        "queue manager started"
    );
    let copy = copy_store(&store);
    let parts = Parts {
        name: name.clone(),
        engine,
        store,
        objects,
        effects,
        clock,
        events,
        copy,
        spill: Arc::new(spill),
    };
    let (handle, end) = engine_thread::start(parts, runtime)
        .map_err(|source| StartError::Thread { name, source })?;
    Ok(Started {
        handle,
        end,
        closed,
    })
}

/// How the store is copied: first the rows, then the journal, which then reaches at least as far as they do.
fn copy_store(store: &QueueManagerStore<Journal<OsDisk>, RocksRows>) -> CopyStore {
    let (journal, rows) = (store.syncer(), store.reader());
    CopyStore(Arc::new(move |directory, pace| {
        let copy = journal.begin_copy()?;
        std::fs::create_dir_all(directory)
            .map_err(|e| StoreError::io("create", directory.display(), e))?;
        rows.rows().copy(&directory.join("rows"))?;
        copy.write(&directory.join("journal"), pace)
    }))
}

fn feed(builder: &mut EngineBuilder, row: RecoveredRow) {
    match row {
        RecoveredRow::Counters { sequence, body } => builder.counters(sequence, body),
        RecoveredRow::Queue { queue, row } => builder.queue(queue, row),
        RecoveredRow::Message {
            queue,
            sequence,
            row,
            delivery_count,
        } => {
            builder.message(queue, sequence, &row, delivery_count);
        }
        RecoveredRow::Sender(row) => builder.sender(*row),
        RecoveredRow::Receiver(row) => builder.receiver(*row),
        RecoveredRow::StoppedChannel(channel) => builder.channel_stopped(channel),
        RecoveredRow::UnitOfWork(row) => builder.unit_of_work(row),
        RecoveredRow::Account(entry) => builder.account(*entry),
    }
}

fn journal_options(storage: &StorageConfig) -> JournalOptions {
    JournalOptions {
        segment_bytes: storage.segment.0,
        segments_max: u32::try_from(storage.journal.0 / storage.segment.0).unwrap_or(u32::MAX),
        reserve_bytes: storage.segment.0,
        ..JournalOptions::DEFAULTS
    }
}

fn store_options(storage: &StorageConfig) -> StoreOptions {
    StoreOptions {
        checkpoint_bytes: storage.journal.0 / 2,
        ..StoreOptions::DEFAULTS
    }
}

/// Events of a queue manager, for its channel initiator and its log.
pub(crate) fn events() -> (Events, mpsc::UnboundedReceiver<ferrymq_engine::Event>) {
    mpsc::unbounded_channel()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_z8_no_queue_manager_name_leaves_the_data_directory() {
        let check = |name: &str, expected: &str| {
            let name = QueueManagerName::new(name).unwrap();
            assert_eq!(
                directory(Path::new("d"), &name),
                Path::new("d/qmgrs").join(expected)
            );
        };
        check("QM1", "QM1");
        check("..", "%2E.");
        check("../../x", "%2E.%2F..%2Fx");
        check("A%2FB", "A%252FB");
        check("a.b", "a.b");
    }
}
