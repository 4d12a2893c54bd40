//! The shape of a record (rule U11).

use xxhash_rust::xxh3::Xxh3;

use ferrymq_types::{Epoch, Position};

use crate::segment::{BLOCK, BLOCK_BYTES};

/// Bytes of a record in front of its payload.
pub const HEADER_BYTES: usize = 96;

const MAGIC: u16 = 0x4d46;

/// What a record is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// It covers positions.
    Data = 1,
    /// A run begins; it covers none.
    Epoch = 2,
    /// What the next record names; it covers none.
    Part = 3,
}

/// Everything of a record but its payload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Header {
    pub(crate) kind: Kind,
    pub(crate) epoch: Epoch,
    pub(crate) segment: u32,
    pub(crate) incarnation: u64,
    /// Bytes from the start of the segment.
    pub(crate) offset: u64,
    pub(crate) first: Position,
    /// `first - 1` if it covers no position.
    pub(crate) last: Position,
    /// The checksum of the record before; zero for the first of a journal.
    pub(crate) predecessor: u128,
    /// What was durable when it was written (rule U3).
    pub(crate) durable: Position,
    /// Bytes of payload.
    pub(crate) length: u32,
}

/// Bytes that a record takes in a segment: whole blocks.
pub(crate) fn blocks_bytes(payload: u64) -> u64 {
    payload
        .saturating_add(HEADER_BYTES as u64)
        .checked_next_multiple_of(BLOCK_BYTES)
        .unwrap_or(u64::MAX)
}

impl Header {
    /// Bytes 16 to the end of the header: what the checksum covers beside the payload.
    fn covered(&self) -> [u8; HEADER_BYTES - 16] {
        let mut out = [0; HEADER_BYTES - 16];
        let mut rest = &mut out[..];
        let mut put = |bytes: &[u8]| {
            let (to, after) = core::mem::take(&mut rest).split_at_mut(bytes.len());
            to.copy_from_slice(bytes);
            rest = after;
        };
        put(&MAGIC.to_le_bytes());
        put(&(self.kind as u16).to_le_bytes());
        put(&self.length.to_le_bytes());
        put(&self.epoch.get().to_le_bytes());
        put(&self.incarnation.to_le_bytes());
        put(&self.first.get().to_le_bytes());
        put(&self.last.get().to_le_bytes());
        put(&self.predecessor.to_le_bytes());
        put(&self.durable.get().to_le_bytes());
        put(&self.segment.to_le_bytes());
        // Offsets are multiples of the block size; counted in blocks, 32 bits are 16 TiB.
        let block = u32::try_from(self.offset / BLOCK_BYTES).unwrap_or(u32::MAX);
        put(&block.to_le_bytes());
        out
    }

    /// The record's bytes, in whole blocks, into `out`; returns its checksum.
    pub(crate) fn write(&self, secret: u64, parts: &[&[u8]], out: &mut Vec<u8>) -> u128 {
        let covered = self.covered();
        let mut hash = Xxh3::with_seed(secret);
        hash.update(&covered);
        parts.iter().for_each(|p| hash.update(p));
        let checksum = hash.digest128();
        out.clear();
        out.extend_from_slice(&checksum.to_le_bytes());
        out.extend_from_slice(&covered);
        parts.iter().for_each(|p| out.extend_from_slice(p));
        let padded = out.len().next_multiple_of(BLOCK);
        out.resize(padded, 0);
        checksum
    }

    /// Reads the header at `offset` of a segment. Says nothing of the payload. `None` if none can be there.
    fn read(segment: &[u8], offset: usize) -> Option<(u128, Self)> {
        let bytes = segment.get(offset..)?.get(..HEADER_BYTES)?;
        let (checksum, mut rest) = bytes.split_first_chunk::<16>()?;
        let mut u16 = || {
            let (bytes, after) = rest.split_first_chunk::<2>()?;
            rest = after;
            Some(u16::from_le_bytes(*bytes))
        };
        let (magic, kind) = (u16()?, u16()?);
        if magic != MAGIC {
            return None;
        }
        let kind = match kind {
            1 => Kind::Data,
            2 => Kind::Epoch,
            3 => Kind::Part,
            _ => return None,
        };
        let (length, mut rest) = rest.split_first_chunk::<4>()?;
        let mut u64 = || {
            let (bytes, after) = rest.split_first_chunk::<8>()?;
            rest = after;
            Some(u64::from_le_bytes(*bytes))
        };
        let (epoch, incarnation, first, last) = (u64()?, u64()?, u64()?, u64()?);
        let (predecessor, rest) = rest.split_first_chunk::<16>()?;
        let (durable, rest) = rest.split_first_chunk::<8>()?;
        let (number, rest) = rest.split_first_chunk::<4>()?;
        let (block, _) = rest.split_first_chunk::<4>()?;
        Some((
            u128::from_le_bytes(*checksum),
            Self {
                kind,
                epoch: Epoch::new(epoch),
                segment: u32::from_le_bytes(*number),
                incarnation,
                offset: u64::from(u32::from_le_bytes(*block)).saturating_mul(BLOCK_BYTES),
                first: Position::new(first),
                last: Position::new(last),
                predecessor: u128::from_le_bytes(*predecessor),
                durable: Position::new(u64::from_le_bytes(*durable)),
                length: u32::from_le_bytes(*length),
            },
        ))
    }

    /// What the block at `offset` says that it is, unchecked.
    pub(crate) fn peek(segment: &[u8], offset: usize) -> Option<Self> {
        Self::read(segment, offset).map(|(_, header)| header)
    }

    /// The record at `offset` of the `number`th segment, if a whole and unharmed one is there: in this place, of any incarnation.
    pub(crate) fn check(
        segment: &[u8],
        offset: usize,
        number: u32,
        secret: u64,
    ) -> Option<(u128, Self)> {
        let (checksum, header) = Self::read(segment, offset)?;
        if header.segment != number || header.offset != offset as u64 {
            return None;
        }
        let start = offset.checked_add(HEADER_BYTES)?;
        let payload = segment.get(start..)?.get(..header.length as usize)?;
        let mut hash = Xxh3::with_seed(secret);
        hash.update(&header.covered());
        hash.update(payload);
        (hash.digest128() == checksum).then_some((checksum, header))
    }
}
