//! `journal.meta`: what stays the same for the life of a journal.

use xxhash_rust::xxh3::xxh3_128;

use ferrymq_store::StoreError;

use crate::{
    disk::{Disk, DiskFile},
    segment,
};

pub(crate) const NAME: &str = "journal.meta";

const MAGIC: &[u8; 8] = b"FERRYMQJ";
const BYTES: usize = 4096;

/// The newest format of the directory that this release knows.
pub(crate) const FORMAT: u32 = 1;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Meta {
    /// Keys the checksums of records and of the guard: bytes that somebody put into a message cannot be made to look like a
    /// record.
    pub(crate) secret: u64,
    pub(crate) segment_bytes: u64,
}

impl Meta {
    pub(crate) fn new(segment_bytes: u64) -> Result<Self, StoreError> {
        let secret = getrandom::u64().map_err(|e| {
            let error = std::io::Error::other(e.to_string());
            StoreError::io("draw a random number for", NAME, error)
        })?;
        Ok(Self {
            secret,
            segment_bytes,
        })
    }

    pub(crate) fn create<D: Disk>(&self, disk: &D) -> Result<(), StoreError> {
        let mut bytes = Vec::with_capacity(BYTES);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&FORMAT.to_le_bytes());
        bytes.extend_from_slice(&[0; 4]);
        bytes.extend_from_slice(&self.segment_bytes.to_le_bytes());
        bytes.extend_from_slice(&self.secret.to_le_bytes());
        let checksum = xxh3_128(&bytes);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        segment::create_file(disk, NAME, BYTES as u64, |file| file.write_at(&bytes, 0))?;
        Ok(())
    }

    pub(crate) fn read<D: Disk>(disk: &D) -> Result<Self, StoreError> {
        let file = disk.path(NAME);
        let bytes = disk
            .open_read_only(NAME)
            .and_then(|f| segment::read_all(&f))
            .map_err(|e| match e.kind() {
                std::io::ErrorKind::NotFound => StoreError::corrupt(
                    &file,
                    None,
                    "it is missing, and the journal cannot be read without it",
                ),
                _ => StoreError::io("read", &file, e),
            })?;
        let corrupt = |what: &str| StoreError::corrupt(&file, None, what);
        if bytes.len() != BYTES {
            return Err(corrupt("it has the wrong length"));
        }
        if !bytes.starts_with(MAGIC) {
            return Err(corrupt("it does not belong to a journal"));
        }
        let number = |at: usize| -> u64 {
            let mut out = [0; 8];
            out.copy_from_slice(&bytes[at..at + 8]);
            u64::from_le_bytes(out)
        };
        let mut checksum = [0; 16];
        checksum.copy_from_slice(&bytes[32..48]);
        // The format comes first: a newer one may have its checksum elsewhere.
        let found = u32::try_from(number(8) & u64::from(u32::MAX)).unwrap_or(u32::MAX);
        if found > FORMAT {
            return Err(StoreError::NewerFormat {
                file,
                found,
                supported: FORMAT,
            });
        }
        if u128::from_le_bytes(checksum) != xxh3_128(&bytes[..32]) || found == 0 {
            return Err(corrupt("it does not pass its checksum"));
        }
        Ok(Self {
            segment_bytes: number(16),
            secret: number(24),
        })
    }
}
