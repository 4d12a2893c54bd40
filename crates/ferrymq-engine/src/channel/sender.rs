//! The sending end: opens a transmission queue and takes messages from it in order.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ferrymq_objects::{Enabled, Queue, Usage};
use ferrymq_types::{
    Change, ChannelName, Message, ObjectId, Position, QueueName, ReasonCode, SenderRow, Sequence,
    Timestamp, UnitOfWorkId,
};

use crate::engine::{Answer, Step};
use crate::pending::Pending;
use crate::performance::Watched;
use crate::queue::{Key, State, Wanted};
use crate::trigger::Cause;
use crate::{ConnectionId, Engine, Failure, MatchIds, Reply, RequestId, SenderState, Transmission};

/// Answers whose fast messages are remembered, so that one that cannot be sent can still be dead-lettered or accounted for.
const FAST_REMEMBERED: usize = 2;

/// A sending channel.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) row: SenderRow,
    /// The write set that the row depends on.
    pub(crate) position: Position,
    pub(crate) open: Option<OpenSender>,
}

/// A sending channel that runs.
#[derive(Debug)]
pub(crate) struct OpenSender {
    pub(crate) connection: ConnectionId,
    /// Messages that are locked and not prepared, in their order.
    pub(crate) batches: BTreeMap<UnitOfWorkId, Vec<Sequence>>,
    /// The request that waits for messages.
    waiting: Option<RequestId>,
    pub(crate) fast: VecDeque<Vec<(Sequence, Arc<Message>)>>,
}

impl Sender {
    pub(crate) fn new(channel: ChannelName, transmission_queue: ObjectId) -> Self {
        Self {
            row: SenderRow {
                channel,
                transmission_queue,
                generation: 1,
                last_confirmed: 0,
                last_batch: UnitOfWorkId::NONE,
                in_doubt: Vec::new(),
                partner: None,
                start: 0,
                reset_to: None,
            },
            position: Position::ZERO,
            open: None,
        }
    }

    pub(crate) fn connection(&self) -> Option<ConnectionId> {
        self.open.as_ref().map(|open| open.connection)
    }

    pub(crate) fn last_sent(&self) -> u64 {
        self.row
            .in_doubt
            .last()
            .map_or(self.row.last_confirmed, |batch| batch.last_number)
    }

    pub(crate) fn state(&self) -> (Position, Reply) {
        let state = SenderState {
            row: self.row.clone(),
            last_sent: self.last_sent(),
        };
        (self.position, Reply::Sender(state))
    }
}

/// A request for messages.
#[derive(Debug)]
pub(crate) struct SenderGet {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelName,
    pub(crate) batch: UnitOfWorkId,
    messages_max: u32,
    bytes_max: u64,
    fast: bool,
    pub(crate) wait_until: Option<Timestamp>,
    queue: ObjectId,
    /// Messages that are taken, in their order; without a body while it is being read.
    chosen: Vec<Chosen>,
}

#[derive(Debug)]
struct Chosen {
    sequence: Sequence,
    message: Option<Arc<Message>>,
    fast: bool,
}

impl SenderGet {
    pub(crate) const fn new(
        connection: ConnectionId,
        channel: ChannelName,
        batch: UnitOfWorkId,
        messages_max: u32,
        bytes_max: u64,
        fast: bool,
        wait_until: Option<Timestamp>,
    ) -> Self {
        Self {
            connection,
            channel,
            batch,
            messages_max,
            bytes_max,
            fast,
            wait_until,
            queue: ObjectId::ZERO,
            chosen: Vec::new(),
        }
    }
}

impl Engine {
    pub(super) fn transmission_queue(&self, name: &QueueName) -> Result<ObjectId, Failure> {
        match self.qmgr.queues.get(name) {
            Some(Queue::Local(q)) => match q.usage {
                Usage::Transmission => Ok(q.base.id),
                Usage::Normal => Err(Failure::of(ReasonCode::XMIT_Q_USAGE_ERROR, name)),
            },
            Some(Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_)) => {
                Err(Failure::of(ReasonCode::XMIT_Q_TYPE_ERROR, name))
            }
            None => Err(Failure::of(ReasonCode::UNKNOWN_XMIT_Q, name)),
        }
    }

    pub(crate) fn open_sender(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        channel: ChannelName,
        transmission_queue: &QueueName,
    ) -> Answer {
        let queue = self.transmission_queue(transmission_queue)?;
        if let Some(q) = self.queues.get(&queue) {
            if q.closed {
                return Err(Failure::of(ReasonCode::Q_DELETED, transmission_queue));
            }
            // Two channels on one transmission queue would share its order.
            if q.sender.as_ref().is_some_and(|other| *other != channel) {
                return Err(Failure::of(ReasonCode::OBJECT_IN_USE, transmission_queue));
            }
        }
        if let Some(sender) = self.senders.get(&channel)
            && sender.row.transmission_queue != queue
            && !sender.row.in_doubt.is_empty()
        {
            // Its batches are on the other queue and must be settled first.
            return Err(Failure::of(ReasonCode::CHANNEL_SEQUENCE_ERROR, &channel));
        }
        self.supersede(step, &channel);
        let sender = self
            .senders
            .entry(channel.clone())
            .or_insert_with(|| Sender::new(channel.clone(), queue));
        sender.row.transmission_queue = queue;
        sender.open = Some(OpenSender {
            connection,
            batches: BTreeMap::new(),
            waiting: None,
            fast: VecDeque::new(),
        });
        self.apply_sender_reset(step, &channel);
        let state = self
            .senders
            .get(&channel)
            .ok_or(ReasonCode::UNEXPECTED_ERROR)?
            .state();
        if let Some(q) = self.queues.get_mut(&queue) {
            q.sender = Some(channel);
        }
        Ok(state)
    }

    /// A running instance of the channel loses its hold (invariant H5).
    fn supersede(&mut self, step: &mut Step<'_>, channel: &ChannelName) {
        let waiting = self
            .senders
            .get(channel)
            .and_then(|s| s.open.as_ref())
            .and_then(|open| open.waiting);
        if let Some(id) = waiting {
            self.cancel(id);
            step.fail(id, Position::ZERO, ReasonCode::CHANNEL_SUPERSEDED);
        }
        self.let_go(channel);
    }

    /// The channel runs no more: what it locked and did not prepare is available again.
    pub(crate) fn let_go(&mut self, channel: &ChannelName) {
        let Some(sender) = self.senders.get_mut(channel) else {
            return;
        };
        let Some(open) = sender.open.take() else {
            return;
        };
        let queue = sender.row.transmission_queue;
        if let Some(q) = self.queues.get_mut(&queue)
            && q.sender.as_ref() == Some(channel)
        {
            q.sender = None;
        }
        if let Some(id) = open.waiting {
            self.cancel(id);
        }
        for sequence in open.batches.into_values().flatten() {
            self.show_again(queue, sequence, Position::ZERO);
        }
    }

    /// The sender, if this connection has it open: 9006 if a newer one has, 2019 if none has.
    pub(crate) fn own_sender(
        &mut self,
        connection: ConnectionId,
        channel: &ChannelName,
    ) -> Result<&mut Sender, Failure> {
        let sender = self
            .senders
            .get_mut(channel)
            .ok_or_else(|| Failure::of(ReasonCode::HOBJ_ERROR, channel))?;
        match sender.connection() {
            Some(holder) if holder == connection => Ok(sender),
            Some(_) => Err(Failure::of(ReasonCode::CHANNEL_SUPERSEDED, channel)),
            None => Err(Failure::of(ReasonCode::HOBJ_ERROR, channel)),
        }
    }

    pub(crate) fn sender_get(&mut self, step: &mut Step<'_>, id: RequestId, mut p: SenderGet) {
        let (connection, channel) = (p.connection, p.channel.clone());
        let queue = match self.own_sender(connection, &channel) {
            Ok(sender) => {
                let busy = sender.open.as_ref().is_some_and(|o| o.waiting.is_some());
                let prepared = sender.row.in_doubt.iter().any(|b| b.id == p.batch);
                if busy || prepared {
                    return step.fail(id, Position::ZERO, ReasonCode::UOW_NOT_AVAILABLE);
                }
                sender.row.transmission_queue
            }
            Err(failure) => return step.reply(id, Position::ZERO, Err(failure)),
        };
        if let Err(failure) = self.sendable(queue) {
            return step.reply(id, Position::ZERO, Err(failure));
        }
        p.queue = queue;
        self.run_sender_get(step, id, p);
    }

    /// 2016 if the transmission queue is inhibited for get, 2052 if it is closed or gone.
    fn sendable(&self, queue: ObjectId) -> Result<(), Failure> {
        let q = self.queues.get(&queue).ok_or(ReasonCode::Q_DELETED)?;
        match &q.definition {
            Some(definition) if !q.closed => match definition.get {
                Enabled::Yes => Ok(()),
                Enabled::No => Err(Failure::of(ReasonCode::GET_INHIBITED, &q.name)),
            },
            Some(_) | None => Err(Failure::of(ReasonCode::Q_DELETED, &q.name)),
        }
    }

    /// Chooses messages in order and locks them; reads those that are not in memory.
    pub(crate) fn run_sender_get(&mut self, step: &mut Step<'_>, id: RequestId, mut p: SenderGet) {
        if p.chosen.is_empty() {
            self.choose(step, &mut p);
        }
        if p.chosen.is_empty() {
            let last_change = self
                .queues
                .get(&p.queue)
                .map_or(Position::ZERO, |q| q.last_change);
            let Some(until) = p.wait_until.filter(|until| *until > step.now) else {
                self.set_waiting(&p.channel, None);
                return step.fail(id, last_change, ReasonCode::NO_MSG_AVAILABLE);
            };
            self.waits.insert((until, id));
            self.set_waiting(&p.channel, Some(id));
            return self.wait(id, Pending::SenderGet(p));
        }
        let missing: Vec<Sequence> = p
            .chosen
            .iter()
            .filter(|c| c.message.is_none())
            .map(|c| c.sequence)
            .collect();
        if missing.is_empty() {
            return self.transmit(step, id, p);
        }
        for sequence in missing {
            self.fetch(step, id, p.queue, sequence);
        }
        self.set_waiting(&p.channel, Some(id));
        self.wait(id, Pending::SenderGet(p));
    }

    fn set_waiting(&mut self, channel: &ChannelName, id: Option<RequestId>) {
        if let Some(open) = self.senders.get_mut(channel).and_then(|s| s.open.as_mut()) {
            open.waiting = id;
        }
    }

    fn choose(&mut self, step: &mut Step<'_>, p: &mut SenderGet) {
        let any = Wanted::new(MatchIds::default());
        let mut after: Option<Key> = None;
        let mut bytes: u64 = 0;
        while p.chosen.len() < p.messages_max.max(1) as usize
            && (p.chosen.is_empty() || bytes < p.bytes_max)
        {
            let Some(q) = self.queues.get(&p.queue) else {
                return;
            };
            let Some(key) = q.find(&any, after, &BTreeSet::new()) else {
                return;
            };
            after = Some(key);
            let Some(entry) = q.available(key) else {
                return;
            };
            if entry.is_expired(step.now) && !q.keeps_expired {
                self.expire(step, &[(p.queue, key.sequence)]);
                continue;
            }
            bytes = bytes.saturating_add(u64::from(entry.length));
            p.chosen.push(Chosen {
                sequence: key.sequence,
                message: self.memory.get(key.sequence).cloned(),
                fast: p.fast && !entry.is_persistent(),
            });
            self.hide(p.queue, key.sequence, State::Fetching);
        }
    }

    /// Gives back what was chosen and not answered.
    pub(crate) fn give_back(&mut self, p: &SenderGet) {
        self.set_waiting(&p.channel, None);
        let reading: Vec<_> = self
            .fetches
            .iter()
            .filter(|(_, f)| p.chosen.iter().any(|c| c.sequence == f.sequence))
            .filter(|(_, f)| f.queue == p.queue)
            .map(|(fetch, _)| *fetch)
            .collect();
        for chosen in &p.chosen {
            if self
                .entry(p.queue, chosen.sequence)
                .is_some_and(|e| e.state == State::Fetching)
            {
                self.show_again(p.queue, chosen.sequence, Position::ZERO);
            }
        }
        // A browse may read the same message; its fetch goes on.
        for fetch in reading {
            let ours = self
                .fetches
                .get(&fetch)
                .and_then(|f| f.request)
                .is_some_and(|request| !self.pending.contains_key(&request));
            if ours {
                self.fetches.remove(&fetch);
            }
        }
    }

    pub(crate) fn sender_fetched(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        mut p: SenderGet,
        sequence: Sequence,
        read: Option<Arc<Message>>,
    ) {
        match read {
            Some(message) => {
                for chosen in p.chosen.iter_mut().filter(|c| c.sequence == sequence) {
                    chosen.message = Some(Arc::clone(&message));
                }
            }
            // It is damaged and reported; the others go without it.
            None => p.chosen.retain(|c| c.sequence != sequence),
        }
        if p.chosen.is_empty() {
            self.run_sender_get(step, id, p);
        } else if p.chosen.iter().all(|c| c.message.is_some()) {
            self.transmit(step, id, p);
        } else {
            self.wait(id, Pending::SenderGet(p));
        }
    }

    /// Answers with the messages: fast ones are gone from now on, the others are locked to their batch.
    fn transmit(&mut self, step: &mut Step<'_>, id: RequestId, p: SenderGet) {
        self.set_waiting(&p.channel, None);
        let mut after = Position::ZERO;
        let mut transmissions = Vec::with_capacity(p.chosen.len());
        let mut fast = Vec::new();
        let mut locked = Vec::new();
        for chosen in p.chosen {
            let (Some(entry), Some(message)) =
                (self.entry(p.queue, chosen.sequence), chosen.message)
            else {
                continue;
            };
            after = after.max(entry.position);
            if chosen.fast {
                self.remove(p.queue, chosen.sequence);
                self.watch(p.queue, Watched::Left);
                fast.push((chosen.sequence, Arc::clone(&message)));
            } else {
                self.hide(p.queue, chosen.sequence, State::Channel);
                locked.push(chosen.sequence);
            }
            transmissions.push(Transmission {
                sequence: chosen.sequence,
                message,
                fast: chosen.fast,
            });
        }
        if let Some(q) = self.queue(p.queue) {
            q.last_get = Some(step.now);
        }
        self.watch(p.queue, Watched::Got);
        if let Some(open) = self
            .senders
            .get_mut(&p.channel)
            .and_then(|s| s.open.as_mut())
        {
            if !locked.is_empty() {
                open.batches.entry(p.batch).or_default().extend(locked);
            }
            open.fast.push_back(fast);
            while open.fast.len() > FAST_REMEMBERED {
                open.fast.pop_front();
            }
        }
        step.reply(id, after, Ok(Reply::Transmissions(transmissions)));
    }

    /// A message became available on the queue of a channel that runs.
    pub(crate) fn serve_sender(&mut self, step: &mut Step<'_>, channel: &ChannelName) {
        let waiting = self
            .senders
            .get(channel)
            .and_then(|s| s.open.as_ref())
            .and_then(|open| open.waiting);
        let Some(id) = waiting else {
            return;
        };
        // One that waits for the store has its messages already.
        if matches!(self.pending.get(&id), Some(Pending::SenderGet(p)) if p.chosen.is_empty())
            && let Some(Pending::SenderGet(p)) = self.resume(id)
        {
            self.run_sender_get(step, id, p);
        }
    }

    /// Ends the waits of channels whose transmission queue may no longer be got from.
    pub(crate) fn end_inhibited_senders(&mut self, step: &mut Step<'_>) {
        let waiting: Vec<(RequestId, ObjectId)> = self
            .senders
            .values()
            .filter_map(|s| Some((s.open.as_ref()?.waiting?, s.row.transmission_queue)))
            .collect();
        for (id, queue) in waiting {
            if let Err(failure) = self.sendable(queue) {
                self.cancel(id);
                step.reply(id, Position::ZERO, Err(failure));
            }
        }
    }

    pub(crate) fn close_sender(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        channel: &ChannelName,
    ) -> Answer {
        let sender = self.own_sender(connection, channel)?;
        let waiting = sender.open.as_ref().and_then(|open| open.waiting);
        if let Some(id) = waiting {
            self.cancel(id);
            step.fail(id, Position::ZERO, ReasonCode::HOBJ_ERROR);
        }
        let queue = self.own_sender(connection, channel)?.row.transmission_queue;
        self.let_go(channel);
        // Messages that came while the channel was ending, and what it gives back, are a first message for a trigger.
        self.trigger_channel(step, queue, true, None);
        self.check_trigger(queue, Cause::Closed);
        Ok((Position::ZERO, Reply::Done))
    }

    /// Writes a sender's row, with other changes in front of it.
    pub(crate) fn write_sender(
        &mut self,
        step: &mut Step<'_>,
        channel: &ChannelName,
        mut changes: Vec<Change>,
    ) -> Position {
        if let Some(sender) = self.senders.get(channel) {
            changes.push(Change::SetSender(Box::new(sender.row.clone())));
        }
        let position = self.write_any(step, changes);
        if let Some(sender) = self.senders.get_mut(channel) {
            sender.position = sender.position.max(position);
        }
        position
    }
}
