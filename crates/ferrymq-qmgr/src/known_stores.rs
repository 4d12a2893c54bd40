//! Which queue managers have had a store in this data directory: a store that is gone is no new one.
//!
//! The file has a line for each, the name of its directory under `qmgrs`. An operator who wants a queue manager to begin empty
//! removes its line.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use ferrymq_store::{Finding, StoreError};

/// The file, in the data directory.
const NAME: &str = "known-stores";

/// The directories of queue managers that have had a store.
#[derive(Debug)]
pub(crate) struct KnownStores {
    file: PathBuf,
    names: BTreeSet<String>,
}

impl KnownStores {
    /// Reads the file; without one nothing is known.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn read(data_dir: &Path) -> Result<Self, StoreError> {
        let file = data_dir.join(NAME);
        let text = match std::fs::read_to_string(&file) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(e) => return Err(StoreError::io("read", file.display(), e)),
        };
        let names = text.lines().map(str::trim).filter(|line| !line.is_empty());
        Ok(Self {
            names: names.map(str::to_owned).collect(),
            file,
        })
    }

    /// What is wrong with a store that was there, if nothing of it is.
    pub(crate) fn missing(&self, directory: &Path) -> Option<Finding> {
        let known = self.names.contains(&name(directory));
        let has_files =
            std::fs::read_dir(directory).is_ok_and(|mut entries| entries.next().is_some());
        (known && !has_files).then(|| Finding {
            file: directory.display().to_string(),
            offset: None,
            what: format!(
                "it is missing or empty, and this node has had a queue manager there: restore it; or, if the queue manager is to begin without any message, remove its line from {}",
                self.file.display()
            ),
            refuses_open: true,
        })
    }

    /// The directories that were there and of which nothing is.
    pub(crate) fn all_missing(&self, queue_managers: &Path) -> Vec<(PathBuf, Finding)> {
        let directories = self.names.iter().map(|name| queue_managers.join(name));
        directories
            .filter_map(|directory| Some((directory.clone(), self.missing(&directory)?)))
            .collect()
    }

    /// Adds a directory, durably, if it is not known.
    ///
    /// # Errors
    /// What the disk says.
    pub(crate) fn add(&mut self, directory: &Path) -> Result<(), StoreError> {
        if !self.names.insert(name(directory)) {
            return Ok(());
        }
        let unfinished = self.file.with_extension("unfinished");
        let write = || -> std::io::Result<()> {
            let mut file = File::create(&unfinished)?;
            for name in &self.names {
                writeln!(file, "{name}")?;
            }
            file.sync_all()?;
            std::fs::rename(&unfinished, &self.file)?;
            match self.file.parent() {
                Some(data_dir) => File::open(data_dir)?.sync_all(),
                None => Ok(()),
            }
        };
        write().map_err(|e| StoreError::io("write", self.file.display(), e))
    }
}

fn name(directory: &Path) -> String {
    let name = directory.file_name().unwrap_or_default();
    name.to_string_lossy().into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_store_that_was_there_is_missed_until_its_line_is_removed() {
        let data_dir = tempfile::tempdir().unwrap();
        let qm1 = data_dir.path().join("qmgrs/QM1");
        let known = || KnownStores::read(data_dir.path()).unwrap();
        assert!(known().missing(&qm1).is_none(), "a new one");
        known().add(&qm1).unwrap();
        known().add(&data_dir.path().join("qmgrs/QM2")).unwrap();
        let missing = known().missing(&qm1).unwrap();
        assert!(missing.what.contains(NAME) && missing.refuses_open);
        std::fs::create_dir_all(qm1.join("journal")).unwrap();
        assert!(known().missing(&qm1).is_none());
        std::fs::remove_dir_all(&qm1).unwrap();
        std::fs::write(data_dir.path().join(NAME), "QM2\n").unwrap();
        assert!(known().missing(&qm1).is_none());
        assert_eq!(known().all_missing(&data_dir.path().join("qmgrs")).len(), 1);
    }
}
