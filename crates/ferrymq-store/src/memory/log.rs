//! The log in memory.

use std::collections::BTreeMap;

use bytes::Bytes;

use ferrymq_types::{Epoch, Position};

use crate::{
    Appended, Guard, LogRead, LogSync, LogUsage, Place, Record, RecordLog, Recovered, RowCounts,
    StoreError,
};

use super::{MemoryDisk, MemoryOptions, Random, State};

const FILE: &str = "journal in memory";

#[derive(Debug, Clone)]
struct Kept {
    first: Position,
    last: Position,
    /// The position of the record that it belongs to: of itself, or of the one that names it as a part.
    needed: Position,
    payload: Bytes,
}

impl Kept {
    fn is_part(&self) -> bool {
        self.last < self.first
    }
}

#[derive(Debug, Default)]
pub(super) struct LogState {
    /// By incarnation: each record has a number of its own that is never used again.
    records: BTreeMap<u64, Kept>,
    next: u64,
    durable: Position,
    epoch: Epoch,
    guard: Guard,
    failed: bool,
}

impl LogState {
    fn last(&self) -> Position {
        self.records
            .last_key_value()
            .map_or(self.guard.checkpoint, |(_, r)| r.last)
    }

    fn bytes(&self) -> u64 {
        self.records
            .values()
            .map(|r| r.payload.len() as u64)
            .fold(0, u64::saturating_add)
    }

    /// Parts that no record came to name before the end of a run are of no use: they go with the tail.
    fn cut_parts(&mut self) {
        while let Some(last) = self.records.last_entry()
            && last.get().is_part()
        {
            last.remove();
        }
    }

    pub(super) fn crash(&mut self, random: &mut Random) {
        let unsynced: Vec<u64> = self
            .records
            .iter()
            .filter(|(_, r)| r.needed > self.durable)
            .map(|(n, _)| *n)
            .collect();
        let kept = random.below(unsynced.len() as u64 + 1);
        for lost in unsynced.iter().skip(usize::try_from(kept).unwrap_or(0)) {
            self.records.remove(lost);
        }
        self.failed = false;
    }

    fn check(&self) -> Result<(), StoreError> {
        if self.failed {
            return Err(StoreError::Failed {
                cause: "a sync failed".to_owned(),
            });
        }
        Ok(())
    }
}

/// A log in memory. See [`MemoryDisk`].
#[derive(Debug)]
pub struct MemoryLog {
    disk: MemoryDisk,
    run: u64,
    options: MemoryOptions,
    recovered: Recovered,
}

impl MemoryLog {
    pub(super) fn open(disk: MemoryDisk, options: MemoryOptions) -> Self {
        let (run, recovered) = {
            let mut state = disk.lock();
            // Opening ends every handle of the run before.
            state.run = state.run.saturating_add(1);
            state.log.failed = false;
            state.log.cut_parts();
            let recovered = Recovered {
                guard: state.log.guard.clone(),
                last: state.log.last(),
                epoch: state.log.epoch,
                cut: None,
            };
            (state.run, recovered)
        };
        Self {
            disk,
            run,
            options,
            recovered,
        }
    }
}

impl MemoryLog {
    fn keep(&mut self, span: u64, parts: &[&[u8]]) -> Result<Appended, StoreError> {
        let mut state = self.disk.live(self.run)?;
        state.log.check()?;
        let payload: Bytes = parts.concat().into();
        let bytes = payload.len() as u64;
        if bytes > self.options.payload_bytes_max {
            return Err(StoreError::TooLarge {
                bytes,
                max: self.options.payload_bytes_max,
            });
        }
        let used = state.log.bytes();
        if used.saturating_add(bytes) > self.options.log_bytes_max {
            return Err(StoreError::LogFull {
                used,
                limit: self.options.log_bytes_max,
            });
        }
        let log = &mut state.log;
        let before = log.last();
        let first = before.next();
        let last = Position::new(before.get().saturating_add(span));
        let incarnation = log.next;
        log.next = log.next.saturating_add(1);
        let place = place(incarnation, &payload)?;
        log.records.insert(
            incarnation,
            Kept {
                first,
                last,
                needed: last.max(first),
                payload,
            },
        );
        Ok(Appended { first, last, place })
    }
}

impl RecordLog for MemoryLog {
    type Sync = MemoryLogSync;
    type Read = MemoryLogRead;

    fn recovered(&self) -> &Recovered {
        &self.recovered
    }

    fn replay(
        &self,
        after: Position,
        visit: &mut dyn FnMut(Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let records = self.disk.live(self.run)?.log.records.clone();
        let wanted = |r: &Kept| r.last > after && !r.is_part();
        for (incarnation, record) in records.into_iter().filter(|(_, r)| wanted(r)) {
            visit(Record {
                first: record.first,
                last: record.last,
                place: place(incarnation, &record.payload)?,
                payload: record.payload,
            })?;
        }
        Ok(())
    }

    fn start(&mut self) -> Result<Epoch, StoreError> {
        let mut state = self.disk.live(self.run)?;
        state.log.epoch = state.log.epoch.next();
        state.log.durable = state.log.last();
        Ok(state.log.epoch)
    }

    fn append(&mut self, span: u64, parts: &[&[u8]]) -> Result<Appended, StoreError> {
        self.keep(span.max(1), parts)
    }

    fn append_part(&mut self, parts: &[&[u8]]) -> Result<Place, StoreError> {
        Ok(self.keep(0, parts)?.place)
    }

    fn has_room(&self, parts: u64) -> bool {
        let bytes = parts
            .saturating_add(1)
            .saturating_mul(self.part_bytes_max());
        let used = self.disk.lock().log.bytes();
        used.saturating_add(bytes) <= self.options.log_bytes_max
    }

    fn part_bytes_max(&self) -> u64 {
        (self.options.payload_bytes_max / 4).max(1)
    }

    fn last(&self) -> Position {
        self.disk.lock().log.last()
    }

    fn payload_bytes_max(&self) -> u64 {
        self.options.payload_bytes_max
    }

    fn syncer(&self) -> MemoryLogSync {
        MemoryLogSync {
            disk: self.disk.clone(),
            run: self.run,
        }
    }

    fn reader(&self) -> MemoryLogRead {
        MemoryLogRead {
            disk: self.disk.clone(),
            run: self.run,
        }
    }

    fn recycle(&mut self, position: Position) -> Result<(), StoreError> {
        let mut state = self.disk.live(self.run)?;
        state.log.check()?;
        if state.log.guard.checkpoint < position {
            return Err(StoreError::Failed {
                cause: format!("recycle up to {position} before the guard names it"),
            });
        }
        // The last record stays: it says where positions go on.
        let newest = state.log.records.last_key_value().map(|(n, _)| *n);
        state
            .log
            .records
            .retain(|n, r| r.needed > position || Some(*n) == newest);
        Ok(())
    }

    fn usage(&self) -> LogUsage {
        LogUsage {
            used: self.disk.lock().log.bytes(),
            limit: self.options.log_bytes_max,
        }
    }

    fn release_reserve(&mut self) -> Result<(), StoreError> {
        Ok(())
    }

    fn restore_reserve(&mut self) -> Result<bool, StoreError> {
        Ok(true)
    }
}

fn place(incarnation: u64, payload: &Bytes) -> Result<Place, StoreError> {
    let length = u32::try_from(payload.len()).map_err(|_| StoreError::TooLarge {
        bytes: payload.len() as u64,
        max: u64::from(u32::MAX),
    })?;
    Ok(Place {
        segment: 0,
        incarnation,
        offset: 0,
        length,
    })
}

/// Syncs a [`MemoryLog`].
#[derive(Debug, Clone)]
pub struct MemoryLogSync {
    disk: MemoryDisk,
    run: u64,
}

impl MemoryLogSync {
    fn sync_state(&self) -> Result<std::sync::MutexGuard<'_, State>, StoreError> {
        let mut state = self.disk.live(self.run)?;
        state.log.check()?;
        if core::mem::take(&mut state.fail_next_sync) {
            state.log.failed = true;
            return Err(StoreError::io(
                "sync",
                FILE,
                std::io::Error::other("the test asked for it"),
            ));
        }
        state.log.durable = state.log.last();
        Ok(state)
    }
}

impl LogSync for MemoryLogSync {
    fn sync(&self) -> Result<Position, StoreError> {
        Ok(self.sync_state()?.log.durable)
    }

    fn durable(&self) -> Position {
        self.disk.lock().log.durable
    }

    fn sync_guard(&self) -> Result<(), StoreError> {
        let mut state = self.disk.live(self.run)?;
        state.log.check()?;
        state.log.guard.acknowledged = state.log.durable;
        Ok(())
    }

    fn checkpoint(&self, position: Position, counts: &RowCounts) -> Result<(), StoreError> {
        let mut state = self.disk.live(self.run)?;
        state.log.check()?;
        let durable = state.log.durable;
        if durable < position {
            return Err(StoreError::Position {
                last: durable,
                found: position,
            });
        }
        state.log.guard = Guard {
            acknowledged: durable,
            checkpoint: position,
            counts: counts.clone(),
        };
        Ok(())
    }
}

/// Reads a [`MemoryLog`].
#[derive(Debug, Clone)]
pub struct MemoryLogRead {
    disk: MemoryDisk,
    run: u64,
}

impl LogRead for MemoryLogRead {
    fn read(&self, place: &Place) -> Result<Option<Bytes>, StoreError> {
        let state = self.disk.live(self.run)?;
        let Some(record) = state.log.records.get(&place.incarnation) else {
            return Ok(None);
        };
        let start = usize::try_from(place.offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(place.length as usize);
        if end > record.payload.len() {
            return Err(StoreError::corrupt(
                FILE,
                Some(place.offset),
                "the record is shorter",
            ));
        }
        Ok(Some(record.payload.slice(start..end)))
    }
}
