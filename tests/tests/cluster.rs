//! Real processes, real TLS, kill -9.
#![allow(clippy::print_stdout, reason = "what a run is and how to repeat it")]

#[path = "cluster/channel_rules.rs"]
mod channel_rules;
#[path = "cluster/crash_points.rs"]
mod crash_points;
#[path = "cluster/kills.rs"]
mod kills;
#[path = "cluster/three.rs"]
mod three;
