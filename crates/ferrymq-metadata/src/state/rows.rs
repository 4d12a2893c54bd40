//! Definitions as rows.
//!
//! Keys start with a letter: `d` a definition (queue manager name, zero byte, then nothing, or `c`, `p` or `q` and the object's name), `r` a
//! remembered request (index in the log), `s` how far all this is. So a queue manager comes before its objects.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use ferrymq_objects::{
    Applied, Command, CommandError, Definitions, ObjectClass, ObjectKind, QueueManager,
};
use ferrymq_proto::storage::FormatError;
use ferrymq_proto::storage_v1 as pb;
use ferrymq_store::StoreError;
use ferrymq_types::{ObjectId, QueueManagerName};

use crate::codec;
use crate::store::StateBatch;
use crate::types::{
    LogId, StoredMembership, log_id_from_proto, log_id_to_proto, stored_membership_from_proto,
    stored_membership_to_proto,
};

/// Level of the rows.
const VERSION: u32 = 1;
/// What the rows are called in messages.
pub(super) const NAME: &str = "the rows of definitions";

const DEFINITION: u8 = b'd';
const REQUEST: u8 = b'r';
const STATE: u8 = b's';

/// Everything that applied commands made.
#[derive(Debug, Clone, Default)]
pub(super) struct Applicable {
    pub(super) definitions: Arc<Definitions>,
    /// The index at which each remembered request was applied, oldest first.
    pub(super) remembered_at: VecDeque<u64>,
    pub(super) applied: Option<LogId>,
    pub(super) membership: StoredMembership,
}

/// Rows that change: the last word on each key.
#[derive(Debug, Default)]
pub(super) struct Changes(BTreeMap<Vec<u8>, Option<Vec<u8>>>);

impl Changes {
    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.0.insert(key, Some(value));
    }

    fn delete(&mut self, key: Vec<u8>) {
        self.0.insert(key, None);
    }

    pub(super) fn into_batch(self) -> StateBatch {
        let mut batch = StateBatch::default();
        for (key, value) in self.0 {
            match value {
                Some(value) => batch.puts.push((key, value)),
                None => batch.deletes.push(key),
            }
        }
        batch
    }
}

fn definition_key(
    queue_manager: &QueueManagerName,
    object: Option<(ObjectClass, &str)>,
) -> Vec<u8> {
    let mut key = vec![DEFINITION];
    key.extend_from_slice(queue_manager.as_str().as_bytes());
    key.push(0);
    if let Some((class, name)) = object {
        key.push(match class {
            ObjectClass::Channel => b'c',
            ObjectClass::Process => b'p',
            ObjectClass::Queue => b'q',
        });
        key.extend_from_slice(name.as_bytes());
    }
    key
}

/// The key of the row of the channel authentication records of a profile.
fn channel_rules_key(queue_manager: &QueueManagerName, profile: &str) -> Vec<u8> {
    let mut key = definition_key(queue_manager, None);
    key.push(b'a');
    key.extend_from_slice(profile.as_bytes());
    key
}

fn request_key(index: u64) -> Vec<u8> {
    let mut key = vec![REQUEST];
    key.extend_from_slice(&index.to_be_bytes());
    key
}

impl Applicable {
    /// Applies a command and notes what rows change.
    pub(super) fn apply(
        &mut self,
        index: u64,
        command: &Command,
        changes: &mut Changes,
    ) -> Result<(), FormatError> {
        let repeated = self
            .definitions
            .remembered
            .iter()
            .any(|r| r.request == command.request);
        let outcome = Arc::make_mut(&mut self.definitions).apply(index, command);
        if let Err(CommandError::Version { version }) = outcome {
            return Err(FormatError::Value {
                field: "version",
                value: version.to_string(),
            });
        }
        if !repeated {
            if let Some(newest) = self.definitions.remembered.back() {
                changes.put(request_key(index), codec::encode_request(index, newest));
                self.remembered_at.push_back(index);
            }
            while self.remembered_at.len() > self.definitions.remembered.len() {
                if let Some(forgotten) = self.remembered_at.pop_front() {
                    changes.delete(request_key(forgotten));
                }
            }
            if let Ok(applied) = &outcome {
                self.note(&command.queue_manager, applied, changes);
            }
        }
        Ok(())
    }

    fn note(&self, name: &QueueManagerName, applied: &Applied, changes: &mut Changes) {
        let Some(queue_manager) = self.definitions.queue_managers.get(name) else {
            return;
        };
        match applied {
            Applied::QueueManagerCreated { .. } => {
                for (key, value) in queue_manager_rows(name, queue_manager) {
                    changes.put(key, value);
                }
            }
            Applied::QueueManagerAltered => changes.put(
                definition_key(name, None),
                codec::encode_queue_manager(queue_manager),
            ),
            Applied::ChannelRulesSet { profile } => {
                let key = channel_rules_key(name, profile);
                match queue_manager.channel_rules.get(profile) {
                    Some(rules) => {
                        changes.put(key, codec::encode_channel_rules(name, profile, rules));
                    }
                    None => changes.delete(key),
                }
            }
            Applied::Created {
                kind, name: object, ..
            }
            | Applied::Replaced {
                kind, name: object, ..
            }
            | Applied::Altered {
                kind, name: object, ..
            } => {
                if let Some(value) = object_row(name, queue_manager, *kind, object) {
                    changes.put(definition_key(name, Some((kind.class(), object))), value);
                }
            }
            Applied::Deleted {
                kind, name: object, ..
            } => {
                changes.delete(definition_key(name, Some((kind.class(), object))));
            }
        }
    }

    /// The answer to a command, as it is sent. `None` if nothing is remembered, which cannot be right after it was applied.
    pub(super) fn answer(&self, command: &Command) -> Option<pb::DefinitionOutcome> {
        let mut pairs = self.definitions.remembered.iter().zip(&self.remembered_at);
        pairs
            .rfind(|(r, _)| r.request == command.request)
            .map(|(r, at)| codec::outcome_to_proto(*at, r))
    }

    /// The row that says how far all this is.
    pub(super) fn note_state(&self, changes: &mut Changes) {
        changes.put(vec![STATE], self.state().encode_to_vec());
    }

    pub(super) fn state(&self) -> pb::DefinitionsState {
        pb::DefinitionsState {
            version: VERSION,
            applied: self.applied.as_ref().map(log_id_to_proto),
            membership: Some(stored_membership_to_proto(&self.membership)),
            definitions: count(&self.definitions),
            requests: self.remembered_at.len() as u64,
            next_object_id: self.definitions.next_object_id.get(),
            command_index: self.definitions.applied_index,
        }
    }

    /// Every row but the state.
    pub(super) fn rows(&self) -> impl Iterator<Item = (Vec<u8>, Vec<u8>)> {
        let definitions = self
            .definitions
            .queue_managers
            .iter()
            .flat_map(|(name, queue_manager)| queue_manager_rows(name, queue_manager));
        let requests = self
            .remembered_at
            .iter()
            .zip(&self.definitions.remembered)
            .map(|(index, r)| (request_key(*index), codec::encode_request(*index, r)));
        definitions.chain(requests)
    }
}

fn queue_manager_rows(
    name: &QueueManagerName,
    queue_manager: &QueueManager,
) -> Vec<(Vec<u8>, Vec<u8>)> {
    let own = (
        definition_key(name, None),
        codec::encode_queue_manager(queue_manager),
    );
    let queues = queue_manager.queues.iter().map(|(queue, definition)| {
        let key = definition_key(name, Some((ObjectClass::Queue, queue.as_str())));
        (key, codec::encode_queue(name, definition))
    });
    let channels = queue_manager.channels.iter().map(|(channel, definition)| {
        let key = definition_key(name, Some((ObjectClass::Channel, channel.as_str())));
        (key, codec::encode_channel(name, definition))
    });
    let processes = queue_manager.processes.iter().map(|(process, definition)| {
        let key = definition_key(name, Some((ObjectClass::Process, process.as_str())));
        (key, codec::encode_process(name, definition))
    });
    let rules = queue_manager.channel_rules.iter().map(|(profile, rules)| {
        let row = codec::encode_channel_rules(name, profile, rules);
        (channel_rules_key(name, profile), row)
    });
    std::iter::once(own)
        .chain(rules)
        .chain(channels)
        .chain(processes)
        .chain(queues)
        .collect()
}

fn object_row(
    owner: &QueueManagerName,
    queue_manager: &QueueManager,
    kind: ObjectKind,
    name: &str,
) -> Option<Vec<u8>> {
    Some(match kind.class() {
        ObjectClass::Queue => {
            let mut all = queue_manager.queues.iter();
            codec::encode_queue(owner, all.find(|(n, _)| n.as_str() == name)?.1)
        }
        ObjectClass::Channel => {
            let mut all = queue_manager.channels.iter();
            codec::encode_channel(owner, all.find(|(n, _)| n.as_str() == name)?.1)
        }
        ObjectClass::Process => {
            let mut all = queue_manager.processes.iter();
            codec::encode_process(owner, all.find(|(n, _)| n.as_str() == name)?.1)
        }
    })
}

fn count(definitions: &Definitions) -> u64 {
    definitions
        .queue_managers
        .values()
        .map(|q| {
            (q.queues.len() as u64)
                .saturating_add(q.channels.len() as u64)
                .saturating_add(q.processes.len() as u64)
                .saturating_add(q.channel_rules.len() as u64)
                .saturating_add(1)
        })
        .fold(0, u64::saturating_add)
}

/// Reads rows back.
#[derive(Debug, Default)]
pub(super) struct Loader {
    loaded: Applicable,
    state: Option<pb::DefinitionsState>,
    definitions: u64,
    requests: u64,
}

impl Loader {
    /// Takes a row. Rows come in the order of their keys.
    ///
    /// # Errors
    /// [`StoreError::Format`] if it makes no sense.
    pub(super) fn take(&mut self, key: &[u8], value: &[u8]) -> Result<(), StoreError> {
        self.read(key, value).map_err(|source| StoreError::Format {
            what: format!("row {} of {NAME}", String::from_utf8_lossy(key)),
            source,
        })
    }

    fn read(&mut self, key: &[u8], value: &[u8]) -> Result<(), FormatError> {
        match key.first().copied() {
            Some(DEFINITION) => {
                let row = codec::decode_definition(value)?;
                codec::insert_definition(Arc::make_mut(&mut self.loaded.definitions), row)?;
                self.definitions = self.definitions.saturating_add(1);
            }
            Some(REQUEST) => {
                let (index, remembered) = codec::decode_request(value)?;
                Arc::make_mut(&mut self.loaded.definitions)
                    .remembered
                    .push_back(remembered);
                self.loaded.remembered_at.push_back(index);
                self.requests = self.requests.saturating_add(1);
            }
            Some(STATE) => self.state(pb::DefinitionsState::decode(value)?)?,
            Some(_) | None => {
                return Err(FormatError::Value {
                    field: "key",
                    value: "of a kind that this release does not know".to_owned(),
                });
            }
        }
        Ok(())
    }

    /// Takes the state.
    pub(super) fn state(&mut self, state: pb::DefinitionsState) -> Result<(), FormatError> {
        if state.version != VERSION {
            return Err(FormatError::Value {
                field: "version",
                value: state.version.to_string(),
            });
        }
        self.state = Some(state);
        Ok(())
    }

    /// What all rows together say. `None`: there is no row.
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] if rows are missing.
    pub(super) fn finish(self) -> Result<Option<Applicable>, StoreError> {
        let Some(state) = self.state else {
            if self.definitions == 0 && self.requests == 0 {
                return Ok(None);
            }
            return Err(StoreError::corrupt(
                NAME,
                None,
                "the row of the state is missing",
            ));
        };
        if state.definitions != self.definitions || state.requests != self.requests {
            return Err(StoreError::corrupt(
                NAME,
                None,
                format!(
                    "{} definitions and {} requests are there, {} and {} should be",
                    self.definitions, self.requests, state.definitions, state.requests
                ),
            ));
        }
        let mut loaded = self.loaded;
        loaded.applied = state.applied.as_ref().map(log_id_from_proto);
        loaded.membership = stored_membership_from_proto(state.membership.unwrap_or_default())
            .map_err(|source| StoreError::Format {
                what: format!("the membership in {NAME}"),
                source,
            })?;
        let definitions = Arc::make_mut(&mut loaded.definitions);
        definitions.next_object_id = ObjectId::new(state.next_object_id);
        definitions.applied_index = state.command_index;
        Ok(Some(loaded))
    }
}

/// A row of a snapshot.
pub(super) fn snapshot_row(key: Vec<u8>, value: Vec<u8>) -> pb::SnapshotItem {
    pb::SnapshotItem {
        item: Some(pb::snapshot_item::Item::Row(pb::SnapshotRow {
            key: Bytes::from(key),
            value: Bytes::from(value),
        })),
    }
}
