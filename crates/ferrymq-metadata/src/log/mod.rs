//! The Raft log on a record log (in production: the journal, in a directory of its own).
//!
//! Every entry that is not purged is in memory; the record log holds what memory is rebuilt from at open. One thread owns the record
//! log: it takes all writes that wait, appends them, syncs once, and answers them in order. So entries, votes, truncations and purges
//! become durable in the order in which Raft asked for them, and a failed sync is the last thing that the log does.

mod replay;
mod writer;

use std::collections::BTreeMap;
use std::fmt::{self, Debug};
use std::io;
use std::ops::{Bound, RangeBounds};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use openraft::OptionalSend;
use openraft::storage::{IOFlushed, LogState, RaftLogReader, RaftLogStorage};
use tokio::sync::{mpsc, oneshot, watch};

use ferrymq_proto::storage_v1 as pb;
use ferrymq_store::{RecordLog, StoreError};

use crate::config::{LOG_QUEUE_MAX, PEER_MESSAGE_BYTES_MAX, REPLICATED_ENTRIES_MAX};
use crate::types::{Entry, LogId, TypeConfig, Vote};

pub(crate) use writer::LogThread;

/// Level of the records.
const VERSION: u32 = 1;

/// What the log holds.
#[derive(Debug, Clone, Default)]
struct Contents {
    entries: BTreeMap<u64, Entry>,
    purged: Option<LogId>,
    vote: Option<Vote>,
    committed: Option<LogId>,
}

impl Contents {
    fn last(&self) -> Option<LogId> {
        self.entries
            .last_key_value()
            .map(|(_, entry)| entry.log_id)
            .or(self.purged)
    }

    fn truncate_from(&mut self, index: u64) {
        self.entries.split_off(&index);
    }

    fn purge(&mut self, upto: LogId) {
        self.entries = match upto.index.checked_add(1) {
            Some(next) => self.entries.split_off(&next),
            None => BTreeMap::new(),
        };
        self.purged = self.purged.max(Some(upto));
    }
}

/// A write that the log's thread is asked for.
enum Job {
    Append {
        entries: Vec<Entry>,
        done: IOFlushed<TypeConfig>,
    },
    /// Takes back entries from this index on.
    Truncate(u64),
    Purge(LogId),
    Vote {
        vote: Vote,
        done: oneshot::Sender<io::Result<()>>,
    },
    Committed(Option<LogId>),
    /// Ends the thread once everything before is done.
    Stop,
}

/// The Raft log.
pub(crate) struct LogStorage {
    contents: Arc<Mutex<Contents>>,
    jobs: mpsc::Sender<Job>,
}

/// Reads the Raft log.
pub(crate) struct LogReader {
    contents: Arc<Mutex<Contents>>,
}

impl Debug for LogStorage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LogStorage").finish_non_exhaustive()
    }
}

/// A log that was read but not written to yet.
pub(crate) struct ReadLog<L> {
    log: L,
    read: replay::Replayed,
}

impl<L: RecordLog> ReadLog<L> {
    /// Reads the log. Changes nothing.
    ///
    /// # Errors
    /// [`StoreError`]: it cannot be read, or what it holds makes no sense.
    pub(crate) fn read(log: L) -> Result<Self, StoreError> {
        let read = replay::replay(&log)?;
        Ok(Self { log, read })
    }

    /// Whether nothing was ever written.
    pub(crate) fn is_pristine(&self) -> bool {
        self.read.records == 0 && self.log.recovered().guard.checkpoint.get() == 0
    }

    /// Starts the thread that writes.
    ///
    /// # Errors
    /// [`StoreError`] if the log cannot start its epoch, or the system has no thread to give.
    pub(crate) fn start(self) -> Result<(LogStorage, LogThread), StoreError> {
        let Self { mut log, read } = self;
        log.start()?;
        let contents = Arc::new(Mutex::new(read.contents.clone()));
        let (jobs, queue) = mpsc::channel(LOG_QUEUE_MAX);
        let (crowded, crowding) = watch::channel(0);
        let thread = writer::Writer::new(log, read, crowded).spawn(queue)?;
        let storage = LogStorage {
            contents,
            jobs: jobs.clone(),
        };
        Ok((storage, LogThread::new(thread, jobs, crowding)))
    }
}

fn lock(contents: &Mutex<Contents>) -> MutexGuard<'_, Contents> {
    contents.lock().unwrap_or_else(PoisonError::into_inner)
}

fn stopped() -> io::Error {
    io::Error::other("the log has stopped after a failed write or at shutdown")
}

impl LogStorage {
    async fn ask(&self, job: Job) -> io::Result<()> {
        self.jobs.send(job).await.map_err(|_| stopped())
    }
}

impl RaftLogStorage<TypeConfig> for LogStorage {
    type LogReader = LogReader;

    async fn get_log_state(&mut self) -> Result<LogState<TypeConfig>, io::Error> {
        let contents = lock(&self.contents);
        Ok(LogState {
            last_purged_log_id: contents.purged,
            last_log_id: contents.last(),
        })
    }

    async fn get_log_reader(&mut self) -> LogReader {
        LogReader {
            contents: Arc::clone(&self.contents),
        }
    }

    async fn save_vote(&mut self, vote: &Vote) -> Result<(), io::Error> {
        let (done, saved) = oneshot::channel();
        self.ask(Job::Vote { vote: *vote, done }).await?;
        saved.await.map_err(|_| stopped())??;
        lock(&self.contents).vote = Some(*vote);
        Ok(())
    }

    async fn save_committed(&mut self, committed: Option<LogId>) -> Result<(), io::Error> {
        lock(&self.contents).committed = committed;
        self.ask(Job::Committed(committed)).await
    }

    async fn read_committed(&mut self) -> Result<Option<LogId>, io::Error> {
        Ok(lock(&self.contents).committed)
    }

    async fn append<I>(&mut self, entries: I, done: IOFlushed<TypeConfig>) -> Result<(), io::Error>
    where
        I: IntoIterator<Item = Entry> + OptionalSend,
        I::IntoIter: OptionalSend,
    {
        let entries: Vec<Entry> = entries.into_iter().collect();
        {
            let mut contents = lock(&self.contents);
            for entry in &entries {
                contents.entries.insert(entry.log_id.index, entry.clone());
            }
        }
        self.ask(Job::Append { entries, done }).await
    }

    async fn truncate_after(&mut self, last: Option<LogId>) -> Result<(), io::Error> {
        let from = last.map_or(0, |id| id.index.saturating_add(1));
        lock(&self.contents).truncate_from(from);
        self.ask(Job::Truncate(from)).await
    }

    async fn purge(&mut self, upto: LogId) -> Result<(), io::Error> {
        lock(&self.contents).purge(upto);
        self.ask(Job::Purge(upto)).await
    }
}

impl RaftLogReader<TypeConfig> for LogReader {
    async fn try_get_log_entries<R>(&mut self, range: R) -> Result<Vec<Entry>, io::Error>
    where
        R: RangeBounds<u64> + Clone + Debug + OptionalSend,
    {
        let bounds = (range.start_bound().cloned(), range.end_bound().cloned());
        if is_empty(bounds) {
            return Ok(Vec::new());
        }
        let contents = lock(&self.contents);
        Ok(contents
            .entries
            .range(bounds)
            .map(|(_, e)| e.clone())
            .collect())
    }

    async fn read_vote(&mut self) -> Result<Option<Vote>, io::Error> {
        Ok(lock(&self.contents).vote)
    }

    /// At most what fits in one message between nodes, and at least one entry.
    async fn limited_get_log_entries(
        &mut self,
        start: u64,
        end: u64,
    ) -> Result<Vec<Entry>, io::Error> {
        if start >= end {
            return Ok(Vec::new());
        }
        let contents = lock(&self.contents);
        let mut room = PEER_MESSAGE_BYTES_MAX / 2;
        let mut found = Vec::new();
        for entry in contents.entries.range(start..end).map(|(_, e)| e) {
            let bytes = writer::entry_bytes(entry);
            if !found.is_empty() && (bytes > room || found.len() as u64 >= REPLICATED_ENTRIES_MAX) {
                break;
            }
            room = room.saturating_sub(bytes);
            found.push(entry.clone());
        }
        Ok(found)
    }
}

/// Whether no index is inside; `BTreeMap::range` panics on a range that ends before it starts.
fn is_empty(bounds: (Bound<u64>, Bound<u64>)) -> bool {
    let first = match bounds.0 {
        Bound::Included(n) => Some(n),
        Bound::Excluded(n) => n.checked_add(1),
        Bound::Unbounded => Some(0),
    };
    let end = match bounds.1 {
        Bound::Included(n) => n.checked_add(1),
        Bound::Excluded(n) => Some(n),
        Bound::Unbounded => None,
    };
    match (first, end) {
        (Some(first), Some(end)) => first >= end,
        (Some(_), None) => false,
        (None, _) => true,
    }
}

/// An empty record of today's level.
fn record() -> pb::RaftLogRecord {
    pb::RaftLogRecord {
        version: VERSION,
        ..pb::RaftLogRecord::default()
    }
}
