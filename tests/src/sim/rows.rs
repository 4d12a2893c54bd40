//! The row store of a simulated node: the one in memory, which may lose power in the middle of a checkpoint.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use ferrymq_store::memory::{MemoryDisk, MemoryRows};
use ferrymq_store::{RowBatch, RowKey, RowState, RowStore, RowView, StoreError, Table};

use crate::sim::Fault;

/// What becomes of the next writes.
#[derive(Debug, Default)]
pub(crate) struct RowsPlan {
    /// Power fails after this many writes, and what of it survives.
    pub(crate) crash_in: Option<(u64, u64)>,
    /// It did.
    pub(crate) crashed: bool,
    pub(crate) fault: Option<Fault>,
}

#[derive(Debug)]
pub(crate) struct SimRows {
    inner: MemoryRows,
    disk: MemoryDisk,
    plan: Arc<Mutex<RowsPlan>>,
}

pub(crate) fn plan(plan: &Mutex<RowsPlan>) -> MutexGuard<'_, RowsPlan> {
    plan.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimRows {
    pub(crate) fn new(inner: MemoryRows, disk: MemoryDisk, plan: Arc<Mutex<RowsPlan>>) -> Self {
        Self { inner, disk, plan }
    }

    fn boundary(&self) {
        let mut plan = plan(&self.plan);
        if let Some((left, seed)) = plan.crash_in {
            if left == 0 {
                plan.crash_in = None;
                plan.crashed = true;
                self.disk.crash(seed);
            } else {
                plan.crash_in = Some((left - 1, seed));
            }
        }
    }

    fn has(&self, fault: Fault) -> bool {
        plan(&self.plan).fault == Some(fault)
    }
}

impl RowStore for SimRows {
    fn name(&self) -> String {
        self.inner.name()
    }

    fn state(&self) -> Result<RowState, StoreError> {
        self.inner.state()
    }

    fn get(&self, table: Table, key: &RowKey) -> Result<Option<Bytes>, StoreError> {
        self.inner.get(table, key)
    }

    fn view(
        &self,
        read: &mut dyn FnMut(&dyn RowView) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.inner.view(read)
    }

    fn write(&self, batch: &RowBatch, state: &RowState) -> Result<(), StoreError> {
        self.boundary();
        if self.has(Fault::DeletionForgotten) {
            let mut kept = RowBatch::default();
            for (table, key, value) in batch.changes() {
                if let Some(value) = value {
                    kept.put(*table, *key, value.clone());
                }
            }
            return self.inner.write(&kept, state);
        }
        self.inner.write(batch, state)
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.boundary();
        if self.has(Fault::RecycledBeforeFlush) {
            return Ok(());
        }
        self.inner.flush()
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.inner.reopen()
    }
}
