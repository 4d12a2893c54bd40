//! The clients: who puts, gets, moves and browses what, and what they do when an answer does not come.

use bytes::Bytes;
use ferrymq_channel::{StopMode, StopStatus};
use ferrymq_engine::{
    Browse, BrowseStep, ConnectionId, Context, Get, HandleId, Input, Object, ObjectName, Put,
    Request, Source,
};
use ferrymq_types::{
    CorrelationId, MessageDescriptor, MessageId, Persistence, Priority, QueueName, ReportOptions,
    RequestedReport, UnitOfWorkId,
};

use crate::invariants::{Check, inv_c6_bytes_intact::FORMAT};
use crate::oracle::{self, Fate, Uid};
use crate::sim::dynamics::{Dynamic, PERMANENT, TEMPORARY};
use crate::sim::groups::{GROUP_QUEUE, Grouping, Progress};
use crate::sim::node::{Answer, Asker, What};
use crate::sim::triggers::{Monitor, TRIGGERED_QUEUE};
use crate::sim::world::{Event, Phase, World, after};
use crate::sim::{Fault, REPORT_QUEUE};

/// `MQRO_DISCARD_MSG`.
const DISCARD: u32 = 0x0800_0000;

/// `MQRO_COA`, `MQRO_COD_WITH_DATA`, `MQRO_EXPIRATION`.
const REPORTS: [u32; 3] = [0x0100, 0x1800, 0x0020_0000];

/// A queue to put to: the name that is opened, and where that leads.
type To = (&'static str, (usize, &'static str));

const IN: To = ("TO.IN.Q", (1, "IN.Q"));
const FULL: To = ("TO.FULL.Q", (1, "FULL.Q"));
const NOWHERE: To = ("TO.NOWHERE.Q", (1, "NOWHERE.Q"));
const LOCAL: To = ("LOCAL.Q", (0, "LOCAL.Q"));
const OUT: To = ("OUT.Q", (1, "OUT.Q"));
const POISON: To = ("POISON.Q", (1, "POISON.Q"));
const GROUP: To = (GROUP_QUEUE, (1, GROUP_QUEUE));
const IN_HERE: To = ("IN.Q", (1, "IN.Q"));
const TRIGGERED: To = (TRIGGERED_QUEUE, (1, TRIGGERED_QUEUE));

/// What a client is for, beside putting and getting.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Plain,
    /// It makes and uses a dynamic queue.
    Dynamic(Dynamic),
    /// It waits for triggers, to the end.
    Monitor,
}

/// What a client does.
#[derive(Debug)]
struct Habit {
    node: usize,
    puts: &'static [To],
    gets: &'static [&'static str],
    /// Percent of its requests that are puts.
    put: u64,
    /// Percent of its work that is in units of work.
    unit: u64,
    /// Percent of its units of work that it backs out.
    back_out: u64,
    browses: bool,
    grouping: Grouping,
    role: Role,
}

const fn habit(node: usize) -> Habit {
    Habit {
        node,
        puts: &[],
        gets: &[],
        put: 0,
        unit: 0,
        back_out: 20,
        browses: false,
        grouping: Grouping::No,
        role: Role::Plain,
    }
}

const HABITS: &[Habit] = &[
    Habit {
        puts: &[IN, IN, IN, FULL, NOWHERE, LOCAL],
        put: 100,
        ..habit(0)
    },
    Habit {
        puts: &[IN, IN, FULL, LOCAL],
        put: 100,
        unit: 90,
        ..habit(0)
    },
    Habit {
        puts: &[IN],
        gets: &["LOCAL.Q"],
        put: 50,
        unit: 100,
        ..habit(0)
    },
    Habit {
        gets: &["IN.Q"],
        ..habit(1)
    },
    Habit {
        gets: &["IN.Q", "FULL.Q"],
        unit: 90,
        back_out: 35,
        ..habit(1)
    },
    Habit {
        puts: &[OUT],
        gets: &["IN.Q"],
        put: 50,
        unit: 100,
        ..habit(1)
    },
    Habit {
        puts: &[POISON],
        gets: &["POISON.Q"],
        put: 40,
        unit: 70,
        back_out: 70,
        ..habit(1)
    },
    Habit {
        puts: &[IN_HERE, OUT],
        gets: &["OUT.Q"],
        put: 60,
        browses: true,
        ..habit(1)
    },
    Habit {
        puts: &[GROUP],
        put: 100,
        grouping: Grouping::Puts,
        ..habit(1)
    },
    Habit {
        puts: &[GROUP],
        put: 100,
        unit: 100,
        grouping: Grouping::Puts,
        ..habit(1)
    },
    Habit {
        gets: &[GROUP_QUEUE],
        grouping: Grouping::Gets,
        ..habit(1)
    },
    Habit {
        gets: &[GROUP_QUEUE],
        unit: 100,
        grouping: Grouping::Gets,
        ..habit(1)
    },
    Habit {
        puts: &[(TEMPORARY.name, (1, TEMPORARY.name))],
        put: 50,
        role: Role::Dynamic(TEMPORARY),
        ..habit(1)
    },
    Habit {
        puts: &[(PERMANENT.name, (1, PERMANENT.name))],
        put: 50,
        role: Role::Dynamic(PERMANENT),
        ..habit(1)
    },
    Habit {
        puts: &[TRIGGERED],
        put: 100,
        unit: 40,
        ..habit(1)
    },
    Habit {
        role: Role::Monitor,
        ..habit(1)
    },
];

#[derive(Debug)]
pub(crate) struct Client {
    habit: &'static Habit,
    /// Counted: a new one after each lost connection.
    life: u64,
    connection: Option<(u64, ConnectionId)>,
    waiting: Option<What>,
    unit: Option<UnitOfWorkId>,
    /// Requests left in the unit of work.
    unit_left: u64,
    /// Requests made so far.
    made: u64,
    /// A commit whose answer did not come.
    doubt: Option<UnitOfWorkId>,
    /// A put with a token whose answer did not come.
    repeat: Option<Box<Put>>,
    /// The put with a token that is under way.
    token_put: Option<Box<Put>>,
    progress: Progress,
    /// The queue that one with a role has open.
    open: Option<HandleId>,
    monitor: Monitor,
    done: bool,
}

impl Client {
    pub(crate) fn all() -> Vec<Self> {
        let new = |habit| Self {
            habit,
            life: 0,
            connection: None,
            waiting: None,
            unit: None,
            unit_left: 0,
            made: 0,
            doubt: None,
            repeat: None,
            token_put: None,
            progress: Progress::default(),
            open: None,
            monitor: Monitor::default(),
            done: false,
        };
        HABITS.iter().map(new).collect()
    }

    pub(crate) fn is_done(&self) -> bool {
        self.done || self.habit.role == Role::Monitor
    }

    /// The connection is gone: what was under way is to be asked for.
    fn lose(&mut self) {
        self.life += 1;
        self.connection = None;
        self.progress = Progress::default();
        self.open = None;
        self.monitor = Monitor::default();
        self.unit = None;
        if let Some(What::Commit(unit)) = self.waiting.take() {
            self.doubt = Some(unit);
        }
        self.repeat = self.repeat.take().or(self.token_put.take());
    }
}

pub(crate) fn queue_name(name: &str) -> QueueName {
    QueueName::new(name).expect("a constant that is a name")
}

impl World {
    /// The handle that a client with a role has.
    pub(crate) fn open_handle(&self, number: usize) -> Option<HandleId> {
        self.clients[number].open
    }

    pub(crate) fn set_open_handle(&mut self, number: usize, handle: Option<HandleId>) {
        self.clients[number].open = handle;
    }

    /// Whether the client of a dynamic queue has it open, or may have.
    pub(crate) fn has_open_handle(&self, dynamic: Dynamic) -> bool {
        let mut all = self.clients.iter();
        all.any(|c| c.habit.role == Role::Dynamic(dynamic) && c.open.is_some())
    }

    pub(crate) fn monitor(&self, number: usize) -> Monitor {
        self.clients[number].monitor
    }

    pub(crate) fn set_monitor(&mut self, number: usize, monitor: Monitor) {
        self.clients[number].monitor = monitor;
    }

    /// Whether the monitor waits for a trigger.
    pub(crate) fn monitor_waits(&self) -> bool {
        let mut all = self.clients.iter();
        all.any(|c| c.habit.role == Role::Monitor && c.waiting == Some(What::Trigger))
    }

    /// What a client does with groups.
    pub(crate) fn client_groups(&self, number: usize) -> Grouping {
        self.clients[number].habit.grouping
    }

    /// Whether a client has to do with groups, and still has the connection of that life.
    pub(crate) fn has_groups(&self, number: usize, life: u64) -> bool {
        let client = &self.clients[number];
        client.life == life && client.habit.grouping != Grouping::No
    }

    pub(crate) fn progress(&mut self, number: usize) -> &mut Progress {
        &mut self.clients[number].progress
    }

    /// A client does the next thing.
    pub(crate) fn client_acts(&mut self, number: usize, life: u64) -> Check {
        let client = &self.clients[number];
        if client.life != life || client.done || client.waiting.is_some() {
            return Ok(());
        }
        let node = client.habit.node;
        let Some(run) = self.nodes[node].running.as_ref().map(|r| r.number) else {
            let time = after(self.now, 100 + self.dice.below(200));
            self.at(time, Event::Client(number, life));
            return Ok(());
        };
        if self.clients[number]
            .connection
            .is_none_or(|(r, _)| r != run)
            && let Some(running) = self.running(node, run)
        {
            let connection = running.connect();
            running.connections.insert(connection, (number, life));
            self.clients[number].connection = Some((run, connection));
        }
        self.choose(number);
        Ok(())
    }

    fn choose(&mut self, number: usize) {
        let requests = self.profile.requests;
        if self.clients[number].habit.role == Role::Monitor {
            let (what, request) = self.monitor_request(number);
            return self.send(number, what, request);
        }
        let client = &mut self.clients[number];
        let habit = client.habit;
        if let Some(unit) = client.doubt {
            let request = if self.dice.percent(70) {
                Request::GetUnitOfWork { id: unit }
            } else {
                Request::Commit { id: unit }
            };
            let what = match request {
                Request::Commit { .. } => What::Commit(unit),
                _ => What::Outcome(unit),
            };
            return self.send(number, what, request);
        }
        if let Some(put) = client.repeat.take() {
            let uid = Uid::read(&put.descriptor.correlation_id).expect("made by the simulator");
            client.token_put = Some(put.clone());
            return self.send(number, What::Put(uid), Request::Put(put));
        }
        if let Some(unit) = client.unit {
            if client.unit_left == 0 {
                client.unit = None;
                return if self.dice.percent(habit.back_out) {
                    self.send(number, What::BackOut(unit), Request::BackOut { id: unit })
                } else {
                    self.send(number, What::Commit(unit), Request::Commit { id: unit })
                };
            }
            client.unit_left -= 1;
            return self.put_or_get(number, Some(unit));
        }
        if client.made >= requests {
            client.done = true;
            return;
        }
        client.made += 1;
        if let Role::Dynamic(dynamic) = habit.role
            && (client.open.is_none() || !self.dice.percent(habit.put))
        {
            let (what, request) = self.dynamic_request(number, dynamic);
            return self.send(number, what, request);
        }
        if self.dice.percent(habit.unit) {
            let unit = UnitOfWorkId::new(self.dice.bytes16());
            let left = self.dice.between(1, 4);
            let client = &mut self.clients[number];
            client.unit = Some(unit);
            client.unit_left = left;
            let owner = (number, client.life);
            self.oracle.unit_begun(unit, habit.node, owner);
            return self.send(number, What::Begin(unit), Request::Begin { id: unit });
        }
        self.put_or_get(number, None);
    }

    fn put_or_get(&mut self, number: usize, unit: Option<UnitOfWorkId>) {
        let habit = self.clients[number].habit;
        let puts_one = habit.grouping == Grouping::Puts
            && self.clients[number].progress.handle.is_some()
            && (unit.is_some() || !self.dice.percent(4));
        if habit.grouping != Grouping::No && !puts_one {
            let (what, request) = self.group_request(number, unit);
            return self.send(number, what, request);
        }
        let puts = habit.role != Role::Plain || self.dice.percent(habit.put);
        if !habit.puts.is_empty() && puts {
            return self.client_puts(number, unit);
        }
        let queue = self.dice.pick(habit.gets);
        let node = habit.node;
        if habit.browses && self.dice.percent(50) {
            let queue = self.dice.pick(&["IN.Q", queue]);
            let request = Request::Browse(Browse::of(BrowseStep::First(queue_name(queue))));
            return self.send(number, What::Browse { node, queue }, request);
        }
        let wait = self.dice.below(600);
        let request = Request::Get(Get {
            wait_until: (wait > 200).then(|| after(self.now, wait)),
            syncpoint: unit,
            ..Get::of(Source::Queue(queue_name(queue)))
        });
        self.send(number, What::Get { node, queue, unit }, request);
    }

    fn client_puts(&mut self, number: usize, unit: Option<UnitOfWorkId>) {
        let habit = self.clients[number].habit;
        let (name, target) = self.dice.pick(habit.puts);
        self.next_uid += 1;
        self.statistics.puts += 1;
        let uid = Uid(self.next_uid);
        let persistence = if self.dice.percent(self.profile.persistent) {
            Persistence::Persistent
        } else {
            Persistence::NonPersistent
        };
        let priority = Priority::new(self.dice.pick(&[0, 0, 4, 9])).expect("below ten");
        let expires_at = self
            .dice
            .percent(8)
            .then(|| after(self.now, 50 + self.dice.below(3_000)));
        let body = self.body(uid);
        let message_id = if self.dice.percent(50) {
            MessageId::new(uid.bytes())
        } else {
            MessageId::NONE
        };
        let discard = name == NOWHERE.0 && self.dice.percent(20);
        let grouped = self.clients[number].progress.handle;
        let token = grouped.is_none()
            && habit.role == Role::Plain
            && unit.is_none()
            && persistence == Persistence::Persistent
            && self.dice.percent(40);
        let mut reports_asked = 0;
        // Where no channel stands between a message and whoever reports of it.
        if target.0 == habit.node && self.dice.percent(25) {
            for kind in REPORTS {
                if self.dice.percent(60) {
                    reports_asked |= kind;
                }
            }
        }
        let descriptor = MessageDescriptor {
            format: FORMAT.to_owned(),
            correlation_id: CorrelationId::new(uid.bytes()),
            message_id,
            expires_at,
            report: ReportOptions::from_bits(if discard { DISCARD } else { reports_asked }),
            reply_to_queue: if reports_asked == 0 {
                String::new()
            } else {
                REPORT_QUEUE.to_owned()
            },
            ..MessageDescriptor::default()
        };
        let mut put = Put {
            object: Object::Named(ObjectName::local(queue_name(name))),
            descriptor,
            priority: Some(priority),
            persistence: Some(persistence),
            header: Bytes::new(),
            body: body.clone(),
            context: Context::Default,
            options: ferrymq_engine::PutOptions::default(),
            syncpoint: unit,
            logical_order: false,
            token: token.then(|| UnitOfWorkId::new(self.dice.bytes16())),
        };
        if let Some(handle) = grouped {
            self.group_put(number, handle, &mut put);
        }
        if let Some(object) = self.dynamic_object(number) {
            put.object = object;
        }
        let options = put.descriptor.report;
        let asks = |requested: RequestedReport| requested != RequestedReport::No;
        let persistence = put.persistence.unwrap_or(persistence);
        self.oracle.put_asked(oracle::Put {
            uid,
            putter: number,
            node: habit.node,
            target,
            priority,
            persistence,
            body,
            message_id,
            expires_at,
            unit,
            asked_at: self.now,
            put_time: None,
            group: None,
            ends_group: put.descriptor.is_last_in_group(),
            reports: oracle::Reports {
                arrival: asks(options.confirm_on_arrival()),
                delivery: asks(options.confirm_on_delivery()),
                expiration: asks(options.expiration()),
            },
            repeated: false,
            fate: Fate::Asked,
            shown: Vec::new(),
            held_by: None,
            delivered: false,
        });
        let put = Box::new(put);
        if token {
            self.clients[number].token_put = Some(put.clone());
        }
        self.send(number, What::Put(uid), Request::Put(put));
    }

    /// A body that no other message has.
    fn body(&mut self, uid: Uid) -> Bytes {
        let length = match self.dice.below(100) {
            0 => 70_000,
            1..10 => 1_000 + self.dice.below(4_000),
            10..20 => 0,
            _ => 1 + self.dice.below(200),
        };
        let words = (0..length.div_ceil(8)).flat_map(|i| (uid.0 << 20 | i).to_be_bytes());
        let length = usize::try_from(length).expect("below 70,000");
        words.take(length).collect::<Vec<u8>>().into()
    }

    /// Sends a request; it, or its answer, may be lost with the connection.
    fn send(&mut self, number: usize, what: What, request: Request) {
        let client = &mut self.clients[number];
        client.waiting = Some(what);
        let (life, node) = (client.life, client.habit.node);
        let Some((run, connection)) = client.connection else {
            return;
        };
        let lossy = self.phase == Phase::Working && self.dice.percent(self.profile.client_losses);
        let repeated = matches!(&request, Request::Put(put) if
            put.token.is_some() && self.was_sent(put));
        if lossy && self.dice.percent(40) {
            self.trace.add(self.now, || {
                format!("client {number} asks {what:?}, which is lost")
            });
            if let (What::Put(uid), false) = (what, repeated) {
                self.oracle.put_answered(uid, false);
            }
            self.soon(20, Event::ClientLost(number, life));
            return;
        }
        if let (What::Put(uid), true) = (what, repeated) {
            self.oracle.put_repeated(uid);
        }
        self.trace
            .add(self.now, || format!("client {number} asks {what:?}"));
        let asker = Asker::Client {
            client: number,
            life,
            what,
        };
        self.ask(node, run, connection, request, asker);
        if lossy {
            self.soon(60, Event::ClientLost(number, life));
        }
    }

    /// Whether a put was asked for before.
    fn was_sent(&self, put: &Put) -> bool {
        Uid::read(&put.descriptor.correlation_id).is_some_and(|uid| {
            let put = self.oracle.put(uid);
            put.repeated || put.fate != Fate::Asked || put.asked_at < self.now
        })
    }

    pub(crate) fn client_answered(&mut self, number: usize, life: u64, what: What, answer: Answer) {
        let client = &mut self.clients[number];
        if client.life != life || client.waiting != Some(what) {
            return;
        }
        client.waiting = None;
        if client.habit.role == Role::Monitor {
            self.monitor_heard(number, what, &answer);
        }
        self.dynamic_heard(number, what, &answer);
        let client = &mut self.clients[number];
        match what {
            What::Put(_) => client.token_put = None,
            What::Begin(_) if answer.is_err() => client.unit = None,
            What::Commit(_) | What::Outcome(_) => client.doubt = None,
            What::Begin(_)
            | What::Open
            | What::Close
            | What::OpenDynamic { .. }
            | What::CloseDynamic { .. }
            | What::OpenInitiation
            | What::Trigger
            | What::OpenTriggered
            | What::CloseTriggered
            | What::Get { .. }
            | What::Browse { .. }
            | What::BackOut(_) => {}
        }
        let think = if self.dice.percent(10) { 1_000 } else { 120 };
        let time = after(self.now, self.dice.below(think));
        self.at(time, Event::Client(number, life));
    }

    /// The connection of a client breaks.
    pub(crate) fn client_lost(&mut self, number: usize, life: u64) {
        let client = &mut self.clients[number];
        if client.life != life {
            return;
        }
        let (node, connection) = (client.habit.node, client.connection);
        client.lose();
        self.trace
            .add(self.now, || format!("client {number} loses its connection"));
        let kept = self.fault == Some(Fault::TemporaryQueueKept)
            && self.clients[number].habit.role == Role::Dynamic(TEMPORARY);
        if let Some((run, connection)) = connection.filter(|_| !kept) {
            self.hand_in(node, run, Input::Disconnected { connection });
        }
        self.client_comes_back(number);
    }

    fn client_comes_back(&mut self, number: usize) {
        let life = self.clients[number].life;
        let time = after(self.now, 1 + self.dice.below(300));
        self.at(time, Event::Client(number, life));
    }

    pub(crate) fn clients_of_crashed(&mut self, node: usize) {
        for number in 0..self.clients.len() {
            if self.clients[number].habit.node == node {
                self.clients[number].lose();
                self.client_comes_back(number);
            }
        }
    }

    /// An operator does something, and undoes it later.
    pub(crate) fn operator(&mut self) -> Check {
        if self.phase != Phase::Working {
            return Ok(());
        }
        let later = after(self.now, self.dice.below(3_000));
        match self.dice.below(8) {
            0..4 => {
                let node = self.dice.index(2);
                let mode = self.dice.pick(&[StopMode::Quiesce, StopMode::Force]);
                let status = self.dice.pick(&[StopStatus::Stopped, StopStatus::Inactive]);
                self.trace.add(self.now, || {
                    format!("operator stops the channel at node {node}: {mode:?} {status:?}")
                });
                self.at(later, Event::StartChannel(node));
                self.stop_channel(node, mode, status)
            }
            4..6 => {
                self.metadata.set_put(1, "IN.Q", false);
                self.definitions_changed(1);
                self.at(later, Event::EnablePut);
                Ok(())
            }
            6 => {
                let depth = self.dice.pick(&[None, Some(1), Some(10)]);
                self.metadata.set_depth(1, "FULL.Q", depth);
                self.definitions_changed(1);
                Ok(())
            }
            _ => {
                let node = self.dice.index(2);
                self.space(node, false);
                self.at(later, Event::Space(node));
                Ok(())
            }
        }
    }

    pub(crate) fn enable_put(&mut self) {
        self.metadata.set_put(1, "IN.Q", true);
        self.definitions_changed(1);
    }

    /// The journal is nearly full, or has room again.
    pub(crate) fn space(&mut self, node: usize, puts_allowed: bool) {
        if let Some(run) = self.nodes[node].running.as_ref().map(|r| r.number) {
            self.hand_in(node, run, Input::SpaceChanged { puts_allowed });
        }
    }
}
