//! What a running queue manager tells DISPLAY: plain data, made by whoever runs it.

use std::collections::BTreeMap;

use ferrymq_objects::ObjectKind;
use ferrymq_types::{ChannelName, QueueManagerName, QueueName, Timestamp, UnitOfWorkId};

/// What runs at the moment of a DISPLAY.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RuntimeStatus {
    /// Local queues; one that is missing here is shown as empty and not open.
    pub queues: BTreeMap<QueueName, QueueStatus>,
    /// Channel instances, current and saved. Rows in state `INACTIVE` are shown by `SAVED` only.
    pub channels: Vec<ChannelStatus>,
}

/// A local queue at run time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct QueueStatus {
    /// `CURDEPTH`, messages, uncommitted ones included.
    pub current_depth: u64,
    /// Uncommitted puts and gets. `UNCOM` says whether there are any.
    pub uncommitted: u64,
    /// `IPPROCS`: handles open for input.
    pub input_handles: u64,
    /// `OPPROCS`: handles open for output.
    pub output_handles: u64,
    /// `MSGAGE`, seconds; `None` on an empty queue.
    pub oldest_message_age_seconds: Option<u64>,
    /// `LGETDATE`, `LGETTIME`.
    pub last_get: Option<Timestamp>,
    /// `LPUTDATE`, `LPUTTIME`.
    pub last_put: Option<Timestamp>,
    /// Its trigger of `TRIGTYPE(DEPTH)` fired and switched itself off: shown as `NOTRIGGER`.
    pub trigger_used: bool,
}

/// The state of a channel. `STATUS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ChannelState {
    /// Never run, or ended normally.
    #[default]
    Inactive,
    /// Its task begins.
    Initializing,
    /// It waits for its turn.
    Starting,
    /// It connects and negotiates.
    Binding,
    /// It waits for its partner's call.
    Requesting,
    /// It moves messages or waits for some.
    Running,
    /// The receiver waits between attempts to put a message.
    Paused,
    /// It ends.
    Stopping,
    /// It waits for its next attempt.
    Retrying,
    /// Until it is started by hand.
    Stopped,
}

impl ChannelState {
    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Inactive => "INACTIVE",
            Self::Initializing => "INITIALIZING",
            Self::Starting => "STARTING",
            Self::Binding => "BINDING",
            Self::Requesting => "REQUESTING",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Stopping => "STOPPING",
            Self::Retrying => "RETRYING",
            Self::Stopped => "STOPPED",
        }
    }
}

/// An instance of a channel. Negotiated values are `None` before the bind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChannelStatus {
    /// `CHANNEL`.
    pub name: ChannelName,
    /// `CHLTYPE`.
    pub channel_type: ObjectKind,
    /// `STATUS`.
    pub state: ChannelState,
    /// `CONNAME`: the partner's address.
    pub connection_name: String,
    /// `RQMNAME`: the partner, if it is known.
    pub remote_queue_manager: Option<QueueManagerName>,
    /// `XMITQ` of a sender.
    pub transmission_queue: Option<QueueName>,
    /// `INDOUBT`: a batch waits for its confirmation.
    pub in_doubt: bool,
    /// `CURLUWID`: the current batch, or the one in doubt.
    pub current_luwid: UnitOfWorkId,
    /// `CURMSGS`: its messages.
    pub current_messages: u64,
    /// `CURSEQNO`: the number of the last message sent or received.
    pub current_sequence: u64,
    /// `LSTLUWID`: the last batch that was confirmed.
    pub last_luwid: UnitOfWorkId,
    /// `LSTSEQNO`: the number of its last message.
    pub last_sequence: u64,
    /// `MSGS` since the start.
    pub messages: u64,
    /// `BATCHES` since the start.
    pub batches: u64,
    /// `BYTSSENT` since the start.
    pub bytes_sent: u64,
    /// `BYTSRCVD` since the start.
    pub bytes_received: u64,
    /// `SHORTRTS`, of a sender.
    pub short_retries_left: Option<u64>,
    /// `LONGRTS`, of a sender.
    pub long_retries_left: Option<u64>,
    /// `CHSTADA`, `CHSTATI`.
    pub started: Option<Timestamp>,
    /// `LSTMSGDA`, `LSTMSGTI`.
    pub last_message: Option<Timestamp>,
    /// `BATCHSZ`, negotiated.
    pub batch_size: Option<u32>,
    /// `HBINT`, seconds, negotiated.
    pub heartbeat_interval: Option<u32>,
    /// `MAXMSGL`, bytes, negotiated.
    pub max_message_length: Option<u32>,
    /// `NPMSPEED`, negotiated.
    pub non_persistent_message_speed: Option<ferrymq_objects::MessageSpeed>,
    /// `SSLPEER`: the subject of the partner's certificate, printed.
    pub ssl_peer: String,
    /// `SSLCERTI`: its issuer, printed.
    pub ssl_cert_issuer: String,
    /// `SUBSTATE`: what it does just now, such as `MQGET`; empty for nothing in particular.
    pub substate: String,
    /// `STOPREQ`.
    pub stop_requested: bool,
    /// `MCASTAT`: whether its task runs.
    pub mca_running: bool,
}

impl ChannelStatus {
    /// An instance that has not done anything yet.
    #[must_use]
    pub const fn new(name: ChannelName, channel_type: ObjectKind, state: ChannelState) -> Self {
        Self {
            name,
            channel_type,
            state,
            connection_name: String::new(),
            remote_queue_manager: None,
            transmission_queue: None,
            in_doubt: false,
            current_luwid: UnitOfWorkId::NONE,
            current_messages: 0,
            current_sequence: 0,
            last_luwid: UnitOfWorkId::NONE,
            last_sequence: 0,
            messages: 0,
            batches: 0,
            bytes_sent: 0,
            bytes_received: 0,
            short_retries_left: None,
            long_retries_left: None,
            started: None,
            last_message: None,
            batch_size: None,
            heartbeat_interval: None,
            max_message_length: None,
            non_persistent_message_speed: None,
            ssl_peer: String::new(),
            ssl_cert_issuer: String::new(),
            substate: String::new(),
            stop_requested: false,
            mca_running: false,
        }
    }
}
