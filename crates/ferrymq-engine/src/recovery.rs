//! From stored rows to an engine.

use std::sync::Arc;

use ferrymq_objects::QueueManager;
use ferrymq_types::{
    AccountEntry, BodyId, ChannelName, Epoch, MessageRow, ObjectId, Position, QueueName, QueueRow,
    ReceiverRow, SenderRow, Sequence, Timestamp, UnitOfWorkRow,
};

use crate::channel::{Receiver, Sender, Stopped};
use crate::engine::Step;
use crate::messages::{entry_of, length_of};
use crate::queue::{QueueState, State};
use crate::{Effect, Engine, Limits};

/// Builds an engine from the rows of a store, in any order and without bodies; a new queue manager has none.
#[derive(Debug)]
pub struct EngineBuilder {
    engine: Engine,
    now: Timestamp,
}

impl EngineBuilder {
    /// An engine that goes on after `position` of the journal, in run `epoch`.
    #[must_use]
    pub fn new(qmgr: Arc<QueueManager>, epoch: Epoch, position: Position, now: Timestamp) -> Self {
        let mut engine = Engine::new(qmgr, epoch, position);
        // First, so that each message takes its place in the order of its queue as it comes.
        engine.adopt_definitions(now);
        Self { engine, now }
    }

    /// The run and the position to go on from, for a store that knows them only after it has given its rows.
    pub fn resume(&mut self, epoch: Epoch, position: Position) {
        self.engine.epoch = epoch;
        self.engine.position = position;
    }

    /// Sets limits other than the default ones.
    pub fn limits(&mut self, limits: Limits) {
        self.engine.limits = limits;
    }

    fn queue_state(&mut self, id: ObjectId) -> &mut QueueState {
        self.engine
            .queues
            .entry(id)
            .or_insert_with(|| QueueState::new(id, name_of_unknown(id)))
    }

    /// A persistent message and how often it was shown without a commit (0 if there is no such row): that is its backout
    /// count now (rule U14).
    pub fn message(
        &mut self,
        queue: ObjectId,
        sequence: Sequence,
        row: &MessageRow,
        delivery_count: u32,
    ) {
        self.number_used(sequence.get().max(row.body.get()));
        let state = State::Available;
        let mut entry = entry_of(&row.descriptor, row.body, length_of(row), state);
        entry.backout_count = delivery_count;
        entry.journaled_count = delivery_count;
        let state = self.queue_state(queue);
        state.recover(sequence, &entry);
        if let (Some(at), false) = (entry.expires_at, state.keeps_expired) {
            self.engine.expiry.insert((at, queue, sequence), ());
        }
    }

    /// A queue.
    pub fn queue(&mut self, queue: ObjectId, row: QueueRow) {
        let state = self.queue_state(queue);
        if state.definition.is_none() {
            state.name = row.name;
        }
        state.closed = row.closed;
        state.trigger_used = row.trigger_used;
        state.row_written = true;
        if let Some(definition) = row.definition {
            self.engine.recover_dynamic(queue, definition, self.now);
        }
    }

    /// The counters.
    pub fn counters(&mut self, sequence: Sequence, body: BodyId) {
        self.number_used(sequence.get().max(body.get()));
        let counters = &mut self.engine.counters;
        let reserved = sequence.get().min(body.get());
        counters.reserved_sequence = counters.reserved_sequence.max(reserved);
    }

    fn number_used(&mut self, number: u64) {
        let counters = &mut self.engine.counters;
        counters.sequence = counters.sequence.max(number);
    }

    /// A sending channel.
    pub fn sender(&mut self, row: SenderRow) {
        let sender = Sender {
            row,
            position: Position::ZERO,
            open: None,
        };
        self.engine
            .senders
            .insert(sender.row.channel.clone(), sender);
    }

    /// A receiving channel.
    pub fn receiver(&mut self, row: ReceiverRow) {
        let key = (row.channel.clone(), row.sender);
        let receiver = Receiver {
            row,
            position: Position::ZERO,
            bound: None,
        };
        self.engine.receivers.insert(key, receiver);
    }

    /// A channel that an operator stopped.
    pub fn channel_stopped(&mut self, channel: ChannelName) {
        let stopped = Stopped {
            stopped: true,
            position: Position::ZERO,
        };
        self.engine.stopped.insert(channel, stopped);
    }

    /// The outcome of a unit of work.
    pub fn unit_of_work(&mut self, row: UnitOfWorkRow) {
        self.engine.outcomes.insert(row, Position::ZERO, true);
    }

    /// An account entry.
    pub fn account(&mut self, entry: AccountEntry) {
        self.engine.account.recover(entry);
    }

    /// The engine. Effects are those of its first step: reports, triggers that are due, deletions that were under way.
    #[must_use]
    pub fn finish(self, effects: &mut Vec<Effect>) -> Engine {
        let mut engine = self.engine;
        let mut step = Step {
            now: self.now,
            effects,
        };
        for queue in engine.queues.values_mut() {
            queue.recovered();
            queue.arm_trigger();
            // Made anew with the messages that are there.
            queue.performance = None;
            queue.arm_performance(&engine.qmgr, self.now);
        }
        engine.lock_recovered();
        let unknown: Vec<(ObjectId, QueueName, u64)> = engine
            .queues
            .values()
            .filter(|q| q.definition.is_none())
            .map(|q| (q.id, q.name.clone(), q.depth()))
            .collect();
        engine.drop_queues(&mut step);
        for (id, name, messages) in unknown {
            if engine.queues.contains_key(&id) {
                engine.report_unknown(&mut step, id, name, messages);
            }
        }
        engine.report_started(&mut step);
        engine.follow(&mut step);
        engine.woken.clear();
        let queues: Vec<ObjectId> = engine.queues.keys().copied().collect();
        for queue in queues {
            engine.trigger_channel(&mut step, queue, true, None);
        }
        engine
    }
}

impl Engine {
    /// Messages of batches in doubt are locked again (rule U4); all others can be had.
    fn lock_recovered(&mut self) {
        for sender in self.senders.values_mut() {
            let queue = self.queues.get_mut(&sender.row.transmission_queue);
            let Some(q) = queue else {
                // Their queue is gone with them; what the partner has committed is still asked by number.
                for batch in &mut sender.row.in_doubt {
                    batch.messages.clear();
                }
                continue;
            };
            for batch in &mut sender.row.in_doubt {
                // Non-persistent ones were in memory only.
                batch.messages.retain(|sequence| {
                    let locked = q.change(*sequence, |entry| entry.state = State::Channel);
                    if let Some(at) = locked.and_then(|entry| entry.expires_at) {
                        self.expiry.remove((at, q.id, *sequence));
                    }
                    locked.is_some()
                });
            }
        }
    }
}

/// A name for a queue whose own row is missing: what is found must be shown under some name.
fn name_of_unknown(id: ObjectId) -> QueueName {
    QueueName::new(&format!("UNKNOWN.QUEUE.{id}"))
        .expect("letters, dots and at most 20 digits make a name of less than 48 characters")
}
