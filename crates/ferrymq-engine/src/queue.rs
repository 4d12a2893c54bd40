//! The messages of one queue, and which of them can be had in what order.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{DefaultHasher, Hasher};
use std::sync::Arc;

use ferrymq_objects::{DeliverySequence, LocalQueue};
use ferrymq_types::{
    BodyId, ChannelName, Message, MessageId, MessageRow, ObjectId, Persistence, Position, Priority,
    QueueName, Sequence, Timestamp,
};

use crate::waiters::Waiters;
use crate::{Cursor, MatchIds};

/// Where a message stands in the order of delivery: the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// 0 for the highest priority; 0 for all on a FIFO queue.
    pub(crate) rank: u8,
    pub(crate) sequence: Sequence,
}

impl Key {
    const FIRST: Self = Self {
        rank: 0,
        sequence: Sequence::ZERO,
    };
    const LAST: Self = Self {
        rank: u8::MAX,
        sequence: Sequence::new(u64::MAX),
    };
}

/// What may be done with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum State {
    /// Anybody may get it.
    Available,
    /// Put in a unit of work that is open.
    Uncommitted,
    /// Got in a unit of work that is open.
    Locked,
    /// A get or a channel waits for its body.
    Fetching,
    /// A channel sends it.
    Channel,
    /// It cannot be read (rule U9).
    Damaged,
    /// Its backout count has reached the threshold and no queue takes it (invariant B3).
    Poison,
}

/// What decisions need of a message. Small: a queue may hold millions.
#[derive(Debug)]
pub(crate) struct Entry {
    pub(crate) message_id: MessageId,
    /// Hash of the correlation id; `None` if that is none.
    pub(crate) correlation: Option<u64>,
    pub(crate) body: BodyId,
    /// The write set that made it as it is; zero if none did.
    pub(crate) position: Position,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) put_time: Timestamp,
    /// Bytes of header and body.
    pub(crate) length: u32,
    pub(crate) backout_count: u32,
    /// The delivery count that the journal knows.
    pub(crate) journaled_count: u32,
    pub(crate) priority: Priority,
    pub(crate) persistence: Persistence,
    pub(crate) state: State,
    /// The message; always there if it is non-persistent or uncommitted.
    pub(crate) memory: Option<Arc<Message>>,
}

impl Entry {
    pub(crate) fn is_persistent(&self) -> bool {
        match self.persistence {
            Persistence::Persistent => true,
            Persistence::NonPersistent => false,
        }
    }

    pub(crate) fn is_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }
}

/// A fixed-key hash: the same in every run, so that the same inputs give the same effects.
pub(crate) fn hash_id(bytes: &[u8; 24]) -> u64 {
    let mut hasher = DefaultHasher::new();
    hasher.write(bytes);
    hasher.finish()
}

/// Which messages are wanted, ready to be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) ids: MatchIds,
    pub(crate) message_id: Option<u64>,
    pub(crate) correlation: Option<u64>,
}

impl Wanted {
    /// All zeros match any, as `None` does.
    pub(crate) fn new(ids: MatchIds) -> Self {
        let ids = MatchIds {
            message_id: ids.message_id.filter(|id| !id.is_none()),
            correlation_id: ids.correlation_id.filter(|id| !id.is_none()),
        };
        Self {
            ids,
            message_id: ids.message_id.map(|id| hash_id(id.as_bytes())),
            correlation: ids.correlation_id.map(|id| hash_id(id.as_bytes())),
        }
    }

    /// Whether the message may be wanted. Only [`Wanted::is`] is sure: correlation ids are compared by hash here.
    pub(crate) fn may_be(&self, entry: &Entry) -> bool {
        self.ids.message_id.is_none_or(|id| id == entry.message_id)
            && self
                .correlation
                .is_none_or(|hash| entry.correlation == Some(hash))
    }

    /// Whether the message is wanted.
    pub(crate) fn is(&self, message: &Message) -> bool {
        let d = &message.descriptor;
        self.ids.message_id.is_none_or(|id| id == d.message_id)
            && self
                .ids
                .correlation_id
                .is_none_or(|id| id == d.correlation_id)
    }
}

/// A local queue: definition, messages and who waits for them.
#[derive(Debug)]
pub(crate) struct QueueState {
    pub(crate) id: ObjectId,
    pub(crate) name: QueueName,
    /// `None`: rows name it and no definition does; it is kept and not served (rule U15).
    pub(crate) definition: Option<Box<LocalQueue>>,
    /// Whether the journal has its row.
    pub(crate) row_written: bool,
    pub(crate) closed: bool,
    pub(crate) entries: BTreeMap<Sequence, Entry>,
    available: BTreeSet<Key>,
    by_message_id: BTreeSet<(u64, Key)>,
    by_correlation: BTreeSet<(u64, Key)>,
    pub(crate) waiters: Waiters,
    /// The last write set that changed it.
    pub(crate) last_change: Position,
    /// Messages that open units of work put or got.
    pub(crate) uncommitted: u64,
    /// Rows of messages in [`State::Poison`], for the next attempt.
    pub(crate) poison: BTreeMap<Sequence, Box<MessageRow>>,
    pub(crate) full_reported: bool,
    /// Messages that came here from elsewhere do not expire here (invariant D7): a dead-letter or backout queue.
    pub(crate) keeps_expired: bool,
    pub(crate) last_get: Option<Timestamp>,
    pub(crate) last_put: Option<Timestamp>,
    /// The channel that has it open.
    pub(crate) sender: Option<ChannelName>,
}

impl QueueState {
    pub(crate) fn new(id: ObjectId, name: QueueName) -> Self {
        Self {
            id,
            name,
            definition: None,
            row_written: false,
            closed: false,
            entries: BTreeMap::new(),
            available: BTreeSet::new(),
            by_message_id: BTreeSet::new(),
            by_correlation: BTreeSet::new(),
            waiters: Waiters::default(),
            last_change: Position::ZERO,
            uncommitted: 0,
            poison: BTreeMap::new(),
            full_reported: false,
            keeps_expired: false,
            last_get: None,
            last_put: None,
            sender: None,
        }
    }

    /// `CURDEPTH`: committed and uncommitted messages.
    pub(crate) fn depth(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(crate) fn available_len(&self) -> usize {
        self.available.len()
    }

    /// Notes that a write set changed this queue.
    pub(crate) fn changed(&mut self, position: Position) {
        self.last_change = self.last_change.max(position);
    }

    pub(crate) fn key(&self, sequence: Sequence, priority: Priority) -> Key {
        let fifo = self
            .definition
            .as_ref()
            .is_some_and(|d| match d.delivery_sequence {
                DeliverySequence::Fifo => true,
                DeliverySequence::Priority => false,
            });
        Key {
            rank: if fifo {
                0
            } else {
                Priority::MAX.get().saturating_sub(priority.get())
            },
            sequence,
        }
    }

    /// Where a browse goes on.
    pub(crate) fn key_of_cursor(&self, cursor: Cursor) -> Key {
        self.key(cursor.sequence, cursor.priority)
    }

    /// The cursor on a message.
    pub(crate) fn cursor(&self, sequence: Sequence, entry: &Entry) -> Cursor {
        let fifo = self.key(sequence, Priority::default()) == self.key(sequence, Priority::MAX);
        Cursor {
            priority: if fifo {
                Priority::default()
            } else {
                entry.priority
            },
            sequence,
        }
    }

    /// Changes the state of a message. `None` if it is not here.
    pub(crate) fn set_state(&mut self, sequence: Sequence, state: State) -> Option<&mut Entry> {
        let key = {
            let entry = self.entries.get(&sequence)?;
            self.key(sequence, entry.priority)
        };
        let entry = self.entries.get_mut(&sequence)?;
        let by_id = (hash_id(entry.message_id.as_bytes()), key);
        let by_correlation = entry.correlation.map(|hash| (hash, key));
        let counts = |state| match state {
            State::Uncommitted | State::Locked => 1,
            State::Available
            | State::Fetching
            | State::Channel
            | State::Damaged
            | State::Poison => 0,
        };
        self.uncommitted = self
            .uncommitted
            .saturating_sub(counts(entry.state))
            .saturating_add(counts(state));
        let (was, is) = (entry.state == State::Available, state == State::Available);
        entry.state = state;
        if was && !is {
            self.available.remove(&key);
            self.by_message_id.remove(&by_id);
            if let Some(by) = by_correlation {
                self.by_correlation.remove(&by);
            }
        } else if is && !was {
            self.available.insert(key);
            self.by_message_id.insert(by_id);
            if let Some(by) = by_correlation {
                self.by_correlation.insert(by);
            }
        }
        Some(entry)
    }

    /// Adds a message that nobody sees yet.
    pub(crate) fn insert(&mut self, sequence: Sequence, mut entry: Entry) {
        if entry.state == State::Uncommitted {
            self.uncommitted = self.uncommitted.saturating_add(1);
        } else {
            entry.state = State::Fetching;
        }
        self.entries.insert(sequence, entry);
    }

    /// Takes a message away.
    pub(crate) fn remove(&mut self, sequence: Sequence) -> Option<Entry> {
        self.set_state(sequence, State::Fetching)?;
        self.poison.remove(&sequence);
        self.entries.remove(&sequence)
    }

    /// Builds the order anew, after `MSGDLVSQ` changed.
    pub(crate) fn reorder(&mut self) {
        self.available.clear();
        self.by_message_id.clear();
        self.by_correlation.clear();
        let shown: Vec<Sequence> = self
            .entries
            .iter_mut()
            .filter(|(_, e)| e.state == State::Available)
            .map(|(sequence, e)| {
                e.state = State::Fetching;
                *sequence
            })
            .collect();
        for sequence in shown {
            self.set_state(sequence, State::Available);
        }
    }

    /// The first message behind `after` that may be wanted.
    pub(crate) fn find(
        &self,
        wanted: &Wanted,
        after: Option<Key>,
        not: &[Sequence],
    ) -> Option<Key> {
        use core::ops::Bound::{Excluded, Included, Unbounded};
        let fits = |key: &Key| {
            !not.contains(&key.sequence)
                && self
                    .entries
                    .get(&key.sequence)
                    .is_some_and(|entry| wanted.may_be(entry))
        };
        let by_hash = |set: &BTreeSet<(u64, Key)>, hash: u64| {
            let from = after.map_or(Included((hash, Key::FIRST)), |key| Excluded((hash, key)));
            // A key behind the last one leaves nothing to look through.
            if after.is_some_and(|key| key >= Key::LAST) {
                return None;
            }
            set.range((from, Included((hash, Key::LAST))))
                .map(|(_, key)| *key)
                .find(fits)
        };
        match (wanted.message_id, wanted.correlation) {
            (Some(hash), _) => by_hash(&self.by_message_id, hash),
            (None, Some(hash)) => by_hash(&self.by_correlation, hash),
            (None, None) => self
                .available
                .range((after.map_or(Unbounded, Excluded), Unbounded))
                .copied()
                .find(fits),
        }
    }

    /// When the oldest message that is available was put: the first of each priority is looked at.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        (0..=Priority::MAX.get())
            .filter_map(|rank| {
                let from = Key {
                    rank,
                    sequence: Sequence::ZERO,
                };
                let key = self.available.range(from..).next()?;
                self.entries.get(&key.sequence).map(|e| e.put_time)
            })
            .min()
    }
}
