//! The write set: what one step of a queue manager changed, as absolute values, so that applying it twice is harmless.

use bytes::Bytes;

use crate::{
    AccountEntry, AttributeValue, BodyId, ChannelName, MessageDescriptor, MessageId, ObjectId,
    Position, QueueManagerId, QueueManagerName, QueueName, Sequence, Timestamp, UnitOfWorkId,
};

/// The state changes that one engine step made: applied as a whole or not at all.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteSet {
    /// Its ordinal; positions rise by one without a gap.
    pub position: Position,
    /// The changes, in order.
    pub changes: Vec<Change>,
}

/// One change of one row. All values are absolute (rule U13).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// A persistent message is on a queue.
    SetMessage {
        /// The queue.
        queue: ObjectId,
        /// Its place.
        sequence: Sequence,
        /// Everything but the body.
        row: Box<MessageRow>,
    },
    /// A message left a queue. Its delivery count goes with it; its body goes by [`Change::DeleteBody`].
    DeleteMessage {
        /// The queue.
        queue: ObjectId,
        /// Its place.
        sequence: Sequence,
    },
    /// How often a message was shown under syncpoint without a commit so far: its backout count after a crash (rule U14).
    SetDeliveryCount {
        /// The queue.
        queue: ObjectId,
        /// Its place.
        sequence: Sequence,
        /// The count.
        count: u32,
    },
    /// A body, written once, in the write set of the first row that names it (rule U8).
    SetBody {
        /// Its id.
        id: BodyId,
        /// Its bytes.
        body: Bytes,
    },
    /// The last row that named this body is gone.
    DeleteBody {
        /// Its id.
        id: BodyId,
    },
    /// A queue exists here. Written before its first message.
    SetQueue {
        /// Its id.
        queue: ObjectId,
        /// What recovery needs of it.
        row: QueueRow,
    },
    /// A queue is gone, and its messages with it (each also has a change of its own).
    DeleteQueue {
        /// Its id.
        queue: ObjectId,
    },
    /// Numbers below these may have been used: recovery goes on from here.
    SetCounters {
        /// Message sequences.
        sequence: Sequence,
        /// Body ids.
        body: BodyId,
    },
    /// State of a sending channel.
    SetSender(Box<SenderRow>),
    /// State of a receiving channel.
    SetReceiver(Box<ReceiverRow>),
    /// Whether a channel of any type is `STOPPED` by an operator: kept over a restart until it is started by hand.
    SetChannelStopped {
        /// The channel.
        channel: ChannelName,
        /// Whether it is.
        stopped: bool,
    },
    /// A channel definition is gone, and its state with it: sender, receiver and stopped rows of that name.
    DeleteChannel {
        /// The channel.
        channel: ChannelName,
    },
    /// The outcome of a unit of work.
    SetUnitOfWork(UnitOfWorkRow),
    /// An outcome is past its time.
    DeleteUnitOfWork {
        /// Its id.
        id: UnitOfWorkId,
    },
    /// A message left by another way than a committed get.
    SetAccount(Box<AccountEntry>),
    /// An account entry is past its time.
    DeleteAccount {
        /// Its number.
        number: u64,
    },
}

/// A message on a queue, without its body.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MessageRow {
    /// The descriptor.
    pub descriptor: MessageDescriptor,
    /// Headers that the queue manager put in front of the body.
    pub header: Bytes,
    /// The body.
    pub body: BodyId,
    /// Bytes of the body.
    pub body_length: u32,
}

/// What recovery needs of a queue beside its definition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueRow {
    /// Its name when it was made.
    pub name: QueueName,
    /// It takes no more puts and gets: its deletion is under way (rule U15).
    pub closed: bool,
    /// Its trigger of `TRIGTYPE(DEPTH)` fired and switched itself off, as the definition stood that was altered at this time:
    /// an alteration since then has switched it on again.
    pub trigger_used: Option<Timestamp>,
    /// The definition of a permanent dynamic queue, by keywords: no command made it, so that nobody else knows it.
    pub definition: Option<Vec<(String, AttributeValue)>>,
}

/// A batch whose confirmation was, or may have been, asked for (rule U4).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchInDoubt {
    /// `LUWID` of the batch.
    pub id: UnitOfWorkId,
    /// The number of its first message.
    pub first_number: u64,
    /// The number of its last message. The numbers between are those of its messages and of messages that the partner
    /// refused and that were dead-lettered here.
    pub last_number: u64,
    /// Its messages on the transmission queue, in the order of their numbers.
    pub messages: Vec<Sequence>,
}

/// What a sending channel remembers. Keyed by channel name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderRow {
    /// The channel.
    pub channel: ChannelName,
    /// Its transmission queue.
    pub transmission_queue: ObjectId,
    /// Starts at 1; a reset starts another. Numbers are compared only within one (rule U6).
    pub generation: u64,
    /// The number of the last message that the partner confirmed; 0 for none. Never wraps.
    pub last_confirmed: u64,
    /// `LSTLUWID`.
    pub last_batch: UnitOfWorkId,
    /// Batches in doubt, oldest first.
    pub in_doubt: Vec<BatchInDoubt>,
    /// The partner that confirmed last, if any did.
    pub partner: Option<(QueueManagerName, QueueManagerId)>,
    /// The number before the first one of this generation: 0, or what `RESET CHANNEL` with another `SEQNUM` than 1 said.
    pub start: u64,
    /// `RESETSEQ`: a reset that waits for the next start; the number of the first message then.
    pub reset_to: Option<u32>,
}

/// What a receiving channel remembers. Keyed by channel name and the sender's queue manager id.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverRow {
    /// The channel.
    pub channel: ChannelName,
    /// The sender's queue manager.
    pub sender: QueueManagerId,
    /// Its name.
    pub sender_name: QueueManagerName,
    /// The sender's generation that the number belongs to.
    pub generation: u64,
    /// The number of the last message that was committed here; 0 for none.
    pub last_committed: u64,
    /// `LSTLUWID`.
    pub last_batch: UnitOfWorkId,
    /// `RESETSEQ`: the number, as `SEQWRAP` shows it, that the next bind must go on with; an operator says so.
    pub reset_to: Option<u32>,
}

/// How a unit of work ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum UnitOfWorkOutcome {
    /// All of it took effect.
    Committed,
    /// None of it did.
    BackedOut,
}

/// The outcome of a unit of work, kept so that a lost answer can be asked for again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitOfWorkRow {
    /// Its id.
    pub id: UnitOfWorkId,
    /// How it ended.
    pub outcome: UnitOfWorkOutcome,
    /// When.
    pub time: Timestamp,
    /// The message id of a unit of work that was a single put: a repeated put is answered with it (invariant I1).
    pub message_id: Option<MessageId>,
}
