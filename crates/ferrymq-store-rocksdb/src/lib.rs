//! What outlives a checkpoint, in RocksDB; and a small key-value store for the state of replicated definitions.
//!
//! [`RocksRows`] is the row store of a queue manager: a column family per table, values with a checksum of their own, written by
//! checkpoints only, without RocksDB's log, and flushed all at once (rule U13). It is opened read-only first and compared with the
//! journal's guard, since RocksDB by itself opens a damaged manifest with less data and deletes the rest.
//!
//! **Invariant:** only this crate knows RocksDB.

mod codec;
mod database;
mod kv;
mod rows;

pub use database::{RocksOptions, Visit};
pub use kv::{Durability, Kv, KvBatch};
pub use rows::RocksRows;

#[cfg(test)]
mod tests;
