//! A node: a disk that survives, and a run that does not.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use ferrymq_channel::{
    AskId, ChannelState, ReceiverMca, ReceiverTimer, SenderFrame, SenderMca, SenderTimer,
};
use ferrymq_engine::{ConnectionId, Engine, Event, Failure, Input, Reply, RequestId};
use ferrymq_store::memory::{MemoryDisk, MemoryLog};
use ferrymq_store::{CheckpointDone, Job, QueueManagerStore};
use ferrymq_types::{Change, ObjectId, Position, Sequence, Timestamp, UnitOfWorkId, WriteSet};

use crate::invariants::inv_h1_channel_sequence::Numbers;
use crate::oracle::Uid;
use crate::sim::Dynamic;
use crate::sim::rows::{RowsPlan, SimRows};

/// What survives a crash, and what the simulator knows of it.
#[derive(Debug)]
pub(crate) struct Node {
    pub(crate) disk: MemoryDisk,
    pub(crate) rows_plan: Arc<Mutex<RowsPlan>>,
    /// Counted; handles and events of an earlier run are dead.
    pub(crate) runs: u64,
    pub(crate) running: Option<Running>,
    /// Power fails after this many effects.
    pub(crate) crash_in: Option<u64>,
    /// Persistent messages by their places, which are never used twice.
    pub(crate) places: BTreeMap<(ObjectId, Sequence), Uid>,
    /// Numbers of the receiving channel here.
    pub(crate) numbers: Numbers,
    /// What batches were committed here, durable or not yet.
    pub(crate) received: Vec<(Position, Vec<Uid>)>,
    /// Messages that were received and are durable.
    pub(crate) received_durable: BTreeSet<Uid>,
}

impl Node {
    pub(crate) fn new() -> Self {
        Self {
            disk: MemoryDisk::new(),
            rows_plan: Arc::default(),
            runs: 0,
            running: None,
            crash_in: None,
            places: BTreeMap::new(),
            numbers: Numbers::default(),
            received: Vec::new(),
            received_durable: BTreeSet::new(),
        }
    }
}

pub(crate) type Store = QueueManagerStore<MemoryLog, SimRows>;

/// A run of a node, from its recovery to its end.
#[derive(Debug)]
pub(crate) struct Running {
    pub(crate) number: u64,
    pub(crate) engine: Engine,
    pub(crate) store: Store,
    pub(crate) inbox: VecDeque<Input>,
    pub(crate) working: bool,
    /// Gathered, not appended.
    pub(crate) write_sets: Vec<WriteSet>,
    pub(crate) appending: bool,
    pub(crate) syncing: bool,
    pub(crate) durable: Position,
    pub(crate) held: BTreeMap<Position, Vec<Held>>,
    pub(crate) asked: BTreeMap<RequestId, Asked>,
    pub(crate) next_request: u64,
    pub(crate) next_connection: u64,
    /// Connections of clients: client and its life.
    pub(crate) connections: BTreeMap<ConnectionId, (usize, u64)>,
    pub(crate) tick: Option<Timestamp>,
    pub(crate) job: Option<Job<MemoryLog, SimRows>>,
    pub(crate) done: Option<CheckpointDone>,
    pub(crate) sender: Option<SenderEnd>,
    pub(crate) receivers: BTreeMap<u64, ReceiverEnd>,
    /// The channel is stopped by an operator, as the channel initiator remembers.
    pub(crate) stopped: bool,
    /// First number of the batch whose commit is being stepped.
    pub(crate) committing_batch: Option<u64>,
    /// What a planted fault keeps back.
    pub(crate) stash: Vec<Change>,
    pub(crate) prepared: u64,
    pub(crate) last_body: Option<Bytes>,
}

impl Running {
    pub(crate) fn connect(&mut self) -> ConnectionId {
        self.next_connection += 1;
        ConnectionId(self.next_connection)
    }
}

/// Who asked.
#[derive(Debug, Clone)]
pub(crate) enum Asker {
    Client {
        client: usize,
        life: u64,
        what: What,
    },
    Sender(AskId),
    Receiver(u64, AskId),
    Operator,
}

/// What a client asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum What {
    Open,
    Close,
    /// The queue of that name, by its name or from its model.
    OpenDynamic {
        dynamic: Dynamic,
        by_name: bool,
    },
    CloseDynamic {
        dynamic: Dynamic,
        deletes: bool,
    },
    OpenInitiation,
    /// A trigger message.
    Trigger,
    OpenTriggered,
    CloseTriggered,
    Put(Uid),
    Get {
        node: usize,
        queue: &'static str,
        unit: Option<UnitOfWorkId>,
    },
    Browse {
        node: usize,
        queue: &'static str,
    },
    Begin(UnitOfWorkId),
    Commit(UnitOfWorkId),
    BackOut(UnitOfWorkId),
    Outcome(UnitOfWorkId),
}

/// A request that the engine has not answered.
#[derive(Debug)]
pub(crate) struct Asked {
    pub(crate) asker: Asker,
    /// A planted fault lets the answer go at once.
    pub(crate) early: bool,
}

pub(crate) type Answer = Result<Reply, Failure>;

/// What waits for a position.
#[derive(Debug)]
pub(crate) enum Held {
    Answer {
        asker: Asker,
        answer: Box<Answer>,
        /// The message that a get brings, and the how-manieth time it is shown.
        got: Option<(Uid, usize)>,
    },
    Event(Event),
}

/// The sending end.
#[derive(Debug)]
pub(crate) struct SenderEnd {
    pub(crate) machine: SenderMca,
    pub(crate) connection: ConnectionId,
    pub(crate) timers: BTreeMap<SenderTimer, Timestamp>,
    pub(crate) link: Option<u64>,
    pub(crate) dialing: Option<u64>,
    pub(crate) asked: BTreeMap<AskId, RequestId>,
}

/// A conversation at the receiving end.
#[derive(Debug)]
pub(crate) struct ReceiverEnd {
    pub(crate) machine: ReceiverMca,
    pub(crate) connection: ConnectionId,
    pub(crate) timers: BTreeMap<ReceiverTimer, Timestamp>,
    /// A planted fault: it uses the connection of an older conversation.
    pub(crate) shares_connection: bool,
    /// Its last unit of work.
    pub(crate) begun: Option<UnitOfWorkId>,
    /// Frames that the machine does not want yet.
    pub(crate) unread: VecDeque<SenderFrame>,
}

impl ReceiverEnd {
    /// Whether it has a message in hand that it will put, or frames that it has not read.
    pub(crate) fn waits(&self) -> bool {
        !self.unread.is_empty() || self.machine.status().state == ChannelState::Paused
    }
}
