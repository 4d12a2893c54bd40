//! The row store in memory.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use crate::{RowBatch, RowKey, RowState, RowStore, RowView, StoreError, Table, VisitRow};

use super::{MemoryDisk, Random, State};

type Rows = BTreeMap<RowKey, Bytes>;

/// Tables that a view can share; a write copies what is shared.
#[derive(Debug, Clone, Default)]
struct Tables {
    rows: [Arc<Rows>; Table::COUNT],
    state: RowState,
}

impl Tables {
    fn apply(&mut self, batch: &RowBatch, state: &RowState) {
        for (table, key, value) in batch.changes() {
            let rows = Arc::make_mut(&mut self.rows[table.index()]);
            match value {
                Some(value) => rows.insert(*key, value.clone()),
                None => rows.remove(key),
            };
        }
        self.state = state.clone();
    }
}

#[derive(Debug, Default)]
pub(super) struct RowsState {
    flushed: Tables,
    now: Tables,
    /// Written since the last flush.
    pending: Vec<(RowBatch, RowState)>,
    /// A write or flush failed: it has to be reopened.
    broken: bool,
}

impl RowsState {
    fn flush(&mut self) {
        for (batch, state) in self.pending.drain(..) {
            self.flushed.apply(&batch, &state);
        }
    }

    /// A store may flush by itself at any moment: a first part of what was written may have become durable.
    pub(super) fn crash(&mut self, random: &mut Random) {
        let kept = random.below(self.pending.len() as u64 + 1);
        self.pending.truncate(usize::try_from(kept).unwrap_or(0));
        self.flush();
        self.now = self.flushed.clone();
        self.broken = false;
    }
}

/// A row store in memory. See [`MemoryDisk`].
#[derive(Debug)]
pub struct MemoryRows {
    disk: MemoryDisk,
    run: u64,
}

impl MemoryRows {
    pub(super) fn open(disk: MemoryDisk) -> Self {
        let run = disk.lock().run;
        Self { disk, run }
    }

    fn writable(&self) -> Result<std::sync::MutexGuard<'_, State>, StoreError> {
        let mut state = self.disk.live(self.run)?;
        if state.rows.broken {
            return Err(StoreError::Rows {
                operation: "write",
                file: self.name(),
                message: "refused after an error".to_owned(),
            });
        }
        if state.full {
            state.rows.broken = true;
            return Err(StoreError::NoSpace {
                operation: "write",
                file: self.name(),
            });
        }
        Ok(state)
    }
}

impl RowStore for MemoryRows {
    fn name(&self) -> String {
        "rows in memory".to_owned()
    }

    fn state(&self) -> Result<RowState, StoreError> {
        Ok(self.disk.live(self.run)?.rows.now.state.clone())
    }

    fn get(&self, table: Table, key: &RowKey) -> Result<Option<Bytes>, StoreError> {
        let state = self.disk.live(self.run)?;
        Ok(state.rows.now.rows[table.index()].get(key).cloned())
    }

    fn view(
        &self,
        read: &mut dyn FnMut(&dyn RowView) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let tables = self.disk.live(self.run)?.rows.now.clone();
        read(&tables)
    }

    fn write(&self, batch: &RowBatch, state: &RowState) -> Result<(), StoreError> {
        let mut all = self.writable()?;
        all.rows.now.apply(batch, state);
        all.rows.pending.push((batch.clone(), state.clone()));
        Ok(())
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.writable()?.rows.flush();
        Ok(())
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let mut state = self.disk.live(self.run)?;
        // As after a crash, part of it may have become durable by itself.
        let kept = state.rows.pending.len() / 2;
        state.rows.pending.truncate(kept);
        state.rows.flush();
        state.rows.now = state.rows.flushed.clone();
        state.rows.broken = false;
        Ok(())
    }
}

impl RowView for Tables {
    fn scan(
        &self,
        table: Table,
        from: &RowKey,
        to: Option<&RowKey>,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), StoreError> {
        self.rows[table.index()]
            .range(*from..)
            .take_while(|(key, _)| to.is_none_or(|to| *key < to))
            .try_for_each(|(key, value)| visit(*key, value))
    }

    fn last_key(&self, table: Table) -> Result<Option<RowKey>, StoreError> {
        Ok(self.rows[table.index()]
            .last_key_value()
            .map(|(key, _)| *key))
    }
}
