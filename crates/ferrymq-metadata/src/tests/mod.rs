//! Storage in memory that can crash, and commands to fill it with.

mod codec;
mod identity;
mod log;
mod node;
mod state;
mod wire;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use openraft::EntryPayload;

use ferrymq_objects::{Action, AttributeValue, Command, ObjectKind};
use ferrymq_store::StoreError;
use ferrymq_types::{QueueManagerId, QueueManagerName, Timestamp};

use crate::config::{Connecting, Member, MetadataConfig, PeerNetwork};
use crate::store::{StateBatch, StateStore};
use crate::types::{Entry, LogId, Proposal};

/// Long enough for any machine: a test that waits so long has failed.
const LONG: Duration = Duration::from_secs(60);

/// Rows in memory; clones share them, as a disk would.
#[derive(Debug, Clone, Default)]
struct MemoryState {
    rows: Arc<Mutex<BTreeMap<Vec<u8>, Vec<u8>>>>,
    refuse: Arc<Mutex<bool>>,
}

impl StateStore for MemoryState {
    fn scan(&self, visit: &mut crate::VisitRow<'_>) -> Result<(), StoreError> {
        let rows = self.rows.lock().unwrap().clone();
        rows.iter().try_for_each(|(key, value)| visit(key, value))
    }

    fn write(&self, batch: StateBatch) -> Result<(), StoreError> {
        if *self.refuse.lock().unwrap() {
            return Err(StoreError::Failed {
                cause: "the test asked for it".to_owned(),
            });
        }
        let mut rows = self.rows.lock().unwrap();
        for key in batch.deletes {
            rows.remove(&key);
        }
        rows.extend(batch.puts);
        Ok(())
    }
}

/// Nobody can be reached.
#[derive(Debug)]
struct NoNetwork;

impl PeerNetwork for NoNetwork {
    fn connect(&self, _: &Member) -> Connecting {
        Box::pin(async { Err("there is no network".into()) })
    }

    fn admit(&self, _: &Member, _: &tonic::Extensions) -> Result<(), String> {
        Err("there is no network".to_owned())
    }
}

fn config(directory: &Path) -> MetadataConfig {
    MetadataConfig::single("test", "one", directory.to_owned())
}

fn command(number: u8, action: Action) -> Command {
    Command {
        version: Command::VERSION,
        queue_manager: QueueManagerName::new("QM1").unwrap(),
        time: Timestamp::from_millis(1_800_000_000_000 + u64::from(number)),
        request: [number; 16],
        action,
    }
}

fn create(number: u8) -> Command {
    command(
        number,
        Action::CreateQueueManager {
            id: QueueManagerId::new([7; 16]),
            node: 1,
        },
    )
}

fn define(number: u8, name: &str) -> Command {
    command(
        number,
        Action::Define {
            kind: ObjectKind::LocalQueue,
            name: name.to_owned(),
            attributes: [("DESCR", AttributeValue::Text(format!("number {number}")))]
                .into_iter()
                .collect(),
            like: None,
            replace: false,
        },
    )
}

fn log_id(term: u64, index: u64) -> LogId {
    LogId::new_term_index(term, index)
}

fn blank(term: u64, index: u64) -> Entry {
    Entry {
        log_id: log_id(term, index),
        payload: EntryPayload::Blank,
    }
}

fn entry(term: u64, index: u64, command: &Command) -> Entry {
    Entry {
        log_id: log_id(term, index),
        payload: EntryPayload::Normal(Proposal(crate::codec::encode_command(command))),
    }
}
