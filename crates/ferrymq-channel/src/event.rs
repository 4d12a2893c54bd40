//! What an MCA tells operators: an AMQ id, inserts, a text. The runtime adds channel, partner and time.

use core::fmt;

use ferrymq_types::{MessageId, ReasonCode};

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Severity {
    /// A state changed.
    Information,
    /// Unexpected, and it goes on.
    Warning,
    /// Somebody must look.
    Error,
}

/// Whose dead-letter queue. The first insert of AMQ9544.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeadLetterLocation {
    /// 1: of the queue manager that reports it.
    Local,
    /// 2: of the partner.
    Remote,
}

impl DeadLetterLocation {
    /// As the insert.
    #[must_use]
    pub const fn get(self) -> u32 {
        match self {
            Self::Local => 1,
            Self::Remote => 2,
        }
    }
}

/// Something that an operator may want to know. Its text never holds message data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// AMQ9002: the channel is starting.
    Starting,
    /// AMQ9001: it ended in good order.
    Ended,
    /// AMQ9202: no address could be reached; the texts of all of them.
    HostNotAvailable {
        /// What each address said.
        text: String,
    },
    /// AMQ9207: the partner sent what it may not send, or not now.
    InvalidData {
        /// What.
        text: String,
    },
    /// AMQ9208: the partner was silent for too long.
    PartnerSilent {
        /// For how long, in seconds.
        seconds: u64,
    },
    /// AMQ9209: the connection was closed.
    ConnectionClosed {
        /// How.
        text: String,
    },
    /// AMQ9503: negotiation failed.
    NegotiationFailed {
        /// Why.
        text: String,
    },
    /// AMQ9506: the partner did not accept the last batch.
    BatchNotAccepted {
        /// What it said.
        text: String,
    },
    /// AMQ9509: the queue manager did not let the channel do something.
    QueueManagerRefused {
        /// What was asked for.
        what: &'static str,
        /// Why not.
        reason: ReasonCode,
        /// The object concerned, if any.
        object: Option<String>,
    },
    /// AMQ9514: it runs already.
    InUse,
    /// AMQ9520: the partner does not know the channel.
    NotDefinedRemotely,
    /// AMQ9526: the numbers of the two ends do not fit together.
    SequenceError {
        /// The number that this end has, or asked for.
        here: u64,
        /// The number that the partner has.
        there: u64,
        /// What that means.
        text: String,
    },
    /// AMQ9527: a message cannot be sent through the channel.
    CannotSend {
        /// The message.
        message_id: MessageId,
        /// Why.
        reason: ReasonCode,
    },
    /// AMQ9528: an operator asked for it to be closed.
    UserRequestedClosure,
    /// AMQ9534: it is stopped: an operator must start it.
    NotEnabled,
    /// AMQ9535: the partner ended the conversation, and said no more than that.
    PartnerClosed {
        /// What it said.
        text: String,
    },
    /// AMQ9544: messages could not be put where they were going and went to a dead-letter queue.
    DeadLettered {
        /// Whose.
        location: DeadLetterLocation,
        /// The message, if one.
        message_id: Option<MessageId>,
        /// Why, if one.
        reason: Option<ReasonCode>,
        /// How many.
        count: u32,
    },
    /// AMQ9545: nothing to send for `DISCINT`.
    DisconnectIntervalExpired,
    /// AMQ9547: the partner's channel is of another type.
    WrongRemoteType,
    /// AMQ9549: the transmission queue is inhibited for get.
    TransmissionQueueInhibited,
    /// AMQ9558: the partner's channel is not available at this time.
    RemoteNotAvailable {
        /// What it said.
        text: String,
    },
    /// AMQ9557: the partner did not authorise the conversation; the details are in the partner's log.
    PartnerDidNotAuthorise,
    /// AMQ9524: another queue manager than the one wanted.
    WrongQueueManager {
        /// Who it is, or what it said.
        text: String,
    },
    /// FMQ9801: a message was discarded, with account.
    Discarded {
        /// The message.
        message_id: MessageId,
        /// Why.
        reason: ReasonCode,
    },
    /// FMQ9802: the receiver waits and tries a put again (`MRRTY`).
    MessageRetry {
        /// The message.
        message_id: MessageId,
        /// Why.
        reason: ReasonCode,
    },
    /// FMQ9803: a message could not be put and was not consumed; it stays at the sender.
    NotConsumed {
        /// The message.
        message_id: MessageId,
        /// Why.
        reason: ReasonCode,
    },
    /// FMQ9804: an exception report could not be put anywhere and was dropped.
    ReportDropped {
        /// The message that it was about.
        message_id: MessageId,
        /// Why.
        reason: ReasonCode,
    },
    /// FMQ9805: fast messages were lost with the conversation (invariant N2).
    FastLost {
        /// How many.
        count: u64,
    },
    /// FMQ9806: the limits of retry are used up.
    RetriesUsedUp,
    /// FMQ9807: the next try comes at this time.
    Retrying {
        /// Short retries left.
        short_left: u32,
        /// Long retries left.
        long_left: u32,
    },
}

impl Event {
    /// Its id.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        match self {
            Self::Starting => "AMQ9002",
            Self::Ended => "AMQ9001",
            Self::HostNotAvailable { .. } => "AMQ9202",
            Self::InvalidData { .. } => "AMQ9207",
            Self::PartnerSilent { .. } => "AMQ9208",
            Self::ConnectionClosed { .. } => "AMQ9209",
            Self::NegotiationFailed { .. } => "AMQ9503",
            Self::BatchNotAccepted { .. } => "AMQ9506",
            Self::QueueManagerRefused { .. } => "AMQ9509",
            Self::InUse => "AMQ9514",
            Self::NotDefinedRemotely => "AMQ9520",
            Self::WrongQueueManager { .. } => "AMQ9524",
            Self::SequenceError { .. } => "AMQ9526",
            Self::CannotSend { .. } => "AMQ9527",
            Self::UserRequestedClosure => "AMQ9528",
            Self::NotEnabled => "AMQ9534",
            Self::PartnerClosed { .. } => "AMQ9535",
            Self::DeadLettered { .. } => "AMQ9544",
            Self::DisconnectIntervalExpired => "AMQ9545",
            Self::WrongRemoteType => "AMQ9547",
            Self::TransmissionQueueInhibited => "AMQ9549",
            Self::PartnerDidNotAuthorise => "AMQ9557",
            Self::RemoteNotAvailable { .. } => "AMQ9558",
            Self::Discarded { .. } => "FMQ9801",
            Self::MessageRetry { .. } => "FMQ9802",
            Self::NotConsumed { .. } => "FMQ9803",
            Self::ReportDropped { .. } => "FMQ9804",
            Self::FastLost { .. } => "FMQ9805",
            Self::RetriesUsedUp => "FMQ9806",
            Self::Retrying { .. } => "FMQ9807",
        }
    }

    /// How much it matters.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::Starting
            | Self::Ended
            | Self::ConnectionClosed { .. }
            | Self::InUse
            | Self::UserRequestedClosure
            | Self::DisconnectIntervalExpired
            | Self::Retrying { .. } => Severity::Information,
            Self::HostNotAvailable { .. }
            | Self::PartnerSilent { .. }
            | Self::BatchNotAccepted { .. }
            | Self::CannotSend { .. }
            | Self::PartnerClosed { .. }
            | Self::DeadLettered { .. }
            | Self::TransmissionQueueInhibited
            | Self::RemoteNotAvailable { .. }
            | Self::Discarded { .. }
            | Self::MessageRetry { .. }
            | Self::FastLost { .. }
            | Self::NotEnabled => Severity::Warning,
            Self::InvalidData { .. }
            | Self::NegotiationFailed { .. }
            | Self::QueueManagerRefused { .. }
            | Self::NotDefinedRemotely
            | Self::WrongQueueManager { .. }
            | Self::SequenceError { .. }
            | Self::WrongRemoteType
            | Self::PartnerDidNotAuthorise
            | Self::NotConsumed { .. }
            | Self::ReportDropped { .. }
            | Self::RetriesUsedUp => Severity::Error,
        }
    }
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Starting => f.write_str("the channel is starting"),
            Self::Ended => f.write_str("the channel ended normally"),
            Self::HostNotAvailable { text } => {
                write!(
                    f,
                    "the remote host is not available, the channel retries: {text}"
                )
            }
            Self::InvalidData { text } => write!(f, "the partner broke the protocol: {text}"),
            Self::PartnerSilent { seconds } => {
                write!(
                    f,
                    "nothing was received from the partner for {seconds} seconds"
                )
            }
            Self::ConnectionClosed { text } => write!(f, "the connection was closed: {text}"),
            Self::NegotiationFailed { text } => {
                write!(f, "the channel could not be established: {text}")
            }
            Self::BatchNotAccepted { text } => write!(
                f,
                "the remote queue manager did not accept the last batch: {text}"
            ),
            Self::QueueManagerRefused {
                what,
                reason,
                object,
            } => {
                write!(f, "the queue manager refused to {what}: {reason}")?;
                object.iter().try_for_each(|o| write!(f, ", object {o}"))
            }
            Self::InUse => f.write_str("the channel is running already"),
            Self::NotDefinedRemotely => {
                f.write_str("the channel is not defined at the remote queue manager")
            }
            Self::WrongQueueManager { text } => {
                write!(
                    f,
                    "the partner is not the queue manager that is wanted: {text}"
                )
            }
            Self::SequenceError { here, there, text } => write!(
                f,
                "message sequence number error: {here} here, {there} at the partner: {text}"
            ),
            Self::CannotSend { message_id, reason } => write!(
                f,
                "message {message_id} cannot be sent through the channel: {reason}"
            ),
            Self::UserRequestedClosure => f.write_str("an operator asked to close the channel"),
            Self::NotEnabled => f.write_str("the channel is stopped, an operator must start it"),
            Self::PartnerClosed { text } => write!(f, "the partner ended the channel: {text}"),
            Self::DeadLettered {
                location,
                message_id,
                reason,
                count,
            } => {
                write!(
                    f,
                    "{count} messages could not be put to the destination queue and went to a dead-letter queue, location {}",
                    location.get()
                )?;
                message_id
                    .iter()
                    .try_for_each(|id| write!(f, ", message {id}"))?;
                reason.iter().try_for_each(|r| write!(f, ", {r}"))
            }
            Self::DisconnectIntervalExpired => {
                f.write_str("the channel is closed because the disconnect interval expired")
            }
            Self::WrongRemoteType => {
                f.write_str("the channel is of another type at the remote queue manager")
            }
            Self::TransmissionQueueInhibited => {
                f.write_str("the transmission queue is inhibited for get")
            }
            Self::RemoteNotAvailable { text } => {
                write!(f, "the remote channel is not currently available: {text}")
            }
            Self::PartnerDidNotAuthorise => {
                f.write_str("the partner did not authorise the channel; its log says why")
            }
            Self::Discarded { message_id, reason } => {
                write!(f, "message {message_id} was discarded: {reason}")
            }
            Self::MessageRetry { message_id, reason } => {
                write!(f, "message {message_id} cannot be put yet: {reason}")
            }
            Self::NotConsumed { message_id, reason } => write!(
                f,
                "message {message_id} cannot be put and was not consumed: {reason}"
            ),
            Self::ReportDropped { message_id, reason } => write!(
                f,
                "the exception report about message {message_id} cannot be put and was dropped: {reason}"
            ),
            Self::FastLost { count } => write!(
                f,
                "{count} fast non-persistent messages were lost with the conversation"
            ),
            Self::RetriesUsedUp => f.write_str("the channel used up its retries and is stopped"),
            Self::Retrying {
                short_left,
                long_left,
            } => write!(
                f,
                "the channel retries later; {short_left} short and {long_left} long retries are left"
            ),
        }
    }
}
