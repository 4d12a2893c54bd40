//! The record log: where write sets, and the entries of a Raft group, become durable.

use bytes::Bytes;

use ferrymq_types::{Epoch, Position};

use crate::{RowCounts, StoreError};

/// Where bytes of a record are. It goes stale when the segment is recycled: a read then finds nothing, never other bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The segment.
    pub segment: u32,
    /// Which use of the segment: never the same number twice in one log.
    pub incarnation: u64,
    /// Bytes from the start of the segment.
    pub offset: u64,
    /// Bytes.
    pub length: u32,
}

impl Place {
    /// A part of these bytes, `offset` from their start. `None` if it is not inside.
    #[must_use]
    pub fn part(self, offset: u64, length: u32) -> Option<Self> {
        let end = offset.checked_add(u64::from(length))?;
        if end > u64::from(self.length) {
            return None;
        }
        Some(Self {
            offset: self.offset.checked_add(offset)?,
            length,
            ..self
        })
    }
}

/// A record as it is read back.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Record {
    /// The first position that it covers.
    pub first: Position,
    /// The last position that it covers.
    pub last: Position,
    /// What was appended.
    pub payload: Bytes,
    /// Where that is.
    pub place: Place,
}

/// What the log knows durably beside its records (rule U12).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Guard {
    /// Everything up to here had been acknowledged when the guard was written.
    pub acknowledged: Position,
    /// Everything up to here had left the log when the guard was written.
    pub checkpoint: Position,
    /// Rows per table at that checkpoint.
    pub counts: RowCounts,
}

/// What opening a log found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Recovered {
    /// The guard.
    pub guard: Guard,
    /// The last position that is in the log; the checkpoint if there is no record.
    pub last: Position,
    /// The epoch of the last run; zero for none.
    pub epoch: Epoch,
    /// Records behind `last` that were never acknowledged and will be cut off: where they start, for the operator's log.
    pub cut: Option<String>,
}

/// How full the log is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LogUsage {
    /// Bytes in use, counted in whole segments but for the last.
    pub used: u64,
    /// Bytes that it may use.
    pub limit: u64,
}

/// An append-only log of records, written by one owner.
///
/// Positions rise by one without a gap, starting at 1. Life of a log: open (how is up to the implementation; it refuses damage,
/// changes nothing), [`RecordLog::recovered`], [`RecordLog::replay`], [`RecordLog::start`], then appends.
pub trait RecordLog: Send + 'static {
    /// Makes appended records durable.
    type Sync: LogSync;
    /// Reads bytes back.
    type Read: LogRead;

    /// What opening found. Does not change afterwards.
    fn recovered(&self) -> &Recovered;

    /// Gives every record with positions after `after`, oldest first.
    ///
    /// # Errors
    /// What reading met, or what `visit` returned: the visit ends there.
    fn replay(
        &self,
        after: Position,
        visit: &mut dyn FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Cuts off what was never acknowledged and starts a new epoch; both are durable, and so is everything that was read, when it
    /// returns (rule U10). Called once, before the first append.
    ///
    /// # Errors
    /// What the disk says. The log must then be opened anew.
    fn start(&mut self) -> Result<Epoch, StoreError>;

    /// Appends one record that covers the next `span` positions; its payload is `parts`, one after the other. It is durable once
    /// a sync that begins after this returned has ended.
    ///
    /// # Errors
    /// [`StoreError::TooLarge`], [`StoreError::LogFull`], [`StoreError::NoSpace`], [`StoreError::Io`]: nothing was appended.
    /// [`StoreError::Failed`] after a failed sync.
    fn append(&mut self, span: u64, parts: &[&[u8]]) -> Result<Appended, StoreError>;

    /// Appends a part of what the next record is about, which names it by its place: that is how something becomes durable that
    /// is larger than a record. A part covers no position, is not replayed, and stays as long as that record does.
    ///
    /// # Errors
    /// As [`RecordLog::append`]. Parts that no record came to name are gone with their segments.
    fn append_part(&mut self, parts: &[&[u8]]) -> Result<Place, StoreError>;

    /// Whether so many parts and a record that names them can be appended before a checkpoint makes room.
    fn has_room(&self, parts: u64) -> bool;

    /// The last position that was appended.
    fn last(&self) -> Position;

    /// Bytes that the payload of one record may have.
    fn payload_bytes_max(&self) -> u64;

    /// Bytes that one part may have: several fit in a segment, so that little of it stays empty.
    fn part_bytes_max(&self) -> u64;

    /// A handle that syncs, for any thread.
    fn syncer(&self) -> Self::Sync;

    /// A handle that reads, for any thread.
    fn reader(&self) -> Self::Read;

    /// Takes segments that hold nothing after `position` back into use; none, while somebody copies them. The guard must name
    /// `position` as checkpoint ([`LogSync::checkpoint`]).
    ///
    /// # Errors
    /// [`StoreError::Failed`] if the guard does not name it, or after a failed sync.
    fn recycle(&mut self, position: Position) -> Result<(), StoreError>;

    /// How full it is.
    fn usage(&self) -> LogUsage;

    /// Gives the reserve back to the file system, so that a checkpoint finds room on a full disk (rule U18).
    ///
    /// # Errors
    /// What the disk says.
    fn release_reserve(&mut self) -> Result<(), StoreError>;

    /// Takes the reserve again, if it was released. Returns whether it is in place.
    ///
    /// # Errors
    /// What the disk says, except that there is no room.
    fn restore_reserve(&mut self) -> Result<bool, StoreError>;
}

/// What an append returns: the positions it covers and where its payload is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    /// The first position that it covers.
    pub first: Position,
    /// The last position that it covers.
    pub last: Position,
    /// Where the payload is.
    pub place: Place,
}

/// Makes appended records durable. Calls from several threads are safe.
pub trait LogSync: Clone + Send + Sync + 'static {
    /// Makes everything that was appended before the call durable and returns the durable position.
    ///
    /// # Errors
    /// What the disk says. A failure is final: every later call returns [`StoreError::Failed`] (invariant S2).
    fn sync(&self) -> Result<Position, StoreError>;

    /// The position that is known to be durable.
    fn durable(&self) -> Position;

    /// Writes the guard with the durable position. Called when idle and at a clean stop; under load the log does it by itself.
    ///
    /// # Errors
    /// As [`LogSync::sync`].
    fn sync_guard(&self) -> Result<(), StoreError>;

    /// Writes a guard that names a checkpoint. `position` must be durable in the log, and its rows in the row store.
    ///
    /// # Errors
    /// As [`LogSync::sync`]; [`StoreError::Position`] if `position` is not durable.
    fn checkpoint(&self, position: Position, counts: &RowCounts) -> Result<(), StoreError>;
}

/// Reads bytes of records.
pub trait LogRead: Clone + Send + Sync + 'static {
    /// The bytes at `place`; `None` if the segment was recycled since (rule U9).
    ///
    /// # Errors
    /// What the disk says.
    fn read(&self, place: &Place) -> Result<Option<Bytes>, StoreError>;
}
