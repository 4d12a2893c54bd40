//! How a queue manager remembers: traits of a record log and of a row store, the join of the two, an in-memory pair that can
//! crash, and the suite that every pair passes.
//!
//! A write set is appended to the log and is safe once the log is synced. Rows live in the log and in an overlay in memory until
//! a checkpoint moves the net effect of the log to the row store and recycles what it has moved. Start at [`QueueManagerStore`].
//!
//! **Invariant:** this crate knows no RocksDB, no file of its own, no thread and no clock: who calls decides when and where.

mod body;
mod checkpoint;
pub mod conformance;
mod crash_point;
mod error;
mod join;
mod log;
pub mod memory;
mod overlay;
mod reader;
mod recovery;
mod rows;

pub use checkpoint::{CheckpointDone, CheckpointJob};
pub use crash_point::{
    CRASH_POINTS, FAULT_POINTS, crash_point, crash_points, fault_point, register_crash_points,
};
pub use error::{Finding, StoreError};
pub use join::{Job, Opened, Pressure, QueueManagerStore, StoreOptions};
pub use log::{Appended, Guard, LogRead, LogSync, LogUsage, Place, Record, RecordLog, Recovered};
pub use reader::Reader;
pub use recovery::{RecoveredRow, compare_with_guard};
pub use rows::{RowBatch, RowCounts, RowKey, RowState, RowStore, RowView, Table, VisitRow};

#[cfg(test)]
mod tests;
