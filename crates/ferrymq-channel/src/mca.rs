//! What both ends have in common.

use core::fmt;
use core::time::Duration;

use ferrymq_engine::{Failure, Reply};

/// A request to the queue manager, numbered by the machine that makes it, from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AskId(pub u64);

/// What the queue manager answered.
pub type Answer = Result<Reply, Failure>;

/// The state of a channel as an operator sees it. `STATUS`.
///
/// Source: IBM MQ, "Channel states".
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum ChannelState {
    /// `INACTIVE`: never run, or ended in good order.
    #[default]
    Inactive,
    /// `STARTING`: begun.
    Starting,
    /// `BINDING`: connecting and negotiating.
    Binding,
    /// `RUNNING`: transferring, or waiting for work.
    Running,
    /// `PAUSED`: a receiver waits for its next try to put a message.
    Paused,
    /// `STOPPING`: a stop or an orderly end is under way.
    Stopping,
    /// `RETRYING`: waiting for the next try to connect.
    Retrying,
    /// `STOPPED`: an operator must start it.
    Stopped,
}

impl ChannelState {
    /// As displays show it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Inactive => "INACTIVE",
            Self::Starting => "STARTING",
            Self::Binding => "BINDING",
            Self::Running => "RUNNING",
            Self::Paused => "PAUSED",
            Self::Stopping => "STOPPING",
            Self::Retrying => "RETRYING",
            Self::Stopped => "STOPPED",
        }
    }
}

impl fmt::Display for ChannelState {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// How a channel is stopped. `STOP CHANNEL MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StopMode {
    /// `QUIESCE`: the current batch and its confirmation are finished first.
    #[default]
    Quiesce,
    /// `FORCE`: at once; a batch may stay in doubt.
    Force,
    /// `TERMINATE`: as `FORCE`; there is no thread of its own to end here.
    Terminate,
}

/// What a channel is after a stop. `STOP CHANNEL STATUS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StopStatus {
    /// `STOPPED`: until an operator starts it, also over a restart.
    #[default]
    Stopped,
    /// `INACTIVE`: a trigger, or the partner, may start it.
    Inactive,
}

/// How long the partner may be silent before the link counts as dead: `HBINT` plus a grace of twice `HBINT` below a minute,
/// of a minute from there on. `None` without heartbeats.
#[must_use]
pub fn silence_limit(heartbeat_interval: u32) -> Option<Duration> {
    let seconds = u64::from(heartbeat_interval);
    let grace = if seconds < 60 {
        seconds.saturating_mul(2)
    } else {
        60
    };
    (seconds > 0).then(|| Duration::from_secs(seconds.saturating_add(grace)))
}
