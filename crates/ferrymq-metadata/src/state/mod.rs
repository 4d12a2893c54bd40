//! The state machine: definitions in memory, rows of them in a row store, snapshots of them in files.
//!
//! A batch of entries is applied in memory, written to the row store in one step together with how far it goes, and only then shown and
//! answered: what an engine uses is durable here as applied (rule U15).

mod rows;
mod snapshot;

use std::convert::Infallible;
use std::io;
use std::sync::Arc;

use futures::{Stream, StreamExt as _};
use openraft::storage::{
    EntryResponder, RaftSnapshotBuilder, RaftStateMachine, Snapshot, SnapshotMeta,
};
use openraft::type_config::alias::{SnapshotMetaOf, SnapshotOf};
use openraft::{EntryPayload, OptionalSend};
use tokio::sync::{oneshot, watch};
use tokio::task::spawn_blocking;

use ferrymq_objects::Definitions;
use ferrymq_store::{StoreError, crash_point};

use crate::codec;
use crate::config::APPLIED_AT_ONCE_MAX;
use crate::store::{StateBatch, StateStore};
use crate::types::{LogId, Reply, StoredMembership, TypeConfig, malformed, with_cause};

use rows::{Applicable, Changes, Loader};
pub(crate) use snapshot::{SnapshotDirectory, SnapshotFile};

/// Definitions as of an index of the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AppliedDefinitions {
    /// The index of the last entry that was applied, commands or not; 0 before the first.
    pub index: u64,
    /// The definitions after it.
    pub definitions: Arc<Definitions>,
}

/// The row store, and who waits for its end: Raft ends some of its tasks after it said that it has stopped.
#[derive(Debug)]
struct Held {
    // Dropped in this order.
    store: Arc<dyn StateStore>,
    _closed: oneshot::Sender<Infallible>,
}

/// The state machine.
#[derive(Debug)]
pub(crate) struct StateMachine {
    held: Arc<Held>,
    closed: Option<oneshot::Receiver<Infallible>>,
    snapshots: Arc<SnapshotDirectory>,
    contents: Arc<Applicable>,
    shown: watch::Sender<AppliedDefinitions>,
}

fn store_error(error: &StoreError) -> io::Error {
    io::Error::other(with_cause(error))
}

/// Runs what waits for a disk on a thread that may.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> io::Result<T> {
    spawn_blocking(work).await.map_err(io::Error::other)?
}

impl StateMachine {
    /// Reads the rows.
    ///
    /// # Errors
    /// [`StoreError`]: they cannot be read or make no sense.
    pub(crate) fn open(
        store: Arc<dyn StateStore>,
        snapshots: Arc<SnapshotDirectory>,
    ) -> Result<Self, StoreError> {
        let mut loader = Loader::default();
        store.scan(&mut |key, value| loader.take(key, value))?;
        let contents = loader.finish()?.unwrap_or_default();
        let (shown, _) = watch::channel(AppliedDefinitions::default());
        let (close, closed) = oneshot::channel();
        let machine = Self {
            held: Arc::new(Held {
                store,
                _closed: close,
            }),
            closed: Some(closed),
            snapshots,
            contents: Arc::new(contents),
            shown,
        };
        machine.show();
        Ok(machine)
    }

    /// Whether nothing was ever applied.
    pub(crate) fn is_pristine(&self) -> bool {
        self.contents.applied.is_none()
    }

    /// Ends, with an error, when the row store is let go. To be taken once.
    pub(crate) fn closed(&mut self) -> Option<oneshot::Receiver<Infallible>> {
        self.closed.take()
    }

    /// Follows what is applied.
    pub(crate) fn watch(&self) -> watch::Receiver<AppliedDefinitions> {
        self.shown.subscribe()
    }

    fn show(&self) {
        let index = self.contents.applied.map_or(0, |id| id.index);
        self.shown.send_modify(|shown| {
            shown.index = index;
            shown.definitions = Arc::clone(&self.contents.definitions);
        });
    }

    async fn write(&self, batch: StateBatch) -> io::Result<()> {
        let held = Arc::clone(&self.held);
        crash_point("raft.before_apply");
        blocking(move || held.store.write(batch).map_err(|e| store_error(&e))).await?;
        crash_point("raft.after_apply");
        Ok(())
    }
}

impl RaftStateMachine<TypeConfig> for StateMachine {
    type SnapshotData = SnapshotFile;
    type SnapshotBuilder = SnapshotBuilder;

    async fn applied_state(&mut self) -> Result<(Option<LogId>, StoredMembership), io::Error> {
        Ok((self.contents.applied, self.contents.membership.clone()))
    }

    async fn apply<S>(&mut self, entries: S) -> Result<(), io::Error>
    where
        S: Stream<Item = Result<EntryResponder<TypeConfig>, io::Error>> + Unpin + OptionalSend,
    {
        let mut chunks = entries.ready_chunks(APPLIED_AT_ONCE_MAX);
        while let Some(chunk) = chunks.next().await {
            let mut contents = Applicable::clone(&self.contents);
            let mut changes = Changes::default();
            let mut answers = Vec::new();
            for item in chunk {
                let (entry, responder) = item?;
                let mut reply = Reply::default();
                match &entry.payload {
                    EntryPayload::Blank => {}
                    EntryPayload::Normal(proposal) => {
                        let command = codec::decode_command(&proposal.0)
                            .and_then(|command| {
                                contents.apply(entry.log_id.index, &command, &mut changes)?;
                                Ok(command)
                            })
                            .map_err(|e| {
                                let entry = format!(
                                    "entry {} is not understood by this release: use the newer one",
                                    entry.log_id.index
                                );
                                malformed(&entry, e)
                            })?;
                        reply = Reply(contents.answer(&command));
                    }
                    EntryPayload::Membership(members) => {
                        contents.membership =
                            StoredMembership::new(Some(entry.log_id), members.clone());
                    }
                }
                contents.applied = Some(entry.log_id);
                answers.extend(responder.map(|responder| (responder, reply)));
            }
            contents.note_state(&mut changes);
            self.write(changes.into_batch()).await?;
            self.contents = Arc::new(contents);
            self.show();
            for (responder, reply) in answers {
                responder.send(reply);
            }
        }
        Ok(())
    }

    async fn get_snapshot_builder(&mut self) -> SnapshotBuilder {
        SnapshotBuilder {
            contents: Arc::clone(&self.contents),
            snapshots: Arc::clone(&self.snapshots),
        }
    }

    async fn install_snapshot(
        &mut self,
        meta: &SnapshotMetaOf<TypeConfig>,
        snapshot: SnapshotFile,
    ) -> Result<(), io::Error> {
        crash_point("raft.before_install");
        let snapshots = Arc::clone(&self.snapshots);
        let held = Arc::clone(&self.held);
        let (last, membership) = (meta.last_log_id, meta.last_membership.clone());
        // The file first: if the rows are not written any more, the next start installs it from there (invariant R6).
        let contents = blocking(move || {
            let contents = snapshots.install(snapshot, last, &membership)?;
            crash_point("raft.during_install");
            let store = &held.store;
            let mut batch = StateBatch::default();
            store
                .scan(&mut |key, _| {
                    batch.deletes.push(key.to_vec());
                    Ok(())
                })
                .map_err(|e| store_error(&e))?;
            let mut changes = Changes::default();
            contents.note_state(&mut changes);
            batch.puts = changes.into_batch().puts;
            batch.puts.extend(contents.rows());
            store.write(batch).map_err(|e| store_error(&e))?;
            Ok(contents)
        })
        .await?;
        crash_point("raft.after_install");
        self.contents = Arc::new(contents);
        self.show();
        Ok(())
    }

    async fn get_current_snapshot(
        &mut self,
    ) -> Result<Option<SnapshotOf<TypeConfig, SnapshotFile>>, io::Error> {
        let snapshots = Arc::clone(&self.snapshots);
        blocking(move || {
            let Some(file) = snapshots.current()? else {
                return Ok(None);
            };
            let contents = snapshots.read_current(&file)?;
            Ok(Some(described(&contents, file)))
        })
        .await
    }
}

fn described(contents: &Applicable, file: SnapshotFile) -> SnapshotOf<TypeConfig, SnapshotFile> {
    Snapshot {
        meta: SnapshotMeta {
            last_log_id: contents.applied,
            last_membership: contents.membership.clone(),
        },
        snapshot: file,
    }
}

/// Writes a snapshot of what the state machine was when this was made.
#[derive(Debug)]
pub(crate) struct SnapshotBuilder {
    contents: Arc<Applicable>,
    snapshots: Arc<SnapshotDirectory>,
}

impl RaftSnapshotBuilder<TypeConfig> for SnapshotBuilder {
    type SnapshotData = SnapshotFile;

    async fn build_snapshot(&mut self) -> Result<SnapshotOf<TypeConfig, SnapshotFile>, io::Error> {
        let contents = Arc::clone(&self.contents);
        let snapshots = Arc::clone(&self.snapshots);
        blocking(move || {
            let file = snapshots.write(&contents)?;
            Ok(described(&contents, file))
        })
        .await
    }
}
