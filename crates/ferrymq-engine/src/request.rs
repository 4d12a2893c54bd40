//! What goes into the engine.

use std::sync::Arc;

use bytes::Bytes;
use ferrymq_objects::{Attributes, QueueManager};
use ferrymq_selector::Selector;
use ferrymq_types::{
    AccountReason, ChannelName, CorrelationId, Message, MessageDescriptor, MessageId, MessageRow,
    ObjectId, Persistence, Priority, QueueManagerId, QueueManagerName, QueueName, ReasonCode,
    Sequence, Timestamp, UnitOfWorkId,
};

use crate::{Cursor, PropertyOption};

/// A request, numbered by the caller; its [`crate::Effect::Reply`] carries the number. Never used twice in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RequestId(pub u64);

/// A connection: an application's session, or one end of a channel. Units of work belong to one; when it is gone they are
/// backed out (invariant A5). Never used twice in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConnectionId(pub u64);

/// A queue that a connection has open. Never used twice in one run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HandleId(pub u64);

/// How a queue is opened for input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InputUse {
    /// As its definition says. `MQOO_INPUT_AS_Q_DEF`.
    AsQueueDefined,
    /// With others. `MQOO_INPUT_SHARED`.
    Shared,
    /// By nobody else. `MQOO_INPUT_EXCLUSIVE`.
    Exclusive,
}

/// What a queue is opened for: at least one of these. `MQOO_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OpenOptions {
    /// To get.
    pub input: Option<InputUse>,
    /// To browse.
    pub browse: bool,
    /// To put.
    pub output: bool,
    /// To ask for its attributes.
    pub inquire: bool,
    /// What may be done with the contexts of messages.
    pub context: ContextUse,
    /// Refused with 2161 while the queue manager quiesces. `MQOO_FAIL_IF_QUIESCING`.
    pub fail_if_quiescing: bool,
    /// To set some of its attributes. `MQOO_SET`.
    pub set: bool,
}

/// What a handle may do with the contexts of messages. Those that set or pass one are for output only, and a wider one brings
/// the narrower ones: 2046 else. `MQOO_SAVE_ALL_CONTEXT`, `MQOO_PASS_*_CONTEXT`, `MQOO_SET_*_CONTEXT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ContextUse {
    /// The context of the message that was got last is kept, to be passed on. For input only.
    pub save_all: bool,
    /// Puts may pass an identity on.
    pub pass_identity: bool,
    /// Puts may pass identity and origin on.
    pub pass_all: bool,
    /// Puts may set the identity.
    pub set_identity: bool,
    /// Puts may set identity and origin.
    pub set_all: bool,
}

/// What the closing of a handle does with a dynamic queue besides. `MQCO_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CloseOption {
    /// A temporary one is deleted with the handle that made it. `MQCO_NONE`.
    #[default]
    None,
    /// A permanent one is deleted if it is empty. `MQCO_DELETE`.
    Delete,
    /// A permanent one is deleted with its messages. `MQCO_DELETE_PURGE`.
    DeletePurge,
}

/// A fetch that the engine asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FetchId(pub u64);

/// What happened.
#[derive(Debug)]
pub enum Input {
    /// A connection asks for one thing, or for several in order. Who waits for what they bring is served once, after the
    /// last: so a getter of many has them together.
    Requests {
        /// Who asks.
        connection: ConnectionId,
        /// What, with the numbers of the requests.
        requests: Vec<(RequestId, Request)>,
    },
    /// An application has connected. What is not said so is the queue manager's own: a channel, a command.
    Connected {
        /// The connection.
        connection: ConnectionId,
        /// What the application calls itself.
        application: String,
    },
    /// The queue manager is about to stop in good order: what this writes is the last.
    Stopping,
    /// Nobody waits for the answer any more: a waiting get ends, and takes nothing.
    Cancelled {
        /// The request.
        id: RequestId,
    },
    /// The connection is gone: its waiting requests end, its units of work are backed out.
    Disconnected {
        /// The connection.
        connection: ConnectionId,
    },
    /// A stored message was read, as [`crate::Effect::Fetch`] asked.
    Fetched {
        /// The fetch.
        fetch: FetchId,
        /// What was found.
        result: Fetched,
    },
    /// Rows were read, as [`crate::Effect::ReadRows`] asked: those of them that could be. Comes in any case.
    RowsRead {
        /// The read.
        fetch: FetchId,
        /// Place and row of each.
        rows: Vec<(Sequence, Box<MessageRow>)>,
    },
    /// Messages were read ahead, as [`crate::Effect::ReadAhead`] asked: those of them that could be. Comes in any case.
    ReadAhead {
        /// The queue.
        queue: ObjectId,
        /// Place, row and body of each, verified.
        messages: Vec<(Sequence, Box<MessageRow>, Bytes)>,
    },
    /// Messages were written aside, as [`crate::Effect::Spill`] asked, or none of them could be.
    Spilled {
        /// Their places.
        sequences: Vec<Sequence>,
        /// Why not: 2192, or 2071 if there are too many.
        result: Result<(), ReasonCode>,
    },
    /// The definitions are now these. Durable here as applied before they come in (rule U15).
    DefinitionsChanged(Arc<QueueManager>),
    /// The time that `Engine::next_tick` named has come.
    Ticked,
    /// The queue manager quiesces: what asks for it fails from now on, and gets that wait and asked for it end (2161).
    Quiesced,
    /// Whether the journal has room for puts (rule U19). `false`: puts are refused with 2192; gets and commits go on.
    SpaceChanged {
        /// Whether puts are taken.
        puts_allowed: bool,
    },
}

/// The answer to a fetch.
#[derive(Debug, Clone)]
pub enum Fetched {
    /// The message, verified.
    Message(Box<MessageRow>, Bytes),
    /// It is damaged, or could not be read: it stays on its queue and is reported (rule U9). The text names file and position.
    Damaged(String),
}

/// Which messages a get or a browse wants; `None` matches any. `MQMO_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MatchIds {
    /// `MsgId`.
    pub message_id: Option<MessageId>,
    /// `CorrelId`.
    pub correlation_id: Option<CorrelationId>,
    /// `GroupId`.
    pub group_id: Option<CorrelationId>,
    /// `MsgSeqNumber`. A message in no group has 1.
    pub message_sequence_number: Option<u32>,
}

/// Who sets the context of a message: its identity (user, accounting token, application identity data) and its origin
/// (application type and name, put time, application origin data). Who may set one is not decided here but by the listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Context {
    /// The engine sets `put_time`; all else in the descriptor was set by the listener. `MQPMO_DEFAULT_CONTEXT`.
    Default,
    /// It has none but the time of the put. `MQPMO_NO_CONTEXT`.
    None,
    /// The identity is that of the message that was got last through this handle. `MQPMO_PASS_IDENTITY_CONTEXT`.
    PassIdentity(HandleId),
    /// Identity and origin are those of the message that was got last through this handle. `MQPMO_PASS_ALL_CONTEXT`.
    PassAll(HandleId),
    /// The identity in the descriptor is the application's; the rest as by default. `MQPMO_SET_IDENTITY_CONTEXT`.
    SetIdentity,
    /// The descriptor is passed on as it is: what a message channel does. `MQPMO_SET_ALL_CONTEXT`.
    SetAll,
}

/// What more is asked of a put. `MQPMO_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PutOptions {
    /// The correlation id is generated. `MQPMO_NEW_CORREL_ID`.
    pub new_correlation_id: bool,
    /// Refused with 2161 while the queue manager quiesces. `MQPMO_FAIL_IF_QUIESCING`.
    pub fail_if_quiescing: bool,
    /// The priority that was asked for is above `MAXPRTY`: it is put with the highest, and answered with warning 2049.
    pub priority_exceeds_maximum: bool,
}

/// What a put goes to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Object {
    /// An open queue: `MQPUT`.
    Handle(HandleId),
    /// A queue by its names: `MQPUT1`.
    Named(ObjectName),
}

/// What a queue is called. `MQOD`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectName {
    /// `ObjectName`.
    pub queue: QueueName,
    /// `ObjectQMgrName`; `None` is local.
    pub queue_manager: Option<QueueManagerName>,
}

/// What a get reads.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A queue by its name.
    Queue(QueueName),
    /// An open queue.
    Handle(HandleId),
    /// The message under the browse cursor of an open queue, whatever else is wanted: 2034 if it is gone.
    /// `MQGMO_MSG_UNDER_CURSOR`.
    UnderCursor(HandleId),
}

impl Source {
    /// The handle that it goes through.
    pub(crate) const fn handle(&self) -> Option<HandleId> {
        match self {
            Self::Queue(_) => None,
            Self::Handle(handle) | Self::UnderCursor(handle) => Some(*handle),
        }
    }

    pub(crate) fn is_through(&self, handle: HandleId) -> bool {
        match self {
            Self::Queue(_) => false,
            Self::Handle(mine) | Self::UnderCursor(mine) => *mine == handle,
        }
    }
}

impl ObjectName {
    /// A queue of the queue manager that is asked.
    #[must_use]
    pub fn local(queue: QueueName) -> Self {
        Self {
            queue,
            queue_manager: None,
        }
    }

    /// Names as text that nobody checked; an empty `queue_manager` is local.
    ///
    /// # Errors
    /// 2085 if the queue's name is none, 2087 if the queue manager's is none.
    pub fn parse(queue: &str, queue_manager: &str) -> Result<Self, ReasonCode> {
        let queue = QueueName::new(queue).map_err(|_| ReasonCode::UNKNOWN_OBJECT_NAME)?;
        let queue_manager = match queue_manager {
            "" => None,
            text => {
                let name = QueueManagerName::new(text);
                Some(name.map_err(|_| ReasonCode::UNKNOWN_REMOTE_Q_MGR)?)
            }
        };
        Ok(Self {
            queue,
            queue_manager,
        })
    }
}

/// A put.
#[derive(Debug, Clone)]
pub struct Put {
    /// Where it goes.
    pub object: Object,
    /// The descriptor. Its `priority` and `persistence` count only where the two fields below say so.
    pub descriptor: MessageDescriptor,
    /// `None`: as the first definition on the path says (`DEFPRTY`).
    pub priority: Option<Priority>,
    /// `None`: as the first definition on the path says (`DEFPSIST`).
    pub persistence: Option<Persistence>,
    /// A header that goes in front, such as the dead-letter header; mostly empty.
    pub header: Bytes,
    /// The data.
    pub body: Bytes,
    /// Who sets the context.
    pub context: Context,
    /// What more is asked.
    pub options: PutOptions,
    /// The unit of work that it belongs to.
    pub syncpoint: Option<UnitOfWorkId>,
    /// The handle says which message of which group it is: `MQPMO_LOGICAL_ORDER`.
    pub logical_order: bool,
    /// For a put outside a unit of work: an id to ask for it again. A put repeated with it takes effect once.
    pub token: Option<UnitOfWorkId>,
}

impl Put {
    /// The put that passes a message on as it is: origin, priority and persistence are its own.
    #[must_use]
    pub fn passing_on(message: &Message, name: ObjectName) -> Self {
        Self {
            object: Object::Named(name),
            descriptor: message.descriptor.clone(),
            priority: Some(message.descriptor.priority),
            persistence: Some(message.descriptor.persistence),
            header: message.header.clone(),
            body: message.body.clone(),
            context: Context::SetAll,
            options: PutOptions::default(),
            syncpoint: None,
            logical_order: false,
            token: None,
        }
    }
}

/// A get.
#[derive(Debug, Clone)]
pub struct Get {
    /// What is read.
    pub source: Source,
    /// A message that is longer than `length_max` is taken all the same, and its data cut: warning 2079.
    /// `MQGMO_ACCEPT_TRUNCATED_MSG`.
    pub accept_truncated: bool,
    /// A non-persistent message is removed at once, whatever `syncpoint` says; 2046 if that says nothing.
    /// `MQGMO_SYNCPOINT_IF_PERSISTENT`.
    pub syncpoint_if_persistent: bool,
    /// Which messages.
    pub matching: MatchIds,
    /// Only messages that satisfy this. Through a handle it is the handle's: 2046 if there is one here.
    pub selector: Option<Arc<Selector>>,
    /// Groups come one after the other, each in order; the handle says which message is next. `MQGMO_LOGICAL_ORDER`.
    pub logical_order: bool,
    /// Of a group nothing is got before all of it is there; does not count within a group in logical order.
    /// `MQGMO_ALL_MSGS_AVAILABLE`.
    pub all_messages_available: bool,
    /// Until when to wait; `None` is not at all.
    pub wait_until: Option<Timestamp>,
    /// Longest message that is taken, in bytes; a longer one stays: 2080.
    pub length_max: Option<u32>,
    /// Ends with 2161 while the queue manager quiesces, also when it waits then. `MQGMO_FAIL_IF_QUIESCING`.
    pub fail_if_quiescing: bool,
    /// The unit of work that locks it.
    pub syncpoint: Option<UnitOfWorkId>,
    /// How it has the properties of the message.
    pub properties: PropertyOption,
    /// More than one message: the first is waited for, the others are taken if they are there. The reply is
    /// [`crate::Reply::GotMany`].
    pub many: Option<Many>,
}

impl Get {
    /// A get of any message, at once, outside a unit of work.
    #[must_use]
    pub fn of(source: Source) -> Self {
        Self {
            source,
            accept_truncated: false,
            syncpoint_if_persistent: false,
            matching: MatchIds::default(),
            selector: None,
            logical_order: false,
            all_messages_available: false,
            wait_until: None,
            length_max: None,
            fail_if_quiescing: false,
            syncpoint: None,
            properties: PropertyOption::default(),
            many: None,
        }
    }
}

/// How many messages a get takes at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Many {
    /// Most messages.
    pub messages_max: u32,
    /// Stop after the message that crosses this many bytes of data.
    pub bytes_max: u64,
}

/// What becomes of messages that a unit of work has locked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Settlement {
    /// They leave their queue. With an id, the outcome can be asked for.
    Commit(Option<UnitOfWorkId>),
    /// They return to their places with a backout count one higher. With an id, the outcome can be asked for.
    BackOut(Option<UnitOfWorkId>),
    /// They belong to this open unit of work from now on.
    Join(UnitOfWorkId),
}

/// A step of a browse.
#[derive(Debug, Clone)]
pub struct Browse {
    /// Which messages.
    pub matching: MatchIds,
    /// As of a get.
    pub selector: Option<Arc<Selector>>,
    /// Where to go on.
    pub step: BrowseStep,
    /// As [`Get::logical_order`]. Only through a handle.
    pub logical_order: bool,
    /// As [`Get::all_messages_available`].
    pub all_messages_available: bool,
    /// Nobody else gets or browses the message until the cursor moves, the handle is closed, or it is got. Only through a
    /// handle. `MQGMO_LOCK`.
    pub lock: bool,
    /// Refused with 2161 while the queue manager quiesces. `MQGMO_FAIL_IF_QUIESCING`.
    pub fail_if_quiescing: bool,
    /// As [`Get::properties`].
    pub properties: PropertyOption,
}

impl Browse {
    /// A browse of any message, without a lock.
    #[must_use]
    pub fn of(step: BrowseStep) -> Self {
        Self {
            matching: MatchIds::default(),
            selector: None,
            step,
            logical_order: false,
            all_messages_available: false,
            lock: false,
            fail_if_quiescing: false,
            properties: PropertyOption::default(),
        }
    }
}

/// Where a browse goes on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BrowseStep {
    /// With the first message of a queue that is wanted.
    First(QueueName),
    /// With the next one of a queue after this place, never going back.
    After(QueueName, Cursor),
    /// With the first message that is wanted, where the cursor of the handle then stands. `MQGMO_BROWSE_FIRST`.
    FirstOf(HandleId),
    /// With the next one after the cursor of the handle, never going back. `MQGMO_BROWSE_NEXT`.
    Next(HandleId),
    /// The message under the cursor of the handle again: 2034 if it is gone. `MQGMO_BROWSE_MSG_UNDER_CURSOR`.
    UnderCursor(HandleId),
}

/// What can be asked of an engine.
#[derive(Debug, Clone)]
pub enum Request {
    /// Put a message. Reply: [`crate::Reply::Put`].
    Put(Box<Put>),
    /// Get a message. Reply: [`crate::Reply::Got`], or failure 2033.
    Get(Get),
    /// Look at the next message. Reply: [`crate::Reply::Browsed`], or failure 2033.
    Browse(Browse),
    /// Open a queue. Reply: [`crate::Reply::Opened`].
    Open {
        /// Which.
        name: ObjectName,
        /// What for.
        options: OpenOptions,
        /// What the queue is to be called that the open of a model makes: a name, or up to 32 characters and an asterisk, in the
        /// place of which 16 characters come. Empty: `AMQ.*`. `None`: no queue is made, and a model is refused with 2045.
        /// `DynamicQName`.
        dynamic_name: Option<String>,
        /// Gets and browses through the handle see only messages that satisfy this; 2516 if it is open for neither.
        /// `SelectionString`.
        selector: Option<Arc<Selector>>,
    },
    /// Close a handle: a message that it has locked is free again. Reply: [`crate::Reply::Closed`].
    Close {
        /// The handle.
        handle: HandleId,
        /// What becomes of a dynamic queue. 2045 if it does not go with the queue, 2055 if messages are in its way; the handle
        /// stays open then.
        option: CloseOption,
    },
    /// Ask for attributes. Reply: [`crate::Reply::Inquired`], or [`crate::Reply::InquiredQueueManager`].
    Inquire {
        /// The handle, open for inquire; `None` asks for those of the queue manager.
        handle: Option<HandleId>,
    },
    /// Set attributes. 2067 for those that `MQSET` does not change, 2068 for those of other kinds of queue, and a reason of its
    /// own for each value that is not allowed. Reply: [`crate::Reply::Done`] for a dynamic queue, else
    /// [`crate::Reply::Alter`].
    Set {
        /// The handle, open for set.
        handle: HandleId,
        /// The attributes, by their MQSC keywords.
        attributes: Attributes,
    },
    /// The definitions of the dynamic queues. Reply: [`crate::Reply::DynamicQueues`].
    DynamicQueues,
    /// Alter a dynamic queue; 2085 if there is none of the name. Reply: [`crate::Reply::Done`].
    AlterQueue {
        /// The queue.
        queue: QueueName,
        /// What changes.
        attributes: Attributes,
    },
    /// Free the message that a browse has locked; 2209 if it has none. Reply: [`crate::Reply::Done`].
    Unlock {
        /// The handle.
        handle: HandleId,
    },
    /// Begin a unit of work. An id that is open or has an outcome is refused. Reply: [`crate::Reply::Done`].
    Begin {
        /// Chosen by the caller, or at random by the listener.
        id: UnitOfWorkId,
    },
    /// Commit. Refused for a unit of work that is unknown, finished or another connection's (invariant A6); one that this id
    /// committed before is answered as then. Reply: [`crate::Reply::Done`].
    Commit {
        /// The unit of work.
        id: UnitOfWorkId,
    },
    /// Back out. Reply: [`crate::Reply::Done`].
    BackOut {
        /// The unit of work.
        id: UnitOfWorkId,
    },
    /// Settle some of the messages that an open unit of work has locked: all of those named, or none if one is not among them
    /// (2034). Reply: [`crate::Reply::Done`].
    Settle {
        /// The unit of work that has them locked.
        of: UnitOfWorkId,
        /// The messages, by [`crate::Got::sequence`].
        messages: Vec<Sequence>,
        /// What becomes of them.
        settlement: Settlement,
    },
    /// How a unit of work ended. Reply: [`crate::Reply::UnitOfWork`].
    GetUnitOfWork {
        /// The unit of work.
        id: UnitOfWorkId,
    },
    /// Statistics of every local queue. Reply: [`crate::Reply::Queues`].
    QueueStatistics,
    /// Remove every message of a queue. 2042 if a unit of work or a channel holds one, or somebody waits on it.
    /// Reply: [`crate::Reply::Cleared`].
    Clear {
        /// The queue.
        queue: QueueName,
        /// Who, for the account.
        who: String,
    },
    /// Close a queue before its deletion is proposed (rule U15): puts and gets fail with 2052 from now on. 2055 if it holds
    /// messages and `purge` is not set; 2042 if somebody uses it. A dynamic queue is gone with that. Reply: [`crate::Reply::Done`].
    CloseQueue {
        /// The queue.
        queue: QueueName,
        /// Whether its messages are removed with it.
        purge: bool,
        /// Who, for the account.
        who: String,
    },
    /// Open a closed queue again: its deletion was refused. Reply: [`crate::Reply::Done`].
    ReopenQueue {
        /// The queue.
        queue: QueueName,
    },
    /// A page of all messages of all queues, in order of queue id and sequence. Reply: [`crate::Reply::Dump`].
    Dump {
        /// Go on after this one.
        after: Option<(ObjectId, Sequence)>,
        /// Most items.
        limit: u32,
    },
    /// A page of the account. Reply: [`crate::Reply::Account`].
    Account {
        /// Go on after this number; 0 is from the start.
        after: u64,
        /// Only entries at or after this time.
        since: Timestamp,
        /// Most entries.
        limit: u32,
    },

    /// A sending channel opens its transmission queue. A running instance of the same channel loses its hold: what it locked
    /// and did not prepare is released. Reply: [`crate::Reply::Sender`].
    OpenSender {
        /// The channel.
        channel: ChannelName,
        /// Its `XMITQ`.
        transmission_queue: QueueName,
    },
    /// The next messages for a channel, locked to its batch. Waits for the first one. Fast non-persistent ones are removed at
    /// once and are in no batch. Reply: [`crate::Reply::Transmissions`]; failure 2033 when the wait is over, 2016 if the
    /// transmission queue is inhibited for get.
    SenderGet {
        /// The channel.
        channel: ChannelName,
        /// `LUWID` of the batch, begun by this request if it is new.
        batch: UnitOfWorkId,
        /// Most messages.
        messages_max: u32,
        /// Stop after the message that crosses this many bytes.
        bytes_max: u64,
        /// Whether non-persistent messages travel fast.
        fast: bool,
        /// Until when to wait for the first; `None` is not at all.
        wait_until: Option<Timestamp>,
    },
    /// The batch is complete and will be confirmed: its messages and their numbers become durable before the answer, and stay
    /// locked until they are settled (rule U4). Reply: [`crate::Reply::Done`].
    PrepareBatch {
        /// The channel.
        channel: ChannelName,
        /// The batch.
        batch: UnitOfWorkId,
        /// Number of its first message.
        first_number: u64,
        /// Number of its last message.
        last_number: u64,
    },
    /// The partner's last committed number, from a confirmation or an accepted bind: batches up to it leave the transmission
    /// queue in one write set; with `release`, later ones are locked no longer (rules U4 to U6). A number below what was
    /// confirmed, above what was sent, or inside a batch is refused with 9005 and changes nothing.
    /// Reply: [`crate::Reply::Sender`].
    SettleSender {
        /// The channel.
        channel: ChannelName,
        /// The generation that the number belongs to.
        generation: u64,
        /// The number.
        last_committed: u64,
        /// `LUWID` that the partner committed last.
        last_batch: UnitOfWorkId,
        /// Who the partner is. Another id than before, with numbers that were confirmed, is refused with 9005.
        partner: (QueueManagerName, QueueManagerId),
        /// Whether what the partner does not have is released: at a bind.
        release: bool,
    },
    /// Move a message that a channel cannot deliver from its transmission queue to the dead-letter queue of this queue
    /// manager, in one write set: its transmission header goes, a dead-letter header comes. The batch that holds it, in doubt
    /// or not, goes on without it. Failure: the reason why the dead-letter queue cannot take it. Reply: [`crate::Reply::Done`].
    SenderDeadLetter {
        /// The channel.
        channel: ChannelName,
        /// The message.
        sequence: Sequence,
        /// Why.
        reason: ReasonCode,
    },
    /// Discard a message that a channel cannot deliver, with an account entry. Reply: [`crate::Reply::Done`].
    SenderDiscard {
        /// The channel.
        channel: ChannelName,
        /// The message.
        sequence: Sequence,
        /// Why.
        reason: ReasonCode,
    },
    /// The channel ends: what it locked and did not prepare goes back to its place (without a backout count: a channel is no
    /// application). Reply: [`crate::Reply::Done`].
    CloseSender {
        /// The channel.
        channel: ChannelName,
    },
    /// `RESET CHANNEL` of a sender: a new generation, whose first message has this number. While the channel is open it waits
    /// for the next start with nothing in doubt. 4025 while the channel rests with a batch in doubt: resolve it first. Reply:
    /// [`crate::Reply::Done`].
    ResetSender {
        /// The channel.
        channel: ChannelName,
        /// `SEQNUM`, from 1.
        number: u32,
    },
    /// `RESET CHANNEL` of a receiver: each sender that is known here must go on with this number at its next bind, and what was
    /// committed here counts no more. 3065 if no sender is known and the number is not 1, with which every new sender begins.
    /// Reply: [`crate::Reply::Done`].
    ResetReceiver {
        /// The channel.
        channel: ChannelName,
        /// `SEQNUM`, from 1, as `SEQWRAP` shows it.
        number: u32,
    },
    /// `RESOLVE CHANNEL`: all batches in doubt are taken as committed by the partner, or as not. 4031 while the channel is open.
    /// Nothing in doubt is no failure. Reply: [`crate::Reply::Done`].
    ResolveSender {
        /// The channel.
        channel: ChannelName,
        /// `ACTION(COMMIT)`: their messages leave the transmission queue. Else they are available on it again.
        commit: bool,
    },
    /// A sender has bound to a receiving channel here: from now on only this connection may commit for it (rule U5); what an
    /// older one put and did not commit is backed out. Reply: [`crate::Reply::Receiver`].
    OpenReceiver {
        /// The channel.
        channel: ChannelName,
        /// The sender's queue manager.
        sender: QueueManagerId,
        /// Its name.
        sender_name: QueueManagerName,
        /// The sender's generation. An older one than was seen is refused with 9005.
        generation: u64,
        /// What the sender says of its numbers.
        claim: SenderClaim,
    },
    /// Commit a batch: the messages that were put under `batch`, and the channel's last number, in one write set. Only if this
    /// connection's bind is the newest and `first_number` is the last committed + 1, else 9006 or 9005 and the batch is backed
    /// out (rule U5). Reply: [`crate::Reply::Done`].
    CommitReceived {
        /// The channel.
        channel: ChannelName,
        /// The sender's queue manager.
        sender: QueueManagerId,
        /// `LUWID`: the unit of work that the messages were put in; it is begun by the receiver with [`Request::Begin`].
        batch: UnitOfWorkId,
        /// Number of the first message.
        first_number: u64,
        /// Number of the last message.
        last_number: u64,
    },
    /// Account for a message that a receiver discards. It was never on a queue here. Reply: [`crate::Reply::Done`].
    ReceiverDiscard {
        /// The channel.
        channel: ChannelName,
        /// The message.
        message_id: MessageId,
        /// Where it was going.
        queue: QueueName,
        /// Why.
        reason: AccountReason,
        /// The unit of work that the entry belongs to; `None` for a fast message.
        syncpoint: Option<UnitOfWorkId>,
    },
    /// Mark a channel as stopped by an operator, or no longer. Reply: [`crate::Reply::Done`].
    SetChannelStopped {
        /// The channel.
        channel: ChannelName,
        /// Whether it is.
        stopped: bool,
    },
    /// What is remembered of all channels. Reply: [`crate::Reply::Channels`].
    ChannelRows,
}

/// What a sender says of its numbers when it binds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SenderClaim {
    /// The number before the first one of its generation.
    pub start: u64,
    /// The last one that was confirmed.
    pub last_confirmed: u64,
    /// The last one whose confirmation may have been asked for.
    pub last_sent: u64,
    /// `LUWID` of the batch that was confirmed last.
    pub last_batch: UnitOfWorkId,
    /// The number after `last_confirmed`, as `SEQWRAP` shows it.
    pub next_shown: u32,
}
