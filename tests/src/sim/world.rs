//! The world: what happens next, and when.

use std::collections::BTreeMap;

use core::time::Duration;
use ferrymq_channel::{ReceiverTimer, SenderTimer};
use ferrymq_engine::FetchId;
use ferrymq_types::{ObjectId, Sequence, Timestamp};

use crate::invariants::{Check, inv_l1_drains};
use crate::oracle::Oracle;
use crate::sim::channel::{Direction, Link, Moment, Sent};
use crate::sim::clients::Client;
use crate::sim::definitions::Metadata;
use crate::sim::dice::Dice;
use crate::sim::node::{Answer, Asker, Node};
use crate::sim::profile::Profile;
use crate::sim::trace::{START, Trace};
use crate::sim::{Fault, Settings, Statistics};

/// More than any run needs: a run that goes on for ever is a violation too.
const EVENTS_MAX: u64 = 300_000;

/// How long the clients may take, and how long healing may take.
const WORK_MAX: Duration = Duration::from_secs(600);
const HEALING_MAX: Duration = Duration::from_secs(3_600);

/// How long nothing but heartbeats must go on at the end.
pub(crate) const REST: u64 = 50;

/// Something that happens at a time. What concerns a run of a node says which.
#[derive(Debug)]
pub(crate) enum Event {
    Work(usize, u64),
    Append(usize, u64),
    Sync(usize, u64),
    Synced(usize, u64),
    Fetch(usize, u64, FetchId, ObjectId, Sequence),
    ReadRows(usize, u64, FetchId, ObjectId, Vec<Sequence>),
    ReadAhead(usize, u64, ObjectId, Vec<Sequence>),
    Tick(usize, u64, Timestamp),
    Answer(usize, u64, Asker, Box<Answer>),
    SenderTimer(u64, SenderTimer, Timestamp),
    ReceiverTimer(u64, u64, ReceiverTimer, Timestamp),
    Dialed(u64, u64),
    Deliver(u64, Direction),
    Triggered(usize, u64),
    Checkpoint(usize),
    CheckpointRuns(usize, u64),
    CheckpointEnds(usize, u64),
    CrashSoon(usize),
    Restart(usize),
    Client(usize, u64),
    ClientLost(usize, u64),
    CutSoon,
    Refuse,
    Operator,
    StartChannel(usize),
    StartAgain,
    EnablePut,
    Space(usize),
    Look,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Clients work, things fail.
    Working,
    /// Nothing fails any more; what is open is ended.
    Healing,
}

#[derive(Debug)]
pub(crate) struct World {
    pub(crate) now: Timestamp,
    order: u64,
    schedule: BTreeMap<(Timestamp, u64), Event>,
    pub(crate) dice: Dice,
    pub(crate) profile: Profile,
    pub(crate) fault: Option<Fault>,
    pub(crate) phase: Phase,
    pub(crate) metadata: Metadata,
    pub(crate) nodes: [Node; 2],
    pub(crate) links: BTreeMap<u64, Link>,
    pub(crate) next_link: u64,
    /// Connects fail until then.
    pub(crate) refused_until: Timestamp,
    /// The next connection is cut when this has been sent.
    pub(crate) cut_when: Option<Moment>,
    /// An operator stopped the channel with `STATUS(INACTIVE)`.
    pub(crate) ended_by_operator: bool,
    /// What was sent in each batch.
    pub(crate) sent: Sent,
    pub(crate) clients: Vec<Client>,
    pub(crate) next_uid: u64,
    pub(crate) oracle: Oracle,
    pub(crate) trace: Trace,
    pub(crate) statistics: Statistics,
}

pub(crate) fn after(now: Timestamp, ms: u64) -> Timestamp {
    now.saturating_add(Duration::from_millis(ms))
}

impl World {
    pub(crate) fn new(settings: Settings) -> Self {
        // Neighbouring seeds must not draw similar numbers first.
        let mut dice = Dice::new(settings.seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5eed);
        let profile = Profile::new(&mut dice);
        let oracle = Oracle {
            fast: profile.fast[0] && profile.fast[1],
            ..Oracle::default()
        };
        Self {
            now: Timestamp::from_millis(START),
            order: 0,
            schedule: BTreeMap::new(),
            metadata: Metadata::new(&profile),
            nodes: [Node::new(), Node::new()],
            links: BTreeMap::new(),
            next_link: 0,
            refused_until: Timestamp::ZERO,
            cut_when: None,
            ended_by_operator: false,
            sent: Sent::default(),
            clients: Client::all(),
            next_uid: 0,
            oracle,
            trace: Trace::new(settings.trace),
            statistics: Statistics::default(),
            fault: settings.fault,
            phase: Phase::Working,
            dice,
            profile,
        }
    }

    pub(crate) fn at(&mut self, time: Timestamp, event: Event) {
        self.order += 1;
        self.schedule
            .insert((time.max(self.now), self.order), event);
    }

    /// After at most `ms` milliseconds.
    pub(crate) fn soon(&mut self, ms: u64, event: Event) {
        let time = after(self.now, self.dice.below(ms + 1));
        self.at(time, event);
    }

    pub(crate) fn run(&mut self) -> Check {
        let profile = self.profile.clone();
        let fault = self.fault;
        self.trace
            .add(self.now, || format!("{fault:?} {profile:?}"));
        for node in [0, 1] {
            if fault.is_some() {
                crate::sim::rows::plan(&self.nodes[node].rows_plan).fault = fault;
            }
            self.start(node)?;
        }
        self.plan_faults();
        for client in 0..self.clients.len() {
            self.soon(200, Event::Client(client, 0));
        }
        let limit = self.now.saturating_add(WORK_MAX);
        while !self.clients.iter().all(Client::is_done) {
            self.next(limit, "the clients do not come to an end")?;
        }
        self.heal()?;
        let limit = self.now.saturating_add(HEALING_MAX);
        let mut quiet = None;
        loop {
            self.next(limit, "the nodes do not come to rest")?;
            if !self.is_quiet() {
                quiet = None;
            } else if quiet.is_none() {
                quiet = Some(after(self.now, REST));
            } else if quiet.is_some_and(|at| at <= self.now) {
                break;
            }
        }
        self.end()
    }

    fn plan_faults(&mut self) {
        let horizon = self.profile.horizon;
        for node in [0, 1] {
            for _ in 0..self.profile.crashes[node] {
                self.soon(horizon, Event::CrashSoon(node));
            }
            if self.profile.checkpoints {
                self.soon(1_000, Event::Checkpoint(node));
            }
        }
        for _ in 0..self.profile.cuts {
            self.soon(horizon, Event::CutSoon);
        }
        if self.profile.cuts > 4 {
            self.soon(horizon, Event::Refuse);
        }
        for _ in 0..self.profile.operator_acts {
            self.soon(horizon, Event::Operator);
        }
        self.soon(horizon, Event::Look);
    }

    /// Lets the next thing happen.
    fn next(&mut self, limit: Timestamp, what: &str) -> Check {
        let Some(((time, _), event)) = self.schedule.pop_first() else {
            return inv_l1_drains::too_late(&format!("{what}: nothing will happen any more"));
        };
        self.now = self.now.max(time);
        self.statistics.events += 1;
        if self.now > limit || self.statistics.events > EVENTS_MAX {
            let state = self.describe();
            return inv_l1_drains::too_late(&format!("{what}: {state}"));
        }
        self.happens(event)
    }

    fn happens(&mut self, event: Event) -> Check {
        match event {
            Event::Work(node, run) => self.work(node, run),
            Event::Append(node, run) => self.append(node, run),
            Event::Sync(node, run) => self.sync(node, run),
            Event::Synced(node, run) => self.synced(node, run),
            Event::Fetch(node, run, fetch, queue, sequence) => {
                self.fetch(node, run, fetch, queue, sequence)
            }
            Event::ReadRows(node, run, fetch, queue, sequences) => {
                self.read_rows(node, run, fetch, queue, sequences)
            }
            Event::ReadAhead(node, run, queue, sequences) => {
                self.read_ahead(node, run, queue, sequences)
            }
            Event::Tick(node, run, at) => self.tick(node, run, at),
            Event::Answer(node, run, asker, answer) => self.answer(node, run, asker, *answer),
            Event::SenderTimer(run, timer, at) => self.sender_timer(run, timer, at),
            Event::ReceiverTimer(run, conversation, timer, at) => {
                self.receiver_timer(run, conversation, timer, at)
            }
            Event::Dialed(run, dial) => self.dialed(run, dial),
            Event::Deliver(link, direction) => self.deliver(link, direction),
            Event::Triggered(node, run) => self.triggered(node, run),
            Event::Checkpoint(node) => self.checkpoint(node),
            Event::CheckpointRuns(node, run) => self.checkpoint_runs(node, run),
            Event::CheckpointEnds(node, run) => self.checkpoint_ends(node, run),
            Event::CrashSoon(node) => {
                if self.phase == Phase::Working {
                    self.nodes[node].crash_in = Some(self.dice.below(60));
                }
                Ok(())
            }
            Event::Restart(node) => self.start(node),
            Event::Client(client, life) => self.client_acts(client, life),
            Event::ClientLost(client, life) => {
                self.client_lost(client, life);
                Ok(())
            }
            Event::CutSoon => {
                self.cut_soon();
                Ok(())
            }
            Event::Refuse => {
                self.refused_until = after(self.now, self.dice.below(4_000));
                Ok(())
            }
            Event::Operator => self.operator(),
            Event::StartChannel(node) => self.start_channel(node),
            Event::StartAgain => self.start_again(),
            Event::EnablePut => {
                self.enable_put();
                Ok(())
            }
            Event::Space(node) => {
                self.space(node, true);
                Ok(())
            }
            Event::Look => self.look(),
        }
    }
}
