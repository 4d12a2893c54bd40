//! The two ends of a message channel as state machines: [`SenderMca`] takes messages from a transmission queue and sends them,
//! [`ReceiverMca`] puts them where they are going. Batches, numbers, in doubt, retry, and what becomes of a message that
//! cannot be delivered ([`undelivered`]).
//!
//! An MCA is an application of its queue manager: what it wants done is a [`ferrymq_engine::Request`], what comes back a
//! [`ferrymq_engine::Reply`]. The caller performs effects in their order, adds nothing, and hands in the next input when the
//! effects of the last one are performed (a slow link slows the sender that way). Every effect is a place where a crash may
//! happen; none of them depends on a later one.
//!
//! **Invariant:** no clock, no socket, no thread, no chance: time and seeds come in. Data from the partner is checked, never
//! asserted.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod config;
mod event;
mod frame;
mod generator;
mod mca;
mod receiver;
pub mod report;
mod sender;
mod status;
pub mod undelivered;

#[cfg(test)]
mod tests;

pub use config::{
    Address, ConnectionNameError, DEFAULT_PORT, DeadLetterSetting, ReceiverConfig, SenderConfig,
    parse_connection_name,
};
pub use event::{DeadLetterLocation, Event, Severity};
pub use frame::{
    BatchConfirmed, BatchEnd, BatchMessage, Bind, BindAccepted, Close, CloseReason, FastMessage,
    MessageRefused, PROTOCOL_VERSION, ReceiverFrame, SenderFrame, Withdraw,
};
pub use mca::{Answer, AskId, ChannelState, StopMode, StopStatus, silence_limit};
pub use receiver::{ReceiverEffect, ReceiverInput, ReceiverMca, ReceiverTimer};
pub use sender::{SenderEffect, SenderInput, SenderMca, SenderTimer};
pub use status::{ChannelStatus, Counters, UndeliveredAction, shown_number};
