//! MQSC: text to object commands and back, and what DISPLAY shows.
//!
//! A script goes through [`ScriptReader`] line by line; each command through [`parse`]; a change of definitions through
//! [`Statement::action`] to the definitions; a DISPLAY through [`display`]; every answer becomes an [`Answer`], and a
//! [`Report`] puts them in the shape of `runmqsc`.
//!
//! **Invariant:** this crate knows no messages, no I/O and no clock, and changes nothing. Any text is read in time linear in its
//! length, without recursion.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod channel_commands;
mod channel_rule_commands;
mod display;
mod display_table;
mod error;
mod export;
mod lex;
mod parse;
mod report;
mod script;
mod statement;
mod status;
#[cfg(test)]
mod tests;
mod words;

pub use display::{DisplayedObject, display, displayed_rule};
pub use error::SyntaxError;
pub use export::export;
pub use parse::parse;
pub use report::{Answer, Report};
pub use script::{COMMAND_LENGTH_MAX, FedLine, LINE_LENGTH_MAX, ScriptError, ScriptReader};
pub use statement::{
    ChannelCheck, Display, DisplayNoun, Filter, FilterValue, Operator, Pattern, Requested,
    ResolveAction, Statement, StopMode, StopStatus,
};
pub use status::{ChannelState, ChannelStatus, QueueStatus, RuntimeStatus};
