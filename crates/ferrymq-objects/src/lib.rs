//! Object definitions as a replicated machine: typed commands in, definitions out, the same on every node. Name resolution.
//!
//! **Invariant:** this crate knows no messages, no MQSC text and no I/O. Applying the same commands in the same order gives
//! the same definitions on every node.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod channel;
mod queue;
mod queue_manager;

pub use channel::{
    Channel, ChannelBase, MessageSpeed, ReceiverChannel, SenderChannel, ServerConnectionChannel,
    SslClientAuthentication, UseDlq,
};
pub use queue::{
    AliasQueue, DeliverySequence, Enabled, LocalQueue, NonPersistentClass, Queue, QueueBase,
    RemoteQueue, TriggerType, Usage,
};
pub use queue_manager::{QueueManager, QueueManagerAttributes};
