//! The backups in a directory, by their manifests alone.

use std::path::{Path, PathBuf};

use ferrymq_store::StoreError;

use super::manifest::NAME;
use super::{BackupError, Manifest};

/// A directory that is a backup, or looks like one that did not end.
#[derive(Debug)]
pub struct ListedBackup {
    /// Where it is.
    pub directory: PathBuf,
    /// What is in it, or why that is not known.
    pub manifest: Result<Manifest, BackupError>,
}

/// The backups in a directory, oldest first, behind them those whose manifest cannot be read; or the directory itself, if it is one.
/// Nothing but manifests is read: `verify_backup` says whether the files are what they were.
///
/// # Errors
/// What the disk says of the directory.
pub fn list_backups(directory: &Path) -> Result<Vec<ListedBackup>, BackupError> {
    if directory.join(NAME).exists() {
        return Ok(vec![listed(directory.to_owned())]);
    }
    let error = |e| StoreError::io("list", directory.display(), e);
    let mut backups = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(error)? {
        let path = entry.map_err(error)?.path();
        if path.is_dir() && looks_like_one(&path) {
            backups.push(listed(path));
        }
    }
    backups.sort_by_key(|backup| {
        let begun = backup.manifest.as_ref().map_or(u64::MAX, |m| m.begun_ms);
        (begun, backup.directory.clone())
    });
    Ok(backups)
}

/// The queue managers are copied first, the manifest is written last.
fn looks_like_one(directory: &Path) -> bool {
    directory.join(NAME).exists() || directory.join("qmgrs").is_dir()
}

fn listed(directory: PathBuf) -> ListedBackup {
    ListedBackup {
        manifest: Manifest::read(&directory),
        directory,
    }
}
