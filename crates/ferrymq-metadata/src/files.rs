//! Small files that are replaced as a whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;

use xxhash_rust::xxh3::xxh3_64;

/// Ends the name of a file that is being written. What is found of that name at open is removed.
pub(crate) const UNFINISHED: &str = "unfinished";

/// Writes `bytes` under `path` so that a crash leaves the old file or the new one: a temporary name, a sync, a rename, a sync of the
/// directory.
pub(crate) fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let unfinished = path.with_extension(UNFINISHED);
    let mut file = File::create(&unfinished)?;
    file.write_all(bytes)?;
    file.sync_all()?;
    publish(&unfinished, path)
}

/// Gives a written and synced file its final name, durably.
pub(crate) fn publish(unfinished: &Path, path: &Path) -> io::Result<()> {
    fs::rename(unfinished, path)?;
    sync_directory(path)
}

/// Makes what happened to names in the directory of `path` durable.
pub(crate) fn sync_directory(path: &Path) -> io::Result<()> {
    match path.parent() {
        Some(directory) => File::open(directory)?.sync_all(),
        None => Ok(()),
    }
}

/// Makes `directory` and the directories above it, durably.
pub(crate) fn make_directory(directory: &Path) -> io::Result<()> {
    fs::create_dir_all(directory)?;
    sync_directory(directory)
}

/// Bytes of the checksum in front of a sealed file.
const SEAL: usize = 8;

/// `bytes` with their checksum (XXH3-64, big-endian) in front.
pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
    let mut sealed = xxh3_64(bytes).to_be_bytes().to_vec();
    sealed.extend_from_slice(bytes);
    sealed
}

/// What was sealed; `None` if a bit of it changed.
pub(crate) fn unseal(sealed: &[u8]) -> Option<&[u8]> {
    let (sum, bytes) = sealed.split_first_chunk::<SEAL>()?;
    (u64::from_be_bytes(*sum) == xxh3_64(bytes)).then_some(bytes)
}
