//! Verifying and restoring a backup, without a node.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::path::Path;

use ferrymq_store::StoreError;

use super::{BackupError, Manifest, create::sync_directories, manifest};
use crate::store_check::{StoreReport, check_stores};

/// What a backup holds, as far as looking at it says.
#[derive(Debug, Clone)]
pub struct BackupReport {
    /// Its manifest.
    pub manifest: Manifest,
    /// What `store check` says of each store in it.
    pub stores: Vec<StoreReport>,
}

/// Compares every file of a backup with its manifest and examines its stores as a node that is started with them would.
///
/// # Errors
/// [`BackupError::Damaged`] with everything that is wrong; [`BackupError::NoBackup`]; what the disk says.
pub fn verify_backup(backup: &Path) -> Result<BackupReport, BackupError> {
    let manifest = Manifest::read(backup)?;
    let mut wrong = compare(backup, &manifest)?;
    if !wrong.is_empty() {
        return Err(BackupError::Damaged(wrong));
    }
    let stores = check_stores(backup)?;
    for report in &stores {
        let findings = report.findings.iter().filter(|f| f.refuses_open);
        wrong.extend(findings.map(|f| format!("{}: {}", f.file, f.what)));
    }
    for store in &manifest.stores {
        let directory = backup.join(&store.directory);
        let found = stores.iter().find(|r| r.directory == directory);
        match found.and_then(|report| report.position) {
            Some(position) if position == store.position => {}
            Some(position) => wrong.push(format!(
                "{} ends at position {position}, not {}",
                store.qmgr, store.position
            )),
            None => wrong.push(format!("{} is missing", store.qmgr)),
        }
    }
    if wrong.is_empty() {
        Ok(BackupReport { manifest, stores })
    } else {
        Err(BackupError::Damaged(wrong))
    }
}

fn compare(backup: &Path, manifest: &Manifest) -> Result<Vec<String>, StoreError> {
    let mut wrong = Vec::new();
    let mut named: BTreeMap<&str, _> = manifest
        .files
        .iter()
        .map(|file| (file.path.as_str(), file))
        .collect();
    for path in manifest::list(backup)? {
        let Some(expected) = named.remove(path.as_str()) else {
            wrong.push(format!("{path} is not in the manifest"));
            continue;
        };
        let found = manifest::describe(backup, &path, &mut |_| Ok(()))?;
        if found.length != expected.length {
            wrong.push(format!(
                "{path} has {} bytes instead of {}",
                found.length, expected.length
            ));
        } else if found != *expected {
            wrong.push(format!("{path} does not pass its checksum"));
        }
    }
    wrong.extend(named.keys().map(|path| format!("{path} is missing")));
    Ok(wrong)
}

/// Verifies a backup and copies it into a directory that is empty or does not exist, where a node can be started with it.
///
/// # Errors
/// [`BackupError::Target`] if the directory is not empty; [`BackupError::OneOfSeveral`] without `definitions_too` where the node
/// is not alone; what [`verify_backup`] says.
pub fn restore_backup(
    backup: &Path,
    data_dir: &Path,
    definitions_too: bool,
) -> Result<BackupReport, BackupError> {
    let manifest = Manifest::read(backup)?;
    if manifest.members > 1 && !definitions_too {
        return Err(BackupError::OneOfSeveral {
            members: manifest.members,
        });
    }
    match std::fs::read_dir(data_dir) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Err(BackupError::Target {
                    path: data_dir.to_owned(),
                    what: "it is not empty; a backup is restored into an empty directory, so that nothing is mixed with it: move what is there away",
                });
            }
        }
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {}
        Err(e) => return Err(StoreError::io("list", data_dir.display(), e).into()),
    }
    let report = verify_backup(backup)?;
    for expected in &report.manifest.files {
        let to = data_dir.join(&expected.path);
        let error = |e| StoreError::io("write", to.display(), e);
        let parent = to.parent().unwrap_or(data_dir);
        std::fs::create_dir_all(parent).map_err(error)?;
        let mut file = File::create_new(&to).map_err(error)?;
        // All of a segment is written, zeros too: a node does not have to make room in it later.
        let found = manifest::describe(backup, &expected.path, &mut |piece| file.write_all(piece))?;
        file.sync_all().map_err(error)?;
        if found != *expected {
            let what = format!("{} changed while it was restored", expected.path);
            return Err(BackupError::Damaged(vec![what]));
        }
    }
    sync_directories(data_dir)?;
    Ok(report)
}
