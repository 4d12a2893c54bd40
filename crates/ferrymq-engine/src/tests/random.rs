//! Random requests from several connections, with crashes, against a naive oracle: what clients saw must fit what is left.

use std::collections::BTreeMap;
use std::time::Duration;

use ferrymq_types::{
    AccountReason, Persistence, Position, Priority, Timestamp, UnitOfWorkId, UnitOfWorkOutcome,
};

use super::harness::{World, definitions, get, put};
use crate::{ConnectionId, Get, Got, Limits, Put, Reply, Request, RequestId};

const SEEDS: u64 = 120;
const STEPS: u64 = 150;
const QUEUES: [&str; 3] = ["A", "B", "FIFO"];

/// xorshift64*: enough for choosing.
struct Chance(u64);

impl Chance {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) % n
    }

    fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }
}

/// What is known of a put.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum PutState {
    /// Answered, and the answer was released.
    Acknowledged,
    /// Answered, and the answer not released.
    Answered,
    /// The answer was lost.
    Unknown,
    InUnit(u64),
    /// Refused or backed out.
    Void,
}

/// Who has a message, as far as clients know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Taken {
    No,
    InUnit(u64),
    Answered,
    Acknowledged,
    Unknown,
}

#[derive(Debug)]
struct Known {
    queue: &'static str,
    persistent: bool,
    priority: u8,
    run: u64,
    state: PutState,
    taken: Taken,
    /// Times that it was shown under syncpoint, and backouts that were answered.
    shown: u32,
    backed_out: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum UnitState {
    Open,
    CommitAnswered,
    Ended,
}

#[derive(Debug)]
struct Unit {
    connection: ConnectionId,
    state: UnitState,
    puts: Vec<usize>,
    gets: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
enum Asked {
    Put(usize),
    Get(Option<u64>),
    Commit(u64),
    BackOut(u64),
}

struct Oracle {
    w: World,
    chance: Chance,
    durable: Position,
    run: u64,
    known: Vec<Known>,
    units: BTreeMap<u64, Unit>,
    next_unit: u64,
    /// Requests without an answer, and answers that are not released.
    asked: BTreeMap<RequestId, (ConnectionId, Asked)>,
    answered: BTreeMap<RequestId, (ConnectionId, Asked, Option<usize>)>,
}

fn unit_id(n: u64) -> UnitOfWorkId {
    UnitOfWorkId::from_slice(&n.to_be_bytes()).unwrap()
}

fn index_of(got: &Got) -> usize {
    let text = std::str::from_utf8(&got.message.body).unwrap();
    let index: usize = text.trim_end_matches('.').parse().unwrap();
    let id = got.message.descriptor.message_id;
    assert_eq!(
        id.as_bytes()[..8],
        (index as u64 + 1).to_be_bytes(),
        "inv_c6"
    );
    index
}

impl Oracle {
    fn new(seed: u64) -> Self {
        let limits = Limits {
            cache_bytes_max: [0, 3_000, 1_000_000][usize::try_from(seed % 3).unwrap()],
            // Half of them write non-persistent messages aside.
            non_persistent_bytes_max: [2_000, u64::MAX][usize::try_from(seed % 2).unwrap()],
            spill_window_bytes: 1_000_000,
            ..Limits::default()
        };
        Self {
            w: World::with(definitions(), limits),
            chance: Chance(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1),
            durable: Position::ZERO,
            run: 0,
            known: Vec::new(),
            units: BTreeMap::new(),
            next_unit: 0,
            asked: BTreeMap::new(),
            answered: BTreeMap::new(),
        }
    }

    fn connection(&mut self) -> ConnectionId {
        ConnectionId(self.run * 1_000 + 1 + self.chance.below(4))
    }

    fn open_unit(&mut self, connection: ConnectionId) -> u64 {
        let open = self
            .units
            .iter()
            .find(|(_, u)| u.connection == connection && u.state == UnitState::Open);
        if let Some((n, _)) = open {
            return *n;
        }
        self.next_unit += 1;
        let n = self.next_unit;
        self.w.begin(connection, unit_id(n));
        self.units.insert(
            n,
            Unit {
                connection,
                state: UnitState::Open,
                puts: Vec::new(),
                gets: Vec::new(),
            },
        );
        n
    }

    fn ask(&mut self, connection: ConnectionId, asked: Asked, request: Request) {
        // The request's number is known before its answer comes.
        let id = RequestId(self.w.next_request);
        self.asked.insert(id, (connection, asked));
        assert_eq!(self.w.ask(connection, request), id);
        self.take_answers();
    }

    fn step(&mut self) {
        let connection = self.connection();
        match self.chance.below(100) {
            0..35 => self.put(connection),
            35..60 => self.get(connection),
            60..68 => {
                let n = self.open_unit(connection);
                let request = Request::Commit { id: unit_id(n) };
                self.ask(connection, Asked::Commit(n), request);
            }
            68..76 => {
                let n = self.open_unit(connection);
                let request = Request::BackOut { id: unit_id(n) };
                self.ask(connection, Asked::BackOut(n), request);
            }
            76..80 => self.disconnect(connection),
            80..90 => self.sync(),
            90..94 => {
                let ms = self.chance.below(2_000);
                self.w.pass(Duration::from_millis(ms));
                self.take_answers();
            }
            94..97 => {
                self.w.reads = !self.w.reads;
                while self.w.reads && !self.w.fetches.is_empty() {
                    self.w.read();
                }
                self.take_answers();
            }
            _ => self.crash(),
        }
    }

    fn put(&mut self, connection: ConnectionId) {
        let queue = QUEUES[usize::try_from(self.chance.below(3)).unwrap()];
        let index = self.known.len();
        let priority = u8::try_from(self.chance.below(3)).unwrap();
        let persistent = !self.chance.one_in(4);
        let unit = self.chance.one_in(2).then(|| self.open_unit(connection));
        let mut p = Put {
            priority: Priority::new(priority),
            syncpoint: unit.map(unit_id),
            ..put(queue, &format!("{index:.<100}"))
        };
        if !persistent {
            p.persistence = Some(Persistence::NonPersistent);
        }
        let mut id = [0; 24];
        id[..8].copy_from_slice(&(index as u64 + 1).to_be_bytes());
        p.descriptor.message_id = ferrymq_types::MessageId::new(id);
        if self.chance.one_in(8) {
            p.descriptor.expires_at = self.w.until(Duration::from_millis(1_500));
        }
        self.known.push(Known {
            queue,
            persistent,
            priority,
            run: self.run,
            state: unit.map_or(PutState::Answered, PutState::InUnit),
            taken: Taken::No,
            shown: 0,
            backed_out: 0,
        });
        if let Some(n) = unit {
            self.units.get_mut(&n).unwrap().puts.push(index);
        }
        self.ask(connection, Asked::Put(index), Request::Put(Box::new(p)));
    }

    fn get(&mut self, connection: ConnectionId) {
        let queue = QUEUES[usize::try_from(self.chance.below(3)).unwrap()];
        let unit = (!self.chance.one_in(3)).then(|| self.open_unit(connection));
        let wait = self.chance.one_in(3);
        let request = Get {
            syncpoint: unit.map(unit_id),
            wait_until: wait.then(|| self.w.until(Duration::from_secs(3)).unwrap()),
            ..get(queue)
        };
        self.ask(connection, Asked::Get(unit), Request::Get(request));
    }

    /// Looks at new answers as the engine gave them, before clients see them.
    fn take_answers(&mut self) {
        for id in std::mem::take(&mut self.w.answered) {
            let Some((connection, asked)) = self.asked.remove(&id) else {
                continue;
            };
            let (_, reply) = self.w.replies[&id].clone();
            let mut index = None;
            match (asked, reply) {
                (Asked::Get(unit), Ok(Reply::Got(got))) => {
                    index = Some(self.got(unit, &got));
                }
                (Asked::Put(_), Ok(_)) => {}
                (Asked::Commit(n), Ok(_)) => {
                    self.units.get_mut(&n).unwrap().state = UnitState::CommitAnswered;
                }
                (Asked::BackOut(n), Ok(_)) => self.backed_out(n, true),
                // The wait is over, or the unit ended while it lasted.
                (Asked::Get(_), Err(_)) => continue,
                (asked, reply) => panic!("{asked:?}: {reply:?}"),
            }
            self.answered.insert(id, (connection, asked, index));
        }
        self.release();
    }

    fn got(&mut self, unit: Option<u64>, got: &Got) -> usize {
        let index = index_of(got);
        let known = &mut self.known[index];
        match known.state {
            PutState::Void => panic!("inv_c2: {index} was backed out"),
            PutState::InUnit(n) => {
                let state = self.units[&n].state;
                assert_eq!(state, UnitState::CommitAnswered, "inv_a1: {index}");
            }
            PutState::Acknowledged | PutState::Answered | PutState::Unknown => {}
        }
        assert!(
            matches!(known.taken, Taken::No | Taken::Unknown),
            "inv_a4, inv_c4: {index} is {:?}",
            known.taken
        );
        assert!(known.persistent || known.run == self.run, "inv_n3: {index}");
        if known.persistent {
            assert!(got.backout_count <= known.shown, "inv_b1: {index}");
            assert!(got.backout_count >= known.backed_out, "inv_b1: {index}");
        }
        if known.queue == "B" {
            assert!(got.backout_count < 2, "inv_b2: {index}");
        }
        match unit {
            Some(n) => {
                known.taken = Taken::InUnit(n);
                known.shown += 1;
                self.units.get_mut(&n).unwrap().gets.push(index);
            }
            None => known.taken = Taken::Answered,
        }
        index
    }

    /// A unit of work had no effect.
    fn backed_out(&mut self, n: u64, counted: bool) {
        let unit = self.units.get_mut(&n).unwrap();
        unit.state = UnitState::Ended;
        for index in unit.puts.clone() {
            self.known[index].state = PutState::Void;
        }
        for index in self.units[&n].gets.clone() {
            self.known[index].taken = Taken::No;
            if counted {
                self.known[index].backed_out += 1;
            }
        }
    }

    fn committed(&mut self, n: u64) {
        let unit = self.units.get_mut(&n).unwrap();
        unit.state = UnitState::Ended;
        for index in unit.puts.clone() {
            self.known[index].state = PutState::Acknowledged;
        }
        for index in self.units[&n].gets.clone() {
            self.known[index].taken = Taken::Acknowledged;
        }
    }

    /// Lets clients see the answers whose write sets are durable.
    fn release(&mut self) {
        let released: Vec<RequestId> = self
            .answered
            .keys()
            .filter(|id| self.w.replies[id].0 <= self.durable)
            .copied()
            .collect();
        for id in released {
            let (_, asked, index) = self.answered.remove(&id).unwrap();
            match asked {
                Asked::Put(index) => {
                    if self.known[index].state == PutState::Answered {
                        self.known[index].state = PutState::Acknowledged;
                    }
                }
                Asked::Get(None) => self.known[index.unwrap()].taken = Taken::Acknowledged,
                Asked::Commit(n) => self.committed(n),
                Asked::Get(Some(_)) | Asked::BackOut(_) => {}
            }
        }
    }

    fn sync(&mut self) {
        self.durable = self.w.rows.position;
        self.release();
        assert!(self.answered.is_empty());
    }

    fn disconnect(&mut self, connection: ConnectionId) {
        self.sync();
        self.w.disconnect(connection);
        self.asked.retain(|_, (c, _)| *c != connection);
        let open: Vec<u64> = self
            .units
            .iter()
            .filter(|(_, u)| u.connection == connection && u.state == UnitState::Open)
            .map(|(n, _)| *n)
            .collect();
        for n in open {
            self.backed_out(n, false);
        }
        self.take_answers();
    }

    /// The power fails somewhere behind what is durable; answers that were not released are lost.
    fn crash(&mut self) {
        let (from, to) = (self.durable.get(), self.w.rows.position.get());
        let position = Position::new(from + self.chance.below(to - from + 1));
        let asked_backout: Vec<(u64, Position)> = self
            .answered
            .iter()
            .filter_map(|(id, (_, asked, _))| match asked {
                Asked::BackOut(n) => Some((*n, self.w.replies[id].0)),
                Asked::Put(_) | Asked::Get(_) | Asked::Commit(_) => None,
            })
            .collect();
        for (n, after) in asked_backout {
            if after > position {
                // The count may not have become durable.
                for index in self.units[&n].gets.clone() {
                    self.known[index].backed_out -= 1;
                }
            }
        }
        self.w.crash_at(position);
        self.durable = position;
        self.run += 1;
        for (_, asked, index) in std::mem::take(&mut self.answered).into_values() {
            match asked {
                Asked::Put(index) if self.known[index].state == PutState::Answered => {
                    self.known[index].state = PutState::Unknown;
                }
                Asked::Get(None) => self.known[index.unwrap()].taken = Taken::Unknown,
                Asked::Put(_) | Asked::Get(Some(_)) | Asked::Commit(_) | Asked::BackOut(_) => {}
            }
        }
        self.asked.clear();
        let units: Vec<(u64, UnitState)> = self.units.iter().map(|(n, u)| (*n, u.state)).collect();
        for (n, state) in units {
            match state {
                UnitState::Open => self.backed_out(n, false),
                UnitState::CommitAnswered => self.resolve(n),
                UnitState::Ended => {}
            }
        }
    }

    /// The answer to a commit was lost: the outcome says all or none (invariant A2).
    fn resolve(&mut self, n: u64) {
        let request = Request::GetUnitOfWork { id: unit_id(n) };
        match self.w.answer(ConnectionId(0), request).1 {
            Ok(Reply::UnitOfWork(Some(row))) => {
                assert_eq!(row.outcome, UnitOfWorkOutcome::Committed);
                self.committed(n);
            }
            Ok(Reply::UnitOfWork(None)) => self.backed_out(n, false),
            other => panic!("{other:?}"),
        }
    }

    fn finish(&mut self) {
        self.w.reads = true;
        while !self.w.fetches.is_empty() {
            self.w.read();
        }
        self.take_answers();
        for n in 1..=4 {
            self.disconnect(ConnectionId(self.run * 1_000 + n));
        }
        self.sync();
        // What is durable is what the engine has in mind.
        let browse = |w: &mut World| -> Vec<(String, u32)> {
            ["A", "B", "BO", "FIFO", "DLQ"]
                .iter()
                .flat_map(|queue| w.browse(queue))
                .filter(|b| b.message.descriptor.persistence == Persistence::Persistent)
                .map(|b| (format!("{:?}", b.message), b.backout_count))
                .collect()
        };
        let before = browse(&mut self.w);
        self.w.crash();
        self.run += 1;
        assert_eq!(browse(&mut self.w), before);
        let mut left: BTreeMap<usize, usize> = BTreeMap::new();
        for queue in ["A", "B", "BO", "FIFO"] {
            let mut last = None;
            while let (_, Ok(Reply::Got(got))) =
                self.w.answer(ConnectionId(1), Request::Get(get(queue)))
            {
                let index = index_of(&got);
                *left.entry(index).or_default() += 1;
                let known = &self.known[index];
                if known.queue == queue {
                    let rank = if queue == "FIFO" {
                        0
                    } else {
                        9 - known.priority
                    };
                    assert!(last < Some((rank, index)), "inv_o1, inv_o2: {index}");
                    last = Some((rank, index));
                } else {
                    assert_eq!((known.queue, queue), ("B", "BO"), "inv_c7");
                }
            }
        }
        let mut expired: BTreeMap<usize, usize> = BTreeMap::new();
        for entry in self.w.rows.account.values() {
            if entry.reason == AccountReason::Expired {
                let (head, _) = entry.message_id.as_bytes().split_at(8);
                let n = u64::from_be_bytes(head.try_into().unwrap());
                *expired.entry(usize::try_from(n - 1).unwrap()).or_default() += 1;
            }
        }
        for (index, known) in self.known.iter().enumerate() {
            let taken = usize::from(known.taken == Taken::Acknowledged);
            let left = left.get(&index).copied().unwrap_or_default();
            let expired = expired.get(&index).copied().unwrap_or_default();
            let places = taken + left + expired;
            assert!(
                places <= 1,
                "inv_c1: {index} is in {places} places: {known:?}"
            );
            if known.state == PutState::Void {
                assert_eq!(places, 0, "inv_c2: {index}: {known:?}");
            }
            let surely = known.persistent
                && known.state == PutState::Acknowledged
                && known.taken != Taken::Unknown;
            if surely {
                assert_eq!(places, 1, "inv_c1: {index} is lost: {known:?}");
            }
        }
        assert!(self.w.rows.messages.is_empty() && self.w.rows.bodies.is_empty());
        assert!(self.w.now > Timestamp::ZERO);
    }
}

#[test]
fn inv_c1_o1_a2_b1_n1_random_requests_and_crashes_fit_the_oracle() {
    let only = option_env!("FERRYMQ_SEED").and_then(|s| s.parse().ok());
    let seeds = only.map_or(1..=SEEDS, |seed: u64| seed..=seed);
    for seed in seeds {
        let run = std::panic::catch_unwind(|| {
            let mut oracle = Oracle::new(seed);
            for _ in 0..STEPS {
                oracle.step();
            }
            oracle.finish();
        });
        if let Err(panic) = run {
            eprintln!("FERRYMQ_SEED={seed} cargo test -p ferrymq-engine random");
            std::panic::resume_unwind(panic);
        }
    }
}
