//! Examines what a node has on disk, while it does not run, and changes nothing.

use std::path::{Path, PathBuf};

use ferrymq_journal::Examination;
use ferrymq_store::{Finding, StoreError, Table};
use ferrymq_store_rocksdb::{RocksOptions, RocksRows};

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
    let mut reports = Vec::new();
    if directory.join("journal").is_dir() {
        reports.push(queue_manager(directory)?);
        return Ok(reports);
    }
    let definitions = directory.join("metadata");
    if definitions.join("log").is_dir() {
        reports.push(journal_alone(&definitions.join("log"), "definitions")?);
    }
    let queue_managers = directory.join("qmgrs");
    let mut paths: Vec<PathBuf> = std::fs::read_dir(&queue_managers)
        .into_iter()
        .flatten()
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.join("journal").is_dir())
        .collect();
    paths.sort();
    for path in paths {
        reports.push(queue_manager(&path)?);
    }
    if reports.is_empty() {
        return Err(CheckError::NoStore(directory.to_owned()));
    }
    Ok(reports)
}

fn journal_alone(directory: &Path, name: &str) -> Result<StoreReport, StoreError> {
    let examined = ferrymq_journal::check(directory)?;
    Ok(report_of(directory, name, examined))
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
        torn_tail: known.and_then(|r| r.cut.clone()),
        findings: examined.findings,
    }
}

fn queue_manager(directory: &Path) -> Result<StoreReport, StoreError> {
    let name = directory.file_name().unwrap_or_default().to_string_lossy();
    let examined = ferrymq_journal::check(&directory.join("journal"))?;
    let recovered = examined.recovered.clone();
    let mut report = report_of(directory, &name, examined);
    // Looked at even where the journal is damaged: both are to be known.
    let rows = RocksRows::check(
        &directory.join("rows"),
        recovered.as_ref(),
        RocksOptions::default(),
    )?;
    report.findings.extend(rows);
    Ok(report)
}
