//! The words of FerryMQ: names, ids, the message descriptor and its headers, reason codes, time, distinguished names,
//! and the write set, which is what one step of a queue manager changed.
//!
//! **Invariant:** this crate knows no clock, no I/O, no serialisation format and no async runtime.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod account;
mod attribute_value;
mod descriptor;
mod distinguished_name;
mod header;
mod ids;
mod limits;
mod message;
mod names;
mod pcf;
mod properties;
mod reason;
mod reason_pages;
pub mod rfh2;
mod time;
mod trigger_message;
mod write_set;

pub use account::{AccountEntry, AccountReason};
pub use attribute_value::AttributeValue;
pub use descriptor::{
    ApplicationType, MessageDescriptor, MessageType, Persistence, Priority, ReportOptions,
    RequestedReport,
};
pub use distinguished_name::{DistinguishedName, DnAttribute, DnAttributeType};
pub use header::{DeadLetterHeader, HeaderError, TransmissionHeader};
pub use ids::{
    AccountingToken, BodyId, CorrelationId, Epoch, MessageId, ObjectId, Position, QueueManagerId,
    Sequence, UnitOfWorkId,
};
pub use limits::*;
pub use message::Message;
pub use names::{ChannelName, NameError, ObjectName, ProcessName, QueueManagerName, QueueName};
pub use pcf::{
    PCF_COMMAND_CHANNEL_EVENT, PCF_COMMAND_PERFORMANCE_EVENT, PCF_COMMAND_QUEUE_MANAGER_EVENT,
    PCF_PARAMETERS_MAX, PCF_TYPE_EVENT, PcfError, PcfMessage, PcfParameter, PcfValue,
};
pub use properties::{
    PROPERTIES_LENGTH_MAX, PROPERTIES_MAX, PROPERTY_NAME_LENGTH_MAX, Properties, Property,
    PropertyValue,
};
pub use reason::{CompletionCode, ReasonCode};
pub use time::Timestamp;
pub use trigger_message::TriggerMessage;
pub use write_set::{
    BatchInDoubt, Change, MessageRow, QueueRow, ReceiverRow, SenderRow, UnitOfWorkOutcome,
    UnitOfWorkRow, WriteSet,
};
