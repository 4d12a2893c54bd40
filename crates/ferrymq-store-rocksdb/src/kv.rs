//! A small key-value store with named tables, for state that a replicated log can rebuild.

use std::path::Path;

use rocksdb::{WriteBatch, WriteOptions};

use ferrymq_store::StoreError;

use crate::{
    codec,
    database::{Database, RocksOptions, Visit, scan_options},
};

/// When a batch is durable. One store should keep to one of the two: a synced batch is replayed after a crash, a buffered one
/// from before it is not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// When the write returns.
    ///
    /// RocksDB opens a damaged log with less data and no error: keep a number of your own in every batch and compare it at open.
    Synced,
    /// At the next [`Kv::flush`], all batches up to then at once, or earlier. For state that is rebuilt from a log.
    Buffered,
}

/// Changes that take effect together.
#[derive(Debug, Clone, Default)]
pub struct KvBatch {
    changes: Vec<Change>,
}

#[derive(Debug, Clone)]
enum Change {
    Put(&'static str, Vec<u8>, Vec<u8>),
    Delete(&'static str, Vec<u8>),
    DeleteRange(&'static str, Vec<u8>, Vec<u8>),
}

impl KvBatch {
    /// An empty batch.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a value.
    pub fn put(&mut self, table: &'static str, key: &[u8], value: &[u8]) {
        self.changes
            .push(Change::Put(table, key.to_vec(), value.to_vec()));
    }

    /// Removes a value.
    pub fn delete(&mut self, table: &'static str, key: &[u8]) {
        self.changes.push(Change::Delete(table, key.to_vec()));
    }

    /// Removes all values from key `from` on, below `to`.
    pub fn delete_range(&mut self, table: &'static str, from: &[u8], to: &[u8]) {
        self.changes
            .push(Change::DeleteRange(table, from.to_vec(), to.to_vec()));
    }
}

/// A key-value store in a directory. Values carry a checksum of their own.
#[derive(Debug)]
pub struct Kv {
    database: Database,
}

impl Kv {
    /// Opens a store, or creates it. Give the same tables each time.
    ///
    /// # Errors
    /// [`StoreError::InUse`]; [`StoreError::Corrupt`]; what RocksDB says.
    pub fn open(
        directory: &Path,
        tables: &[&'static str],
        options: RocksOptions,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            database: Database::open(directory, tables, options)?,
        })
    }

    /// Opens an existing store for reading and changes nothing: to look at it before RocksDB may delete what its manifest does not
    /// name.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it is damaged or not there; what RocksDB says.
    pub fn open_read_only(
        directory: &Path,
        tables: &[&'static str],
        options: RocksOptions,
    ) -> Result<Self, StoreError> {
        Ok(Self {
            database: Database::open_read_only(directory, tables, options)?,
        })
    }

    /// A value.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it does not pass its checksum or there is no such table; what RocksDB says.
    pub fn get(&self, table: &str, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        self.database.get(table, key)
    }

    /// Gives all values of a table from key `from` on, below `to`, in the order of their keys, as of one moment.
    ///
    /// # Errors
    /// What reading met, or what `visit` returned; then what was given is not the whole.
    pub fn scan(
        &self,
        table: &str,
        from: &[u8],
        to: Option<&[u8]>,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        let db = self.database.db()?;
        let family = self.database.family(&db, table)?;
        let iterator = db.raw_iterator_cf_opt(family, scan_options(from, to));
        self.database.scan(iterator, table, visit)
    }

    /// Writes a batch, all of it or nothing.
    ///
    /// # Errors
    /// What RocksDB says. After an error of the disk it refuses writes until it is opened anew; the batch may be there then.
    pub fn write(&self, batch: &KvBatch, durability: Durability) -> Result<(), StoreError> {
        let db = self.database.db()?;
        let mut out = WriteBatch::default();
        for change in &batch.changes {
            match change {
                Change::Put(table, key, value) => out.put_cf(
                    self.database.family(&db, table)?,
                    key,
                    codec::encode(table, key, value),
                ),
                Change::Delete(table, key) => {
                    out.delete_cf(self.database.family(&db, table)?, key);
                }
                Change::DeleteRange(table, from, to) => {
                    out.delete_range_cf(self.database.family(&db, table)?, from, to);
                }
            }
        }
        let mut options = WriteOptions::default();
        match durability {
            Durability::Synced => options.set_sync(true),
            Durability::Buffered => options.disable_wal(true),
        }
        self.database.write(out, &options)
    }

    /// Makes everything that was written durable, all tables in one step.
    ///
    /// # Errors
    /// As [`Kv::write`].
    pub fn flush(&self) -> Result<(), StoreError> {
        self.database.flush()
    }

    /// Closes and opens again after an error. What was buffered is gone.
    ///
    /// # Errors
    /// What opening met.
    pub fn reopen(&self) -> Result<(), StoreError> {
        self.database.reopen()
    }

    /// Makes a copy in a directory that does not exist yet, as of one moment, mostly by links.
    ///
    /// # Errors
    /// What RocksDB says.
    pub fn checkpoint(&self, directory: &Path) -> Result<(), StoreError> {
        self.database.copy(directory)
    }
}
