//! The engine: one entry, [`Engine::step`], and what all its parts share.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use ferrymq_objects::QueueManager;
use ferrymq_types::{
    BodyId, Change, ChannelName, Epoch, MessageId, ObjectId, Position, Priority, QueueManagerId,
    QueueName, ReasonCode, Sequence, Timestamp, UnitOfWorkId, WriteSet,
};

use crate::account::Account;
use crate::channel::{Receiver, Sender, Stopped};
use crate::dynamic::Dynamic;
use crate::limits::COUNTER_BLOCK;
use crate::memory::Memory;
use crate::ordered::Ordered;
use crate::outcomes::Outcomes;
use crate::pending::{Fetching, Pending};
use crate::performance::Watched;
use crate::queue::{Key, QueueState};
use crate::selection::Parked;
use crate::spill::Spill;
use crate::trigger::{Arrival, Cause};
use crate::unit_of_work::UnitOfWork;
use crate::{
    ConnectionId, Effect, Event, Failure, FetchId, HandleId, Input, Limits, Reply, Request,
    RequestId,
};

/// A queue manager that decides. Fed with inputs by one caller, which performs the effects in their order.
///
/// A [`Effect::Fetch`] may name a message whose write set was appended a moment before: it is to be read behind that.
#[derive(Debug)]
pub struct Engine {
    /// The definitions in force: those of commands and of dynamic queues.
    pub(crate) qmgr: Arc<QueueManager>,
    pub(crate) epoch: Epoch,
    pub(crate) limits: Limits,
    /// The last write set.
    pub(crate) position: Position,
    pub(crate) counters: Counters,
    pub(crate) puts_allowed: bool,
    /// The queue manager is to stop and lets what is under way end.
    pub(crate) quiescing: bool,
    pub(crate) queues: BTreeMap<ObjectId, QueueState>,
    pub(crate) handles: crate::handles::Handles,
    /// Dynamic queues, be they served or not.
    pub(crate) dynamic: BTreeMap<ObjectId, Dynamic>,
    /// Dynamic queues that are deleted and of which somebody has messages in hand.
    pub(crate) retiring: BTreeSet<ObjectId>,
    /// Queues that messages are moved to when they cannot be delivered.
    pub(crate) off_queues: BTreeSet<QueueName>,
    pub(crate) units: BTreeMap<UnitOfWorkId, UnitOfWork>,
    pub(crate) unit_of_work_bytes: u64,
    pub(crate) units_by_connection: BTreeSet<(ConnectionId, UnitOfWorkId)>,
    pub(crate) outcomes: Outcomes,
    pub(crate) pending: BTreeMap<RequestId, Pending>,
    pub(crate) pending_by_connection: BTreeSet<(ConnectionId, RequestId)>,
    pub(crate) fetches: BTreeMap<FetchId, Fetching>,
    pub(crate) waits: BTreeSet<(Timestamp, RequestId)>,
    /// Messages that can expire now, by time.
    pub(crate) expiry: Ordered<(Timestamp, ObjectId, Sequence), ()>,
    pub(crate) expiry_scanned: Timestamp,
    pub(crate) memory: Memory,
    pub(crate) spill: Spill,
    pub(crate) account: Account,
    pub(crate) senders: BTreeMap<ChannelName, Sender>,
    pub(crate) receivers: BTreeMap<(ChannelName, QueueManagerId), Receiver>,
    /// Connections of receivers that a newer bind has taken the place of: they put nothing any more (rule U5).
    pub(crate) superseded: BTreeSet<ConnectionId>,
    pub(crate) stopped: BTreeMap<ChannelName, Stopped>,
    /// Deliveries that are to be journaled if they last (rule U14).
    pub(crate) notes: VecDeque<(Timestamp, ObjectId, Sequence)>,
    /// When the moves of poison messages are tried again.
    pub(crate) poison_retry: Option<Timestamp>,
    /// Messages that became available in this step.
    /// Walks of gets and browses that are under way, those of them that go on at the next tick, and the rows they read.
    pub(crate) walks: BTreeSet<(ObjectId, RequestId)>,
    pub(crate) paused: BTreeSet<RequestId>,
    /// Walks of consumers that have been given messages and have not asked again.
    pub(crate) parked: BTreeMap<(ObjectId, ConnectionId, HandleId), Parked>,
    pub(crate) row_reads: BTreeMap<FetchId, RequestId>,
    pub(crate) woken: VecDeque<Woken>,
    /// Messages that came in this step to queues with a trigger.
    pub(crate) arrivals: Vec<Arrival>,
    /// Queues whose trigger may be due for another reason.
    pub(crate) trigger_checks: BTreeSet<(ObjectId, Cause)>,
    /// What happened in this step to queues that are watched.
    pub(crate) watched: Vec<(ObjectId, Watched)>,
    /// Events that their queue did not take since it last took one.
    pub(crate) events_dropped: BTreeMap<&'static str, u64>,
    /// What applications call themselves.
    pub(crate) applications: BTreeMap<ConnectionId, Box<str>>,
    /// Queues with a trigger, by their initiation queue.
    pub(crate) initiated: BTreeMap<QueueName, Vec<ObjectId>>,
}

/// A message that became available.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Woken {
    pub(crate) queue: ObjectId,
    pub(crate) key: Key,
    /// Whether nothing else was available on the queue.
    pub(crate) first: bool,
    /// Its priority.
    pub(crate) priority: Priority,
    /// Whether it may trigger a channel.
    pub(crate) triggers: bool,
}

/// Numbers that rise.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    /// Of messages; a body has the number of the first message that names it.
    pub(crate) sequence: u64,
    /// Up to this the journal knows that numbers may have been used.
    pub(crate) reserved_sequence: u64,
    message_id: u64,
    fetch: u64,
    arrival: u64,
    pub(crate) handle: u64,
}

impl Counters {
    /// Whether numbers were used that the journal does not know of.
    pub(crate) const fn is_beyond_reserved(&self) -> bool {
        self.sequence > self.reserved_sequence
    }
}

/// One step: when it is, and what comes out.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(crate) now: Timestamp,
    pub(crate) effects: &'a mut Vec<Effect>,
}

impl Step<'_> {
    pub(crate) fn reply(&mut self, id: RequestId, after: Position, reply: Result<Reply, Failure>) {
        self.effects.push(Effect::Reply { id, after, reply });
    }

    pub(crate) fn fail(&mut self, id: RequestId, after: Position, reason: ReasonCode) {
        self.reply(id, after, Err(reason.into()));
    }

    pub(crate) fn report(&mut self, after: Position, event: Event) {
        self.effects.push(Effect::Report { after, event });
    }
}

impl From<ReasonCode> for Failure {
    fn from(reason: ReasonCode) -> Self {
        Self {
            reason,
            object: None,
        }
    }
}

impl Failure {
    pub(crate) fn of(reason: ReasonCode, object: &impl ToString) -> Self {
        Self {
            reason,
            object: Some(object.to_string()),
        }
    }
}

/// What a request comes to: an answer and the position that it waits for.
pub(crate) type Answer = Result<(Position, Reply), Failure>;

impl Engine {
    pub(crate) fn new(qmgr: Arc<QueueManager>, epoch: Epoch, position: Position) -> Self {
        Self {
            qmgr,
            epoch,
            limits: Limits::default(),
            position,
            counters: Counters::default(),
            puts_allowed: true,
            quiescing: false,
            queues: BTreeMap::new(),
            handles: BTreeMap::new(),
            dynamic: BTreeMap::new(),
            retiring: BTreeSet::new(),
            off_queues: BTreeSet::new(),
            units: BTreeMap::new(),
            unit_of_work_bytes: 0,
            units_by_connection: BTreeSet::new(),
            outcomes: Outcomes::default(),
            pending: BTreeMap::new(),
            pending_by_connection: BTreeSet::new(),
            fetches: BTreeMap::new(),
            waits: BTreeSet::new(),
            expiry: Ordered::default(),
            expiry_scanned: Timestamp::ZERO,
            memory: Memory::default(),
            spill: Spill::default(),
            account: Account::default(),
            senders: BTreeMap::new(),
            receivers: BTreeMap::new(),
            superseded: BTreeSet::new(),
            stopped: BTreeMap::new(),
            notes: VecDeque::new(),
            poison_retry: None,
            walks: BTreeSet::new(),
            paused: BTreeSet::new(),
            parked: BTreeMap::new(),
            row_reads: BTreeMap::new(),
            woken: VecDeque::new(),
            arrivals: Vec::new(),
            trigger_checks: BTreeSet::new(),
            watched: Vec::new(),
            events_dropped: BTreeMap::new(),
            applications: BTreeMap::new(),
            initiated: BTreeMap::new(),
        }
    }

    /// Takes one input and appends what is to be done. `now` may stand still or go back: nothing is early for it.
    pub fn step(&mut self, now: Timestamp, input: Input, effects: &mut Vec<Effect>) {
        self.clamp(now);
        let mut step = Step { now, effects };
        match input {
            Input::Requests {
                connection,
                requests,
            } => {
                for (id, request) in requests {
                    self.ask(&mut step, id, connection, request);
                }
            }
            Input::Connected {
                connection,
                application,
            } => {
                self.applications.insert(connection, application.into());
            }
            Input::Stopping => self.report_stopping(&mut step),
            Input::Cancelled { id } => self.cancel(id),
            Input::Disconnected { connection } => self.disconnect(&mut step, connection),
            Input::Fetched { fetch, result } => self.fetched(&mut step, fetch, result),
            Input::RowsRead { fetch, rows } => self.rows_read(&mut step, fetch, rows),
            Input::ReadAhead { queue, messages } => self.was_read_ahead(queue, messages),
            Input::Spilled { sequences, result } => self.spilled(&step, sequences, result),
            Input::DefinitionsChanged(qmgr) => self.definitions_changed(&mut step, qmgr),
            Input::Ticked => self.tick(&mut step),
            Input::Quiesced => self.quiesce(&mut step),
            Input::SpaceChanged { puts_allowed } => self.puts_allowed = puts_allowed,
        }
        if !self.retiring.is_empty() {
            self.retire(&mut step);
        }
        self.serve(&mut step);
        self.spill_over(&mut step);
    }

    /// Does what is asked, and what follows from it.
    fn ask(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        connection: ConnectionId,
        request: Request,
    ) {
        let from = step.effects.len();
        let call = self.named_call(connection, &request);
        self.request(step, id, connection, request);
        if let Some(call) = call {
            self.report_failed_call(step, (id, connection), &call, from);
        }
        self.follow(step);
    }

    fn request(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        connection: ConnectionId,
        request: Request,
    ) {
        let answer = match request {
            Request::Put(put) => self.put(step, connection, *put),
            // These may wait; they answer by themselves.
            Request::Get(get) => return self.get(step, id, connection, get),
            Request::Browse(browse) => return self.browse(step, id, connection, browse),
            Request::SenderGet {
                channel,
                batch,
                messages_max,
                bytes_max,
                fast,
                wait_until,
            } => {
                let get = crate::channel::SenderGet::new(
                    connection,
                    channel,
                    batch,
                    messages_max,
                    bytes_max,
                    fast,
                    wait_until,
                );
                return self.sender_get(step, id, get);
            }
            Request::SenderDeadLetter {
                channel,
                sequence,
                reason,
            } => return self.sender_dead_letter(step, id, connection, channel, sequence, reason),
            Request::Open {
                name,
                options,
                dynamic_name,
                selector,
            } => self.open(
                step,
                connection,
                name,
                options,
                dynamic_name.as_deref(),
                selector,
            ),
            Request::Close { handle, option } => self.close(step, connection, handle, option),
            Request::Inquire { handle } => self.inquire(connection, handle),
            Request::Set { handle, attributes } => self.set(step, connection, handle, &attributes),
            Request::DynamicQueues => Ok(self.dynamic_queues()),
            Request::AlterQueue { queue, attributes } => {
                self.alter_queue(step, &queue, &attributes)
            }
            Request::Unlock { handle } => self.unlock_browsed(connection, handle),
            Request::Begin { id } => self.begin(connection, id),
            Request::Commit { id } => self.commit(step, connection, id),
            Request::BackOut { id } => self.back_out(step, connection, id),
            Request::Settle {
                of,
                messages,
                settlement,
            } => self.settle(step, connection, of, &messages, settlement),
            Request::GetUnitOfWork { id } => Ok(self.get_unit_of_work(id)),
            Request::QueueStatistics => Ok(self.queue_statistics()),
            Request::Clear { queue, who } => self.clear(step, &queue, &who),
            Request::CloseQueue { queue, purge, who } => {
                self.close_queue(step, &queue, purge, &who)
            }
            Request::ReopenQueue { queue } => self.reopen_queue(step, &queue),
            Request::Dump { after, limit } => Ok(self.dump(after, limit)),
            Request::Account {
                after,
                since,
                limit,
            } => Ok(self.account_page(after, since, limit)),
            Request::OpenSender {
                channel,
                transmission_queue,
            } => self.open_sender(step, connection, channel, &transmission_queue),
            Request::PrepareBatch {
                channel,
                batch,
                first_number,
                last_number,
            } => self.prepare_batch(
                step,
                connection,
                &channel,
                batch,
                (first_number, last_number),
            ),
            Request::SettleSender {
                channel,
                generation,
                last_committed,
                last_batch,
                partner,
                release,
            } => {
                let settlement = crate::channel::Settlement {
                    generation,
                    last_committed,
                    last_batch,
                    partner,
                    release,
                };
                self.settle_sender(step, connection, &channel, settlement)
            }
            Request::SenderDiscard {
                channel,
                sequence,
                reason,
            } => self.sender_discard(step, connection, &channel, sequence, reason),
            Request::CloseSender { channel } => self.close_sender(step, connection, &channel),
            Request::ResetSender { channel, number } => self.reset_sender(step, channel, number),
            Request::ResetReceiver { channel, number } => {
                self.reset_receiver(step, &channel, number)
            }
            Request::ResolveSender { channel, commit } => {
                self.resolve_sender(step, &channel, commit)
            }
            Request::OpenReceiver {
                channel,
                sender,
                sender_name,
                generation,
                claim,
            } => {
                let key = (channel, sender);
                self.open_receiver(step, connection, key, sender_name, generation, claim)
            }
            Request::CommitReceived {
                channel,
                sender,
                batch,
                first_number,
                last_number,
            } => {
                let numbers = (first_number, last_number);
                self.commit_received(step, connection, (channel, sender), batch, numbers)
            }
            Request::ReceiverDiscard {
                channel,
                message_id,
                queue,
                reason,
                syncpoint,
            } => {
                let discard = crate::channel::Discard {
                    message_id,
                    queue,
                    reason,
                    syncpoint,
                };
                self.receiver_discard(step, connection, &channel, discard)
            }
            Request::SetChannelStopped { channel, stopped } => {
                Ok(self.set_channel_stopped(step, channel, stopped))
            }
            Request::ChannelRows => Ok(self.channel_rows()),
        };
        match answer {
            Ok((after, reply)) => step.reply(id, after, Ok(reply)),
            Err(failure) => step.reply(id, Position::ZERO, Err(failure)),
        }
    }

    /// What follows from a request: triggers of messages that came with it, events of queues that are watched. These are messages
    /// too; it ends since trigger messages trigger nothing and each event is off once it was reported.
    pub(crate) fn follow(&mut self, step: &mut Step<'_>) {
        if !self.retiring.is_empty() {
            self.retire(step);
        }
        while !self.arrivals.is_empty() || !self.watched.is_empty() {
            self.fire_arrivals(step);
            self.report_performance(step);
        }
    }

    /// Appends a write set: with the counters, where numbers beyond the reserved ones are used, and the deletion of what is
    /// past its time.
    pub(crate) fn write(&mut self, step: &mut Step<'_>, mut changes: Vec<Change>) -> Position {
        let c = &mut self.counters;
        if c.is_beyond_reserved() {
            c.reserved_sequence = c.sequence.saturating_add(COUNTER_BLOCK);
            changes.push(Change::SetCounters {
                sequence: Sequence::new(c.reserved_sequence),
                body: BodyId::new(c.reserved_sequence),
            });
        }
        self.account.take_forgotten(&mut changes);
        self.outcomes.take_forgotten(&mut changes);
        self.position = self.position.next();
        step.effects.push(Effect::Write(WriteSet {
            position: self.position,
            changes,
        }));
        self.position
    }

    /// As [`Engine::write`], if there is anything to write; else zero.
    pub(crate) fn write_any(&mut self, step: &mut Step<'_>, changes: Vec<Change>) -> Position {
        if changes.is_empty() {
            Position::ZERO
        } else {
            self.write(step, changes)
        }
    }

    pub(crate) fn next_sequence(&mut self) -> Sequence {
        self.counters.sequence = self.counters.sequence.saturating_add(1);
        Sequence::new(self.counters.sequence)
    }

    pub(crate) fn next_message_id(&mut self) -> MessageId {
        self.counters.message_id = self.counters.message_id.saturating_add(1);
        MessageId::generate(
            &self.qmgr.attributes.name,
            self.epoch,
            self.counters.message_id,
        )
    }

    pub(crate) fn next_fetch(&mut self) -> FetchId {
        self.counters.fetch = self.counters.fetch.saturating_add(1);
        FetchId(self.counters.fetch)
    }

    pub(crate) fn next_arrival(&mut self) -> u64 {
        self.counters.arrival = self.counters.arrival.saturating_add(1);
        self.counters.arrival
    }

    /// The position of the last write set.
    #[must_use]
    pub const fn position(&self) -> Position {
        self.position
    }

    /// The run of the queue manager.
    #[must_use]
    pub const fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The definitions in force.
    #[must_use]
    pub const fn queue_manager(&self) -> &Arc<QueueManager> {
        &self.qmgr
    }

    /// The id of a local queue by its name; `None` if no definition has it.
    #[must_use]
    pub fn queue_id(&self, name: &QueueName) -> Option<ObjectId> {
        self.local(name).ok()
    }

    /// `CURDEPTH` of a local queue; `None` if no definition has it.
    #[must_use]
    pub fn depth(&self, name: &QueueName) -> Option<u64> {
        let id = self.queue_id(name)?;
        self.queues.get(&id).map(QueueState::depth)
    }

    /// Units of work that are open.
    #[must_use]
    pub fn open_units_of_work(&self) -> usize {
        self.units.len()
    }

    /// Requests that wait for a message or for the store.
    #[must_use]
    pub fn waiting_requests(&self) -> usize {
        self.pending.len()
    }

    /// Bytes of non-persistent messages in memory.
    #[must_use]
    pub const fn non_persistent_bytes(&self) -> u64 {
        self.memory.non_persistent_bytes()
    }

    /// Bytes of persistent messages that are kept in memory beside the store.
    #[must_use]
    pub const fn cache_bytes(&self) -> u64 {
        self.memory.cache_bytes()
    }

    /// Bytes that open units of work hold.
    #[must_use]
    pub const fn unit_of_work_bytes(&self) -> u64 {
        self.unit_of_work_bytes
    }
}
