//! What travels between the two ends of a channel, as whole messages: cutting long ones into chunks is the transport's work.

use ferrymq_types::{
    ChannelName, Message, QueueManagerId, QueueManagerName, ReasonCode, UnitOfWorkId,
};

/// Level of the protocol that this crate speaks.
pub const PROTOCOL_VERSION: u32 = 1;

/// What a sender sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SenderFrame {
    /// Proposes a conversation; the first frame.
    Bind(Bind),
    /// A message of a batch.
    Message(Box<BatchMessage>),
    /// The batch is complete: commit it and confirm.
    BatchEnd(BatchEnd),
    /// A message outside any batch.
    Fast(Box<FastMessage>),
    /// The message that was refused is settled here.
    Withdraw(Withdraw),
    /// Is anybody there.
    Heartbeat {
        /// Whether it answers one.
        answer: bool,
    },
    /// The conversation ends.
    Close(Close),
}

/// What a receiver sends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverFrame {
    /// The conversation is accepted.
    BindAccepted(BindAccepted),
    /// A batch and its last number are durable.
    BatchConfirmed(BatchConfirmed),
    /// A message could not be put and was not consumed: the sender decides.
    MessageRefused(MessageRefused),
    /// Is anybody there.
    Heartbeat {
        /// Whether it answers one. A busy receiver sends answers unasked.
        answer: bool,
    },
    /// The conversation ends.
    Close(Close),
}

/// Proposes a conversation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bind {
    /// Level of the protocol: [`PROTOCOL_VERSION`].
    pub version: u32,
    /// The channel.
    pub channel: ChannelName,
    /// The sender's queue manager.
    pub queue_manager: QueueManagerName,
    /// Its id.
    pub queue_manager_id: QueueManagerId,
    /// The queue manager that the sender wants; `None` is any.
    pub partner: Option<QueueManagerName>,
    /// Numbers are compared within one generation only (rule U6).
    pub generation: u64,
    /// The number of the last message that the partner confirmed.
    pub last_confirmed: u64,
    /// The number of the last message whose confirmation was, or may have been, asked for.
    pub last_sent: u64,
    /// The number before the first one of the generation.
    pub start: u64,
    /// `LUWID` of the batch that the partner confirmed last; all zeros for none.
    pub last_batch: UnitOfWorkId,
    /// `BATCHSZ`, messages.
    pub batch_size: u32,
    /// `MAXMSGL`, bytes.
    pub message_length_max: u32,
    /// `SEQWRAP`.
    pub sequence_wrap: u32,
    /// `HBINT`, seconds; 0 is none.
    pub heartbeat_interval: u32,
    /// `NPMSPEED(FAST)`.
    pub fast: bool,
}

/// What both ends use from now on, and what the receiver has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BindAccepted {
    /// The receiver's queue manager.
    pub queue_manager: QueueManagerName,
    /// Its id.
    pub queue_manager_id: QueueManagerId,
    /// The number of the last message committed there in this generation; 0 for none.
    pub last_committed: u64,
    /// `LUWID` of the last batch committed there; all zeros for none.
    pub last_batch: UnitOfWorkId,
    /// `BATCHSZ`, messages: the lower of the two.
    pub batch_size: u32,
    /// `MAXMSGL`, bytes: the lower of the two.
    pub message_length_max: u32,
    /// `HBINT`, seconds: the higher of the two.
    pub heartbeat_interval: u32,
    /// `NPMSPEED(FAST)`: only if both want it.
    pub fast: bool,
}

/// A message of a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BatchMessage {
    /// `LUWID` of its batch: the unit of work that the receiver puts it in.
    pub batch: UnitOfWorkId,
    /// Rises by one within a generation.
    pub number: u64,
    /// `RemoteQName`: as the transmission header says; not a checked name.
    pub remote_queue: String,
    /// `RemoteQMgrName`; empty is the receiver's.
    pub remote_queue_manager: String,
    /// The message without its transmission header.
    pub message: Message,
}

/// A fast non-persistent message: in no batch, without a number.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FastMessage {
    /// `RemoteQName`: as the transmission header says; not a checked name.
    pub remote_queue: String,
    /// `RemoteQMgrName`; empty is the receiver's.
    pub remote_queue_manager: String,
    /// The message without its transmission header.
    pub message: Message,
}

/// The batch is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchEnd {
    /// `LUWID`.
    pub batch: UnitOfWorkId,
    /// The number of its first message.
    pub first_number: u64,
    /// The number of its last message. Withdrawn ones count.
    pub last_number: u64,
}

/// The refused message was dead-lettered at the sender; the batch goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Withdraw {
    /// Its number.
    pub number: u64,
}

/// The batch and its last number are durable at the receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BatchConfirmed {
    /// `LUWID`.
    pub batch: UnitOfWorkId,
    /// The number of its last message.
    pub last_number: u64,
    /// Messages of the batch that went to the receiver's dead-letter queue.
    pub dead_lettered: u32,
}

/// The receiver could not put a message and did not consume it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MessageRefused {
    /// Its number.
    pub number: u64,
    /// Why.
    pub reason: ReasonCode,
}

/// The conversation ends.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Close {
    /// Why.
    pub reason: CloseReason,
    /// For the operator; never says more than the partner may know.
    pub text: String,
}

/// Why a conversation ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CloseReason {
    /// Stopped in good order, or nothing to send for `DISCINT`.
    Normal,
    /// No such channel here.
    ChannelUnknown,
    /// The channel is of another type here.
    ChannelWrongType,
    /// `STOPPED` by an operator here.
    ChannelStopped,
    /// The caller is not who the channel wants.
    NotAuthorized,
    /// `SEQWRAP` differs.
    SequenceWrap,
    /// The numbers do not fit together (AMQ9526).
    SequenceError,
    /// A newer conversation of the channel has begun.
    Superseded,
    /// The queue manager stops.
    QueueManagerStopping,
    /// The last batch was not committed (AMQ9506).
    BatchRefused,
    /// A frame that may not come here, or not now.
    ProtocolError,
    /// The partner is another queue manager than the one that the sender wants.
    WrongQueueManager,
}

impl Close {
    /// With this reason and text.
    #[must_use]
    pub fn new(reason: CloseReason, text: impl Into<String>) -> Self {
        Self {
            reason,
            text: text.into(),
        }
    }
}
