//! The row store of a queue manager.

use std::path::Path;

use bytes::Bytes;
use prost::Message as _;
use rocksdb::{ColumnFamily, DB, SnapshotWithThreadMode, WriteBatch, WriteOptions};

use ferrymq_proto::storage_v1 as pb;
use ferrymq_store::{
    Finding, Recovered, RowBatch, RowCounts, RowKey, RowState, RowStore, RowView, StoreError,
    Table, VisitRow, compare_with_guard,
};
use ferrymq_types::Position;

use crate::{
    codec,
    database::{Database, RocksOptions, scan_options},
};

/// The newest format of rows that this release knows.
const FORMAT: u32 = 1;

const STATE_FAMILY: &str = "state";
const STATE_KEY: &[u8] = b"state";

fn families() -> Vec<&'static str> {
    Table::ALL
        .iter()
        .map(|t| t.name())
        .chain([STATE_FAMILY])
        .collect()
}

/// A row store in a RocksDB directory.
#[derive(Debug)]
pub struct RocksRows {
    database: Database,
}

impl RocksRows {
    /// Opens the row store in a directory, or creates it for a journal that has made no checkpoint.
    ///
    /// It is opened read-only first and compared with what the journal knows of it; only then for writing, which deletes files
    /// that the manifest does not name (rule U13).
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if it is damaged, gone, or not what the journal says; [`StoreError::NewerFormat`];
    /// [`StoreError::InUse`]; what the disk says.
    pub fn open(
        directory: &Path,
        recovered: &Recovered,
        options: RocksOptions,
    ) -> Result<Self, StoreError> {
        let checkpoint = recovered.guard.checkpoint;
        if Database::exists(directory)? {
            match Self::open_read_only(directory, options).and_then(|rows| rows.state()) {
                Ok(state) => {
                    compare_with_guard(&directory.display().to_string(), &state, recovered)?
                }
                // Before the first checkpoint the journal has everything, and the crash may have come while this was created.
                Err(StoreError::Corrupt { what, .. }) if checkpoint == Position::ZERO => {
                    tracing::warn!(directory = %directory.display(), what, "create the row store again");
                }
                Err(error) => return Err(error),
            }
        } else if checkpoint > Position::ZERO {
            let what = format!(
                "it is missing, and the journal names the checkpoint at position {checkpoint}"
            );
            return Err(StoreError::corrupt(directory.display(), None, what));
        }
        Ok(Self {
            database: Database::open(directory, &families(), options)?,
        })
    }

    /// Opens a row store to be read; nothing is changed. `None` if there is none.
    ///
    /// # Errors
    /// What RocksDB says.
    pub fn for_reading(
        directory: &Path,
        options: RocksOptions,
    ) -> Result<Option<Self>, StoreError> {
        if Database::exists(directory)? {
            Self::open_read_only(directory, options).map(Some)
        } else {
            Ok(None)
        }
    }

    fn open_read_only(directory: &Path, options: RocksOptions) -> Result<Self, StoreError> {
        Ok(Self {
            database: Database::open_read_only(directory, &families(), options)?,
        })
    }

    /// Makes a copy in a directory that does not exist yet, as of one moment, mostly by links. It may hold a part of a checkpoint
    /// that is being written, as after a crash in it.
    ///
    /// # Errors
    /// What RocksDB says.
    pub fn copy(&self, directory: &Path) -> Result<(), StoreError> {
        self.database.copy(directory)
    }

    /// Examines a row store and changes nothing: every row and its checksum, and the number of rows of every table.
    ///
    /// `recovered` is what the journal knows of it, if it is at hand.
    ///
    /// # Errors
    /// What the disk says. Damage is a finding, not an error.
    pub fn check(
        directory: &Path,
        recovered: Option<&Recovered>,
        options: RocksOptions,
    ) -> Result<Vec<Finding>, StoreError> {
        let mut findings = Vec::new();
        let mut find = |result: Result<(), StoreError>, refuses_open| match result {
            Ok(()) => Ok(()),
            Err(StoreError::Corrupt { file, offset, what }) => {
                findings.push(Finding {
                    file,
                    offset,
                    what,
                    refuses_open,
                });
                Ok(())
            }
            Err(error) => Err(error),
        };
        if !Database::exists(directory)? {
            return Ok(findings);
        }
        let rows = match Self::open_read_only(directory, options) {
            Ok(rows) => rows,
            Err(error) => {
                find(Err(error), true)?;
                return Ok(findings);
            }
        };
        let state = match rows.state() {
            Ok(state) => state,
            Err(error) => {
                find(Err(error), true)?;
                return Ok(findings);
            }
        };
        if let Some(recovered) = recovered {
            find(compare_with_guard(&rows.name(), &state, recovered), true)?;
        }
        for table in Table::ALL {
            let mut count = 0_u64;
            let scanned = rows.view(&mut |view| {
                view.scan(table, &RowKey::EMPTY, None, &mut |_, _| {
                    count = count.saturating_add(1);
                    Ok(())
                })
            });
            // Bodies are read when they are fetched, everything else when the store is opened.
            let refuses_open = table != Table::Bodies;
            let expected = state.counts_now.get(table);
            let compared = scanned.and_then(|()| {
                if count == expected {
                    return Ok(());
                }
                let what = format!("it has {count} rows, {expected} were written");
                let file = format!("{} (table {table})", rows.name());
                Err(StoreError::corrupt(file, None, what))
            });
            find(compared, refuses_open)?;
        }
        Ok(findings)
    }

    fn encode_state(state: &RowState) -> Vec<u8> {
        let row = pb::StoreState {
            format: FORMAT,
            position: state.position.get(),
            counts: state.counts.as_slice().to_vec(),
            counts_now: state.counts_now.as_slice().to_vec(),
        }
        .encode_to_vec();
        codec::encode(STATE_FAMILY, STATE_KEY, &row)
    }

    fn decode_state(&self, bytes: &[u8]) -> Result<RowState, StoreError> {
        let file = || format!("{} (table {STATE_FAMILY})", self.name());
        let row = pb::StoreState::decode(bytes).map_err(|e| StoreError::Format {
            what: file(),
            source: e.into(),
        })?;
        if row.format > FORMAT {
            return Err(StoreError::NewerFormat {
                file: self.name(),
                found: row.format,
                supported: FORMAT,
            });
        }
        let counts = |counts: &[u64]| {
            RowCounts::from_slice(counts)
                .ok_or_else(|| StoreError::corrupt(file(), None, "it counts too many tables"))
        };
        Ok(RowState {
            position: Position::new(row.position),
            counts: counts(&row.counts)?,
            counts_now: counts(&row.counts_now)?,
        })
    }
}

impl RowStore for RocksRows {
    fn name(&self) -> String {
        self.database.name()
    }

    fn state(&self) -> Result<RowState, StoreError> {
        match self.database.get(STATE_FAMILY, STATE_KEY)? {
            Some(bytes) => self.decode_state(&bytes),
            None => Ok(RowState::default()),
        }
    }

    fn get(&self, table: Table, key: &RowKey) -> Result<Option<Bytes>, StoreError> {
        let value = self.database.get(table.name(), key.as_bytes())?;
        Ok(value.map(Bytes::from))
    }

    fn peek(
        &self,
        table: Table,
        keys: &[RowKey],
        bytes: usize,
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let db = self.database.db()?;
        let family = self.database.family(&db, table.name())?;
        let in_order = keys.is_sorted();
        let raw = keys.iter().map(RowKey::as_bytes);
        let found = db.batched_multi_get_cf(family, raw, in_order);
        keys.iter()
            .zip(found)
            .map(|(key, found)| {
                let found = found.map_err(|e| self.database.error("read", &e))?;
                let Some(stored) = found else {
                    return Ok(None);
                };
                if bytes == 0 {
                    return Ok(Some(Bytes::new()));
                }
                let value = codec::decode(table.name(), key.as_bytes(), &stored)
                    .ok_or_else(|| self.database.damaged(table.name(), key.as_bytes()))?;
                let beginning = value.get(..bytes).unwrap_or(value);
                Ok(Some(Bytes::copy_from_slice(beginning)))
            })
            .collect()
    }

    fn view(
        &self,
        read: &mut dyn FnMut(&dyn RowView) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let db = self.database.db()?;
        read(&View {
            database: &self.database,
            db: &db,
            snapshot: db.snapshot(),
        })
    }

    fn write(&self, batch: &RowBatch, state: &RowState) -> Result<(), StoreError> {
        let db = self.database.db()?;
        let mut out = WriteBatch::with_capacity_bytes(batch.bytes());
        let mut stored = Vec::new();
        for (table, key, value) in batch.changes() {
            let family: &ColumnFamily = self.database.family(&db, table.name())?;
            match value {
                Some(value) => {
                    stored.clear();
                    codec::encode_to(table.name(), key.as_bytes(), value, &mut stored);
                    out.put_cf(family, key.as_bytes(), &stored);
                }
                None => out.delete_cf(family, key.as_bytes()),
            }
        }
        let family = self.database.family(&db, STATE_FAMILY)?;
        out.put_cf(family, STATE_KEY, Self::encode_state(state));
        let mut options = WriteOptions::default();
        // The journal has it all until the flush.
        options.disable_wal(true);
        self.database.write(out, &options)
    }

    fn flush(&self) -> Result<(), StoreError> {
        self.database.flush()
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.database.reopen()
    }
}

struct View<'a> {
    database: &'a Database,
    db: &'a DB,
    snapshot: SnapshotWithThreadMode<'a, DB>,
}

impl RowView for View<'_> {
    fn scan(
        &self,
        table: Table,
        from: &RowKey,
        to: Option<&RowKey>,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), StoreError> {
        let family = self.database.family(self.db, table.name())?;
        let options = scan_options(from.as_bytes(), to.map(RowKey::as_bytes));
        let iterator = self.snapshot.raw_iterator_cf_opt(family, options);
        self.database
            .scan(iterator, table.name(), &mut |key, value| {
                let key =
                    RowKey::new(key).ok_or_else(|| self.database.damaged(table.name(), key))?;
                visit(key, value)
            })
    }

    fn last_key(&self, table: Table) -> Result<Option<RowKey>, StoreError> {
        let family = self.database.family(self.db, table.name())?;
        let mut iterator = self
            .snapshot
            .raw_iterator_cf_opt(family, scan_options(&[], None));
        iterator.seek_to_last();
        let key = match iterator.key() {
            Some(key) => {
                Some(RowKey::new(key).ok_or_else(|| self.database.damaged(table.name(), key))?)
            }
            None => None,
        };
        iterator
            .status()
            .map_err(|e| self.database.error("read", &e))?;
        Ok(key)
    }
}
