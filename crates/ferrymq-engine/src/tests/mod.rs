//! Tests of the engine, by rule. The harness performs the effects against rows in memory and can crash between write sets.
#![allow(
    clippy::arithmetic_side_effects,
    reason = "small numbers of tests; an overflow fails the test"
)]

mod handles;
mod harness;
mod reports;
mod rows;

mod account;
mod admin;
mod backout;
mod browse;
mod consuming;
mod context;
mod definitions;
mod durability;
mod dynamic;
mod events;
mod expiry;
mod get;
mod group_handles;
mod groups;
mod inquire;
mod presentation;
mod put;
mod queue;
mod random;
mod read_ahead;
mod receiver;
mod selectors;
mod sender;
mod settle;
mod spill;
mod tables;
mod trigger_messages;
mod triggers;
mod unit_of_work;
