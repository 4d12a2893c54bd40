//! A checkpoint: the net effect of the log up to one position moves to the row store (rules U1, U2, U19).

use std::sync::Arc;

use bytes::Bytes;

use ferrymq_types::{BodyId, Position};

use crate::{
    LogRead, LogSync, RowBatch, RowCounts, RowKey, RowState, RowStore, StoreError, Table, body,
    crash_point,
    overlay::{BodyPlace, Ceilings, Frozen},
    reader::Shared,
};

/// The part of a checkpoint that runs off the engine's thread.
#[derive(Debug)]
pub struct CheckpointJob<S, L, R> {
    pub(crate) frozen: Arc<Frozen>,
    pub(crate) shared: Arc<Shared<R>>,
    pub(crate) sync: S,
    pub(crate) log: L,
    /// Bytes after which a batch is written.
    pub(crate) piece_bytes: usize,
    /// The attempt before this one failed in the row store.
    pub(crate) again: bool,
}

/// What became of a checkpoint, for [`crate::QueueManagerStore::finish_checkpoint`].
#[derive(Debug)]
#[must_use = "the store has to be told"]
pub struct CheckpointDone {
    pub(crate) position: Position,
    pub(crate) result: Result<(), StoreError>,
}

impl CheckpointDone {
    /// The error that ended it, if one did.
    #[must_use]
    pub fn error(&self) -> Option<&StoreError> {
        self.result.as_ref().err()
    }
}

impl<S: LogSync, L: LogRead, R: RowStore> CheckpointJob<S, L, R> {
    /// The position that it makes a checkpoint of.
    #[must_use]
    pub fn position(&self) -> Position {
        self.frozen.position
    }

    /// Does it. `pace` is told after each batch how many bytes it had: who calls limits the rate by taking its time there.
    pub fn run(self, pace: &mut dyn FnMut(usize)) -> CheckpointDone {
        CheckpointDone {
            position: self.frozen.position,
            result: self.write(pace),
        }
    }

    fn write(&self, pace: &mut dyn FnMut(usize)) -> Result<(), StoreError> {
        let position = self.frozen.position;
        crash_point("store.before_checkpoint");
        // Nothing reaches the row store whose write set could still vanish.
        if self.sync.durable() < position {
            let durable = self.sync.sync()?;
            if durable < position {
                return Err(StoreError::Failed {
                    cause: format!(
                        "the journal is durable up to {durable} after a sync, not {position}"
                    ),
                });
            }
        }
        let rows = &self.shared.rows;
        if self.again {
            rows.reopen()?;
        }
        let state = rows.state()?;
        let counts = if state.position == position {
            // An earlier attempt got as far as the flush.
            state.counts
        } else {
            let mut pieces = Pieces {
                rows,
                counts: state.counts_now.clone(),
                state,
                batch: RowBatch::default(),
                piece_bytes: self.piece_bytes,
                below: if self.again {
                    Ceilings::unknown()
                } else {
                    self.frozen.below.clone()
                },
                pace,
            };
            self.bodies(&mut pieces)?;
            self.rows(&mut pieces)?;
            pieces.end(position)?
        };
        crash_point("store.before_flush");
        rows.flush()?;
        crash_point("store.after_flush");
        self.sync.checkpoint(position, &counts)?;
        crash_point("store.after_checkpoint");
        Ok(())
    }

    fn bodies(&self, pieces: &mut Pieces<'_, R>) -> Result<(), StoreError> {
        let bodies: Vec<_> = self.frozen.overlay.bodies.iter().collect();
        for some in bodies.chunks(LOOKED_UP) {
            let deleted = some.iter().filter(|(_, young)| young.is_none());
            let mut deleted = pieces
                .bodies_below(deleted.map(|(id, _)| **id))?
                .into_iter();
            for (id, young) in some {
                match young {
                    Some(place) => pieces.put_body(**id, place, &self.log)?,
                    None => pieces.delete_body(**id, deleted.next().unwrap_or(0))?,
                }
            }
        }
        Ok(())
    }

    fn rows(&self, pieces: &mut Pieces<'_, R>) -> Result<(), StoreError> {
        for table in Table::ALL {
            let changes: Vec<_> = self.frozen.overlay.table(table).iter().collect();
            for some in changes.chunks(LOOKED_UP) {
                pieces.change(table, some)?;
            }
        }
        Ok(())
    }
}

/// Rows that are looked up together.
const LOOKED_UP: usize = 256;

/// Batches of bounded size, each with the row counts as of it.
struct Pieces<'a, R> {
    rows: &'a R,
    /// As of the last complete checkpoint.
    state: RowState,
    /// With everything that is in `batch`.
    counts: RowCounts,
    batch: RowBatch,
    piece_bytes: usize,
    below: Ceilings,
    pace: &'a mut dyn FnMut(usize),
}

impl<R: RowStore> Pieces<'_, R> {
    /// Changes some rows of a table, in order. The counts need to know which are there.
    fn change(
        &mut self,
        table: Table,
        changes: &[(&RowKey, &Option<Bytes>)],
    ) -> Result<(), StoreError> {
        let may_be_there = |key: &RowKey| self.below.may_contain(table, key);
        let keys: Vec<RowKey> = changes.iter().map(|(key, _)| **key).collect();
        let asked: Vec<RowKey> = keys.iter().copied().filter(may_be_there).collect();
        let mut there = if asked.is_empty() {
            Vec::new()
        } else {
            self.rows.peek(table, &asked, 0)?
        }
        .into_iter();
        let exists = keys.iter().map(|key| {
            if self.below.may_contain(table, key) {
                there.next().flatten().is_some()
            } else {
                false
            }
        });
        let exists: Vec<bool> = exists.collect();
        for ((key, value), exists) in changes.iter().zip(exists) {
            match (value, exists) {
                (Some(value), exists) => self.put(table, **key, value.clone(), exists)?,
                (None, true) => self.delete(table, **key)?,
                (None, false) => {}
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        table: Table,
        key: RowKey,
        value: Bytes,
        exists: bool,
    ) -> Result<(), StoreError> {
        if !exists {
            self.counts.increment(table);
        }
        self.batch.put(table, key, value);
        self.write_if_full()
    }

    /// Deletes a row that is there.
    fn delete(&mut self, table: Table, key: RowKey) -> Result<(), StoreError> {
        self.counts.decrement(table);
        self.batch.delete(table, key);
        self.write_if_full()
    }

    /// How many rows each of some bodies has.
    fn bodies_below(&self, ids: impl Iterator<Item = BodyId>) -> Result<Vec<u32>, StoreError> {
        let ids: Vec<BodyId> = ids.collect();
        let may_be_there =
            |id: &&BodyId| (self.below).may_contain(Table::Bodies, &RowKey::body(**id, 0));
        let asked: Vec<BodyId> = ids.iter().filter(may_be_there).copied().collect();
        let mut counts = body::row_counts(self.rows, &asked)?.into_iter();
        Ok(ids
            .iter()
            .map(|id| {
                if may_be_there(&id) {
                    counts.next().unwrap_or(0)
                } else {
                    0
                }
            })
            .collect())
    }

    fn put_body(
        &mut self,
        id: BodyId,
        young: &BodyPlace,
        log: &impl LogRead,
    ) -> Result<(), StoreError> {
        let damaged = |what: &str| {
            let place = young.places.first();
            StoreError::corrupt(
                format!("segment {} of the journal", place.segment),
                Some(place.offset),
                format!("body {id} {what}"),
            )
        };
        let bytes = young
            .places
            .read(log)?
            .ok_or_else(|| damaged("was recycled before its checkpoint"))?;
        if body::checksum(&bytes) != young.checksum {
            return Err(damaged("does not pass its checksum"));
        }
        let rows = body::rows(id, &bytes, young.checksum);
        if !self.below.may_contain(Table::Bodies, &RowKey::body(id, 0)) {
            for (key, value) in rows {
                self.put(Table::Bodies, key, value, false)?;
            }
            return Ok(());
        }
        let rows: Vec<_> = rows.into_iter().map(|(k, v)| (k, Some(v))).collect();
        let rows: Vec<_> = rows.iter().map(|(k, v)| (k, v)).collect();
        self.change(Table::Bodies, &rows)
    }

    /// Deletes a body that has so many rows: a crash may have left the first of them only.
    fn delete_body(&mut self, id: BodyId, rows: u32) -> Result<(), StoreError> {
        if rows > 1 {
            let others: Vec<RowKey> = (1..rows).rev().map(|n| RowKey::body(id, n)).collect();
            let others: Vec<_> = others.iter().map(|key| (key, &None)).collect();
            self.change(Table::Bodies, &others)?;
        }
        if rows > 0 {
            self.delete(Table::Bodies, RowKey::body(id, 0))?;
        }
        Ok(())
    }

    fn write_if_full(&mut self) -> Result<(), StoreError> {
        if self.batch.bytes() < self.piece_bytes {
            return Ok(());
        }
        let state = RowState {
            counts_now: self.counts.clone(),
            ..self.state.clone()
        };
        self.write(&state)
    }

    fn write(&mut self, state: &RowState) -> Result<(), StoreError> {
        crash_point("store.before_checkpoint_write");
        self.rows.write(&self.batch, state)?;
        crash_point("store.after_checkpoint_write");
        let bytes = self.batch.bytes();
        self.batch = RowBatch::default();
        (self.pace)(bytes);
        Ok(())
    }

    /// The last batch: with it, and not before, the row store is at `position`.
    fn end(mut self, position: Position) -> Result<RowCounts, StoreError> {
        let state = RowState {
            position,
            counts: self.counts.clone(),
            counts_now: self.counts.clone(),
        };
        self.write(&state)?;
        Ok(state.counts)
    }
}
