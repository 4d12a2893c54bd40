//! `guard.bin`: two blocks written in turn (rule U12).

use xxhash_rust::xxh3::xxh3_128_with_seed;

use ferrymq_store::{Guard, RowCounts, StoreError};
use ferrymq_types::{Epoch, Position};

use crate::{
    disk::{Disk, DiskFile},
    segment::{self, BLOCK, BLOCK_BYTES},
};

pub(crate) const NAME: &str = "guard.bin";

/// Segments that a journal may have: as many as one block of its guard can name.
pub const SEGMENTS_MAX: u32 = 200;

/// A use of a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Named {
    pub(crate) segment: u32,
    pub(crate) incarnation: u64,
}

/// One block of the guard.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Block {
    pub(crate) generation: u64,
    pub(crate) guard: Guard,
    pub(crate) epoch: Epoch,
    /// In the order of their use.
    pub(crate) segments: Vec<Named>,
}

impl Block {
    fn encode(&self, secret: u64) -> Vec<u8> {
        let mut out = vec![0; 16];
        let mut put = |n: u64| out.extend_from_slice(&n.to_le_bytes());
        put(self.generation);
        put(self.epoch.get());
        put(self.guard.acknowledged.get());
        put(self.guard.checkpoint.get());
        let counts = self.guard.counts.as_slice();
        put(counts.len() as u64);
        counts.iter().for_each(|n| put(*n));
        put(self.segments.len() as u64);
        for named in &self.segments {
            put(u64::from(named.segment));
            put(named.incarnation);
        }
        out.resize(BLOCK, 0);
        let checksum = xxh3_128_with_seed(&out[16..], secret);
        out[..16].copy_from_slice(&checksum.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8], secret: u64) -> Option<Self> {
        let (checksum, rest) = bytes.split_first_chunk::<16>()?;
        if u128::from_le_bytes(*checksum) != xxh3_128_with_seed(rest, secret) {
            return None;
        }
        let mut numbers = rest.chunks_exact(8).map(|chunk| {
            let mut n = [0; 8];
            n.copy_from_slice(chunk);
            u64::from_le_bytes(n)
        });
        let mut next = || numbers.next();
        let (generation, epoch, acknowledged, checkpoint) = (next()?, next()?, next()?, next()?);
        let tables = usize::try_from(next()?).ok()?;
        let counts = (0..tables).map(|_| next()).collect::<Option<Vec<_>>>()?;
        let segments = usize::try_from(next()?).ok()?;
        let segments = (0..segments)
            .map(|_| {
                Some(Named {
                    segment: u32::try_from(next()?).ok()?,
                    incarnation: next()?,
                })
            })
            .collect::<Option<Vec<_>>>()?;
        Some(Self {
            generation,
            guard: Guard {
                acknowledged: Position::new(acknowledged),
                checkpoint: Position::new(checkpoint),
                counts: RowCounts::from_slice(&counts)?,
            },
            epoch: Epoch::new(epoch),
            segments,
        })
    }

    /// Writes it where the block before the last one is, and syncs it.
    pub(crate) fn write<F: DiskFile>(&self, file: &F, secret: u64) -> std::io::Result<()> {
        let offset = (self.generation % 2).saturating_mul(BLOCK_BYTES);
        file.write_at(&self.encode(secret), offset)?;
        file.sync()
    }
}

/// Creates the file, with a first block, whose generation is 1.
pub(crate) fn create<D: Disk>(disk: &D, secret: u64, block: &Block) -> Result<(), StoreError> {
    segment::create_file(disk, NAME, 2 * BLOCK_BYTES, |file| {
        file.write_at(&block.encode(secret), BLOCK_BYTES)
    })?;
    Ok(())
}

/// The newer of the two blocks, and whether the other is damaged.
pub(crate) fn read<D: Disk>(disk: &D, secret: u64) -> Result<(Block, bool), StoreError> {
    let path = disk.path(NAME);
    let bytes = match disk
        .open_read_only(NAME)
        .and_then(|f| segment::read_all(&f))
    {
        Ok(bytes) => bytes,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            return Err(StoreError::corrupt(path, None, "it is missing"));
        }
        Err(e) => return Err(StoreError::io("read", path, e)),
    };
    if bytes.len() != 2 * BLOCK {
        return Err(StoreError::corrupt(path, None, "it has the wrong length"));
    }
    let blocks: Vec<Option<Block>> = bytes
        .chunks_exact(BLOCK)
        .map(|b| Block::decode(b, secret))
        .collect();
    // A new file has one block; the other is of zeros.
    let damaged = bytes
        .chunks_exact(BLOCK)
        .zip(&blocks)
        .any(|(bytes, block)| block.is_none() && bytes.iter().any(|b| *b != 0));
    blocks
        .into_iter()
        .flatten()
        .max_by_key(|b| b.generation)
        .map(|block| (block, damaged))
        .ok_or_else(|| StoreError::corrupt(path, None, "neither of its blocks passes its checksum"))
}
