//! A queue manager that decides: queues, units of work, put, get, browse, backout, expiry, and the records of channels.
//!
//! `Engine::step` takes an [`Input`] and appends [`Effect`]s; the caller performs them in their order and adds nothing.
//!
//! **Invariant:** the engine reads no clock, no disk, no socket, spawns nothing and awaits nothing. The same inputs give the
//! same effects.
#![warn(
    clippy::wildcard_enum_match_arm,
    clippy::match_wildcard_for_single_variants,
    clippy::arithmetic_side_effects
)]

mod account;
mod admin;
mod browse;
mod channel;
mod context;
mod definitions;
mod dynamic;
mod effect;
mod engine;
mod event_messages;
mod expiry;
mod get;
mod groups;
mod handles;
mod inquire;
mod limits;
mod logical;
mod memory;
mod messages;
mod moves;
mod ordered;
mod outcomes;
mod pending;
mod performance;
mod presentation;
mod put;
mod queue;
mod read_ahead;
mod recovery;
mod report;
mod request;
mod resting;
mod selection;
mod settle;
mod spill;
#[cfg(test)]
mod tests;
mod trigger;
mod unit_of_work;
mod waiters;

pub use effect::{
    Browsed, Cursor, DumpItem, Effect, Event, Failure, Got, Inquired, Opened, PutDone,
    QueueStatistics, ReceiverState, Reply, SenderState, Transmission,
};
pub use engine::Engine;
pub use inquire::SETTABLE;
pub use limits::{Limits, OUTCOME_KEPT};
pub use presentation::{Presentation, PropertyOption};
pub use recovery::EngineBuilder;
pub use report::{REPORT_DATA_LENGTH, account_name, report_about};
pub use request::{
    Browse, BrowseStep, CloseOption, ConnectionId, Context, ContextUse, FetchId, Fetched, Get,
    HandleId, Input, InputUse, Many, MatchIds, Object, ObjectName, OpenOptions, Put, PutOptions,
    Request, RequestId, SenderClaim, Settlement, Source,
};
