//! What an MCA needs to know of its definition and its queue manager, read when a conversation starts.

use core::fmt;

use ferrymq_objects::{Queue, QueueManager, ReceiverChannel, SenderChannel};
use ferrymq_types::{QueueManagerId, QueueManagerName, QueueName, ReasonCode};

use crate::undelivered::DeadLetterQueue;

/// The port of a connection name that names none.
pub const DEFAULT_PORT: u16 = 1414;

/// Where to connect to.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Address {
    /// Host name or address.
    pub host: String,
    /// Port. Default [`DEFAULT_PORT`].
    pub port: u16,
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}({})", self.host, self.port)
    }
}

/// Why a `CONNAME` cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("connection name {part:?} is not host(port)")]
pub struct ConnectionNameError {
    /// The part that is wrong.
    pub part: String,
}

/// The addresses of a `CONNAME`: `host(port),host(port)`, in their order.
///
/// # Errors
/// [`ConnectionNameError`] if a part has no host, or a port that is none.
pub fn parse_connection_name(text: &str) -> Result<Vec<Address>, ConnectionNameError> {
    text.split(',')
        .map(str::trim)
        .map(|part| parse_address(part).ok_or_else(|| ConnectionNameError { part: part.into() }))
        .collect()
}

fn parse_address(part: &str) -> Option<Address> {
    let (host, port) = match part.split_once('(') {
        None => (part, DEFAULT_PORT),
        Some((host, rest)) => (host.trim(), rest.strip_suffix(')')?.trim().parse().ok()?),
    };
    let plain = !host.is_empty() && !host.contains([' ', ')', '(']);
    (plain && port != 0).then(|| Address {
        host: host.to_owned(),
        port,
    })
}

/// The `DEADQ` of a queue manager.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum DeadLetterSetting {
    /// Blank.
    #[default]
    Blank,
    /// Names this queue, local or not defined.
    Queue(QueueName),
    /// Names an object that is no local queue: it cannot be used.
    ///
    /// Source: IBM MQ, `DEADQ`: "must be a local queue".
    NotLocal(QueueName),
}

impl DeadLetterSetting {
    /// As the queue manager has it.
    #[must_use]
    pub fn of(qmgr: &QueueManager) -> Self {
        let Some(name) = &qmgr.attributes.dead_letter_queue_name else {
            return Self::Blank;
        };
        match qmgr.queues.get(name) {
            None | Some(Queue::Local(_)) => Self::Queue(name.clone()),
            Some(Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_)) => {
                Self::NotLocal(name.clone())
            }
        }
    }

    /// The queue, if it can be tried.
    #[must_use]
    pub const fn queue(&self) -> Option<&QueueName> {
        match self {
            Self::Queue(name) => Some(name),
            Self::Blank | Self::NotLocal(_) => None,
        }
    }

    /// What is known before it is tried.
    #[must_use]
    pub const fn untried(&self) -> DeadLetterQueue {
        match self {
            Self::Blank => DeadLetterQueue::Blank,
            Self::Queue(_) => DeadLetterQueue::Untried,
            Self::NotLocal(_) => DeadLetterQueue::Failed(ReasonCode::OBJECT_TYPE_ERROR),
        }
    }
}

/// What a sender needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SenderConfig {
    /// The definition.
    pub channel: SenderChannel,
    /// Its addresses, in the order of `CONNAME`; at least one.
    pub addresses: Vec<Address>,
    /// The queue manager.
    pub queue_manager: QueueManagerName,
    /// Its id.
    pub queue_manager_id: QueueManagerId,
    /// The only queue manager that is wanted at the other end; `None` (the default) is any.
    pub partner: Option<QueueManagerName>,
    /// `DEADQ` of the queue manager.
    pub dead_letter: DeadLetterSetting,
    /// `MAXMSGL` of the queue manager, bytes: a channel's `MAXMSGL` of 0 means this.
    pub max_message_length: u32,
}

impl SenderConfig {
    /// As defined in `qmgr`.
    ///
    /// # Errors
    /// [`ConnectionNameError`] if `CONNAME` cannot be read.
    pub fn new(channel: SenderChannel, qmgr: &QueueManager) -> Result<Self, ConnectionNameError> {
        let addresses = parse_connection_name(&channel.connection_name)?;
        Ok(Self {
            channel,
            addresses,
            queue_manager: qmgr.attributes.name.clone(),
            queue_manager_id: qmgr.attributes.id,
            partner: None,
            dead_letter: DeadLetterSetting::of(qmgr),
            max_message_length: qmgr.attributes.max_message_length,
        })
    }

    /// `MAXMSGL` that is proposed, bytes.
    #[must_use]
    pub const fn message_length_max(&self) -> u32 {
        length_max(
            self.channel.base.max_message_length,
            self.max_message_length,
        )
    }
}

/// What a receiver needs to know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReceiverConfig {
    /// The definition.
    pub channel: ReceiverChannel,
    /// The queue manager.
    pub queue_manager: QueueManagerName,
    /// Its id.
    pub queue_manager_id: QueueManagerId,
    /// `DEADQ` of the queue manager.
    pub dead_letter: DeadLetterSetting,
    /// `MAXMSGL` of the queue manager, bytes.
    pub max_message_length: u32,
    /// `MAXUMSGS` of the queue manager: a batch is no longer than this.
    pub max_uncommitted_messages: u32,
    /// Where the conversation comes from and who it is, for displays: address and distinguished name.
    pub connection_name: String,
    /// The partner's certificate subject, for displays; empty without TLS.
    pub peer: String,
}

impl ReceiverConfig {
    /// As defined in `qmgr`, for a conversation from `connection_name` with certificate subject `peer`.
    #[must_use]
    pub fn new(
        channel: ReceiverChannel,
        qmgr: &QueueManager,
        connection_name: String,
        peer: String,
    ) -> Self {
        Self {
            channel,
            queue_manager: qmgr.attributes.name.clone(),
            queue_manager_id: qmgr.attributes.id,
            dead_letter: DeadLetterSetting::of(qmgr),
            max_message_length: qmgr.attributes.max_message_length,
            max_uncommitted_messages: qmgr.attributes.max_uncommitted_messages,
            connection_name,
            peer,
        }
    }

    /// `MAXMSGL` that is offered, bytes.
    #[must_use]
    pub const fn message_length_max(&self) -> u32 {
        length_max(
            self.channel.base.max_message_length,
            self.max_message_length,
        )
    }
}

/// A channel's `MAXMSGL`; 0 and what is above the queue manager's mean the queue manager's.
const fn length_max(channel: u32, queue_manager: u32) -> u32 {
    if channel == 0 || channel > queue_manager {
        queue_manager
    } else {
        channel
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_names_are_hosts_with_ports_in_order() {
        let check = |text: &str, expected: &[&str]| {
            let found: Vec<String> = parse_connection_name(text)
                .unwrap()
                .iter()
                .map(ToString::to_string)
                .collect();
            assert_eq!(found, expected, "{text}");
        };
        check("qm2.example(1415)", &["qm2.example(1415)"]);
        check("qm2", &["qm2(1414)"]);
        check("a(1), b (2) ,c", &["a(1)", "b(2)", "c(1414)"]);
        check("::1(1415)", &["::1(1415)"]);
        for bad in [
            "", "a(", "a(x)", "a(70000)", "a(0)", "(1414)", "a,,b", "a)b", "a(1)2",
        ] {
            assert!(parse_connection_name(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn a_channel_takes_no_more_than_its_queue_manager() {
        assert_eq!(length_max(0, 100), 100);
        assert_eq!(length_max(50, 100), 50);
        assert_eq!(length_max(200, 100), 100);
    }
}
