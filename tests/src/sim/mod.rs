//! Two queue managers and a channel in virtual time, driven by one seed.
//!
//! Real engines over real stores in memory, real sender and receiver machines; clock, disks, network and clients are the
//! simulator's. It performs the effects by the rules of the runtime: write sets are appended and synced, answers are held until
//! what they depend on is durable. Power fails at any effect, connections are cut at any moment and deliver late what was under
//! way, and at the end everything is healed, drained and dumped. One seed is one run, the same every time.

mod channel;
mod clients;
mod definitions;
mod dice;
mod driver;
mod dynamics;
mod ending;
mod fault;
mod groups;
mod node;
mod observe;
mod profile;
mod reads;
mod reports;
mod rows;
mod spoil;
mod trace;
mod triggers;
mod words;
mod world;

pub use crate::invariants::Violation;
pub(crate) use definitions::{BACKOUT_QUEUE, DEAD_LETTER_QUEUE, QMGRS, REPORT_QUEUE, XMITQ};
pub(crate) use dynamics::Dynamic;
pub use fault::Fault;
pub(crate) use groups::Member;

use world::World;

/// What to run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Settings {
    /// The seed.
    pub seed: u64,
    /// A rule that the driver is to break.
    pub fault: Option<Fault>,
    /// Whether a trace is kept.
    pub trace: bool,
}

/// What a run was.
#[derive(Debug)]
pub struct Outcome {
    /// The seed.
    pub seed: u64,
    /// The first invariant that did not hold.
    pub violation: Option<Violation>,
    /// What happened, if it was asked for.
    pub trace: Vec<String>,
    /// How much happened.
    pub statistics: Statistics,
}

/// How much happened in a run, so that a test can see that it was worth running.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Events of virtual time.
    pub events: u64,
    /// Messages that were put.
    pub puts: u64,
    /// Gets that found a message.
    pub gets: u64,
    /// Those of them that were messages of groups.
    pub group_gets: u64,
    /// Trigger messages that the monitor acted on.
    pub triggers: u64,
    /// Dynamic queues that were made.
    pub dynamic_queues: u64,
    /// Reports on queues at the end.
    pub reports: u64,
    /// Units of work that committed.
    pub commits: u64,
    /// Batches that the receiver committed.
    pub batches: u64,
    /// Times that power failed.
    pub crashes: u64,
    /// Connections that were cut.
    pub cuts: u64,
    /// Checkpoints that ended.
    pub checkpoints: u64,
    /// Messages that were read from a store.
    pub fetches: u64,
    /// Reads ahead of gets.
    pub read_aheads: u64,
    /// Messages that went to a dead-letter or backout queue, or were refused by the receiver.
    pub undelivered: u64,
    /// Requests whose answer a crash kept from leaving.
    pub unknown: u64,
}

impl std::ops::AddAssign for Statistics {
    fn add_assign(&mut self, other: Self) {
        self.events += other.events;
        self.puts += other.puts;
        self.gets += other.gets;
        self.group_gets += other.group_gets;
        self.triggers += other.triggers;
        self.dynamic_queues += other.dynamic_queues;
        self.reports += other.reports;
        self.commits += other.commits;
        self.batches += other.batches;
        self.crashes += other.crashes;
        self.cuts += other.cuts;
        self.checkpoints += other.checkpoints;
        self.fetches += other.fetches;
        self.read_aheads += other.read_aheads;
        self.undelivered += other.undelivered;
        self.unknown += other.unknown;
    }
}

/// Runs a seed to its end, or to the first violation.
#[must_use]
pub fn run(settings: Settings) -> Outcome {
    let mut world = World::new(settings);
    let violation = world.run().err();
    Outcome {
        seed: settings.seed,
        violation,
        trace: world.trace.lines.take().unwrap_or_default(),
        statistics: world.statistics,
    }
}
