//! The kinds of objects that a queue manager owns.

use core::fmt;

use crate::attribute::{AttributeProblem, AttributeSpec};
use crate::channel_table::{channel_attribute, channel_attributes};
use crate::process::{process_attribute, process_attributes};
use crate::queue_table::{queue_attribute, queue_attributes};

/// A kind of object. Queues of all kinds share one name space, and so do channels of all types, and processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectKind {
    /// `QLOCAL`.
    LocalQueue,
    /// `QREMOTE`.
    RemoteQueue,
    /// `QALIAS`.
    AliasQueue,
    /// `CHANNEL`, `CHLTYPE(SDR)`.
    SenderChannel,
    /// `CHANNEL`, `CHLTYPE(RCVR)`.
    ReceiverChannel,
    /// `CHANNEL`, `CHLTYPE(SVRCONN)`.
    ServerConnectionChannel,
    /// `PROCESS`.
    Process,
    /// `QMODEL`.
    ModelQueue,
}

/// What shares one name space and one set of attributes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ObjectClass {
    /// Queues of all kinds.
    Queue,
    /// Channels of all types.
    Channel,
    /// Processes.
    Process,
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [Self; 8] = [
        Self::LocalQueue,
        Self::RemoteQueue,
        Self::AliasQueue,
        Self::SenderChannel,
        Self::ReceiverChannel,
        Self::ServerConnectionChannel,
        Self::Process,
        Self::ModelQueue,
    ];

    /// What it shares its name space with.
    #[must_use]
    pub const fn class(self) -> ObjectClass {
        match self {
            Self::LocalQueue | Self::RemoteQueue | Self::AliasQueue | Self::ModelQueue => {
                ObjectClass::Queue
            }
            Self::SenderChannel | Self::ReceiverChannel | Self::ServerConnectionChannel => {
                ObjectClass::Channel
            }
            Self::Process => ObjectClass::Process,
        }
    }

    /// Whether it is a kind of queue.
    #[must_use]
    pub const fn is_queue(self) -> bool {
        matches!(self.class(), ObjectClass::Queue)
    }

    /// Whether it is a type of channel.
    #[must_use]
    pub const fn is_channel(self) -> bool {
        matches!(self.class(), ObjectClass::Channel)
    }

    /// The noun of its commands: `QLOCAL`, `QREMOTE`, `QALIAS`, `QMODEL`, `CHANNEL` or `PROCESS`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::LocalQueue => "QLOCAL",
            Self::RemoteQueue => "QREMOTE",
            Self::AliasQueue => "QALIAS",
            Self::SenderChannel | Self::ReceiverChannel | Self::ServerConnectionChannel => {
                "CHANNEL"
            }
            Self::Process => "PROCESS",
            Self::ModelQueue => "QMODEL",
        }
    }

    /// The value of `TYPE` of a queue and of `CHLTYPE` of a channel; `PROCESS` of a process.
    #[must_use]
    pub const fn type_word(self) -> &'static str {
        match self {
            Self::LocalQueue => "QLOCAL",
            Self::RemoteQueue => "QREMOTE",
            Self::AliasQueue => "QALIAS",
            Self::SenderChannel => "SDR",
            Self::ReceiverChannel => "RCVR",
            Self::ServerConnectionChannel => "SVRCONN",
            Self::Process => "PROCESS",
            Self::ModelQueue => "QMODEL",
        }
    }

    /// From the value of `TYPE` or `CHLTYPE`, in upper case.
    #[must_use]
    pub fn from_type_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|k| k.type_word() == word)
    }

    /// The object that new objects of this kind take their attributes from.
    #[must_use]
    pub const fn default_object(self) -> &'static str {
        match self {
            Self::LocalQueue => "SYSTEM.DEFAULT.LOCAL.QUEUE",
            Self::RemoteQueue => "SYSTEM.DEFAULT.REMOTE.QUEUE",
            Self::AliasQueue => "SYSTEM.DEFAULT.ALIAS.QUEUE",
            Self::SenderChannel => "SYSTEM.DEF.SENDER",
            Self::ReceiverChannel => "SYSTEM.DEF.RECEIVER",
            Self::ServerConnectionChannel => "SYSTEM.DEF.SVRCONN",
            Self::Process => "SYSTEM.DEFAULT.PROCESS",
            Self::ModelQueue => "SYSTEM.DEFAULT.MODEL.QUEUE",
        }
    }
}

impl fmt::Display for ObjectKind {
    /// `QLOCAL`, or `CHANNEL CHLTYPE(SDR)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.class() {
            ObjectClass::Queue | ObjectClass::Process => f.write_str(self.noun()),
            ObjectClass::Channel => write!(f, "{} CHLTYPE({})", self.noun(), self.type_word()),
        }
    }
}

impl ObjectKind {
    /// The attribute of this kind of object that `word`, in upper case, means: a keyword or a synonym, without `NO`.
    ///
    /// # Errors
    /// [`AttributeProblem`]: not known, not supported, or of another kind of object.
    pub fn attribute(self, word: &str) -> Result<&'static AttributeSpec, AttributeProblem> {
        match self.class() {
            ObjectClass::Queue => queue_attribute(Some(self), word),
            ObjectClass::Channel => channel_attribute(Some(self), word),
            ObjectClass::Process => process_attribute(word),
        }
    }

    /// The attributes of this kind of object, alphabetically.
    #[must_use]
    pub fn attributes(self) -> Vec<&'static AttributeSpec> {
        match self.class() {
            ObjectClass::Queue => queue_attributes(Some(self)).collect(),
            ObjectClass::Channel => channel_attributes(Some(self)).collect(),
            ObjectClass::Process => process_attributes().collect(),
        }
    }
}

/// The attribute that `word`, in upper case, means on a queue of any kind.
///
/// # Errors
/// [`AttributeProblem`]: not known or not supported.
pub fn any_queue_attribute(word: &str) -> Result<&'static AttributeSpec, AttributeProblem> {
    queue_attribute(None, word)
}

/// The attribute that `word`, in upper case, means on a channel of any type.
///
/// # Errors
/// [`AttributeProblem`]: not known or not supported.
pub fn any_channel_attribute(word: &str) -> Result<&'static AttributeSpec, AttributeProblem> {
    channel_attribute(None, word)
}
