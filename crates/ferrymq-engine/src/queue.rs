//! The messages of one queue, and which of them can be had in what order.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use ferrymq_objects::{DeliverySequence, LocalQueue};
use ferrymq_types::{
    BodyId, ChannelName, Message, MessageId, MessageRow, ObjectId, Persistence, Position, Priority,
    QueueName, QueueRow, Sequence, Timestamp,
};

use crate::groups::{GroupedMessages, Member};
use crate::performance::Performance;
use crate::read_ahead::ReadAhead;
use crate::resting::{RestingMessages, hash_id};
use crate::trigger::Trigger;
use crate::waiters::Waiters;
use crate::{Cursor, Engine, InputUse, MatchIds};

/// Where a message stands in the order of delivery: the lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Key {
    /// 0 for the highest priority; 0 for all on a FIFO queue.
    pub(crate) rank: u8,
    pub(crate) sequence: Sequence,
}

impl Key {
    /// Behind all others.
    pub(crate) const LAST: Self = Self {
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
    /// A browse has locked it.
    Browsed,
    /// Its backout count has reached the threshold and no queue takes it (invariant B3).
    Poison,
}

impl State {
    /// Whether it belongs to `UNCOM`.
    const fn is_uncommitted(self) -> bool {
        match self {
            Self::Uncommitted | Self::Locked => true,
            Self::Available
            | Self::Fetching
            | Self::Channel
            | Self::Damaged
            | Self::Browsed
            | Self::Poison => false,
        }
    }
}

/// What decisions need of a message. Its bytes are in [`crate::memory::Memory`], in the store, or in both.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Entry {
    pub(crate) message_id: MessageId,
    /// Hash of the correlation id; 0 if that is none.
    pub(crate) correlation: u32,
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
    /// Whether its putter wants to hear when it expires.
    pub(crate) reports_expiry: bool,
    /// Its place in its group, if it is in one.
    pub(crate) group: Option<Member>,
    pub(crate) state: State,
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

/// Which messages are wanted, ready to be looked up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Wanted {
    pub(crate) ids: MatchIds,
    pub(crate) message_id: Option<u32>,
    pub(crate) correlation: Option<u32>,
    /// Of messages in groups only those whose group is all there. `MQGMO_ALL_MSGS_AVAILABLE`.
    pub(crate) complete: bool,
}

impl Wanted {
    /// All zeros match any, as `None` does.
    pub(crate) fn new(ids: MatchIds) -> Self {
        let ids = MatchIds {
            message_id: ids.message_id.filter(|id| !id.is_none()),
            correlation_id: ids.correlation_id.filter(|id| !id.is_none()),
            group_id: ids.group_id.filter(|id| !id.is_none()),
            message_sequence_number: ids.message_sequence_number,
        };
        Self {
            ids,
            message_id: ids.message_id.map(|id| hash_id(id.as_bytes())),
            correlation: ids.correlation_id.map(|id| hash_id(id.as_bytes())),
            complete: false,
        }
    }

    /// Whether any message will do.
    pub(crate) fn is_any(&self) -> bool {
        !self.by_message()
            && self.ids.group_id.is_none()
            && self.ids.message_sequence_number.is_none()
            && !self.complete
    }

    /// Whether ids of the message itself are asked for.
    pub(crate) fn by_message(&self) -> bool {
        self.message_id.is_some() || self.correlation.is_some()
    }

    /// Whether a message may be the wanted one of its group, or in none.
    pub(crate) fn is_member(&self, member: Option<&Member>) -> bool {
        let (group, number) = match member {
            Some(member) => (Some(member.group), member.number),
            None => (None, 1),
        };
        self.ids.group_id.is_none_or(|id| group == Some(id))
            && self
                .ids
                .message_sequence_number
                .is_none_or(|wanted| wanted == number)
    }

    /// Whether the message may be wanted. Only [`Wanted::is`] is sure: correlation ids are compared by hash here.
    pub(crate) fn may_be(&self, entry: &Entry) -> bool {
        self.ids.message_id.is_none_or(|id| id == entry.message_id)
            && self
                .correlation
                .is_none_or(|hash| entry.correlation == hash)
    }

    /// Whether the message is wanted. What is asked of its group was sure before.
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
    /// Messages that anybody may get, and those of them that are in groups.
    resting: RestingMessages,
    grouped: Option<Box<GroupedMessages>>,
    /// All others: few, since each belongs to a unit of work, a channel or a request, or is damaged or poison.
    held: BTreeMap<Sequence, Entry>,
    pub(crate) waiters: Waiters,
    /// The last write set that changed it.
    pub(crate) last_change: Position,
    /// Messages that open units of work put or got.
    pub(crate) uncommitted: u64,
    /// Messages that somebody has got or is getting.
    taken: u64,
    /// Messages that nobody can get: damaged or poison.
    stuck: u64,
    /// Rows of messages in [`State::Poison`], for the next attempt.
    pub(crate) poison: BTreeMap<Sequence, Box<MessageRow>>,
    pub(crate) full_reported: bool,
    pub(crate) read_ahead: Option<ReadAhead>,
    /// Messages that came here from elsewhere do not expire here (invariant D7): a dead-letter or backout queue.
    pub(crate) keeps_expired: bool,
    pub(crate) last_get: Option<Timestamp>,
    pub(crate) last_put: Option<Timestamp>,
    /// The channel that has it open.
    pub(crate) sender: Option<ChannelName>,
    /// What its performance events need, while they are on.
    pub(crate) performance: Option<Box<Performance>>,
    /// What its trigger needs, while that is on.
    pub(crate) trigger: Option<Box<Trigger>>,
    /// The definition, by when it was altered, whose trigger switched itself off.
    pub(crate) trigger_used: Option<Timestamp>,
    /// Handles for input, for output, and whether the one for input is exclusive.
    inputs: u32,
    outputs: u32,
    exclusive: bool,
}

impl QueueState {
    pub(crate) fn new(id: ObjectId, name: QueueName) -> Self {
        Self {
            id,
            name,
            definition: None,
            row_written: false,
            closed: false,
            resting: RestingMessages::default(),
            grouped: None,
            held: BTreeMap::new(),
            waiters: Waiters::default(),
            last_change: Position::ZERO,
            uncommitted: 0,
            taken: 0,
            stuck: 0,
            poison: BTreeMap::new(),
            full_reported: false,
            read_ahead: None,
            keeps_expired: false,
            last_get: None,
            last_put: None,
            sender: None,
            performance: None,
            trigger: None,
            trigger_used: None,
            inputs: 0,
            outputs: 0,
            exclusive: false,
        }
    }

    /// Its row.
    pub(crate) fn row(&self) -> QueueRow {
        QueueRow {
            name: self.name.clone(),
            closed: self.closed,
            trigger_used: self.trigger_used,
            definition: self
                .definition
                .as_deref()
                .and_then(Engine::stored_definition),
        }
    }

    /// Messages that somebody has got or is getting.
    pub(crate) const fn taken(&self) -> u64 {
        self.taken
    }

    /// Whether somebody has a message of it in hand.
    pub(crate) fn is_held(&self) -> bool {
        self.held.values().any(|entry| entry.state.is_held())
    }

    /// Messages that nobody can get.
    pub(crate) const fn stuck(&self) -> u64 {
        self.stuck
    }

    /// A handle was opened.
    pub(crate) fn opened(&mut self, input: Option<InputUse>, output: bool) {
        if let Some(input) = input {
            self.inputs = self.inputs.saturating_add(1);
            self.exclusive = input == InputUse::Exclusive;
        }
        self.outputs = self.outputs.saturating_add(u32::from(output));
    }

    /// A handle was closed.
    pub(crate) fn closed_by(&mut self, input: Option<InputUse>, output: bool) {
        if input.is_some() {
            self.inputs = self.inputs.saturating_sub(1);
            self.exclusive &= self.inputs > 0;
        }
        self.outputs = self.outputs.saturating_sub(u32::from(output));
    }

    /// Handles for input.
    pub(crate) const fn inputs(&self) -> u32 {
        self.inputs
    }

    /// Handles for output.
    pub(crate) const fn outputs(&self) -> u32 {
        self.outputs
    }

    /// Whether one handle has it for itself.
    pub(crate) const fn exclusive(&self) -> bool {
        self.exclusive
    }

    /// `CURDEPTH`: committed and uncommitted messages.
    pub(crate) fn depth(&self) -> u64 {
        self.available_len().saturating_add(self.held.len()) as u64
    }

    pub(crate) fn available_len(&self) -> usize {
        let grouped = self.grouped.as_ref().map_or(0, |grouped| grouped.len());
        self.resting.len().saturating_add(grouped)
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

    /// A message, if it is here.
    pub(crate) fn entry(&self, sequence: Sequence) -> Option<Entry> {
        // Nothing is held on most queues most of the time.
        if !self.held.is_empty()
            && let Some(entry) = self.held.get(&sequence)
        {
            return Some(*entry);
        }
        self.resting
            .get(sequence)
            .or_else(|| self.grouped.as_ref()?.get(sequence))
    }

    /// A message that can be had.
    pub(crate) fn available(&self, key: Key) -> Option<Entry> {
        self.resting
            .get_at(key)
            .or_else(|| self.grouped.as_ref()?.get_at(key))
    }

    /// Adds a message in its state.
    pub(crate) fn insert(&mut self, sequence: Sequence, entry: Entry) {
        if let Some(trigger) = &mut self.trigger {
            trigger.added(entry.priority);
        }
        self.place(sequence, entry);
    }

    fn place(&mut self, sequence: Sequence, entry: Entry) {
        self.tally(None, Some(entry.state));
        if entry.state == State::Available {
            let key = self.key(sequence, entry.priority);
            match entry.group {
                None => self.resting.insert(key, &entry),
                Some(member) => self.grouped().insert(key, &entry, member),
            }
        } else {
            self.held.insert(sequence, entry);
        }
    }

    /// A message is no longer in one state, and is in another now.
    fn tally(&mut self, before: Option<State>, now: Option<State>) {
        if let Some(count) = before.and_then(|state| self.count(state)) {
            *count = count.saturating_sub(1);
        }
        if let Some(count) = now.and_then(|state| self.count(state)) {
            *count = count.saturating_add(1);
        }
        if before.is_some_and(State::is_uncommitted) {
            self.uncommitted = self.uncommitted.saturating_sub(1);
        }
        if now.is_some_and(State::is_uncommitted) {
            self.uncommitted = self.uncommitted.saturating_add(1);
        }
    }

    /// Where messages in a state are counted besides `UNCOM`.
    fn count(&mut self, state: State) -> Option<&mut u64> {
        match state {
            State::Locked | State::Fetching => Some(&mut self.taken),
            State::Damaged | State::Poison => Some(&mut self.stuck),
            State::Available | State::Uncommitted | State::Channel | State::Browsed => None,
        }
    }

    /// Whether messages in groups are indexed.
    #[cfg(test)]
    pub(crate) const fn has_groups(&self) -> bool {
        self.grouped.is_some()
    }

    fn grouped(&mut self) -> &mut GroupedMessages {
        self.grouped.get_or_insert_default()
    }

    /// Takes a message out of those that anybody may get.
    fn remove_resting(&mut self, sequence: Sequence) -> Option<Entry> {
        if let Some(entry) = self.resting.remove(sequence) {
            return Some(entry);
        }
        let entry = self.grouped.as_mut()?.remove(sequence)?;
        self.grouped.take_if(|grouped| grouped.is_empty());
        Some(entry)
    }

    /// Takes a message away.
    pub(crate) fn remove(&mut self, sequence: Sequence) -> Option<Entry> {
        let entry = match self.held.remove(&sequence) {
            Some(entry) => {
                self.poison.remove(&sequence);
                entry
            }
            None => self.remove_resting(sequence)?,
        };
        self.tally(Some(entry.state), None);
        if let Some(trigger) = &mut self.trigger {
            trigger.removed(entry.priority);
        }
        Some(entry)
    }

    /// Changes a message. `None` if it is not here; else as it is now.
    pub(crate) fn change(
        &mut self,
        sequence: Sequence,
        change: impl FnOnce(&mut Entry),
    ) -> Option<Entry> {
        let held = self.held.get_mut(&sequence);
        if let Some(entry) = held {
            let before = entry.state;
            let mut changed = *entry;
            change(&mut changed);
            if changed.state != State::Available {
                *entry = changed;
                self.tally(Some(before), Some(changed.state));
                return Some(changed);
            }
            self.held.remove(&sequence);
            self.tally(Some(before), None);
            self.place(sequence, changed);
            return Some(changed);
        }
        let mut entry = self.remove_resting(sequence)?;
        change(&mut entry);
        self.place(sequence, entry);
        Some(entry)
    }

    /// Builds the order anew, after `MSGDLVSQ` changed.
    pub(crate) fn reorder(&mut self) {
        let mut before = std::mem::take(&mut self.resting);
        let grouped = self.grouped.take();
        for (sequence, entry) in before.drain() {
            self.recover(sequence, &entry);
        }
        for (sequence, entry) in grouped.into_iter().flat_map(|grouped| grouped.drain()) {
            self.recover(sequence, &entry);
        }
        self.recovered();
    }

    /// Adds a message that can be had once [`QueueState::recovered`] has been called.
    pub(crate) fn recover(&mut self, sequence: Sequence, entry: &Entry) {
        let key = self.key(sequence, entry.priority);
        match entry.group {
            None => self.resting.insert_unfiled(key, entry),
            Some(member) => self.grouped().insert_unfiled(key, entry, member),
        }
    }

    pub(crate) fn recovered(&mut self) {
        self.resting.file_all();
        if let Some(grouped) = &mut self.grouped {
            grouped.file_all();
        }
    }

    /// The first message behind `after` that may be wanted and is none of `not`.
    pub(crate) fn find(
        &self,
        wanted: &Wanted,
        after: Option<Key>,
        not: &BTreeSet<Sequence>,
    ) -> Option<Key> {
        let plain = if wanted.is_member(None) {
            self.resting.find(wanted, after, not)
        } else {
            None
        };
        match &self.grouped {
            None => plain,
            Some(grouped) => first_of(plain, grouped.find(wanted, after, not), |key| *key),
        }
    }

    /// Whether a message is the wanted one of its group.
    pub(crate) fn is_in_order(&self, wanted: &Wanted, entry: &Entry) -> bool {
        let complete = || entry.group.is_none_or(|member| self.is_complete(&member));
        wanted.is_member(entry.group.as_ref()) && (!wanted.complete || complete())
    }

    /// Whether all messages of a group can be had.
    pub(crate) fn is_complete(&self, member: &Member) -> bool {
        self.grouped
            .as_ref()
            .is_some_and(|grouped| grouped.is_complete(member.group))
    }

    /// All messages in the order of their sequences, from one on.
    pub(crate) fn entries(&self, from: Bound<Sequence>) -> impl Iterator<Item = (Sequence, Entry)> {
        let held = self.held.range((from, Bound::Unbounded));
        let held = held.map(|(sequence, entry)| (*sequence, *entry));
        let grouped = self.grouped.iter();
        let grouped = grouped.flat_map(move |grouped| grouped.by_sequence(from));
        let of_sequence = |(sequence, _): &(Sequence, Entry)| *sequence;
        let resting = merged(self.resting.by_sequence(from), grouped, of_sequence);
        merged(resting, held, of_sequence)
    }

    /// The persistent messages behind `from`, in the order of delivery, with the bytes of each.
    pub(crate) fn upcoming(&self, from: Key) -> impl Iterator<Item = (Key, u32)> {
        let grouped = self.grouped.iter();
        let grouped = grouped.flat_map(move |grouped| grouped.upcoming(from));
        merged(self.resting.upcoming(from), grouped, |(key, _)| *key)
    }

    /// The messages that can be had and expire.
    pub(crate) fn expiring(&self) -> impl Iterator<Item = (Timestamp, Sequence)> {
        let grouped = self.grouped.iter().flat_map(|grouped| grouped.expiring());
        self.resting.expiring().chain(grouped)
    }

    /// When the oldest message that is available was put: the first of each priority is looked at.
    pub(crate) fn oldest(&self) -> Option<Timestamp> {
        let grouped = self.grouped.as_ref().and_then(|grouped| grouped.oldest());
        first_of(self.resting.oldest(), grouped, |time| *time)
    }
}

/// The lower one of two, if there are two.
fn first_of<T, K: Ord>(a: Option<T>, b: Option<T>, key: impl Fn(&T) -> K) -> Option<T> {
    match (a, b) {
        (Some(a), Some(b)) => Some(if key(&b) < key(&a) { b } else { a }),
        (a, b) => a.or(b),
    }
}

/// Two sequences in order as one.
fn merged<T, K: Ord>(
    a: impl Iterator<Item = T>,
    b: impl Iterator<Item = T>,
    key: impl Fn(&T) -> K,
) -> impl Iterator<Item = T> {
    let (mut a, mut b) = (a.peekable(), b.peekable());
    std::iter::from_fn(move || match (a.peek(), b.peek()) {
        (Some(first), Some(second)) if key(second) < key(first) => b.next(),
        (Some(_), _) => a.next(),
        (None, _) => b.next(),
    })
}
