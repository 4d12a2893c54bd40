//! From stored rows to an engine.

use std::sync::Arc;

use ferrymq_objects::QueueManager;
use ferrymq_types::{
    AccountEntry, BodyId, ChannelName, Epoch, MessageRow, ObjectId, Position, QueueRow,
    ReceiverRow, SenderRow, Sequence, Timestamp, UnitOfWorkRow,
};

use crate::{Effect, Engine, Limits};

/// Builds an engine from the rows of a store, in any order and without bodies; a new queue manager has none.
#[derive(Debug)]
pub struct EngineBuilder {
    engine: Engine,
}

impl EngineBuilder {
    /// An engine that goes on after `position` of the journal, in run `epoch`.
    #[must_use]
    pub fn new(qmgr: Arc<QueueManager>, epoch: Epoch, position: Position, now: Timestamp) -> Self {
        Self {
            engine: Engine::new(qmgr, epoch, position, now),
        }
    }

    /// Sets limits other than the default ones.
    pub fn limits(&mut self, limits: Limits) {
        self.engine.limits = limits;
    }

    /// A persistent message and how often it was shown without a commit (0 if there is no such row).
    pub fn message(
        &mut self,
        queue: ObjectId,
        sequence: Sequence,
        row: &MessageRow,
        delivery_count: u32,
    ) {
        let _row = (queue, sequence, row, delivery_count);
    }

    /// A queue.
    pub fn queue(&mut self, queue: ObjectId, row: QueueRow) {
        let _row = (queue, row);
    }

    /// The counters.
    pub fn counters(&mut self, sequence: Sequence, body: BodyId) {
        let _row = (sequence, body);
    }

    /// A sending channel.
    pub fn sender(&mut self, row: SenderRow) {
        let _row = row;
    }

    /// A receiving channel.
    pub fn receiver(&mut self, row: ReceiverRow) {
        let _row = row;
    }

    /// A channel that an operator stopped.
    pub fn channel_stopped(&mut self, channel: ChannelName) {
        let _row = channel;
    }

    /// The outcome of a unit of work.
    pub fn unit_of_work(&mut self, row: UnitOfWorkRow) {
        let _row = row;
    }

    /// An account entry.
    pub fn account(&mut self, entry: AccountEntry) {
        let _row = entry;
    }

    /// The engine. Effects are those of its first step: reports, triggers that are due, deletions that were under way.
    #[must_use]
    pub fn finish(self, effects: &mut Vec<Effect>) -> Engine {
        effects.clear();
        self.engine
    }
}
