//! Rebuilds the contents of the Raft log from its records.

use std::collections::BTreeMap;

use prost::Message as _;

use ferrymq_proto::storage::FormatError;
use ferrymq_proto::storage_v1 as pb;
use ferrymq_store::{Record, RecordLog, StoreError};
use ferrymq_types::Position;

use super::{Contents, VERSION};
use crate::types::{entry_from_proto, log_id_from_proto, vote_from_proto};

/// What the log is called in messages.
const NAME: &str = "the Raft log";

/// What the records say.
#[derive(Debug, Clone, Default)]
pub(super) struct Replayed {
    pub(super) contents: Contents,
    /// In which record each entry is.
    pub(super) places: BTreeMap<u64, Position>,
    /// The record that last said each of vote, purged and committed; the lowest of them.
    pub(super) vote: Position,
    pub(super) purged: Position,
    pub(super) committed: Position,
    pub(super) records: u64,
}

pub(super) fn replay<L: RecordLog>(log: &L) -> Result<Replayed, StoreError> {
    let mut read = Replayed::default();
    let after = log.recovered().guard.checkpoint;
    log.replay(after, &mut |record| {
        read.records = read.records.saturating_add(1);
        read.take(&record).map_err(|source| StoreError::Format {
            what: format!("record {} of {NAME}", record.last),
            source,
        })
    })?;
    read.check()?;
    Ok(read)
}

impl Replayed {
    fn take(&mut self, record: &Record) -> Result<(), FormatError> {
        let at = record.last;
        let stored = pb::RaftLogRecord::decode(record.payload.clone())?;
        if stored.version != VERSION {
            return Err(FormatError::Value {
                field: "version",
                value: stored.version.to_string(),
            });
        }
        if let Some(from) = stored.truncated_from {
            self.contents.truncate_from(from);
            self.places.split_off(&from);
        }
        if let Some(upto) = &stored.purged {
            self.contents.purge(log_id_from_proto(upto));
            self.places = match upto.index.checked_add(1) {
                Some(next) => self.places.split_off(&next),
                None => BTreeMap::new(),
            };
            self.purged = at;
        }
        for entry in stored.entries {
            let entry = entry_from_proto(entry)?;
            self.places.insert(entry.log_id.index, at);
            self.contents.entries.insert(entry.log_id.index, entry);
        }
        if let Some(vote) = &stored.vote {
            self.contents.vote = Some(vote_from_proto(vote));
            self.vote = at;
        }
        if let Some(committed) = &stored.committed {
            self.contents.committed = Some(log_id_from_proto(committed));
            self.committed = at;
        }
        Ok(())
    }

    /// Entries must follow each other, and what was purged.
    fn check(&self) -> Result<(), StoreError> {
        let mut next = self.contents.purged.map(|id| id.index.saturating_add(1));
        for index in self.contents.entries.keys() {
            if next.is_some_and(|next| next != *index) {
                return Err(StoreError::corrupt(
                    NAME,
                    None,
                    format!("entry {} is missing", next.unwrap_or_default()),
                ));
            }
            next = index.checked_add(1);
        }
        Ok(())
    }
}
