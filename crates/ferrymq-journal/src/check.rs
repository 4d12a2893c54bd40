//! Examines a journal and changes nothing.

use std::path::Path;

use ferrymq_store::{Finding, StoreError};

use crate::{
    disk::{Disk, OsDisk},
    inspect,
    meta::Meta,
};

/// Examines the journal in a directory: every file, every record, the chain and the guard.
///
/// # Errors
/// [`StoreError::InUse`] while a process has it open; what the disk says. Damage is a finding, not an error.
pub fn check(directory: &Path) -> Result<Vec<Finding>, StoreError> {
    check_on(&OsDisk::existing(directory))
}

/// As [`check`], on any disk.
///
/// # Errors
/// As [`check`].
pub fn check_on<D: Disk>(disk: &D) -> Result<Vec<Finding>, StoreError> {
    let directory = disk.path("");
    let _lock = disk
        .lock()
        .map_err(|e| StoreError::io("lock", &directory, e))?
        .ok_or(StoreError::InUse { directory })?;
    let found = Meta::read(disk).and_then(|meta| inspect::inspect(disk, &meta));
    match found {
        Ok(inspection) => Ok(inspection.findings),
        Err(StoreError::Corrupt { file, offset, what }) => Ok(vec![Finding {
            file,
            offset,
            what,
            refuses_open: true,
        }]),
        Err(error) => Err(error),
    }
}
