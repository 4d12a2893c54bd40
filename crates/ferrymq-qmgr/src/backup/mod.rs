//! Backups of a node: its queue managers and its definitions, made while it runs, verified and restored while it does not.
//!
//! A backup is a directory in the shape of a data directory, with a manifest that names every file and its checksum. Each queue
//! manager is in it as of one position of its own; what a node does with it is what it does after a crash at that position.

mod create;
mod list;
mod manifest;
mod restore;

use std::path::PathBuf;

use ferrymq_store::StoreError;

pub(crate) use create::create;
pub use list::{ListedBackup, list_backups};
pub use manifest::{BackupFile, BackupStore, Manifest};
pub use restore::{BackupReport, restore_backup, verify_backup};

use crate::store_check::CheckError;

/// Bytes a second that a backup copies at most: it shares the disk with the journal.
const BYTES_PER_SECOND: f64 = 256.0 * 1024.0 * 1024.0;

/// Takes the time that so many bytes are to take.
fn pace(bytes: usize) {
    #[allow(clippy::cast_precision_loss, reason = "a pace, not a sum")]
    let seconds = bytes as f64 / BYTES_PER_SECOND;
    std::thread::sleep(std::time::Duration::from_secs_f64(seconds));
}

/// Why there is no backup, or nothing was restored.
#[derive(Debug, thiserror::Error)]
pub enum BackupError {
    /// The directory for the backup cannot be used.
    #[error("{}: {what}", path.display())]
    Target {
        /// The directory.
        path: PathBuf,
        /// What is wrong with it.
        what: &'static str,
    },
    /// There is no backup, or one that did not end.
    #[error("{} holds no backup: it has no manifest.json, which is written last", .0.display())]
    NoBackup(PathBuf),
    /// The manifest cannot be read.
    #[error("{}: {what}", path.display())]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// The backup is not what it was.
    #[error("the backup is damaged: {}", .0.join("; "))]
    Damaged(Vec<String>),
    /// The node is one of several, and restoring its definitions needs to be wanted.
    #[error(
        "the backup is of a node in a cluster of {members}: definitions that are older than what the node told the others can undo \
         what a majority agreed on. Restore it with --definitions only if every node of the cluster is restored from a backup"
    )]
    OneOfSeveral {
        /// Members of the cluster.
        members: usize,
    },
    /// The disk, or the store.
    #[error("{}", crate::channels::with_causes(.0))]
    Store(#[from] StoreError),
    /// The stores in it cannot be examined.
    #[error(transparent)]
    Check(#[from] CheckError),
}
