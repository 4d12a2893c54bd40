//! What comes out of the engine.

use std::collections::BTreeMap;
use std::sync::Arc;

use ferrymq_objects::{Attributes, LocalQueue, ObjectKind, Queue, QueueManagerAttributes};
use ferrymq_types::{
    AccountEntry, ChannelName, CorrelationId, Message, MessageId, ObjectId, Position, Priority,
    QueueName, ReasonCode, ReceiverRow, SenderRow, Sequence, Timestamp, UnitOfWorkRow, WriteSet,
};

use crate::{FetchId, Presentation, RequestId};

/// What the caller is to do, in order.
#[derive(Debug)]
pub enum Effect {
    /// Append this to the journal. Positions come in order, without a gap.
    Write(WriteSet),
    /// Answer a request, once `after` is durable; [`Position::ZERO`]: at once (rule U7).
    Reply {
        /// The request.
        id: RequestId,
        /// The highest position that the answer shows.
        after: Position,
        /// The answer.
        reply: Result<Reply, Failure>,
    },
    /// Read a stored message and come back with [`crate::Input::Fetched`].
    Fetch {
        /// The number of the fetch.
        fetch: FetchId,
        /// The queue.
        queue: ObjectId,
        /// The place.
        sequence: Sequence,
    },
    /// Read rows of messages, without their bodies, and come back with [`crate::Input::RowsRead`].
    ReadRows {
        /// The number of the read.
        fetch: FetchId,
        /// The queue.
        queue: ObjectId,
        /// The places; no more than 256.
        sequences: Vec<Sequence>,
    },
    /// Read stored messages that will be wanted soon, beside the fetches, and come back with [`crate::Input::ReadAhead`].
    ReadAhead {
        /// The queue.
        queue: ObjectId,
        /// The places, in the order of delivery; no more than 256.
        sequences: Vec<Sequence>,
    },
    /// Write these non-persistent messages aside, not to the journal, and come back with [`crate::Input::Spilled`]. From then on
    /// a [`Effect::Fetch`] or [`Effect::ReadAhead`] may ask for them, until they are forgotten or the queue manager stops.
    Spill {
        /// Places, none of them used twice, and messages.
        messages: Vec<(Sequence, Arc<Message>)>,
    },
    /// Messages that were written aside are not wanted any more.
    Forget {
        /// Their places.
        sequences: Vec<Sequence>,
    },
    /// Tell operators; becomes a log line, a metric or an event message. Once `after` is durable.
    Report {
        /// The highest position that the event shows.
        after: Position,
        /// What happened.
        event: Event,
    },
}

/// Something that an operator may want to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// A message can be transmitted and no channel has the queue open: its trigger is due.
    TransmissionQueueTriggered {
        /// The transmission queue.
        queue: QueueName,
        /// `TRIGDATA`, if it names a channel.
        channel: Option<ChannelName>,
    },
    /// The initiation queue could not take a trigger message.
    TriggerNotDelivered {
        /// The queue whose trigger fired.
        queue: QueueName,
        /// Where the trigger message was going.
        initiation_queue: QueueName,
        /// Why it could not.
        reason: ReasonCode,
        /// Whether the dead-letter queue took it; if not, it is gone.
        dead_lettered: bool,
    },
    /// An event queue does not take an event message; those that follow are dropped in silence.
    EventDropped {
        /// The event queue.
        queue: &'static str,
        /// Why.
        reason: ReasonCode,
    },
    /// An event queue takes event messages again.
    EventsDropped {
        /// The event queue.
        queue: &'static str,
        /// Event messages that it did not take.
        dropped: u64,
    },
    /// A message left by another way than a committed get.
    Accounted(Arc<AccountEntry>),
    /// A message cannot be read: it stays.
    Damaged {
        /// The queue.
        queue: QueueName,
        /// The place.
        sequence: Sequence,
        /// What is wrong, with file and position.
        what: String,
    },
    /// A get or a browse with a selector has judged many messages: more than 10,000.
    LongSelection {
        /// The queue.
        queue: QueueName,
        /// How many, so far.
        examined: u64,
    },
    /// A queue is full.
    QueueFull {
        /// The queue.
        queue: QueueName,
    },
    /// A message reached its queue's `BOTHRESH`, and neither the backout queue nor the dead-letter queue takes it: it stays,
    /// gets pass it over, and the move is tried again every minute (invariants B3, B5).
    PoisonHeld {
        /// The queue.
        queue: QueueName,
        /// The place.
        sequence: Sequence,
        /// `MsgId`.
        message_id: MessageId,
        /// Why the dead-letter queue does not take it.
        reason: ReasonCode,
    },
    /// Rows name a queue that no definition knows: kept, not served (rule U15).
    UnknownQueue {
        /// The id.
        queue: ObjectId,
        /// The name when it was made.
        name: QueueName,
        /// Messages on it.
        messages: u64,
    },
}

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// The reason code.
    pub reason: ReasonCode,
    /// The object concerned, if any.
    pub object: Option<String>,
}

/// A put that took effect (or, in a unit of work, will).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PutDone {
    /// `MsgId`.
    pub message_id: MessageId,
    /// `CorrelId`.
    pub correlation_id: CorrelationId,
    /// `GroupId`, all zeros for none.
    pub group_id: CorrelationId,
    /// `MsgSeqNumber`.
    pub message_sequence_number: u32,
    /// [`ReasonCode::NONE`], or the reason of a warning.
    pub warning: ReasonCode,
    /// `ResolvedQName`.
    pub resolved_queue: String,
    /// `ResolvedQMgrName`.
    pub resolved_queue_manager: String,
}

/// A queue is open.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// By which it is used.
    pub handle: crate::HandleId,
    /// `ResolvedQName`.
    pub resolved_queue: String,
    /// `ResolvedQMgrName`.
    pub resolved_queue_manager: String,
}

/// The attributes of a queue, and what is on it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Inquired {
    /// Its definition.
    pub queue: Box<Queue>,
    /// `CurrentQDepth`; `None` if it is no local queue.
    pub depth: Option<u64>,
    /// `OpenInputCount`: handles.
    pub inputs: u32,
    /// `OpenOutputCount`: handles.
    pub outputs: u32,
}

/// A message that was got.
#[derive(Debug, Clone)]
pub struct Got {
    /// The message. `expires_at` is as put: what is left is the listener's to compute.
    pub message: Arc<Message>,
    /// `BackoutCount`.
    pub backout_count: u32,
    /// Its place on the queue.
    pub sequence: Sequence,
    /// [`ReasonCode::NONE`], or the reason of a warning.
    pub warning: ReasonCode,
    /// Messages that were judged by a selector up to this one; 0 without a selector.
    pub examined: u64,
    /// Where the getter has its properties.
    pub presentation: Presentation,
}

/// Where a browse is. Good for one run of the queue manager (rule U16).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cursor {
    /// Priority of the message, or 0 on a FIFO queue.
    pub priority: Priority,
    /// Its place.
    pub sequence: Sequence,
}

/// A message that was looked at.
#[derive(Debug, Clone)]
pub struct Browsed {
    /// The message.
    pub message: Arc<Message>,
    /// `BackoutCount`.
    pub backout_count: u32,
    /// Where to go on.
    pub cursor: Cursor,
    /// As [`Got::examined`].
    pub examined: u64,
    /// As [`Got::presentation`].
    pub presentation: Presentation,
}

/// Statistics of a local queue.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueStatistics {
    /// `CURDEPTH`: committed and uncommitted messages.
    pub depth: u64,
    /// `UNCOM`: messages put or got in open units of work.
    pub uncommitted: u64,
    /// `IPPROCS`: waiting gets and sending channels.
    pub input_handles: u32,
    /// `OPPROCS`: units of work and channels that put.
    pub output_handles: u32,
    /// When the oldest message that is available was put.
    pub oldest: Option<Timestamp>,
    /// `LGETDATE`, `LGETTIME` of this run.
    pub last_get: Option<Timestamp>,
    /// `LPUTDATE`, `LPUTTIME` of this run.
    pub last_put: Option<Timestamp>,
    /// `TRIGTYPE(DEPTH)` switched the trigger off that the definition switches on.
    pub trigger_used: bool,
}

/// A message for a channel.
#[derive(Debug, Clone)]
pub struct Transmission {
    /// Its place on the transmission queue.
    pub sequence: Sequence,
    /// The message as it is on the transmission queue, transmission header included.
    pub message: Arc<Message>,
    /// Whether it travels fast: it is removed already.
    pub fast: bool,
}

/// What a sending channel needs to bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderState {
    /// Its row.
    pub row: SenderRow,
    /// Number of the last message whose confirmation was, or may have been, asked for.
    pub last_sent: u64,
}

/// What a receiving channel answers a bind with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverState {
    /// Its row, as durable; with number 0 if nothing of this generation was committed.
    pub row: ReceiverRow,
}

/// A line of a dump.
#[derive(Debug, Clone)]
pub struct DumpItem {
    /// The queue's id and name.
    pub queue: (ObjectId, QueueName),
    /// The place.
    pub sequence: Sequence,
    /// Whether a unit of work or a channel holds it.
    pub held: bool,
    /// `BackoutCount`.
    pub backout_count: u32,
    /// The message, if it is in memory; else the store's reader has it.
    pub message: Option<Arc<Message>>,
}

/// An answer.
#[derive(Debug, Clone)]
pub enum Reply {
    /// It is done.
    Done,
    /// A handle is closed.
    Closed {
        /// [`ReasonCode::NONE`], or 2241 if it left a group incomplete.
        warning: ReasonCode,
    },
    /// A message was put.
    Put(PutDone),
    /// A queue is open.
    Opened(Opened),
    /// The attributes of a queue.
    Inquired(Inquired),
    /// The attributes of the queue manager.
    InquiredQueueManager(Box<QueueManagerAttributes>),
    /// A command made the queue, and one is to change it: `ALTER` with these attributes, which were checked.
    Alter {
        /// The kind of queue.
        kind: ObjectKind,
        /// Its name.
        name: QueueName,
        /// The attributes.
        attributes: Attributes,
    },
    /// The definitions of the dynamic queues, by name.
    DynamicQueues(BTreeMap<QueueName, LocalQueue>),
    /// 2033 of a get or a browse with a selector: none that satisfies it.
    NothingSelected {
        /// Messages that were judged.
        examined: u64,
    },
    /// A message was got.
    Got(Got),
    /// Messages were got: one or more.
    GotMany(Vec<Got>),
    /// A message was looked at.
    Browsed(Browsed),
    /// How a unit of work ended; `None` is unknown, or still open.
    UnitOfWork(Option<UnitOfWorkRow>),
    /// Statistics by queue.
    Queues(BTreeMap<QueueName, QueueStatistics>),
    /// Messages removed.
    Cleared(u64),
    /// A page of a dump; an empty one is the end.
    Dump(Vec<DumpItem>),
    /// A page of the account; an empty one is the end.
    Account(Vec<Arc<AccountEntry>>),
    /// What a sending channel needs.
    Sender(SenderState),
    /// Messages for a channel, in order; at least one.
    Transmissions(Vec<Transmission>),
    /// What a receiving channel needs.
    Receiver(ReceiverState),
    /// All channel rows.
    Channels {
        /// Sending channels.
        senders: Vec<SenderRow>,
        /// Receiving channels.
        receivers: Vec<ReceiverRow>,
        /// Channels that an operator stopped.
        stopped: Vec<ChannelName>,
    },
}
