//! Object definitions as a replicated machine: typed commands in, definitions out, the same on every node. Name resolution.
//!
//! **Invariant:** this crate knows no messages, no MQSC text and no I/O. Applying the same commands in the same order gives
//! the same definitions on every node.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod attribute;
mod channel;
mod channel_rule;
mod channel_table;
mod command;
mod definitions;
mod events;
mod kind;
mod outcome;
mod process;
mod queue;
mod queue_defaults;
mod queue_manager;
mod queue_manager_table;
mod queue_table;
mod resolve;
mod table;
#[cfg(test)]
mod tests;

pub use attribute::{
    AttributeError, AttributeForm, AttributeProblem, AttributeSpec, Attributes,
    CONNECTION_NAME_LENGTH_MAX, application_type_number, application_type_value,
};
pub use channel::{
    Channel, ChannelBase, MessageSpeed, ReceiverChannel, SenderChannel, ServerConnectionChannel,
    SslClientAuthentication, UseDlq,
};
pub use channel_rule::{
    ChannelRule, ChannelRuleProblem, ChannelRuleType, RULE_LIST_MAX, RULES_OF_PROFILE_MAX,
    RuleChange, UserSource, channel_rule_attribute, channel_rule_attributes, is_channel_profile,
};
pub use command::{Action, Applied, Command, CommandError, DeleteKind, OperatorMessage, RequestId};
pub use definitions::{Definitions, REQUESTS_REMEMBERED_MAX};
pub use events::{QueueEvents, QueueManagerEvents, ServiceIntervalEvent};
pub use ferrymq_types::AttributeValue;
pub use kind::{ObjectClass, ObjectKind, any_channel_attribute, any_queue_attribute};
pub use outcome::Remembered;
pub use process::{Process, process_attribute, process_attributes};
pub use queue::{
    AliasQueue, DefaultInputUse, DefinitionType, DeliverySequence, Enabled, LocalQueue, ModelQueue,
    NonPersistentClass, PropertyControl, Queue, QueueBase, RemoteQueue, TriggerType, Usage,
};
pub use queue_manager::{QueueManager, QueueManagerAttributes};
pub use queue_manager_table::{
    CHANNEL_EVENT_QUEUE, CHANNEL_INITIATION_QUEUE, DEFAULT_INITIATION_QUEUE,
    PERFORMANCE_EVENT_QUEUE, QUEUE_MANAGER_EVENT_QUEUE, SYSTEM_DEAD_LETTER_QUEUE,
    queue_manager_attribute, queue_manager_attributes,
};
pub use resolve::{Resolution, Target};
pub use table::{mqsc_date, mqsc_time};
