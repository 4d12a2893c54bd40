//! What the owner of a journal, its syncers and its readers share.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::{Duration, Instant};

use bytes::Bytes;

use ferrymq_store::{
    Guard, LogRead, LogSync, Place, RowCounts, StoreError, crash_point, fault_point,
};
use ferrymq_types::{Epoch, Position};

use crate::{
    disk::{Disk, DiskFile},
    guard::{self, Block, Named},
    inspect::Live,
    segment,
};

/// A segment as readers see it.
#[derive(Debug)]
pub(crate) struct Readable<F> {
    pub(crate) file: Arc<F>,
    /// `None` while it is free.
    pub(crate) incarnation: Option<u64>,
}

#[derive(Debug)]
pub(crate) struct State<F> {
    pub(crate) appended: Position,
    pub(crate) durable: Position,
    /// Files with bytes that were written since they were synced.
    pub(crate) dirty: Vec<Arc<F>>,
    pub(crate) failed: Option<String>,
    pub(crate) epoch: Epoch,
    pub(crate) checkpoint: Position,
    pub(crate) counts: RowCounts,
    /// Segments in use, oldest first.
    pub(crate) live: Vec<Live>,
    /// Copies that are being made: no segment is recycled meanwhile.
    pub(crate) copies: u32,
}

impl<F> State<F> {
    pub(crate) fn check(&self) -> Result<(), StoreError> {
        match &self.failed {
            None => Ok(()),
            Some(cause) => Err(StoreError::Failed {
                cause: cause.clone(),
            }),
        }
    }
}

/// Held by whoever syncs: syncs and guards come one after the other.
#[derive(Debug)]
pub(crate) struct Serial<F> {
    pub(crate) file: F,
    pub(crate) generation: u64,
    pub(crate) written: Instant,
}

#[derive(Debug)]
pub(crate) struct Shared<D: Disk> {
    pub(crate) disk: D,
    pub(crate) secret: u64,
    pub(crate) segment_bytes: u64,
    pub(crate) guard_interval: Duration,
    pub(crate) state: Mutex<State<D::File>>,
    pub(crate) serial: Mutex<Serial<D::File>>,
    pub(crate) segments: RwLock<BTreeMap<u32, Readable<D::File>>>,
}

/// These locks are held for plain assignments only, which cannot be left half-way.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<D: Disk> Shared<D> {
    /// Marks the journal as failed for good (invariant S2).
    fn fail(&self, error: StoreError) -> StoreError {
        let mut state = lock(&self.state);
        state.failed.get_or_insert_with(|| {
            use std::error::Error as _;
            match error.source() {
                Some(source) => format!("{error}: {source}"),
                None => error.to_string(),
            }
        });
        error
    }

    pub(crate) fn sync(
        &self,
        serial: &mut MutexGuard<'_, Serial<D::File>>,
    ) -> Result<Position, StoreError> {
        let (target, files) = {
            let mut state = lock(&self.state);
            state.check()?;
            (state.appended, core::mem::take(&mut state.dirty))
        };
        if !files.is_empty() {
            crash_point("journal.before_sync");
            for file in files {
                let synced = fault_point("journal.sync").and_then(|()| file.sync());
                synced.map_err(|e| {
                    self.fail(StoreError::io("sync a segment of", self.disk.path(""), e))
                })?;
            }
            crash_point("journal.after_sync");
        }
        let durable = {
            let mut state = lock(&self.state);
            state.durable = state.durable.max(target);
            state.durable
        };
        if serial.written.elapsed() >= self.guard_interval {
            self.write_guard(serial)?;
        }
        Ok(durable)
    }

    pub(crate) fn write_guard(
        &self,
        serial: &mut MutexGuard<'_, Serial<D::File>>,
    ) -> Result<(), StoreError> {
        crash_point("journal.before_guard_write");
        let block = {
            let state = lock(&self.state);
            state.check()?;
            Block {
                generation: serial.generation.saturating_add(1),
                guard: Guard {
                    acknowledged: state.durable,
                    checkpoint: state.checkpoint,
                    counts: state.counts.clone(),
                },
                epoch: state.epoch,
                segments: state.live.iter().map(|l| l.named).collect::<Vec<Named>>(),
            }
        };
        fault_point("journal.guard_sync")
            .and_then(|()| block.write(&serial.file, self.secret))
            .map_err(|e| self.fail(StoreError::io("write", self.disk.path(guard::NAME), e)))?;
        serial.generation = block.generation;
        serial.written = Instant::now();
        crash_point("journal.after_guard_write");
        Ok(())
    }

    pub(crate) fn read(&self, place: &Place) -> Result<Option<Bytes>, StoreError> {
        let current = || {
            let segments = self.segments.read().unwrap_or_else(PoisonError::into_inner);
            segments
                .get(&place.segment)
                .filter(|s| s.incarnation == Some(place.incarnation))
                .map(|s| Arc::clone(&s.file))
        };
        let Some(file) = current() else {
            return Ok(None);
        };
        let path = || self.disk.path(&segment::name(place.segment));
        if place.offset.saturating_add(u64::from(place.length)) > self.segment_bytes {
            return Err(StoreError::corrupt(
                path(),
                Some(place.offset),
                "a place behind its end",
            ));
        }
        let mut bytes = vec![0; place.length as usize];
        let result = file.read_at(&mut bytes, place.offset);
        // Only if the segment is still the same now were these its bytes (rule U9).
        if current().is_none() {
            return Ok(None);
        }
        result.map_err(|e| StoreError::io("read", path(), e))?;
        Ok(Some(bytes.into()))
    }
}

/// Makes records of a [`crate::Journal`] durable. One call syncs for all that wait.
#[derive(Debug)]
pub struct JournalSync<D: Disk>(pub(crate) Arc<Shared<D>>);

impl<D: Disk> Clone for JournalSync<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Disk> LogSync for JournalSync<D> {
    fn sync(&self) -> Result<Position, StoreError> {
        self.0.sync(&mut lock(&self.0.serial))
    }

    fn durable(&self) -> Position {
        lock(&self.0.state).durable
    }

    fn sync_guard(&self) -> Result<(), StoreError> {
        self.0.write_guard(&mut lock(&self.0.serial))
    }

    fn checkpoint(&self, position: Position, counts: &RowCounts) -> Result<(), StoreError> {
        let mut serial = lock(&self.0.serial);
        {
            let mut state = lock(&self.0.state);
            state.check()?;
            if position > state.durable {
                return Err(StoreError::Position {
                    last: state.durable,
                    found: position,
                });
            }
            state.checkpoint = position;
            state.counts = counts.clone();
        }
        self.0.write_guard(&mut serial)
    }
}

/// Reads records of a [`crate::Journal`].
#[derive(Debug)]
pub struct JournalRead<D: Disk>(pub(crate) Arc<Shared<D>>);

impl<D: Disk> Clone for JournalRead<D> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<D: Disk> LogRead for JournalRead<D> {
    fn read(&self, place: &Place) -> Result<Option<Bytes>, StoreError> {
        self.0.read(place)
    }
}
