//! The thread that writes the Raft log.
//!
//! The record log gets segments back when nothing that is still needed lies in them. Purges say what is not needed; but votes come
//! without purges, and a quiet group may keep entries for years. So when the record log is half full, what lies there and is still
//! needed is written again at its head (rule U20). If that is much, a snapshot is asked for, which lets Raft purge.

use std::collections::BTreeMap;
use std::io;
use std::thread;

use openraft::EntryPayload;
use openraft::storage::IOFlushed;
use prost::Message as _;
use tokio::sync::{mpsc, oneshot, watch};

use ferrymq_proto::storage_v1 as pb;
use ferrymq_store::{LogSync as _, RecordLog, RowCounts, StoreError, crash_point};
use ferrymq_types::Position;

use super::replay::Replayed;
use super::{Contents, Job, record};
use crate::types::{
    Entry, LogId, TypeConfig, Vote, entry_to_proto, log_id_to_proto, vote_to_proto, with_cause,
};

/// Writes that share one sync.
const GATHERED_MAX: usize = 256;
/// Bytes of entries in one record, if the record log allows as many.
const RECORD_BYTES_MAX: usize = 1024 * 1024;
/// What an entry takes beside its payload, at most, in bytes.
const ENTRY_OVERHEAD: usize = 64;

/// Bytes of an entry, about.
pub(super) fn entry_bytes(entry: &Entry) -> usize {
    let payload = match &entry.payload {
        EntryPayload::Blank => 0,
        EntryPayload::Normal(proposal) => proposal.0.len(),
        EntryPayload::Membership(members) => members
            .nodes()
            .map(|(_, n)| n.name.len() + n.address.len() + ENTRY_OVERHEAD)
            .sum(),
    };
    payload.saturating_add(ENTRY_OVERHEAD)
}

/// Whom to tell once a gathered write is durable.
enum Waiter {
    Append(IOFlushed<TypeConfig>),
    Vote(oneshot::Sender<io::Result<()>>),
}

impl Waiter {
    fn tell(self, result: io::Result<()>) {
        match self {
            Self::Append(done) => done.io_completed(result),
            Self::Vote(done) => {
                // Raft was shut down meanwhile: nobody waits.
                drop(done.send(result));
            }
        }
    }
}

/// Owns the record log.
pub(super) struct Writer<L: RecordLog> {
    log: L,
    sync: L::Sync,
    /// What is in the log, in the order of the writes; memory that readers see may be ahead.
    contents: Contents,
    /// In which record each entry is.
    places: BTreeMap<u64, Position>,
    vote_at: Position,
    purged_at: Position,
    committed_at: Position,
    /// Bytes appended since what is needed was last moved to the head.
    since_moved: u64,
    crowded: watch::Sender<u64>,
    failed: Option<String>,
}

impl<L: RecordLog> Writer<L> {
    pub(super) fn new(log: L, read: Replayed, crowded: watch::Sender<u64>) -> Self {
        Self {
            sync: log.syncer(),
            since_moved: log.usage().used,
            log,
            contents: read.contents,
            places: read.places,
            vote_at: read.vote,
            purged_at: read.purged,
            committed_at: read.committed,
            crowded,
            failed: None,
        }
    }

    pub(super) fn spawn(
        mut self,
        mut queue: mpsc::Receiver<Job>,
    ) -> Result<thread::JoinHandle<()>, StoreError> {
        thread::Builder::new()
            .name("raft-log".to_owned())
            .spawn(move || while self.run_once(&mut queue) {})
            .map_err(|e| StoreError::io("start the thread of", "the Raft log", e))
    }

    /// Gathers what waits, makes it durable, answers. False when it is time to end.
    fn run_once(&mut self, queue: &mut mpsc::Receiver<Job>) -> bool {
        let Some(first) = queue.blocking_recv() else {
            self.end();
            return false;
        };
        let mut jobs = vec![first];
        while jobs.len() < GATHERED_MAX {
            match queue.try_recv() {
                Ok(job) => jobs.push(job),
                Err(_) => break,
            }
        }
        let stop = jobs.iter().any(|job| matches!(job, Job::Stop));
        let mut waiting = Vec::new();
        let mut must_sync = false;
        let mut purged = false;
        for job in jobs {
            let result = match &self.failed {
                Some(cause) => Err(StoreError::Failed {
                    cause: cause.clone(),
                }),
                None => {
                    purged |= matches!(job, Job::Purge(_));
                    must_sync |= !matches!(job, Job::Committed(_) | Job::Stop);
                    Ok(())
                }
            };
            let (waiter, result) = match (job, result) {
                (Job::Append { entries, done }, Ok(())) => {
                    (Some(Waiter::Append(done)), self.append(&entries))
                }
                (Job::Vote { vote, done }, Ok(())) => (Some(Waiter::Vote(done)), self.vote(vote)),
                (Job::Truncate(from), Ok(())) => (None, self.truncate(from)),
                (Job::Purge(upto), Ok(())) => (None, self.purge(upto)),
                (Job::Committed(committed), Ok(())) => (None, self.committed(committed)),
                (Job::Append { done, .. }, Err(e)) => (Some(Waiter::Append(done)), Err(e)),
                (Job::Vote { done, .. }, Err(e)) => (Some(Waiter::Vote(done)), Err(e)),
                (Job::Truncate(_) | Job::Purge(_) | Job::Committed(_), Err(_)) | (Job::Stop, _) => {
                    (None, Ok(()))
                }
            };
            waiting.extend(waiter);
            if let Err(error) = result {
                self.fail(&error);
            }
        }
        if must_sync && self.failed.is_none() {
            crash_point("raft.before_sync");
            if let Err(error) = self.sync.sync() {
                self.fail(&error);
            }
            crash_point("raft.after_sync");
        }
        for waiter in waiting {
            waiter.tell(match &self.failed {
                Some(cause) => Err(io::Error::other(cause.clone())),
                None => Ok(()),
            });
        }
        if self.failed.is_none()
            && let Err(error) = self.make_room(purged)
        {
            self.fail(&error);
        }
        if stop {
            self.end();
        }
        !stop
    }

    /// What was written since the last sync that succeeded is not known; nothing more is written. Raft hears of it at its next write.
    fn fail(&mut self, error: &StoreError) {
        let cause = with_cause(error);
        tracing::error!(%cause, "the Raft log failed: this node's metadata stops");
        self.failed.get_or_insert(cause);
    }

    fn end(&mut self) {
        if self.failed.is_none()
            && let Err(error) = self.sync.sync().and_then(|_| self.sync.sync_guard())
        {
            self.fail(&error);
        }
    }

    fn write(&mut self, record: &pb::RaftLogRecord) -> Result<Position, StoreError> {
        /// Records take whole blocks.
        const BLOCK: u64 = 4096;
        let bytes = record.encode_to_vec();
        crash_point("raft.before_append");
        let appended = self.log.append(1, &[&bytes])?;
        crash_point("raft.after_append");
        let blocks = (bytes.len() as u64).div_ceil(BLOCK).saturating_add(1);
        self.since_moved = self
            .since_moved
            .saturating_add(blocks.saturating_mul(BLOCK));
        Ok(appended.last)
    }

    /// Writes entries in as few records as they fit in.
    fn append(&mut self, entries: &[Entry]) -> Result<(), StoreError> {
        let room = usize::try_from(self.log.payload_bytes_max())
            .unwrap_or(usize::MAX)
            .min(RECORD_BYTES_MAX);
        let mut rest = entries;
        while !rest.is_empty() {
            let mut bytes = 0_usize;
            let fit = rest
                .iter()
                .take_while(|entry| {
                    bytes = bytes.saturating_add(entry_bytes(entry));
                    bytes <= room
                })
                .count()
                .max(1);
            let (now, later) = rest.split_at(fit);
            let at = self.write(&pb::RaftLogRecord {
                entries: now.iter().map(entry_to_proto).collect(),
                ..record()
            })?;
            for entry in now {
                self.places.insert(entry.log_id.index, at);
                self.contents
                    .entries
                    .insert(entry.log_id.index, entry.clone());
            }
            rest = later;
        }
        Ok(())
    }

    fn vote(&mut self, vote: Vote) -> Result<(), StoreError> {
        crash_point("raft.before_vote");
        self.vote_at = self.write(&pb::RaftLogRecord {
            vote: Some(vote_to_proto(&vote)),
            ..record()
        })?;
        self.contents.vote = Some(vote);
        Ok(())
    }

    fn committed(&mut self, committed: Option<LogId>) -> Result<(), StoreError> {
        // Nothing is committed before the first entry; it cannot be taken back later.
        if let Some(id) = committed {
            self.committed_at = self.write(&pb::RaftLogRecord {
                committed: Some(log_id_to_proto(&id)),
                ..record()
            })?;
            self.contents.committed = committed;
        }
        Ok(())
    }

    fn truncate(&mut self, from: u64) -> Result<(), StoreError> {
        self.write(&pb::RaftLogRecord {
            truncated_from: Some(from),
            ..record()
        })?;
        self.contents.truncate_from(from);
        self.places.split_off(&from);
        Ok(())
    }

    fn purge(&mut self, upto: LogId) -> Result<(), StoreError> {
        crash_point("raft.before_purge");
        self.contents.purge(upto);
        self.places = match upto.index.checked_add(1) {
            Some(next) => self.places.split_off(&next),
            None => BTreeMap::new(),
        };
        self.write_small()
    }

    /// Writes vote, purged and committed again, so that no old record is needed for them.
    fn write_small(&mut self) -> Result<(), StoreError> {
        let at = self.write(&pb::RaftLogRecord {
            purged: self.contents.purged.as_ref().map(log_id_to_proto),
            vote: self.contents.vote.as_ref().map(vote_to_proto),
            committed: self.contents.committed.as_ref().map(log_id_to_proto),
            ..record()
        })?;
        self.vote_at = at;
        self.purged_at = at;
        self.committed_at = at;
        Ok(())
    }

    /// Gives segments back after a purge, and moves what is needed to the head when the log is half full.
    fn make_room(&mut self, purged: bool) -> Result<(), StoreError> {
        let usage = self.log.usage();
        let crowded = usage.used > usage.limit / 2 && self.since_moved > usage.limit / 8;
        if crowded {
            let needed = self
                .contents
                .entries
                .values()
                .fold(0_u64, |sum, e| sum.saturating_add(entry_bytes(e) as u64));
            if needed > usage.limit / 8 {
                self.crowded.send_modify(|n| *n = n.wrapping_add(1));
            }
            // More than a quarter would not fit beside the old copies for long; the snapshot will help.
            if needed < usage.limit / 4 {
                self.move_to_head()?;
            }
            self.since_moved = 0;
        }
        if purged || crowded {
            self.recycle()?;
        }
        Ok(())
    }

    fn move_to_head(&mut self) -> Result<(), StoreError> {
        let entries: Vec<Entry> = self.contents.entries.values().cloned().collect();
        self.append(&entries)?;
        self.write_small()?;
        self.sync.sync().map(drop)
    }

    /// Gives back every segment before the first record that is needed.
    fn recycle(&mut self) -> Result<(), StoreError> {
        let small = [
            (self.contents.vote.is_some(), self.vote_at),
            (self.contents.purged.is_some(), self.purged_at),
            (self.contents.committed.is_some(), self.committed_at),
        ];
        let needed = small
            .into_iter()
            .filter_map(|(is_there, at)| is_there.then_some(at))
            .chain(self.places.values().copied())
            .min();
        let Some(needed) = needed else { return Ok(()) };
        let free = Position::new(needed.get().saturating_sub(1));
        if free <= self.log.recovered().guard.checkpoint {
            return Ok(());
        }
        self.sync.checkpoint(free, &RowCounts::default())?;
        self.log.recycle(free)?;
        crash_point("raft.after_purge");
        Ok(())
    }
}

/// The running thread.
pub(crate) struct LogThread {
    thread: Option<thread::JoinHandle<()>>,
    jobs: mpsc::Sender<Job>,
    crowding: watch::Receiver<u64>,
}

impl LogThread {
    pub(super) fn new(
        thread: thread::JoinHandle<()>,
        jobs: mpsc::Sender<Job>,
        crowding: watch::Receiver<u64>,
    ) -> Self {
        Self {
            thread: Some(thread),
            jobs,
            crowding,
        }
    }

    /// Changes when the log is crowded with entries that only a snapshot makes unnecessary.
    pub(crate) fn crowding(&self) -> watch::Receiver<u64> {
        self.crowding.clone()
    }

    /// Ends the thread once all writes before are done, and waits for it: afterwards the record log is closed.
    pub(crate) async fn stop(&mut self) {
        // An error says that the thread has ended already.
        drop(self.jobs.send(Job::Stop).await);
        if let Some(thread) = self.thread.take() {
            let joined = tokio::task::spawn_blocking(move || thread.join()).await;
            if !matches!(joined, Ok(Ok(()))) {
                tracing::error!("the thread of the Raft log panicked");
            }
        }
    }
}

impl std::fmt::Debug for LogThread {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LogThread").finish_non_exhaustive()
    }
}
