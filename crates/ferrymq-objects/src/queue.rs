//! Queue definitions, attribute by attribute.

use ferrymq_types::{
    ObjectId, Persistence, Priority, ProcessName, QueueManagerName, QueueName, Timestamp,
};

use crate::QueueEvents;

/// Whether something is allowed. `ENABLED`, `DISABLED`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Enabled {
    /// `ENABLED`.
    #[default]
    Yes,
    /// `DISABLED`.
    No,
}

/// What a local queue is for. `USAGE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Usage {
    /// `NORMAL`: for applications.
    #[default]
    Normal,
    /// `XMITQ`: messages wait for a channel.
    Transmission,
}

/// In what order messages are delivered. `MSGDLVSQ`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DeliverySequence {
    /// `PRIORITY`: highest priority first, first in first out within one.
    #[default]
    Priority,
    /// `FIFO`: priority does not count.
    Fifo,
}

/// What becomes of non-persistent messages over a restart. `NPMCLASS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum NonPersistentClass {
    /// `NORMAL`: they are gone after every restart.
    #[default]
    Normal,
    /// `HIGH`: kept over an orderly stop. Accepted and shown; messages are treated as `NORMAL` so far.
    High,
}

/// How a local queue came to be, or what a model makes. `DEFTYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DefinitionType {
    /// `PREDEFINED`: by a command.
    #[default]
    Predefined,
    /// `PERMDYN`: by the open of a model queue; it stays until it is deleted.
    PermanentDynamic,
    /// `TEMPDYN`: by the open of a model queue; it goes with the handle that made it, and holds no persistent messages.
    TemporaryDynamic,
}

impl DefinitionType {
    /// Whether the open of a model queue made it.
    #[must_use]
    pub const fn is_dynamic(self) -> bool {
        match self {
            Self::Predefined => false,
            Self::PermanentDynamic | Self::TemporaryDynamic => true,
        }
    }
}

/// What input as the queue defines is. `DEFSOPT`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum DefaultInputUse {
    /// `SHARED`.
    #[default]
    Shared,
    /// `EXCL`.
    Exclusive,
}

/// How a getter has the properties of a message that does not say how it wants them. `PROPCTL`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum PropertyControl {
    /// `COMPAT`: in a header in front of the data, if any is of a kind that programs expect there.
    #[default]
    Compatibility,
    /// `NONE`: not at all.
    None,
    /// `ALL`: in a header in front of the data.
    All,
    /// `FORCE`: in a header in front of the data, whatever the getter can do.
    Force,
    /// `V6COMPAT`: in a header in front of the data. It has the folders that were put; blanks and order may be others.
    Version6,
}

/// When a trigger is due. `TRIGTYPE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum TriggerType {
    /// `FIRST`: the first message of an empty queue.
    #[default]
    First,
    /// `EVERY`.
    Every,
    /// `DEPTH`.
    Depth,
    /// `NONE`.
    None,
}

/// What every kind of queue has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueBase {
    /// Never used again, so that a queue that is defined anew inherits nothing.
    pub id: ObjectId,
    /// The name.
    pub name: QueueName,
    /// `DESCR`, at most 64 characters.
    pub description: String,
    /// `PUT`. Default `ENABLED`.
    pub put: Enabled,
    /// `DEFPRTY`. Default 0.
    pub default_priority: Priority,
    /// `DEFPSIST`. Default `NO`. The first definition on the path counts.
    pub default_persistence: Persistence,
    /// `ALTDATE`, `ALTTIME`.
    pub altered: Timestamp,
}

/// A queue that holds messages. `QLOCAL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalQueue {
    /// What every kind has.
    pub base: QueueBase,
    /// `GET`. Default `ENABLED`.
    pub get: Enabled,
    /// `MAXDEPTH`, messages, uncommitted ones included. Default 5000.
    pub max_depth: u32,
    /// `MAXMSGL`, bytes. Default 4194304.
    pub max_message_length: u32,
    /// `MSGDLVSQ`. Default `PRIORITY`.
    pub delivery_sequence: DeliverySequence,
    /// `USAGE`. Default `NORMAL`.
    pub usage: Usage,
    /// `TRIGGER`, `NOTRIGGER`. Default `NOTRIGGER`.
    pub trigger: bool,
    /// `TRIGTYPE`. Default `FIRST`.
    pub trigger_type: TriggerType,
    /// `TRIGDATA`: on a transmission queue the channel to start. At most 64 characters.
    pub trigger_data: String,
    /// `TRIGDPTH`, messages, for `TRIGTYPE(DEPTH)`. Default 1.
    pub trigger_depth: u32,
    /// `TRIGMPRI`: messages of lower priority do not count for triggers. Default 0.
    pub trigger_message_priority: Priority,
    /// `PROCESS`: what a trigger starts; a transmission queue needs none.
    pub process_name: Option<ProcessName>,
    /// `INITQ`: the initiation queue. `SYSTEM.CHANNEL.INITQ` for channels.
    pub initiation_queue: Option<QueueName>,
    /// `BOTHRESH`, backouts. Default 0: poison handling off.
    pub backout_threshold: u32,
    /// `BOQNAME`: where a message goes when its backout count reaches the threshold.
    pub backout_requeue_name: Option<QueueName>,
    /// `NPMCLASS`. Default `NORMAL`.
    pub non_persistent_class: NonPersistentClass,
    /// `PROPCTL`. Default `COMPAT`.
    pub property_control: PropertyControl,
    /// `SHARE`, `NOSHARE`. Default `SHARE`; of a model `NOSHARE`.
    pub share: bool,
    /// `DEFSOPT`. Default `SHARED`; of a model `EXCL`.
    pub default_input_use: DefaultInputUse,
    /// `DEFTYPE`. Default `PREDEFINED`; of a model `TEMPDYN`.
    pub definition_type: DefinitionType,
    /// Performance events.
    pub events: QueueEvents,
    /// `CRDATE`, `CRTIME`.
    pub created: Timestamp,
}

/// Local knowledge of a queue elsewhere, or of a queue manager. `QREMOTE`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RemoteQueue {
    /// What every kind has.
    pub base: QueueBase,
    /// `RNAME`; `None` makes it a queue-manager alias (or a reply-to alias when used so).
    pub remote_name: Option<QueueName>,
    /// `RQMNAME`.
    pub remote_queue_manager: Option<QueueManagerName>,
    /// `XMITQ`.
    pub transmission_queue: Option<QueueName>,
}

/// Another name for a queue. `QALIAS`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AliasQueue {
    /// What every kind has.
    pub base: QueueBase,
    /// `GET`. Default `ENABLED`.
    pub get: Enabled,
    /// `PROPCTL`. Default `COMPAT`. What the queue behind it says does not count then.
    pub property_control: PropertyControl,
    /// `TARGET` (`TARGQ`).
    pub target: Option<QueueName>,
}

/// What the open of it makes a dynamic queue from. `QMODEL`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelQueue {
    /// The queue that is made, but for name, id and times.
    pub template: LocalQueue,
}

/// A queue definition of any kind. All kinds share one name space.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Queue {
    /// `QLOCAL`.
    Local(LocalQueue),
    /// `QREMOTE`.
    Remote(RemoteQueue),
    /// `QALIAS`.
    Alias(AliasQueue),
    /// `QMODEL`.
    Model(ModelQueue),
}

impl Queue {
    /// What every kind has.
    #[must_use]
    pub const fn base(&self) -> &QueueBase {
        match self {
            Self::Local(q) => &q.base,
            Self::Remote(q) => &q.base,
            Self::Alias(q) => &q.base,
            Self::Model(q) => &q.template.base,
        }
    }
}
