//! A queue manager on the bench: requests in, effects performed, crashes on demand.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::ops::Bound;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use ferrymq_objects::{
    AliasQueue, Channel, ChannelBase, DeliverySequence, Enabled, LocalQueue, MessageSpeed,
    PropertyControl, Queue, QueueBase, QueueManager, QueueManagerAttributes, QueueManagerEvents,
    RemoteQueue, SenderChannel, Usage, UseDlq,
};
use ferrymq_types::{
    ChannelName, CorrelationId, Epoch, MessageDescriptor, MessageId, ObjectId, Persistence,
    Position, Priority, QueueManagerId, QueueManagerName, QueueName, ReasonCode, Sequence,
    Timestamp, UnitOfWorkId, WriteSet,
};

use super::rows::Rows;
use crate::queue::State;
use crate::{
    Browse, BrowseStep, Browsed, ConnectionId, Context, Effect, Engine, Event, Failure, FetchId,
    Fetched, Get, Got, Input, Limits, Object, ObjectName, Put, PutDone, Reply, Request, RequestId,
    Source,
};

pub(super) const C1: ConnectionId = ConnectionId(1);
pub(super) const C2: ConnectionId = ConnectionId(2);

pub(super) fn queue_name(text: &str) -> QueueName {
    QueueName::new(text).unwrap()
}

pub(super) fn qmgr_name(text: &str) -> QueueManagerName {
    QueueManagerName::new(text).unwrap()
}

pub(super) fn channel_name(text: &str) -> ChannelName {
    ChannelName::new(text).unwrap()
}

pub(super) fn unit(n: u8) -> UnitOfWorkId {
    UnitOfWorkId::new([n; 16])
}

fn base(id: u64, name: &str) -> QueueBase {
    QueueBase {
        id: ObjectId::new(id),
        name: queue_name(name),
        description: String::new(),
        put: Enabled::Yes,
        default_priority: Priority::default(),
        default_persistence: Persistence::NonPersistent,
        altered: Timestamp::ZERO,
    }
}

pub(super) fn local(id: u64, name: &str) -> LocalQueue {
    LocalQueue {
        base: base(id, name),
        ..LocalQueue::with_defaults(queue_name(name))
    }
}

pub(super) fn alias(id: u64, name: &str, target: &str) -> AliasQueue {
    AliasQueue {
        base: base(id, name),
        get: Enabled::Yes,
        property_control: PropertyControl::default(),
        target: Some(queue_name(target)),
    }
}

fn remote(id: u64, name: &str) -> RemoteQueue {
    RemoteQueue {
        base: base(id, name),
        remote_name: Some(queue_name("THERE")),
        remote_queue_manager: Some(qmgr_name("QM2")),
        transmission_queue: Some(queue_name("XQ")),
    }
}

pub(super) fn sender_channel(id: u64) -> SenderChannel {
    SenderChannel {
        base: ChannelBase {
            id: ObjectId::new(id),
            name: channel_name("QM1.TO.QM2"),
            description: String::new(),
            ssl_cipher: String::new(),
            ssl_peer_name: String::new(),
            max_message_length: 4_194_304,
            heartbeat_interval: 300,
            altered: Timestamp::ZERO,
        },
        connection_name: "localhost(1414)".to_owned(),
        transmission_queue: queue_name("XQ"),
        batch_size: 50,
        batch_interval: Duration::ZERO,
        batch_data_limit: 5000,
        disconnect_interval: Duration::ZERO,
        short_retry_count: 10,
        short_retry_interval: Duration::from_secs(60),
        long_retry_count: 10,
        long_retry_interval: Duration::from_secs(60),
        non_persistent_message_speed: MessageSpeed::Fast,
        use_dead_letter_queue: UseDlq::Yes,
        sequence_wrap: 999_999_999,
    }
}

/// Definitions: `A`, `B` (threshold 2, backout queue `BO`), `BO`, `FIFO`, `DLQ`, `XQ` to `QM2`, alias `AL` of `A`, remote `R`.
pub(super) fn definitions() -> QueueManager {
    let mut b = local(2, "B");
    b.backout_threshold = 2;
    b.backout_requeue_name = Some(queue_name("BO"));
    let mut fifo = local(4, "FIFO");
    fifo.delivery_sequence = DeliverySequence::Fifo;
    let mut xq = local(6, "XQ");
    xq.usage = Usage::Transmission;
    xq.trigger = true;
    xq.trigger_data = "QM1.TO.QM2".to_owned();
    xq.initiation_queue = Some(queue_name("SYSTEM.CHANNEL.INITQ"));
    let queues = [
        Queue::Local(local(1, "A")),
        Queue::Local(b),
        Queue::Local(local(3, "BO")),
        Queue::Local(fifo),
        Queue::Local(local(5, "DLQ")),
        Queue::Local(xq),
        Queue::Alias(alias(7, "AL", "A")),
        Queue::Remote(remote(8, "R")),
        Queue::Local(local(9, "SYSTEM.CHANNEL.INITQ")),
    ];
    QueueManager {
        attributes: QueueManagerAttributes {
            dead_letter_queue_name: Some(queue_name("DLQ")),
            events: QueueManagerEvents {
                start_stop: Enabled::No,
                ..QueueManagerEvents::DEFAULT
            },
            ..QueueManagerAttributes::with_defaults(
                qmgr_name("QM1"),
                QueueManagerId::new([1; 16]),
                Timestamp::ZERO,
            )
        },
        queues: queues
            .into_iter()
            .map(|q| (q.base().name.clone(), q))
            .collect(),
        channels: BTreeMap::from([(
            channel_name("QM1.TO.QM2"),
            Channel::Sender(sender_channel(100)),
        )]),
        processes: BTreeMap::new(),
        channel_rules: BTreeMap::new(),
        node: 1,
    }
}

pub(super) fn named(queue: &str) -> Object {
    Object::Named(ObjectName::local(queue_name(queue)))
}

/// A put of a persistent message.
pub(super) fn put(queue: &str, body: &str) -> Put {
    Put {
        object: named(queue),
        descriptor: MessageDescriptor::default(),
        priority: None,
        persistence: Some(Persistence::Persistent),
        header: Bytes::new(),
        body: Bytes::copy_from_slice(body.as_bytes()),
        context: Context::Default,
        options: crate::PutOptions::default(),
        syncpoint: None,
        logical_order: false,
        token: None,
    }
}

/// A put of a non-persistent message.
pub(super) fn put_np(queue: &str, body: &str) -> Put {
    Put {
        persistence: Some(Persistence::NonPersistent),
        ..put(queue, body)
    }
}

pub(super) fn get(queue: &str) -> Get {
    Get::of(Source::Queue(queue_name(queue)))
}

pub(super) struct World {
    pub(super) engine: Engine,
    pub(super) qmgr: Arc<QueueManager>,
    pub(super) limits: Limits,
    pub(super) now: Timestamp,
    pub(super) rows: Rows,
    pub(super) journal: Vec<WriteSet>,
    pub(super) replies: BTreeMap<RequestId, (Position, Result<Reply, Failure>)>,
    /// Requests in the order of their answers.
    pub(super) answered: Vec<RequestId>,
    pub(super) events: Vec<(Position, Event)>,
    /// Reads that are asked for and not answered.
    pub(super) fetches: VecDeque<(FetchId, ObjectId, Sequence)>,
    /// As `fetches`, of what is read ahead.
    pub(super) row_reads: VecDeque<(FetchId, ObjectId, Vec<Sequence>)>,
    pub(super) read_aheads: VecDeque<(ObjectId, Vec<Sequence>)>,
    /// What is written aside.
    pub(super) disk: BTreeMap<Sequence, Arc<ferrymq_types::Message>>,
    /// What is being written aside: not confirmed.
    pub(super) spills: VecDeque<Vec<Sequence>>,
    /// Why nothing can be written aside.
    pub(super) disk_full: Option<ReasonCode>,
    /// Whether reads are answered, and spills confirmed, at once.
    pub(super) reads: bool,
    pub(super) damaged: BTreeSet<(ObjectId, Sequence)>,
    pub(super) next_request: u64,
    epoch: Epoch,
}

impl World {
    pub(super) fn new() -> Self {
        Self::with(definitions(), Limits::default())
    }

    pub(super) fn with(qmgr: QueueManager, limits: Limits) -> Self {
        let (qmgr, rows) = (Arc::new(qmgr), Rows::default());
        let now = Timestamp::from_millis(1_000_000_000);
        let epoch = Epoch::new(1);
        let mut effects = Vec::new();
        let engine = rows.recover(Arc::clone(&qmgr), epoch, now, limits, &mut effects);
        assert!(effects.is_empty());
        Self {
            engine,
            qmgr,
            limits,
            now,
            rows,
            journal: Vec::new(),
            replies: BTreeMap::new(),
            answered: Vec::new(),
            events: Vec::new(),
            fetches: VecDeque::new(),
            row_reads: VecDeque::new(),
            read_aheads: VecDeque::new(),
            disk: BTreeMap::new(),
            spills: VecDeque::new(),
            disk_full: None,
            reads: true,
            damaged: BTreeSet::new(),
            next_request: 1,
            epoch,
        }
    }

    /// A world in which persistent messages are never kept in memory.
    pub(super) fn without_cache() -> Self {
        let limits = Limits {
            cache_bytes_max: 0,
            ..Limits::default()
        };
        Self::with(definitions(), limits)
    }

    pub(super) fn input(&mut self, input: Input) {
        let mut effects = Vec::new();
        self.engine.step(self.now, input, &mut effects);
        self.perform(effects);
        while self.reads && !(self.fetches.is_empty() && self.row_reads.is_empty()) {
            if self.fetches.is_empty() {
                self.read_rows();
            } else {
                self.read();
            }
        }
        while self.reads && !self.read_aheads.is_empty() {
            self.read_ahead();
        }
        while self.reads && !self.spills.is_empty() {
            self.confirm_spill();
        }
    }

    /// The oldest spill is on the disk, or is refused.
    pub(super) fn confirm_spill(&mut self) {
        let sequences = self.spills.pop_front().expect("it is asked for");
        let result = self.disk_full.map_or(Ok(()), Err);
        if result.is_err() {
            self.disk
                .retain(|sequence, _| !sequences.contains(sequence));
        }
        let mut effects = Vec::new();
        let input = Input::Spilled { sequences, result };
        self.engine.step(self.now, input, &mut effects);
        self.perform(effects);
    }

    /// What can be read of a message: of the store, or of what was written aside.
    fn stored(
        &self,
        queue: ObjectId,
        sequence: Sequence,
    ) -> Option<(Box<ferrymq_types::MessageRow>, Bytes)> {
        if let Some(row) = self.rows.messages.get(&(queue, sequence)) {
            return Some((Box::new(row.clone()), self.rows.bodies[&row.body].clone()));
        }
        let message = self.disk.get(&sequence)?;
        let row = crate::messages::row_of(message, ferrymq_types::BodyId::new(0));
        Some((Box::new(row), message.body.clone()))
    }

    /// Answers the oldest read of rows.
    pub(super) fn read_rows(&mut self) {
        let (fetch, queue, sequences) = self.row_reads.pop_front().expect("it is asked for");
        let rows = sequences
            .into_iter()
            .filter(|sequence| !self.damaged.contains(&(queue, *sequence)))
            .filter_map(|sequence| {
                let row = self.rows.messages.get(&(queue, sequence))?.clone();
                Some((sequence, Box::new(row)))
            })
            .collect();
        let mut effects = Vec::new();
        let input = Input::RowsRead { fetch, rows };
        self.engine.step(self.now, input, &mut effects);
        self.perform(effects);
    }

    /// Answers the oldest read ahead.
    pub(super) fn read_ahead(&mut self) {
        let (queue, sequences) = self.read_aheads.pop_front().expect("it is asked for");
        let messages = sequences
            .into_iter()
            .filter(|sequence| !self.damaged.contains(&(queue, *sequence)))
            .filter_map(|sequence| {
                let (row, body) = self.stored(queue, sequence)?;
                Some((sequence, row, body))
            })
            .collect();
        let mut effects = Vec::new();
        let input = Input::ReadAhead { queue, messages };
        self.engine.step(self.now, input, &mut effects);
        self.perform(effects);
    }

    fn perform(&mut self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Write(set) => {
                    self.rows.apply(&set);
                    self.journal.push(set);
                }
                Effect::Reply { id, after, reply } => {
                    assert!(
                        after <= self.rows.position,
                        "a reply waits for what is written"
                    );
                    let before = self.replies.insert(id, (after, reply));
                    assert!(before.is_none(), "{id:?} is answered once");
                    self.answered.push(id);
                }
                Effect::Fetch {
                    fetch,
                    queue,
                    sequence,
                } => self.fetches.push_back((fetch, queue, sequence)),
                Effect::ReadRows {
                    fetch,
                    queue,
                    sequences,
                } => self.row_reads.push_back((fetch, queue, sequences)),
                Effect::ReadAhead { queue, sequences } => {
                    self.read_aheads.push_back((queue, sequences));
                }
                Effect::Spill { messages } => {
                    self.spills
                        .push_back(messages.iter().map(|(sequence, _)| *sequence).collect());
                    for (sequence, message) in messages {
                        assert!(self.disk.insert(sequence, message).is_none(), "once");
                    }
                }
                Effect::Forget { sequences } => {
                    for sequence in sequences {
                        assert!(self.disk.remove(&sequence).is_some(), "it was written");
                    }
                }
                Effect::Report { after, event } => self.events.push((after, event)),
            }
        }
        self.check();
    }

    /// Answers the oldest read.
    pub(super) fn read(&mut self) {
        let (fetch, queue, sequence) = self.fetches.pop_front().expect("a read is asked for");
        let result = match self.stored(queue, sequence) {
            Some((row, body)) if !self.damaged.contains(&(queue, sequence)) => {
                Fetched::Message(row, body)
            }
            Some(_) | None => Fetched::Damaged("segment 1 at 4096: checksum".to_owned()),
        };
        let mut effects = Vec::new();
        let input = Input::Fetched { fetch, result };
        self.engine.step(self.now, input, &mut effects);
        self.perform(effects);
    }

    /// Asks, from any connection. The answer may come later.
    pub(super) fn ask(&mut self, connection: ConnectionId, request: Request) -> RequestId {
        let id = RequestId(self.next_request);
        self.next_request += 1;
        self.input(Input::Requests {
            connection,
            requests: vec![(id, request)],
        });
        id
    }

    /// Asks, and has the answer and what it waits for.
    pub(super) fn answer(
        &mut self,
        connection: ConnectionId,
        request: Request,
    ) -> (Position, Result<Reply, Failure>) {
        let id = self.ask(connection, request);
        self.replies.get(&id).cloned().expect("an answer")
    }

    pub(super) fn done(&mut self, connection: ConnectionId, request: Request) -> Position {
        match self.answer(connection, request) {
            (after, Ok(Reply::Done | Reply::Closed { .. })) => after,
            (_, other) => panic!("{other:?}"),
        }
    }

    /// The reason why a request is refused.
    pub(super) fn refusal(&mut self, connection: ConnectionId, request: Request) -> ReasonCode {
        match self.answer(connection, request) {
            (_, Err(failure)) => failure.reason,
            (_, Ok(Reply::NothingSelected { .. })) => ReasonCode::NO_MSG_AVAILABLE,
            (_, Ok(reply)) => panic!("{reply:?}"),
        }
    }

    pub(super) fn put(&mut self, put: Put) -> (Position, PutDone) {
        match self.answer(C1, Request::Put(Box::new(put))) {
            (after, Ok(Reply::Put(done))) => (after, done),
            (_, other) => panic!("{other:?}"),
        }
    }

    /// A put that succeeds.
    pub(super) fn done_put(&mut self, connection: ConnectionId, put: Request) {
        let (_, reply) = self.answer(connection, put);
        assert!(matches!(reply, Ok(Reply::Put(_))), "{reply:?}");
    }

    pub(super) fn put_refused(&mut self, put: Put) -> ReasonCode {
        self.refusal(C1, Request::Put(Box::new(put)))
    }

    pub(super) fn begin(&mut self, connection: ConnectionId, id: UnitOfWorkId) {
        self.done(connection, Request::Begin { id });
    }

    pub(super) fn commit(&mut self, connection: ConnectionId, id: UnitOfWorkId) -> Position {
        self.done(connection, Request::Commit { id })
    }

    pub(super) fn back_out(&mut self, connection: ConnectionId, id: UnitOfWorkId) -> Position {
        self.done(connection, Request::BackOut { id })
    }

    pub(super) fn got(&self, id: RequestId) -> Option<(Position, Got)> {
        match self.replies.get(&id)? {
            (after, Ok(Reply::Got(got))) => Some((*after, got.clone())),
            _ => None,
        }
    }

    pub(super) fn get(&mut self, get: Get) -> (Position, Got) {
        let id = self.ask(C1, Request::Get(get));
        self.got(id)
            .unwrap_or_else(|| panic!("{:?}", self.replies.get(&id)))
    }

    pub(super) fn get_text(&mut self, queue: &str) -> String {
        let (_, got) = self.get(get(queue));
        String::from_utf8(got.message.body.to_vec()).unwrap()
    }

    pub(super) fn get_in(&mut self, queue: &str, unit: UnitOfWorkId) -> (Position, Got) {
        self.get(Get {
            syncpoint: Some(unit),
            ..get(queue)
        })
    }

    /// What a get without wait is refused with, and what that waits for.
    pub(super) fn get_refused(&mut self, get: Get) -> (Position, ReasonCode) {
        match self.answer(C2, Request::Get(get)) {
            (after, Err(failure)) => (after, failure.reason),
            (after, Ok(Reply::NothingSelected { .. })) => (after, ReasonCode::NO_MSG_AVAILABLE),
            (_, Ok(reply)) => panic!("{reply:?}"),
        }
    }

    pub(super) fn is_empty(&mut self, queue: &str) -> bool {
        let (_, reason) = self.get_refused(get(queue));
        assert_eq!(reason, ReasonCode::NO_MSG_AVAILABLE);
        true
    }

    /// Browses from the start to the end.
    pub(super) fn browse(&mut self, queue: &str) -> Vec<Browsed> {
        let mut all = Vec::new();
        let mut next = BrowseStep::First(queue_name(queue));
        loop {
            match self.answer(C2, Request::Browse(Browse::of(next))) {
                (_, Ok(Reply::Browsed(browsed))) => {
                    next = BrowseStep::After(queue_name(queue), browsed.cursor);
                    all.push(browsed);
                }
                (_, Err(failure)) => {
                    assert_eq!(failure.reason, ReasonCode::NO_MSG_AVAILABLE);
                    return all;
                }
                (_, Ok(other)) => panic!("{other:?}"),
            }
        }
    }

    pub(super) fn browse_texts(&mut self, queue: &str) -> Vec<String> {
        self.browse(queue)
            .iter()
            .map(|b| String::from_utf8(b.message.body.to_vec()).unwrap())
            .collect()
    }

    pub(super) fn depth(&self, queue: &str) -> u64 {
        self.engine.depth(&queue_name(queue)).unwrap()
    }

    pub(super) fn disconnect(&mut self, connection: ConnectionId) {
        self.input(Input::Disconnected { connection });
    }

    /// Lets time pass, with a tick at the end.
    pub(super) fn pass(&mut self, duration: Duration) {
        self.now = self.now.saturating_add(duration);
        self.input(Input::Ticked);
    }

    pub(super) fn until(&self, duration: Duration) -> Option<Timestamp> {
        Some(self.now.saturating_add(duration))
    }

    /// Changes the definitions.
    pub(super) fn alter(&mut self, change: impl FnOnce(&mut QueueManager)) {
        let mut qmgr = (*self.qmgr).clone();
        change(&mut qmgr);
        self.qmgr = Arc::new(qmgr);
        self.input(Input::DefinitionsChanged(Arc::clone(&self.qmgr)));
    }

    pub(super) fn alter_local(&mut self, queue: &str, change: impl FnOnce(&mut LocalQueue)) {
        self.alter(|qmgr| match qmgr.queues.get_mut(&queue_name(queue)) {
            Some(Queue::Local(local)) => change(local),
            other => panic!("{other:?}"),
        });
    }

    /// The power fails: what is durable is what was written up to `position`.
    pub(super) fn crash_at(&mut self, position: Position) {
        let kept = usize::try_from(position.get()).unwrap();
        self.journal.truncate(kept);
        let mut rows = Rows::default();
        for set in &self.journal {
            rows.apply(set);
        }
        self.rows = rows;
        self.epoch = self.epoch.next();
        self.fetches.clear();
        self.row_reads.clear();
        self.read_aheads.clear();
        self.disk.clear();
        self.spills.clear();
        self.replies.clear();
        self.answered.clear();
        self.events.clear();
        let mut effects = Vec::new();
        let qmgr = Arc::clone(&self.qmgr);
        self.engine = self
            .rows
            .recover(qmgr, self.epoch, self.now, self.limits, &mut effects);
        self.perform(effects);
    }

    /// The power fails with everything written.
    pub(super) fn crash(&mut self) {
        self.crash_at(self.rows.position);
    }

    pub(super) fn has_event(&self, fits: impl Fn(&Event) -> bool) -> bool {
        self.events.iter().any(|(_, event)| fits(event))
    }

    /// What must hold between steps: the indexes and accounts agree with the messages.
    pub(super) fn check(&self) {
        let e = &self.engine;
        let (mut non_persistent, mut cached, mut available) = (0, 0, 0);
        let mut spilled = 0;
        for (id, q) in &e.queues {
            let (mut uncommitted, mut taken, mut stuck, mut above) = (0, 0, 0, 0);
            let mut shown = 0;
            assert_eq!(q.entries(Bound::Unbounded).count() as u64, q.depth());
            for (sequence, entry) in q.entries(Bound::Unbounded) {
                let message = e.memory.get(sequence);
                let memory = message.map(|m| crate::memory::memory_bytes(m));
                assert!(message.is_none_or(|m| m.descriptor.message_id == entry.message_id));
                match entry.state {
                    State::Uncommitted => uncommitted += 1,
                    State::Locked => {
                        uncommitted += 1;
                        taken += 1;
                    }
                    State::Available => {
                        shown += 1;
                        if entry.expires_at.is_some() && !q.keeps_expired {
                            available += 1;
                        }
                    }
                    State::Poison => {
                        stuck += 1;
                        assert!(q.poison.contains_key(&sequence));
                    }
                    State::Damaged => stuck += 1,
                    State::Fetching => taken += 1,
                    State::Channel | State::Browsed => {}
                }
                above += u64::from(q.triggers_with(entry.priority));
                if !entry.is_persistent() {
                    match e.memory.only_here(sequence) {
                        Some(message) => non_persistent += crate::memory::memory_bytes(message),
                        None => {
                            assert!(self.disk.contains_key(&sequence), "it is somewhere");
                            spilled += 1;
                            cached += memory.unwrap_or(0);
                        }
                    }
                } else if e.memory.is_cached(sequence) {
                    cached += memory.expect("what is cached is in memory");
                } else {
                    assert!(memory.is_none() || entry.state == State::Uncommitted);
                }
                let written = self.rows.messages.contains_key(&(*id, sequence));
                assert_eq!(
                    written,
                    entry.is_persistent() && entry.state != State::Uncommitted,
                    "inv_c8: memory and rows agree on {id}/{sequence}"
                );
            }
            assert_eq!(
                (q.uncommitted, q.taken(), q.stuck()),
                (uncommitted, taken, stuck)
            );
            if q.trigger.is_some() {
                assert!([above, q.depth() - stuck].contains(&q.counted()));
            }
            assert_eq!(q.available_len(), shown);
        }
        let rows = self.rows.messages.keys();
        for (queue, sequence) in rows {
            assert!(e.entry(*queue, *sequence).is_some(), "a row without entry");
        }
        assert_eq!(e.memory.non_persistent_bytes(), non_persistent);
        let being_written: usize = self.spills.iter().map(Vec::len).sum();
        assert!(
            (spilled..=spilled + being_written).contains(&self.disk.len()),
            "what is on the disk is on a queue, or not confirmed"
        );
        assert_eq!(e.memory.cache_bytes(), cached);
        assert_eq!(e.memory.cached().map(|(_, b)| b).sum::<u64>(), cached);
        assert_eq!(e.expiry.len(), available);
        assert!(e.woken.is_empty() && e.arrivals.is_empty() && e.trigger_checks.is_empty());
    }
}

pub(super) fn correlation(n: u8) -> CorrelationId {
    CorrelationId::new([n; 24])
}

pub(super) fn message_id(n: u8) -> MessageId {
    MessageId::new([n; 24])
}
