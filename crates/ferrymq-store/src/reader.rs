//! Reads that run beside the engine.

use std::sync::{Arc, RwLock};

use bytes::Bytes;

use ferrymq_proto::storage::StoredRow;
use ferrymq_types::{BodyId, MessageRow, ObjectId, Position, Sequence};

use crate::{
    LogRead, RecoveredRow, RowCounts, RowKey, RowStore, StoreError, Table, body,
    body::{format_error, table_file},
    overlay::{BodyPlace, Ceilings, Found, Layers, TableOverlay},
    recovery::Visit,
};

/// How often a body may move while it is read. Each time a whole checkpoint must have ended in between.
const MOVES_MAX: u32 = 16;

/// What the store, its readers and its checkpoints share.
#[derive(Debug)]
pub(crate) struct Shared<R> {
    pub(crate) layers: RwLock<Layers>,
    pub(crate) rows: R,
}

pub(crate) fn poisoned<T>(_: std::sync::PoisonError<T>) -> StoreError {
    StoreError::Failed {
        cause: "a thread panicked while it changed the overlay".to_owned(),
    }
}

/// Reads rows and bodies, from any thread, while the store goes on.
#[derive(Debug)]
pub struct Reader<L, R> {
    pub(crate) shared: Arc<Shared<R>>,
    pub(crate) log: L,
}

impl<L: Clone, R> Clone for Reader<L, R> {
    fn clone(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            log: self.log.clone(),
        }
    }
}

impl<L: LogRead, R: RowStore> Reader<L, R> {
    /// The row store, for copies. Only checkpoints write it.
    #[must_use]
    pub fn rows(&self) -> &R {
        &self.shared.rows
    }

    /// A message with its body; `None` if it is not on the queue. What was appended and is not yet durable is seen.
    ///
    /// # Errors
    /// What the disk says; [`StoreError::Corrupt`] if row or body do not pass their checksums, or the body is missing: the
    /// message then stays where it is (rule U9).
    pub fn fetch(
        &self,
        queue: ObjectId,
        sequence: Sequence,
    ) -> Result<Option<(MessageRow, Bytes)>, StoreError> {
        let key = RowKey::message(queue, sequence);
        for _ in 0..MOVES_MAX {
            let Some(value) = self.row(Table::Messages, &key)? else {
                return Ok(None);
            };
            let row = MessageRow::from_stored(&value)
                .map_err(|e| format_error(&self.shared.rows, Table::Messages, &key, e))?;
            if let Some(body) = self.fetch_body(row.body)? {
                if body.len() != row.body_length as usize {
                    return Err(self.corrupt_body(
                        row.body,
                        &format!("has {} bytes instead of {}", body.len(), row.body_length),
                    ));
                }
                return Ok(Some((row, body)));
            }
            // The body is gone: so must the message be by now, unless it was changed to name another.
            if self.row(Table::Messages, &key)? == Some(value) {
                return Err(self.corrupt_body(row.body, "is missing"));
            }
        }
        Err(StoreError::Failed {
            cause: format!("message {sequence} of queue {queue} changed faster than it was read"),
        })
    }

    /// The row of a message alone; `None` if it is not there.
    ///
    /// # Errors
    /// As [`Reader::fetch`], but for what concerns the body.
    pub fn fetch_row(
        &self,
        queue: ObjectId,
        sequence: Sequence,
    ) -> Result<Option<MessageRow>, StoreError> {
        let key = RowKey::message(queue, sequence);
        let Some(value) = self.row(Table::Messages, &key)? else {
            return Ok(None);
        };
        let row = MessageRow::from_stored(&value)
            .map_err(|e| format_error(&self.shared.rows, Table::Messages, &key, e))?;
        Ok(Some(row))
    }

    /// A body; `None` if no message names it.
    ///
    /// # Errors
    /// As [`Reader::fetch`].
    pub fn fetch_body(&self, id: BodyId) -> Result<Option<Bytes>, StoreError> {
        let mut moves = 0;
        loop {
            match self.find_body(id)? {
                Found::Deleted => return Ok(None),
                Found::Here(young) => match young.places.read(&self.log)? {
                    Some(bytes) if body::checksum(&bytes) == young.checksum => {
                        return Ok(Some(bytes));
                    }
                    Some(_) if self.find_body(id)? == Found::Here(young.clone()) => {
                        let place = young.places.first();
                        return Err(StoreError::corrupt(
                            format!("segment {} of the journal", place.segment),
                            Some(place.offset),
                            format!("body {id} does not pass its checksum"),
                        ));
                    }
                    // Recycled while it was read: it has moved to the row store, or is gone.
                    Some(_) | None => {}
                },
                Found::Below => match body::read(&self.shared.rows, id) {
                    // Parts that vanish one after the other belong to a body that is being deleted.
                    Err(StoreError::Corrupt { .. })
                        if self.find_body(id)? != Found::Below
                            || !self
                                .shared
                                .rows
                                .contains(Table::Bodies, &RowKey::body(id, 0))? => {}
                    result => return result,
                },
            }
            moves += 1;
            if moves == MOVES_MAX {
                return Err(self.corrupt_body(id, "is not where it should be"));
            }
        }
    }

    fn find_body(&self, id: BodyId) -> Result<Found<BodyPlace>, StoreError> {
        Ok(self.shared.layers.read().map_err(poisoned)?.body(id))
    }

    fn row(&self, table: Table, key: &RowKey) -> Result<Option<Bytes>, StoreError> {
        let found = self.shared.layers.read().map_err(poisoned)?.row(table, key);
        match found {
            Found::Here(value) => Ok(Some(value)),
            Found::Deleted => Ok(None),
            Found::Below => self.shared.rows.get(table, key),
        }
    }

    fn corrupt_body(&self, id: BodyId, what: &str) -> StoreError {
        StoreError::corrupt(
            table_file(&self.shared.rows, Table::Bodies),
            None,
            format!("body {id} {what}"),
        )
    }

    /// Gives every row as of one position, which it returns, reading and changing nothing else. The store goes on meanwhile; it
    /// waits only while the young rows are copied.
    ///
    /// # Errors
    /// What reading met, or what `visit` returned; then what was given is not the whole (invariant S6).
    pub fn dump(
        &self,
        visit: &mut dyn FnMut(RecoveredRow) -> Result<(), StoreError>,
    ) -> Result<Position, StoreError> {
        // The view is taken while no checkpoint can begin or end: what one writes in the meantime is covered by the overlay.
        let mut lock = Some(self.shared.layers.read().map_err(poisoned)?);
        let mut position = Position::ZERO;
        self.shared.rows.view(&mut |view| {
            let mut above: [TableOverlay; Table::COUNT] = Default::default();
            if let Some(layers) = lock.take() {
                position = layers.position;
                above = Table::ALL.map(|t| layers.merged(t));
            }
            Visit {
                rows: &self.shared.rows,
                view,
                above: above.each_ref(),
                visit: &mut *visit,
                counts: RowCounts::default(),
                ceilings: Ceilings::default(),
            }
            .all()
        })?;
        Ok(position)
    }
}
