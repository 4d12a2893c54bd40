//! The kinds of objects that a queue manager owns.

use core::fmt;

use crate::attribute::{AttributeProblem, AttributeSpec};
use crate::channel_table::{channel_attribute, channel_attributes};
use crate::queue_table::{queue_attribute, queue_attributes};

/// A kind of object. Queues of all kinds share one name space, and so do channels of all types.
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
}

impl ObjectKind {
    /// Every kind.
    pub const ALL: [Self; 6] = [
        Self::LocalQueue,
        Self::RemoteQueue,
        Self::AliasQueue,
        Self::SenderChannel,
        Self::ReceiverChannel,
        Self::ServerConnectionChannel,
    ];

    /// Whether it is a kind of queue; otherwise it is a type of channel.
    #[must_use]
    pub const fn is_queue(self) -> bool {
        match self {
            Self::LocalQueue | Self::RemoteQueue | Self::AliasQueue => true,
            Self::SenderChannel | Self::ReceiverChannel | Self::ServerConnectionChannel => false,
        }
    }

    /// The noun of its commands: `QLOCAL`, `QREMOTE`, `QALIAS` or `CHANNEL`.
    #[must_use]
    pub const fn noun(self) -> &'static str {
        match self {
            Self::LocalQueue => "QLOCAL",
            Self::RemoteQueue => "QREMOTE",
            Self::AliasQueue => "QALIAS",
            Self::SenderChannel | Self::ReceiverChannel | Self::ServerConnectionChannel => {
                "CHANNEL"
            }
        }
    }

    /// The value of `TYPE` of a queue and of `CHLTYPE` of a channel.
    #[must_use]
    pub const fn type_word(self) -> &'static str {
        match self {
            Self::LocalQueue => "QLOCAL",
            Self::RemoteQueue => "QREMOTE",
            Self::AliasQueue => "QALIAS",
            Self::SenderChannel => "SDR",
            Self::ReceiverChannel => "RCVR",
            Self::ServerConnectionChannel => "SVRCONN",
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
        }
    }
}

impl fmt::Display for ObjectKind {
    /// `QLOCAL`, or `CHANNEL CHLTYPE(SDR)`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_queue() {
            f.write_str(self.noun())
        } else {
            write!(f, "{} CHLTYPE({})", self.noun(), self.type_word())
        }
    }
}

impl ObjectKind {
    /// The attribute of this kind of object that `word`, in upper case, means: a keyword or a synonym, without `NO`.
    ///
    /// # Errors
    /// [`AttributeProblem`]: not known, not supported, or of another kind of object.
    pub fn attribute(self, word: &str) -> Result<&'static AttributeSpec, AttributeProblem> {
        if self.is_queue() {
            queue_attribute(Some(self), word)
        } else {
            channel_attribute(Some(self), word)
        }
    }

    /// The attributes of this kind of object, alphabetically.
    #[must_use]
    pub fn attributes(self) -> Vec<&'static AttributeSpec> {
        if self.is_queue() {
            queue_attributes(Some(self)).collect()
        } else {
            channel_attributes(Some(self)).collect()
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
