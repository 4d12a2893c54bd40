//! openraft's own suite for storage, run on this crate's log and state machine over any record log and row store.

use std::path::PathBuf;
use std::sync::Arc;

use openraft::StorageError;
use openraft::testing::log::{StoreBuilder, Suite};

use ferrymq_store::RecordLog;

use crate::error::OpenError;
use crate::handle::open_storage;
use crate::log::{LogStorage, LogThread};
use crate::state::StateMachine;
use crate::store::StateStore;
use crate::types::{TypeConfig, with_cause};

/// An empty record log, an empty row store, an empty directory, and what must live as long as they do.
#[derive(Debug)]
pub struct Empty<L, G> {
    /// The record log.
    pub log: L,
    /// The row store.
    pub state: Arc<dyn StateStore>,
    /// The directory.
    pub directory: PathBuf,
    /// Kept until the test is over; for instance what removes the directory.
    pub guard: G,
}

struct Builder<F>(F);

impl<F, L, G> StoreBuilder<TypeConfig, LogStorage, StateMachine, (LogThread, G)> for Builder<F>
where
    F: Fn() -> Empty<L, G> + Send + Sync,
    L: RecordLog,
    G: Send + Sync,
{
    async fn build(
        &self,
    ) -> Result<((LogThread, G), LogStorage, StateMachine), StorageError<TypeConfig>> {
        let empty = (self.0)();
        let opened = open_storage(&empty.directory, "suite", empty.log, empty.state);
        let opened = opened.map_err(|e| StorageError::read(source(&e)))?;
        Ok(((opened.thread, empty.guard), opened.log, opened.machine))
    }
}

fn source(error: &OpenError) -> openraft::type_config::alias::ErrorSourceOf<TypeConfig> {
    use openraft::errors::ErrorSource as _;

    openraft::type_config::alias::ErrorSourceOf::<TypeConfig>::from_string(with_cause(error))
}

/// Runs the suite; `empty` is called for each of its tests.
///
/// # Errors
/// What the storage reported.
///
/// # Panics
/// Where the storage does not do what Raft needs.
pub async fn raft_storage<L, G>(empty: impl Fn() -> Empty<L, G> + Send + Sync) -> Result<(), String>
where
    L: RecordLog,
    G: Send + Sync,
{
    let run =
        Suite::<TypeConfig, LogStorage, StateMachine, _, (LogThread, G)>::test_all(Builder(empty));
    run.await.map_err(|e| e.to_string())
}
