//! Examines what a node has on disk, while it does not run, and changes nothing.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use ferrymq_journal::{Examination, Journal, JournalOptions};
use ferrymq_store::memory::MemoryDisk;
use ferrymq_store::{Finding, QueueManagerStore, RecordLog as _, RecoveredRow, StoreError, Table};
use ferrymq_store_rocksdb::{RocksOptions, RocksRows};
use ferrymq_types::ObjectId;

use crate::known_stores::KnownStores;
use crate::metadata_store;
use crate::queue_manager::journal_missing;

/// What was found in one store.
#[derive(Debug, Clone)]
pub struct StoreReport {
    /// Where it is.
    pub directory: PathBuf,
    /// Whose it is: the name of a queue manager as its directory has it, or `definitions`.
    pub name: String,
    /// The run that wrote last; `None` if the journal could not be read that far.
    pub epoch: Option<u64>,
    /// The last position in the journal.
    pub position: Option<u64>,
    /// Up to this position rows have moved from the journal to the row store.
    pub checkpoint: Option<u64>,
    /// Segments of the journal that hold records.
    pub segments: usize,
    /// Rows at the checkpoint by table, where there are any.
    pub rows: Vec<(&'static str, u64)>,
    /// Queues that hold messages or are dynamic, by name, as the next start would have them; of a queue manager that could not be
    /// read whole, and of definitions, none.
    pub queues: Vec<StoredQueue>,
    /// What was never acknowledged and would be cut off at the next start: where it begins.
    pub torn_tail: Option<String>,
    /// What is wrong.
    pub findings: Vec<Finding>,
}

impl StoreReport {
    /// Whether the node would refuse to start with it.
    #[must_use]
    pub fn refuses_open(&self) -> bool {
        self.findings.iter().any(|f| f.refuses_open)
    }
}

/// A queue in a store. Non-persistent messages are in none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredQueue {
    /// Its id, which is never used again.
    pub id: u64,
    /// Its name when it was made; `None` if no row says so.
    pub name: Option<String>,
    /// Whether the open of a model queue made it, so that no command knows it.
    pub dynamic: bool,
    /// Whether its deletion is under way.
    pub closed: bool,
    /// Messages on it.
    pub messages: u64,
    /// Bytes of their data.
    pub bytes: u64,
}

/// Why nothing could be examined.
#[derive(Debug, thiserror::Error)]
pub enum CheckError {
    /// There is no store.
    #[error("{} holds no store: name the data directory of a node (data_dir), or of one of its queue managers", .0.display())]
    NoStore(PathBuf),
    /// It is in use, or cannot be read.
    #[error("{}", crate::channels::with_causes(.0))]
    Store(#[from] StoreError),
}

/// Examines every store of a node's data directory, or one store.
///
/// # Errors
/// [`CheckError`]. Damage is a finding, not an error.
pub fn check_stores(directory: &Path) -> Result<Vec<StoreReport>, CheckError> {
    if directory.join("journal").is_dir() || directory.join("rows").is_dir() {
        return Ok(vec![queue_manager(directory)?]);
    }
    let mut reports = Vec::new();
    let metadata = directory.join("metadata");
    if metadata.is_dir() {
        reports.push(definitions(&metadata)?);
    }
    let queue_managers = directory.join("qmgrs");
    if queue_managers.is_dir() {
        for path in subdirectories(&queue_managers)? {
            reports.push(queue_manager(&path)?);
        }
    }
    let missing = KnownStores::read(directory)?.all_missing(&queue_managers);
    for (path, finding) in missing {
        // One that is there and empty is reported already.
        reports.retain(|report| report.directory != path);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        reports.push(report_of(&path, &name, nothing_known(vec![finding])));
    }
    if reports.is_empty() {
        return Err(CheckError::NoStore(directory.to_owned()));
    }
    if !queue_managers.is_dir() {
        // A node has at least one.
        let finding = damage(
            &queue_managers,
            "it is missing: no queue manager has data here".to_owned(),
        );
        if let Some(first) = reports.first_mut() {
            first.findings.push(finding);
        }
    }
    Ok(reports)
}

fn subdirectories(directory: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let read = || -> std::io::Result<Vec<PathBuf>> {
        let mut paths = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            let path = entry?.path();
            if path.is_dir() {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    };
    read().map_err(|source| StoreError::io("read", directory.display(), source))
}

fn damage(file: &Path, what: String) -> Finding {
    Finding {
        file: file.display().to_string(),
        offset: None,
        what,
        refuses_open: true,
    }
}

/// What is wrong with one store is a finding, so that the others are examined too; that it is in use is not.
fn found<T>(
    result: Result<T, StoreError>,
    file: &Path,
    findings: &mut Vec<Finding>,
) -> Result<Option<T>, StoreError> {
    match result {
        Ok(value) => Ok(Some(value)),
        Err(error @ StoreError::InUse { .. }) => Err(error),
        Err(error) => {
            findings.push(damage(file, crate::channels::with_causes(&error)));
            Ok(None)
        }
    }
}

fn examine(journal: &Path, rows: &Path) -> Result<Examination, StoreError> {
    let mut findings = Vec::new();
    if let Some(missing) = journal_missing(journal, rows) {
        findings.push(missing);
        return Ok(nothing_known(findings));
    }
    let examined = found(ferrymq_journal::check(journal), journal, &mut findings)?;
    Ok(examined.unwrap_or_else(|| nothing_known(findings)))
}

const fn nothing_known(findings: Vec<Finding>) -> Examination {
    Examination {
        findings,
        recovered: None,
        segments: (0, 0),
    }
}

fn definitions(directory: &Path) -> Result<StoreReport, StoreError> {
    let examined = examine(&directory.join("log"), &directory.join("state"))?;
    let mut report = report_of(directory, "definitions", examined);
    let state = metadata_store::check_state(directory);
    found(state, &directory.join("state"), &mut report.findings)?;
    Ok(report)
}

fn report_of(directory: &Path, name: &str, examined: Examination) -> StoreReport {
    let known = examined.recovered.as_ref();
    let counts = known.map(|r| &r.guard.counts);
    StoreReport {
        directory: directory.to_owned(),
        name: name.to_owned(),
        epoch: known.map(|r| r.epoch.get()),
        position: known.map(|r| r.last.get()),
        checkpoint: known.map(|r| r.guard.checkpoint.get()),
        segments: examined.segments.0,
        rows: counts
            .into_iter()
            .flat_map(|counts| Table::ALL.map(|table| (table.name(), counts.get(table))))
            .filter(|(_, rows)| *rows > 0)
            .collect(),
        queues: Vec::new(),
        torn_tail: known.and_then(|r| r.cut.clone()),
        findings: examined.findings,
    }
}

fn queue_manager(directory: &Path) -> Result<StoreReport, StoreError> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let rows = directory.join("rows");
    let examined = examine(&directory.join("journal"), &rows)?;
    let recovered = examined.recovered.clone();
    let mut report = report_of(directory, &name, examined);
    // Looked at even where the journal is damaged: both are to be known.
    let checked = RocksRows::check(&rows, recovered.as_ref(), RocksOptions::default());
    if let Some(more) = found(checked, &rows, &mut report.findings)? {
        report.findings.extend(more);
    }
    if recovered.is_some() && !report.refuses_open() {
        let read = queues(&directory.join("journal"), &rows);
        report.queues = found(read, directory, &mut report.findings)?.unwrap_or_default();
    }
    Ok(report)
}

/// The queues of a store that is sound, by name.
fn queues(journal: &Path, rows: &Path) -> Result<Vec<StoredQueue>, StoreError> {
    let log = Journal::open_directory(journal, JournalOptions::default())?;
    let mut queues = BTreeMap::new();
    let mut visit = |row| {
        count(&mut queues, row);
        Ok(())
    };
    match RocksRows::for_reading(rows, RocksOptions::default())? {
        Some(rows) => QueueManagerStore::read(&log, &rows, &mut visit)?,
        // There was no checkpoint yet: everything is in the journal.
        None => {
            let none = MemoryDisk::new().open_rows(log.recovered())?;
            QueueManagerStore::read(&log, &none, &mut visit)?;
        }
    }
    let mut queues: Vec<StoredQueue> = queues.into_values().collect();
    queues.retain(|q| q.messages > 0 || q.dynamic || q.closed);
    queues.sort_by(|a, b| (&a.name, a.id).cmp(&(&b.name, b.id)));
    Ok(queues)
}

fn count(queues: &mut BTreeMap<ObjectId, StoredQueue>, row: RecoveredRow) {
    let none = |id: ObjectId| StoredQueue {
        id: id.get(),
        name: None,
        dynamic: false,
        closed: false,
        messages: 0,
        bytes: 0,
    };
    match row {
        RecoveredRow::Queue { queue: id, row } => {
            let queue = queues.entry(id).or_insert_with(|| none(id));
            queue.name = Some(row.name.to_string());
            queue.dynamic = row.definition.is_some();
            queue.closed = row.closed;
        }
        RecoveredRow::Message { queue: id, row, .. } => {
            let queue = queues.entry(id).or_insert_with(|| none(id));
            queue.messages = queue.messages.saturating_add(1);
            let bytes = (row.header.len() as u64).saturating_add(u64::from(row.body_length));
            queue.bytes = queue.bytes.saturating_add(bytes);
        }
        RecoveredRow::Counters { .. }
        | RecoveredRow::Sender(_)
        | RecoveredRow::Receiver(_)
        | RecoveredRow::StoppedChannel(_)
        | RecoveredRow::UnitOfWork(_)
        | RecoveredRow::Account(_) => {}
    }
}
