//! What is in a backup: `manifest.json`.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

use ferrymq_store::StoreError;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::BackupError;

/// The file.
pub(crate) const NAME: &str = "manifest.json";

/// The newest format of a backup that this release knows.
const FORMAT: u32 = 1;

/// Bytes that are read at once.
const PIECE_BYTES: usize = 1024 * 1024;

/// What a backup holds.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// Of the manifest and of the directory.
    pub format: u32,
    /// The release that made it.
    pub version: String,
    /// Name of the node.
    pub node: String,
    /// Number of the node in its cluster.
    pub node_id: u64,
    /// Name of the cluster.
    pub cluster: String,
    /// Nodes in the cluster.
    pub members: usize,
    /// When it was begun, in milliseconds since 1970.
    pub begun_ms: u64,
    /// The queue managers in it.
    pub stores: Vec<BackupStore>,
    /// Every file but the manifest, in order.
    pub files: Vec<BackupFile>,
}

/// A queue manager in a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupStore {
    /// Its name.
    pub qmgr: String,
    /// Its directory in the backup.
    pub directory: String,
    /// Everything up to here is in it, and nothing behind.
    pub position: u64,
}

/// A file of a backup.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupFile {
    /// From the directory of the backup, with `/` between names.
    pub path: String,
    /// Bytes.
    pub length: u64,
    /// XXH3-128, in hexadecimal.
    pub xxh3: String,
}

impl Manifest {
    pub(crate) const FORMAT: u32 = FORMAT;

    /// Bytes of all files.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.files
            .iter()
            .fold(0, |sum, file| sum.saturating_add(file.length))
    }

    /// Reads the manifest of a backup.
    ///
    /// # Errors
    /// [`BackupError::NoBackup`], [`BackupError::Manifest`]; what the disk says.
    pub fn read(backup: &Path) -> Result<Self, BackupError> {
        let path = backup.join(NAME);
        let text = match std::fs::read(&path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
                return Err(BackupError::NoBackup(backup.to_owned()));
            }
            Err(e) => return Err(StoreError::io("read", path.display(), e).into()),
        };
        let wrong = |what: String| BackupError::Manifest {
            path: path.clone(),
            what,
        };
        let manifest: Self =
            serde_json::from_slice(&text).map_err(|error| wrong(error.to_string()))?;
        if manifest.format > FORMAT {
            return Err(wrong(format!(
                "it has format {}, this release knows up to {FORMAT}: use the newer release",
                manifest.format
            )));
        }
        if let Some(file) = manifest.files.iter().find(|f| !stays_inside(&f.path)) {
            return Err(wrong(format!("it names {:?}, which is outside", file.path)));
        }
        Ok(manifest)
    }

    /// Writes it, durably, whole or not at all.
    pub(crate) fn write(&self, backup: &Path) -> Result<(), StoreError> {
        let path = backup.join(NAME);
        let unfinished = path.with_extension("unfinished");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&unfinished)?;
            serde_json::to_writer_pretty(&mut file, self)?;
            file.write_all(b"\n")?;
            file.sync_all()?;
            std::fs::rename(&unfinished, &path)?;
            File::open(backup)?.sync_all()
        };
        write().map_err(|e| StoreError::io("write", path.display(), e))
    }
}

fn stays_inside(path: &str) -> bool {
    !path.is_empty() && path.split('/').all(|name| !matches!(name, "" | "." | ".."))
}

/// Whether a file says nothing of what is stored: locks and logs of RocksDB, which looking at a store makes.
fn is_passing(name: &str) -> bool {
    name == "LOCK" || name == "LOG" || name.starts_with("LOG.old.")
}

/// The files under a directory, in order, without the manifest and what says nothing.
pub(crate) fn list(backup: &Path) -> Result<Vec<String>, StoreError> {
    let mut files = Vec::new();
    let mut directories: Vec<(PathBuf, String)> = vec![(backup.to_owned(), String::new())];
    while let Some((directory, prefix)) = directories.pop() {
        let error = |e| StoreError::io("list", directory.display(), e);
        for entry in std::fs::read_dir(&directory).map_err(error)? {
            let entry = entry.map_err(error)?;
            let name = entry.file_name().to_string_lossy().into_owned();
            let path = format!("{prefix}{name}");
            if entry.file_type().map_err(error)?.is_dir() {
                directories.push((entry.path(), format!("{path}/")));
            } else if path != NAME && !is_passing(&name) {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Reads a file and says how long it is and what its checksum is; each piece is given to `take` too.
pub(crate) fn describe(
    backup: &Path,
    path: &str,
    take: &mut dyn FnMut(&[u8]) -> std::io::Result<()>,
) -> Result<BackupFile, StoreError> {
    let file = backup.join(path);
    let (mut hash, mut length) = (Xxh3::new(), 0_u64);
    let mut read = || -> std::io::Result<()> {
        let mut from = File::open(&file)?;
        let mut piece = vec![0; PIECE_BYTES];
        loop {
            let bytes = from.read(&mut piece)?;
            let Some(piece) = piece.get(..bytes).filter(|p| !p.is_empty()) else {
                return Ok(());
            };
            hash.update(piece);
            length = length.saturating_add(bytes as u64);
            take(piece)?;
        }
    };
    read().map_err(|e| StoreError::io("copy", file.display(), e))?;
    Ok(BackupFile {
        path: path.to_owned(),
        length,
        xxh3: format!("{:032x}", hash.digest128()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sec_z8_no_file_of_a_manifest_leaves_its_directory() {
        for path in ["", "..", "a/../b", "/etc/passwd", "a//b", "./a"] {
            assert!(!stays_inside(path), "{path}");
        }
        assert!(stays_inside("qmgrs/%2E./journal/guard.bin"));
    }
}
