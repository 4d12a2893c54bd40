//! Values with a checksum: the one of RocksDB ends where its cache begins, and does not say whose value a block is.

use xxhash_rust::xxh3::Xxh3;

const CHECKSUM_BYTES: usize = 8;

fn checksum(family: &str, key: &[u8], value: &[u8]) -> u64 {
    let mut hash = Xxh3::new();
    hash.update(family.as_bytes());
    hash.update(&(key.len() as u64).to_le_bytes());
    hash.update(key);
    hash.update(value);
    hash.digest()
}

pub(crate) fn encode(family: &str, key: &[u8], value: &[u8]) -> Vec<u8> {
    let mut out = Vec::with_capacity(value.len().saturating_add(CHECKSUM_BYTES));
    encode_to(family, key, value, &mut out);
    out
}

/// The same behind what is in `out`.
pub(crate) fn encode_to(family: &str, key: &[u8], value: &[u8], out: &mut Vec<u8>) {
    out.extend_from_slice(value);
    out.extend_from_slice(&checksum(family, key, value).to_le_bytes());
}

/// The value; `None` if it does not pass its checksum.
pub(crate) fn decode<'a>(family: &str, key: &[u8], stored: &'a [u8]) -> Option<&'a [u8]> {
    let (value, found) = stored.split_last_chunk::<CHECKSUM_BYTES>()?;
    (u64::from_le_bytes(*found) == checksum(family, key, value)).then_some(value)
}
