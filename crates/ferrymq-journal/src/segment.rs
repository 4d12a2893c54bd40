//! Segment files: written in full before they are used.

use std::sync::Arc;

use ferrymq_store::StoreError;

use crate::disk::{Disk, DiskFile};

/// Records start on blocks of this many bytes, and a block that holds acknowledged bytes is never written again (rule U11).
pub const BLOCK_BYTES: u64 = BLOCK as u64;

/// The same, for slices.
pub(crate) const BLOCK: usize = 4096;

const PREFIX: &str = "segment-";
const SUFFIX: &str = ".journal";

pub(crate) fn name(number: u32) -> String {
    format!("{PREFIX}{number:08}{SUFFIX}")
}

/// The number in the name of a segment file.
pub(crate) fn number(name: &str) -> Option<u32> {
    let digits = name.strip_prefix(PREFIX)?.strip_suffix(SUFFIX)?;
    let number = digits.parse().ok()?;
    (self::name(number) == name).then_some(number)
}

/// Creates a segment file: filled with zeros, synced, and only then under its name. A file that grows, or is merely allocated,
/// costs 1.4 to 2 times as much per sync (measured).
pub(crate) fn create<D: Disk>(
    disk: &D,
    number: u32,
    bytes: u64,
) -> Result<Arc<D::File>, StoreError> {
    let file = create_file(disk, &name(number), bytes, |_| Ok(()))?;
    Ok(Arc::new(file))
}

/// Creates a file of zeros in which `fill` writes something, durably: whole under its name, or not at all.
pub(crate) fn create_file<D: Disk>(
    disk: &D,
    name: &str,
    bytes: u64,
    fill: impl FnOnce(&D::File) -> std::io::Result<()>,
) -> Result<D::File, StoreError> {
    let new = format!("{name}.new");
    let error = |operation, source| StoreError::io(operation, disk.path(name), source);
    let write = || -> std::io::Result<D::File> {
        let file = disk.create(&new)?;
        let zeros = vec![0; 1024 * 1024];
        let mut offset = 0;
        while offset < bytes {
            let left = usize::try_from(bytes - offset).unwrap_or(usize::MAX);
            let piece = &zeros[..zeros.len().min(left)];
            file.write_at(piece, offset)?;
            offset = offset.saturating_add(piece.len() as u64);
        }
        fill(&file)?;
        file.sync()?;
        Ok(file)
    };
    let file = write().map_err(|source| {
        // The room that it took is needed more elsewhere. If even that fails, the next open removes it.
        if let Err(error) = disk.remove(&new) {
            tracing::debug!(file = disk.path(&new), %error, "remove an unfinished file");
        }
        error("create", source)
    })?;
    disk.rename(&new, name).map_err(|e| error("rename", e))?;
    disk.sync_directory()
        .map_err(|e| error("sync the directory of", e))?;
    Ok(file)
}

/// All bytes of a file.
pub(crate) fn read_all<F: DiskFile>(file: &F) -> std::io::Result<Vec<u8>> {
    let length = usize::try_from(file.length()?).map_err(|_| {
        std::io::Error::new(std::io::ErrorKind::FileTooLarge, "does not fit in memory")
    })?;
    let mut bytes = vec![0; length];
    file.read_at(&mut bytes, 0)?;
    Ok(bytes)
}
