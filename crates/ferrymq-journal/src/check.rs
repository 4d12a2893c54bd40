//! Examines a journal and changes nothing.

use std::path::Path;

use ferrymq_store::{Finding, Recovered, StoreError};

use crate::{
    disk::{Disk, OsDisk},
    inspect,
    meta::Meta,
};

/// What an examination found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Examination {
    /// What is wrong.
    pub findings: Vec<Finding>,
    /// What the journal holds and knows; `None` if it could not be read that far.
    pub recovered: Option<Recovered>,
    /// Segments that hold records, and segments that hold nothing that is needed.
    pub segments: (usize, usize),
}

/// Examines the journal in a directory: every file, every record, the chain and the guard.
///
/// # Errors
/// [`StoreError::InUse`] while a process has it open; what the disk says. Damage is a finding, not an error.
pub fn check(directory: &Path) -> Result<Examination, StoreError> {
    check_on(&OsDisk::existing(directory))
}

/// As [`check`], on any disk.
///
/// # Errors
/// As [`check`].
pub fn check_on<D: Disk>(disk: &D) -> Result<Examination, StoreError> {
    let directory = disk.path("");
    let _lock = disk
        .lock()
        .map_err(|e| StoreError::io("lock", &directory, e))?
        .ok_or(StoreError::InUse { directory })?;
    let found = Meta::read(disk).and_then(|meta| inspect::inspect(disk, &meta));
    match found {
        Ok(inspection) => Ok(Examination {
            segments: (inspection.live.len(), inspection.free.len()),
            recovered: Some(inspection.recovered()),
            findings: inspection.findings,
        }),
        Err(StoreError::Corrupt { file, offset, what }) => Ok(Examination {
            findings: vec![Finding {
                file,
                offset,
                what,
                refuses_open: true,
            }],
            recovered: None,
            segments: (0, 0),
        }),
        Err(error) => Err(error),
    }
}
