//! A queue manager: its own attributes and the objects that it owns.

use core::time::Duration;
use std::collections::BTreeMap;

use ferrymq_types::{
    ChannelName, ProcessName, QueueManagerId, QueueManagerName, QueueName, Timestamp,
};

use crate::{Channel, ChannelRule, Enabled, Process, Queue, QueueManagerEvents};

/// What `DISPLAY QMGR` shows and `ALTER QMGR` changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueManagerAttributes {
    /// `QMNAME`.
    pub name: QueueManagerName,
    /// `QMID` as bytes: made once, when the queue manager is created.
    pub id: QueueManagerId,
    /// `DESCR`, at most 64 characters.
    pub description: String,
    /// `DEADQ`: the dead-letter queue.
    pub dead_letter_queue_name: Option<QueueName>,
    /// `DEFXMITQ`: where messages for unknown queue managers go.
    pub default_transmission_queue: Option<QueueName>,
    /// `MAXMSGL`, bytes. Default 4194304.
    pub max_message_length: u32,
    /// `MAXPROPL`, bytes of the names and values of a message's properties; `None` is `NOLIMIT`, the default.
    pub max_properties_length: Option<u32>,
    /// `MAXUMSGS`, messages of one unit of work. Default 10000.
    pub max_uncommitted_messages: u32,
    /// `MAXHANDS`, handles of one connection. Default 256.
    pub max_handles: u32,
    /// `TRIGINT`, in milliseconds in MQSC: how long after a trigger message of `TRIGTYPE(FIRST)` another message triggers
    /// again. Default 999999999.
    pub trigger_interval: Duration,
    /// `CHLAUTH`: whether channel authentication records are looked at. Default `ENABLED`.
    pub channel_authentication: Enabled,
    /// Which events are reported.
    pub events: QueueManagerEvents,
    /// `CRDATE`, `CRTIME`.
    pub created: Timestamp,
    /// `ALTDATE`, `ALTTIME`.
    pub altered: Timestamp,
}

/// A queue manager and its objects, as of one applied command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueManager {
    /// Its attributes.
    pub attributes: QueueManagerAttributes,
    /// Its queues of all kinds.
    pub queues: BTreeMap<QueueName, Queue>,
    /// Its channels of all types.
    pub channels: BTreeMap<ChannelName, Channel>,
    /// Its processes.
    pub processes: BTreeMap<ProcessName, Process>,
    /// Its channel authentication records, by profile. No profile has none.
    pub channel_rules: BTreeMap<String, Vec<ChannelRule>>,
    /// The node that hosts it.
    pub node: u64,
}
