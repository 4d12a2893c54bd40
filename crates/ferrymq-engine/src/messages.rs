//! Messages come, show, hide and go: the one place that keeps the indexes, the memory accounts and the expiry together.

use std::sync::Arc;

use bytes::Bytes;
use ferrymq_objects::{LocalQueue, Queue};
use ferrymq_types::{
    BodyId, Change, Message, MessageDescriptor, MessageRow, ObjectId, Position, QueueName,
    ReasonCode, RequestedReport, Sequence,
};

use crate::engine::{Step, Woken};
use crate::groups::Member;
use crate::performance::Watched;
use crate::queue::{Entry, QueueState, State};
use crate::resting::hash_id;
use crate::trigger::{Arrival, Cause};
use crate::{Engine, Event};

/// Bytes that the write set of a message takes beside its header and body; roughly, rounded up.
pub(crate) const ROW_BYTES: u64 = 640;

/// Bytes that the deletion of a message takes in a write set, rounded up.
pub(crate) const DELETE_BYTES: u64 = 64;

pub(crate) fn length_of(row: &MessageRow) -> u32 {
    u32::try_from(row.header.len())
        .unwrap_or(u32::MAX)
        .saturating_add(row.body_length)
}

pub(crate) fn row_of(message: &Message, body: BodyId) -> MessageRow {
    MessageRow {
        descriptor: message.descriptor.clone(),
        header: message.header.clone(),
        body,
        body_length: u32::try_from(message.body.len()).unwrap_or(u32::MAX),
    }
}

pub(crate) fn message_of(row: MessageRow, body: Bytes) -> Arc<Message> {
    Arc::new(Message {
        descriptor: row.descriptor,
        header: row.header,
        body,
    })
}

/// The entry of a message in this state.
pub(crate) fn entry_of(
    descriptor: &MessageDescriptor,
    body: BodyId,
    length: u32,
    state: State,
) -> Entry {
    let correlation = descriptor.correlation_id;
    Entry {
        message_id: descriptor.message_id,
        correlation: if correlation.is_none() {
            0
        } else {
            hash_id(correlation.as_bytes())
        },
        body,
        position: Position::ZERO,
        expires_at: descriptor.expires_at,
        put_time: descriptor.put_time,
        length,
        backout_count: 0,
        journaled_count: 0,
        priority: descriptor.priority,
        persistence: descriptor.persistence,
        reports_expiry: descriptor.report.expiration() != RequestedReport::No,
        group: Member::of(descriptor),
        state,
    }
}

/// A message that was taken away.
pub(crate) struct Removed {
    pub(crate) entry: Entry,
    /// Its bytes, if they were in memory.
    pub(crate) message: Option<Arc<Message>>,
}

impl Engine {
    /// The local queue of this name.
    pub(crate) fn local(&self, name: &QueueName) -> Result<ObjectId, ReasonCode> {
        match self.qmgr.queues.get(name) {
            Some(Queue::Local(q)) => Ok(q.base.id),
            Some(Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_)) => {
                Err(ReasonCode::OBJECT_TYPE_ERROR)
            }
            None => Err(ReasonCode::UNKNOWN_OBJECT_NAME),
        }
    }

    pub(crate) fn queue(&mut self, id: ObjectId) -> Option<&mut QueueState> {
        self.queues.get_mut(&id)
    }

    pub(crate) fn entry(&self, queue: ObjectId, sequence: Sequence) -> Option<Entry> {
        self.queues.get(&queue)?.entry(sequence)
    }

    /// Whether a queue can take a message of this many bytes now. `MAXDEPTH` counts uncommitted messages.
    pub(crate) fn check_room(&self, queue: &LocalQueue, length: u64) -> Result<(), ReasonCode> {
        let state = self
            .queues
            .get(&queue.base.id)
            .ok_or(ReasonCode::Q_DELETED)?;
        if state.closed {
            return Err(ReasonCode::Q_DELETED);
        }
        if length > u64::from(queue.max_message_length) {
            return Err(ReasonCode::MSG_TOO_BIG_FOR_Q);
        }
        if state.depth() >= u64::from(queue.max_depth) {
            return Err(ReasonCode::Q_FULL);
        }
        Ok(())
    }

    /// Says once that a queue is full.
    pub(crate) fn report_full(&mut self, step: &mut Step<'_>, queue: ObjectId) {
        self.watch(queue, Watched::Full);
        if let Some(q) = self.queues.get_mut(&queue)
            && !q.full_reported
        {
            q.full_reported = true;
            let name = q.name.clone();
            step.report(q.last_change, Event::QueueFull { queue: name });
        }
    }

    /// Adds a message in its state; with its bytes, if they are in hand.
    pub(crate) fn insert(
        &mut self,
        queue: ObjectId,
        sequence: Sequence,
        entry: Entry,
        message: Option<Arc<Message>>,
    ) {
        let Some(q) = self.queues.get_mut(&queue) else {
            return;
        };
        if q.performance.is_some() {
            let before = q.depth();
            self.watched.push((queue, Watched::Put { before }));
        }
        if q.triggers_with(entry.priority) {
            self.arrivals.push(Arrival {
                queue,
                sequence,
                before: q.counted(),
                unit: None,
            });
        }
        q.insert(sequence, entry);
        match message {
            Some(message) if entry.is_persistent() && entry.state != State::Uncommitted => {
                self.memory
                    .cache(sequence, message, self.limits.cache_bytes_max);
            }
            Some(message) => self.memory.keep(sequence, message),
            None => {}
        }
    }

    /// Adds a message that everybody sees, as of a write set.
    pub(crate) fn insert_shown(
        &mut self,
        queue: ObjectId,
        sequence: Sequence,
        mut entry: Entry,
        message: Arc<Message>,
        position: Position,
    ) {
        entry.state = State::Available;
        entry.position = position;
        self.insert(queue, sequence, entry, Some(message));
        self.shown(queue, sequence, &entry, true);
    }

    /// Lets everybody see a message, as of a write set; who waits for it is served at the end of the step.
    pub(crate) fn show(&mut self, queue: ObjectId, sequence: Sequence, position: Position) {
        self.show_as(queue, sequence, position, true);
    }

    /// As [`Engine::show`], for what a channel gives back: that starts no channel by itself.
    pub(crate) fn show_again(&mut self, queue: ObjectId, sequence: Sequence, position: Position) {
        self.show_as(queue, sequence, position, false);
    }

    fn show_as(&mut self, queue: ObjectId, sequence: Sequence, position: Position, triggers: bool) {
        let Some(q) = self.queues.get_mut(&queue) else {
            return;
        };
        let (mut uncommitted, mut locked) = (false, false);
        let entry = q.change(sequence, |entry| {
            uncommitted = entry.state == State::Uncommitted;
            locked = entry.state == State::Locked;
            entry.state = State::Available;
            entry.position = entry.position.max(position);
        });
        let Some(entry) = entry else {
            return;
        };
        if uncommitted {
            self.memory.committed(sequence, self.limits.cache_bytes_max);
        }
        self.shown(queue, sequence, &entry, triggers);
        if locked {
            self.check_trigger(queue, Cause::Closed);
        }
    }

    /// What follows from a message's becoming available.
    fn shown(&mut self, queue: ObjectId, sequence: Sequence, entry: &Entry, triggers: bool) {
        let Some(q) = self.queues.get_mut(&queue) else {
            return;
        };
        q.changed(entry.position);
        self.woken.push_back(Woken {
            queue,
            key: q.key(sequence, entry.priority),
            first: q.available_len() == 1,
            priority: entry.priority,
            triggers,
        });
        if let (Some(at), false) = (entry.expires_at, q.keeps_expired) {
            self.expiry.insert((at, queue, sequence), ());
        }
        if !entry.is_persistent() {
            self.may_spill(sequence);
        }
    }

    /// Takes a message out of sight.
    pub(crate) fn hide(&mut self, queue: ObjectId, sequence: Sequence, state: State) {
        if let Some(q) = self.queues.get_mut(&queue)
            && let Some(entry) = q.change(sequence, |entry| entry.state = state)
            && let Some(at) = entry.expires_at
        {
            self.expiry.remove((at, queue, sequence));
        }
    }

    /// Takes a message away for good.
    pub(crate) fn remove(&mut self, queue: ObjectId, sequence: Sequence) -> Option<Removed> {
        let q = self.queues.get_mut(&queue)?;
        let entry = q.remove(sequence)?;
        // A full queue is said to be full again after it drained to four fifths.
        if q.full_reported
            && let Some(definition) = &q.definition
            && q.depth().saturating_mul(5) <= u64::from(definition.max_depth).saturating_mul(4)
        {
            q.full_reported = false;
        }
        if let Some(at) = entry.expires_at {
            self.expiry.remove((at, queue, sequence));
        }
        if !entry.is_persistent() {
            self.forget_spilled(sequence);
        }
        let message = self.memory.remove(sequence);
        Some(Removed { entry, message })
    }

    /// The changes that put a persistent message on a queue; without its body if another row named that before (rule U8).
    pub(crate) fn changes_of_put(
        &mut self,
        queue: ObjectId,
        sequence: Sequence,
        row: MessageRow,
        body: Option<Bytes>,
        changes: &mut Vec<Change>,
    ) {
        if let Some(q) = self.queues.get_mut(&queue)
            && !q.row_written
        {
            q.row_written = true;
            let row = q.row();
            changes.push(Change::SetQueue { queue, row });
        }
        if let Some(body) = body {
            changes.push(Change::SetBody { id: row.body, body });
        }
        changes.push(Change::SetMessage {
            queue,
            sequence,
            row: Box::new(row),
        });
    }

    /// The changes that take a persistent message away.
    pub(crate) fn changes_of_removal(
        queue: ObjectId,
        sequence: Sequence,
        entry: &Entry,
        changes: &mut Vec<Change>,
    ) {
        if entry.is_persistent() {
            changes.push(Change::DeleteMessage { queue, sequence });
            changes.push(Change::DeleteBody { id: entry.body });
        }
    }
}
