//! A RocksDB directory: options, opening, closing and opening again, errors.

use std::path::{Path, PathBuf};
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use rocksdb::{
    BlockBasedOptions, Cache, ColumnFamily, ColumnFamilyDescriptor, DB, DBCompressionType,
    DBRawIteratorWithThreadMode, Error, ErrorKind, FlushOptions, LogLevel, Options, ReadOptions,
    WriteBatch, WriteOptions, checkpoint::Checkpoint,
};

use ferrymq_store::StoreError;

use crate::codec;

/// What a scan calls for each key and value.
pub type Visit<'a> = dyn FnMut(&[u8], &[u8]) -> Result<(), StoreError> + 'a;

/// Settings of a RocksDB directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RocksOptions {
    /// Bytes of memory for rows that are not flushed yet, for all tables together. Default 64 MiB.
    pub write_buffer_bytes: usize,
    /// Bytes of memory for blocks that were read. Default 32 MiB.
    pub cache_bytes: usize,
    /// Files that may be open at once. Default 256.
    pub open_files_max: u16,
}

impl RocksOptions {
    /// The defaults.
    pub const DEFAULTS: Self = Self {
        write_buffer_bytes: 64 * 1024 * 1024,
        cache_bytes: 32 * 1024 * 1024,
        open_files_max: 256,
    };
}

impl Default for RocksOptions {
    fn default() -> Self {
        Self::DEFAULTS
    }
}

/// How long closing waits for reads that are under way.
const CLOSE_TRIES: u32 = 400;
const CLOSE_WAIT: Duration = Duration::from_millis(5);

pub(crate) struct Database {
    directory: PathBuf,
    families: Vec<String>,
    options: RocksOptions,
    /// Writes go without RocksDB's log.
    db: RwLock<Option<Arc<DB>>>,
}

impl core::fmt::Debug for Database {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Database")
            .field("directory", &self.directory)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Opens for writing; creates what is not there.
    pub(crate) fn open(
        directory: &Path,
        families: &[&str],
        options: RocksOptions,
    ) -> Result<Self, StoreError> {
        let database = Self {
            directory: directory.to_owned(),
            families: families.iter().map(|f| (*f).to_owned()).collect(),
            options,
            db: RwLock::new(None),
        };
        database.reopen()?;
        Ok(database)
    }

    /// Opens an existing directory for reading, which changes nothing in it.
    pub(crate) fn open_read_only(
        directory: &Path,
        families: &[&str],
        options: RocksOptions,
    ) -> Result<Self, StoreError> {
        let mut general = general(options);
        general.create_if_missing(false);
        let families_with_options = descriptors(families.iter().copied(), options);
        let db =
            DB::open_cf_descriptors_read_only(&general, directory, families_with_options, false)
                .map_err(|e| error("open", directory, &e))?;
        Ok(Self {
            directory: directory.to_owned(),
            families: families.iter().map(|f| (*f).to_owned()).collect(),
            options,
            db: RwLock::new(Some(Arc::new(db))),
        })
    }

    /// Whether a directory holds a database, or the remains of one.
    pub(crate) fn exists(directory: &Path) -> Result<bool, StoreError> {
        let mut entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(false),
            Err(e) => return Err(StoreError::io("list", directory.display(), e)),
        };
        Ok(entries.next().is_some())
    }

    pub(crate) fn name(&self) -> String {
        self.directory.display().to_string()
    }

    fn open_again(&self) -> Result<Arc<DB>, StoreError> {
        let mut general = general(self.options);
        general.create_if_missing(true);
        general.create_missing_column_families(true);
        std::fs::create_dir_all(&self.directory)
            .map_err(|e| StoreError::io("create", self.directory.display(), e))?;
        let names = self.families.iter().map(String::as_str);
        let families = descriptors(names, self.options);
        DB::open_cf_descriptors(&general, &self.directory, families)
            .map(Arc::new)
            .map_err(|e| self.error("open", &e))
    }

    /// Closes, and opens again. RocksDB gives its lock back only when the last read has ended; new ones wait meanwhile.
    pub(crate) fn reopen(&self) -> Result<(), StoreError> {
        let mut slot = self.db.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(mut shared) = slot.take() {
            let mut tries = 0;
            loop {
                match Arc::try_unwrap(shared) {
                    Ok(db) => {
                        drop(db);
                        break;
                    }
                    Err(still) if tries < CLOSE_TRIES => {
                        shared = still;
                        tries += 1;
                        std::thread::sleep(CLOSE_WAIT);
                    }
                    Err(still) => {
                        // A long read, or one that waits for another. It may be tried again, as may what led here.
                        *slot = Some(still);
                        return Err(StoreError::NoSpace {
                            operation: "wait for the readers of",
                            file: self.name(),
                        });
                    }
                }
            }
        }
        *slot = Some(self.open_again()?);
        Ok(())
    }

    pub(crate) fn db(&self) -> Result<Arc<DB>, StoreError> {
        self.db
            .read()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
            .ok_or_else(|| self.failure("use", "it is closed after an error"))
    }

    pub(crate) fn family<'a>(
        &self,
        db: &'a DB,
        name: &str,
    ) -> Result<&'a ColumnFamily, StoreError> {
        db.cf_handle(name).ok_or_else(|| {
            StoreError::corrupt(self.name(), None, format!("table {name} is missing"))
        })
    }

    pub(crate) fn get(&self, family: &str, key: &[u8]) -> Result<Option<Vec<u8>>, StoreError> {
        let db = self.db()?;
        let stored = db
            .get_pinned_cf(self.family(&db, family)?, key)
            .map_err(|e| self.error("read", &e))?;
        match stored {
            None => Ok(None),
            Some(stored) => codec::decode(family, key, &stored)
                .map(|value| Some(value.to_vec()))
                .ok_or_else(|| self.damaged(family, key)),
        }
    }

    pub(crate) fn damaged(&self, family: &str, key: &[u8]) -> StoreError {
        let key: String = key.iter().map(|b| format!("{b:02x}")).collect();
        StoreError::corrupt(
            format!("{} (table {family})", self.name()),
            None,
            format!("row {key} does not pass its checksum"),
        )
    }

    pub(crate) fn write(
        &self,
        batch: WriteBatch,
        options: &WriteOptions,
    ) -> Result<(), StoreError> {
        self.db()?
            .write_opt(batch, options)
            .map_err(|e| self.error("write", &e))
    }

    /// Flushes all tables in one step.
    pub(crate) fn flush(&self) -> Result<(), StoreError> {
        let db = self.db()?;
        let families = self
            .families
            .iter()
            .map(|name| self.family(&db, name))
            .collect::<Result<Vec<_>, _>>()?;
        let families: Vec<&&ColumnFamily> = families.iter().collect();
        let mut options = FlushOptions::default();
        options.set_wait(true);
        db.flush_cfs_opt(&families, &options)
            .map_err(|e| self.error("flush", &e))
    }

    /// Gives the rows that an iterator finds. An error of the iterator is an error of the scan (invariant S6).
    pub(crate) fn scan(
        &self,
        mut iterator: DBRawIteratorWithThreadMode<'_, DB>,
        family: &str,
        visit: &mut Visit<'_>,
    ) -> Result<(), StoreError> {
        iterator.seek_to_first();
        while let Some((key, stored)) = iterator.item() {
            let value =
                codec::decode(family, key, stored).ok_or_else(|| self.damaged(family, key))?;
            visit(key, value)?;
            iterator.next();
        }
        iterator.status().map_err(|e| self.error("scan", &e))
    }

    /// Makes a copy in a directory that does not exist yet, as of one moment, mostly by links.
    pub(crate) fn copy(&self, directory: &Path) -> Result<(), StoreError> {
        let db = self.db()?;
        Checkpoint::new(&db)
            .and_then(|checkpoint| checkpoint.create_checkpoint(directory))
            .map_err(|e| error("copy to", directory, &e))
    }

    pub(crate) fn error(&self, operation: &'static str, e: &Error) -> StoreError {
        error(operation, &self.directory, e)
    }

    fn failure(&self, operation: &'static str, message: &str) -> StoreError {
        StoreError::Rows {
            operation,
            file: self.name(),
            message: message.to_owned(),
        }
    }
}

/// Bounds of a scan, and no room in the cache for what is read once.
pub(crate) fn scan_options(from: &[u8], to: Option<&[u8]>) -> ReadOptions {
    let mut options = ReadOptions::default();
    options.set_iterate_lower_bound(from);
    if let Some(to) = to {
        options.set_iterate_upper_bound(to);
    }
    options.fill_cache(false);
    options.set_readahead_size(2 * 1024 * 1024);
    options
}

fn error(operation: &'static str, directory: &Path, e: &Error) -> StoreError {
    let file = directory.display().to_string();
    let message = e.to_string();
    // RocksDB tells these apart in its text only.
    if message.contains("No space left on device") || message.contains("Disk quota exceeded") {
        return StoreError::NoSpace { operation, file };
    }
    if message.contains("lock") && message.contains("LOCK") {
        return StoreError::InUse { directory: file };
    }
    // What is named and not there was there once.
    let gone = message.contains("No such file or directory") || message.contains("Column famil");
    if e.kind() == ErrorKind::Corruption || gone {
        return StoreError::corrupt(file, None, message);
    }
    StoreError::Rows {
        operation,
        file,
        message,
    }
}

fn general(options: RocksOptions) -> Options {
    let mut general = Options::default();
    general.set_paranoid_checks(true);
    // Bodies must not reach the disk without the rows that name them (rule U13).
    general.set_atomic_flush(true);
    general.set_db_write_buffer_size(options.write_buffer_bytes);
    general.set_max_background_jobs(2);
    general.set_max_open_files(i32::from(options.open_files_max));
    general.set_keep_log_file_num(2);
    general.set_log_level(LogLevel::Warn);
    general
}

fn descriptors<'a>(
    names: impl Iterator<Item = &'a str>,
    options: RocksOptions,
) -> Vec<ColumnFamilyDescriptor> {
    let cache = Cache::new_lru_cache(options.cache_bytes);
    names
        .map(|name| {
            let mut table = BlockBasedOptions::default();
            table.set_block_cache(&cache);
            // Most questions are whether a row exists that does not.
            table.set_bloom_filter(10.0, false);
            let mut family = Options::default();
            family.set_block_based_table_factory(&table);
            family.set_compression_type(DBCompressionType::Lz4);
            family.set_write_buffer_size(options.write_buffer_bytes / 2);
            family.set_max_write_buffer_number(4);
            ColumnFamilyDescriptor::new(name, family)
        })
        .collect()
}
