//! A store of rows in memory: what the journal and RocksDB would hold.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use bytes::Bytes;
use ferrymq_objects::QueueManager;
use ferrymq_types::{
    AccountEntry, BodyId, Change, ChannelName, Epoch, MessageRow, ObjectId, Position,
    QueueManagerId, QueueRow, ReceiverRow, SenderRow, Sequence, Timestamp, UnitOfWorkId,
    UnitOfWorkRow, WriteSet,
};

use crate::{Effect, Engine, EngineBuilder, Limits};

#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Rows {
    pub(super) position: Position,
    pub(super) messages: BTreeMap<(ObjectId, Sequence), MessageRow>,
    pub(super) counts: BTreeMap<(ObjectId, Sequence), u32>,
    pub(super) bodies: BTreeMap<BodyId, Bytes>,
    pub(super) queues: BTreeMap<ObjectId, QueueRow>,
    pub(super) counters: (Sequence, BodyId),
    pub(super) senders: BTreeMap<ChannelName, SenderRow>,
    pub(super) receivers: BTreeMap<(ChannelName, QueueManagerId), ReceiverRow>,
    pub(super) stopped: BTreeSet<ChannelName>,
    pub(super) units: BTreeMap<UnitOfWorkId, UnitOfWorkRow>,
    pub(super) account: BTreeMap<u64, AccountEntry>,
}

impl Rows {
    /// Applies a write set, and checks what every write set must keep.
    pub(super) fn apply(&mut self, set: &WriteSet) {
        assert_eq!(set.position, self.position.next(), "positions have no gap");
        self.position = set.position;
        for change in &set.changes {
            self.change(change.clone(), true);
        }
        let named: BTreeSet<BodyId> = self.messages.values().map(|row| row.body).collect();
        let stored: BTreeSet<BodyId> = self.bodies.keys().copied().collect();
        assert_eq!(named, stored, "u8: bodies live as long as a row names them");
        assert_eq!(
            named.len(),
            self.messages.len(),
            "inv_c5: no body is on two queues"
        );
        for (queue, sequence) in self.messages.keys() {
            assert!(
                self.queues.contains_key(queue),
                "a queue has its row before messages"
            );
            assert!(
                *sequence <= self.counters.0,
                "counters are ahead of sequences"
            );
        }
        assert!(named.iter().all(|body| *body <= self.counters.1));
        for place in self.counts.keys() {
            assert!(self.messages.contains_key(place), "a count without message");
        }
    }

    /// Applies write sets once more, over rows that have seen them and later ones.
    pub(super) fn replay(&mut self, journal: &[WriteSet]) {
        for change in journal.iter().flat_map(|set| &set.changes) {
            self.change(change.clone(), false);
        }
    }

    fn change(&mut self, change: Change, first: bool) {
        match change {
            Change::SetMessage {
                queue,
                sequence,
                row,
            } => {
                self.messages.insert((queue, sequence), *row);
            }
            Change::DeleteMessage { queue, sequence } => {
                let gone = self.messages.remove(&(queue, sequence));
                assert!(
                    gone.is_some() || !first,
                    "no message {queue}/{sequence} to delete"
                );
                self.counts.remove(&(queue, sequence));
            }
            Change::SetDeliveryCount {
                queue,
                sequence,
                count,
            } => {
                let before = self.counts.insert((queue, sequence), count);
                assert!(
                    !first || before.is_none_or(|b| b < count),
                    "inv_b1: counts rise"
                );
            }
            Change::SetBody { id, body } => {
                let before = self.bodies.insert(id, body);
                assert!(before.is_none() || !first, "a body is written once");
            }
            Change::DeleteBody { id } => {
                let gone = self.bodies.remove(&id);
                assert!(gone.is_some() || !first, "no body {id} to delete");
            }
            Change::SetQueue { queue, row } => {
                self.queues.insert(queue, row);
            }
            Change::DeleteQueue { queue } => {
                self.queues.remove(&queue);
            }
            Change::SetCounters { sequence, body } => self.counters = (sequence, body),
            Change::SetSender(row) => {
                self.senders.insert(row.channel.clone(), *row);
            }
            Change::SetReceiver(row) => {
                self.receivers
                    .insert((row.channel.clone(), row.sender), *row);
            }
            Change::SetChannelStopped { channel, stopped } => {
                if stopped {
                    self.stopped.insert(channel);
                } else {
                    self.stopped.remove(&channel);
                }
            }
            Change::DeleteChannel { channel } => {
                self.senders.remove(&channel);
                self.receivers.retain(|(name, _), _| *name != channel);
                self.stopped.remove(&channel);
            }
            Change::SetUnitOfWork(row) => {
                self.units.insert(row.id, row);
            }
            Change::DeleteUnitOfWork { id } => {
                self.units.remove(&id);
            }
            Change::SetAccount(entry) => {
                self.account.insert(entry.number, *entry);
            }
            Change::DeleteAccount { number } => {
                self.account.remove(&number);
            }
        }
    }

    /// What recovery makes of these rows.
    pub(super) fn recover(
        &self,
        qmgr: Arc<QueueManager>,
        epoch: Epoch,
        now: Timestamp,
        limits: Limits,
        effects: &mut Vec<Effect>,
    ) -> Engine {
        let mut builder = EngineBuilder::new(qmgr, epoch, self.position, now);
        builder.limits(limits);
        // In an order that is not the one of their making.
        for row in self.senders.values() {
            builder.sender(row.clone());
        }
        for ((queue, sequence), row) in self.messages.iter().rev() {
            let count = self.counts.get(&(*queue, *sequence)).copied();
            builder.message(*queue, *sequence, row, count.unwrap_or_default());
        }
        for (id, row) in &self.queues {
            builder.queue(*id, row.clone());
        }
        if self.counters != (Sequence::ZERO, BodyId::ZERO) {
            builder.counters(self.counters.0, self.counters.1);
        }
        for row in self.receivers.values() {
            builder.receiver(row.clone());
        }
        for channel in &self.stopped {
            builder.channel_stopped(channel.clone());
        }
        for row in self.units.values() {
            builder.unit_of_work(row.clone());
        }
        for entry in self.account.values() {
            builder.account(entry.clone());
        }
        builder.finish(effects)
    }
}
