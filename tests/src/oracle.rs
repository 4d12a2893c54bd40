//! What is known of every put, get and unit of work: asked, confirmed, refused, or unknown because the answer was lost with
//! the node.
//!
//! The oracle stands beside the simulator, not beside a client: an answer that left the node counts as given, whether or not
//! its client lived to see it. Only what a crash kept from leaving is unknown.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use ferrymq_types::{
    AccountEntry, CorrelationId, MessageId, Persistence, Priority, Timestamp, UnitOfWorkId,
};

use crate::invariants::{self, Check, Violation};

/// A message, from its put on; its correlation id says which it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Uid(pub(crate) u64);

const MARK: &[u8; 16] = b"ferrymq-tests/id";

impl Uid {
    pub(crate) fn bytes(self) -> [u8; 24] {
        let mut id = [0; 24];
        id[..16].copy_from_slice(MARK);
        id[16..].copy_from_slice(&self.0.to_be_bytes());
        id
    }

    pub(crate) fn read(id: &CorrelationId) -> Option<Self> {
        let number = id.as_bytes().strip_prefix(MARK)?;
        Some(Self(u64::from_be_bytes(number.try_into().ok()?)))
    }
}

/// Whether a permanent dynamic queue is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Existence {
    #[default]
    No,
    Yes,
    /// The answer to what made or deleted it has not left.
    Maybe,
}

/// How something that was asked for ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    /// No answer has left the node.
    Asked,
    /// Confirmed.
    Done,
    /// Refused, or surely never done.
    Refused,
    /// The node went down before the answer left.
    Unknown,
}

/// A message was shown to a getter.
#[derive(Debug)]
pub(crate) struct Shown {
    pub(crate) node: usize,
    pub(crate) unit: Option<UnitOfWorkId>,
    /// Outside a unit of work: whether it was taken.
    pub(crate) fate: Fate,
    /// Whether the answer left the node.
    pub(crate) left: bool,
}

/// A message's place in a group.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GroupPlace {
    pub(crate) member: crate::sim::Member,
    pub(crate) last: bool,
}

/// Which reports a message asks for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reports {
    pub(crate) arrival: bool,
    pub(crate) delivery: bool,
    pub(crate) expiration: bool,
}

/// A message that somebody put.
#[derive(Debug)]
pub(crate) struct Put {
    pub(crate) uid: Uid,
    /// Who put it.
    pub(crate) putter: usize,
    pub(crate) node: usize,
    /// Node and queue that it is for.
    pub(crate) target: (usize, &'static str),
    pub(crate) priority: Priority,
    pub(crate) persistence: Persistence,
    pub(crate) body: Bytes,
    /// As asked for, or as the node chose.
    pub(crate) message_id: MessageId,
    pub(crate) expires_at: Option<Timestamp>,
    pub(crate) unit: Option<UnitOfWorkId>,
    pub(crate) asked_at: Timestamp,
    /// When it was put, if that is certain.
    pub(crate) put_time: Option<Timestamp>,
    /// Its place in its group, once it is put.
    pub(crate) group: Option<GroupPlace>,
    /// Whether it is to end its group.
    pub(crate) ends_group: bool,
    /// Reports that it asks for.
    pub(crate) reports: Reports,
    /// It was asked for more than once.
    pub(crate) repeated: bool,
    pub(crate) fate: Fate,
    pub(crate) shown: Vec<Shown>,
    pub(crate) held_by: Option<UnitOfWorkId>,
    /// Whether its turn in the order of delivery has come.
    pub(crate) delivered: bool,
}

impl Put {
    pub(crate) fn is_persistent(&self) -> bool {
        self.persistence == Persistence::Persistent
    }

    pub(crate) fn is_remote(&self) -> bool {
        self.node != self.target.0
    }

    pub(crate) fn name(&self) -> String {
        let unit = self
            .unit
            .map_or(String::new(), |u| format!(" in unit {}", short(u)));
        format!(
            "message {} ({:?}, priority {}, {} bytes, put by client {}{unit} for {}@{}, put {:?})",
            self.uid.0,
            self.persistence,
            self.priority,
            self.body.len(),
            self.putter,
            self.target.1,
            crate::sim::QMGRS[self.target.0],
            self.fate,
        )
    }
}

/// The first digits of an id.
pub(crate) fn short(id: UnitOfWorkId) -> String {
    id.to_string().chars().take(8).collect()
}

/// How a unit of work stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnitState {
    Open,
    Committed,
    BackedOut,
    Unknown,
}

#[derive(Debug)]
pub(crate) struct Unit {
    pub(crate) node: usize,
    /// Client and its life: a new one for each connection.
    pub(crate) owner: (usize, u64),
    pub(crate) state: UnitState,
    /// The engine has committed it; the answer may be held.
    pub(crate) committing: bool,
    /// Its backout was answered.
    pub(crate) backout_answered: bool,
    pub(crate) puts: Vec<Uid>,
    pub(crate) gets: Vec<Uid>,
}

/// An entry of the account that was seen to leave a node.
#[derive(Debug)]
pub(crate) struct Accounted {
    /// It went nowhere.
    pub(crate) gone: bool,
}

/// Messages that keep their order among each other.
pub(crate) type Path = (
    usize,
    (usize, &'static str),
    Priority,
    bool,
    Option<UnitOfWorkId>,
    Option<CorrelationId>,
);

#[derive(Debug, Default)]
pub(crate) struct Oracle {
    pub(crate) puts: BTreeMap<Uid, Put>,
    pub(crate) units: BTreeMap<UnitOfWorkId, Unit>,
    pub(crate) by_message_id: BTreeMap<MessageId, Uid>,
    pub(crate) accounted: BTreeMap<Uid, Vec<Accounted>>,
    /// The messages of each group.
    pub(crate) groups: BTreeMap<CorrelationId, Vec<Uid>>,
    /// The last message of each path that was delivered.
    pub(crate) order: BTreeMap<Path, Uid>,
    /// When nodes went down, by node.
    pub(crate) crashes: [Vec<Timestamp>; 2],
    /// When conversations of the channel ended.
    pub(crate) conversations_ended: Vec<Timestamp>,
    /// Whether non-persistent messages travel fast.
    pub(crate) fast: bool,
    /// Whether the permanent dynamic queue is there.
    pub(crate) dynamic: Existence,
}

/// A message as a getter, a browser or a dump sees it.
#[derive(Debug)]
pub(crate) struct Sight<'a> {
    pub(crate) node: usize,
    pub(crate) queue: &'a str,
    pub(crate) message: &'a ferrymq_types::Message,
    pub(crate) backout_count: u32,
    pub(crate) now: Timestamp,
}

impl Oracle {
    pub(crate) fn put(&self, uid: Uid) -> &Put {
        &self.puts[&uid]
    }

    pub(crate) fn put_asked(&mut self, put: Put) {
        if let Some(unit) = put.unit.and_then(|u| self.units.get_mut(&u)) {
            unit.puts.push(put.uid);
        }
        if !put.message_id.is_none() {
            self.by_message_id.insert(put.message_id, put.uid);
        }
        self.puts.insert(put.uid, put);
    }

    /// The engine took a put; its answer may be held.
    pub(crate) fn put_taken(&mut self, uid: Uid, id: MessageId, now: Timestamp) -> Check {
        let Some(put) = self.puts.get_mut(&uid) else {
            return Ok(());
        };
        invariants::inv_i1_token::taken(put, id)?;
        put.message_id = id;
        if !put.repeated {
            put.put_time = Some(now);
        }
        self.by_message_id.insert(id, uid);
        Ok(())
    }

    /// The engine gave a put its place in a group.
    pub(crate) fn put_in_group(&mut self, uid: Uid, member: crate::sim::Member) {
        if let Some(put) = self.puts.get_mut(&uid) {
            let last = put.ends_group;
            put.group = Some(GroupPlace { member, last });
            self.groups.entry(member.0).or_default().push(uid);
        }
    }

    /// The answer to a put left the node.
    pub(crate) fn put_answered(&mut self, uid: Uid, done: bool) {
        if let Some(put) = self.puts.get_mut(&uid) {
            put.fate = if done { Fate::Done } else { Fate::Refused };
        }
    }

    /// A put with a token is asked for again.
    pub(crate) fn put_repeated(&mut self, uid: Uid) {
        if let Some(put) = self.puts.get_mut(&uid) {
            put.repeated = true;
            put.put_time = None;
            if put.fate == Fate::Refused {
                put.fate = Fate::Asked;
            }
        }
    }

    pub(crate) fn unit_begun(&mut self, id: UnitOfWorkId, node: usize, owner: (usize, u64)) {
        let unit = Unit {
            node,
            owner,
            state: UnitState::Open,
            committing: false,
            backout_answered: false,
            puts: Vec::new(),
            gets: Vec::new(),
        };
        self.units.insert(id, unit);
    }

    /// The engine committed it: its puts are visible from now on.
    pub(crate) fn unit_committing(&mut self, id: UnitOfWorkId) {
        if let Some(unit) = self.units.get_mut(&id) {
            unit.committing = true;
        }
        self.let_go(id);
    }

    fn let_go(&mut self, id: UnitOfWorkId) {
        let Some(unit) = self.units.get(&id) else {
            return;
        };
        for uid in &unit.gets {
            if let Some(put) = self.puts.get_mut(uid)
                && put.held_by == Some(id)
            {
                put.held_by = None;
            }
        }
    }

    /// The engine backed it out.
    pub(crate) fn unit_backed_out(&mut self, id: UnitOfWorkId) {
        if let Some(unit) = self.units.get_mut(&id)
            && unit.state == UnitState::Open
            && !unit.committing
        {
            unit.state = UnitState::BackedOut;
            self.let_go(id);
        }
    }

    /// Its outcome left the node, at once or asked for later.
    pub(crate) fn unit_known(&mut self, id: UnitOfWorkId, committed: bool) {
        let state = if committed {
            UnitState::Committed
        } else {
            UnitState::BackedOut
        };
        // That nothing is known of it says nothing of non-persistent messages, which left no trace.
        let traceless = self.units.get(&id).is_some_and(|unit| {
            unit.state == UnitState::Unknown
                && unit.puts.iter().any(|uid| !self.put(*uid).is_persistent())
        });
        if !committed && traceless {
            return;
        }
        if let Some(unit) = self.units.get_mut(&id) {
            if matches!(unit.state, UnitState::Open | UnitState::Unknown) {
                unit.state = state;
            }
            unit.committing |= committed;
        }
    }

    /// The engine heard that a connection is gone: what was open is backed out.
    pub(crate) fn disconnected(&mut self, owner: (usize, u64)) {
        let open: Vec<_> = self
            .units
            .iter()
            .filter(|(_, u)| u.owner == owner && u.state == UnitState::Open && !u.committing)
            .map(|(id, _)| *id)
            .collect();
        for id in open {
            self.unit_backed_out(id);
        }
    }

    /// A node went down: what was not answered is unknown, what was open is backed out.
    pub(crate) fn crashed(&mut self, node: usize, now: Timestamp) {
        self.crashes[node].push(now);
        for unit in self.units.values_mut().filter(|u| u.node == node) {
            if unit.state == UnitState::Open {
                unit.state = if unit.committing {
                    UnitState::Unknown
                } else {
                    UnitState::BackedOut
                };
            }
        }
        for put in self.puts.values_mut() {
            if put.fate == Fate::Asked && put.node == node {
                put.fate = Fate::Unknown;
            }
            for shown in put.shown.iter_mut().filter(|s| s.node == node) {
                if shown.unit.is_none() && shown.fate == Fate::Asked {
                    shown.fate = Fate::Unknown;
                }
            }
            if put
                .held_by
                .and_then(|unit| self.units.get(&unit))
                .is_some_and(|unit| unit.node == node)
            {
                put.held_by = None;
            }
        }
        self.forget_unseen(node);
    }

    /// What was delivered behind the last message that anybody saw: after a crash its turn may come again, in another order.
    fn forget_unseen(&mut self, node: usize) {
        let path = invariants::inv_o1_order::path;
        let mut seen: BTreeMap<Path, Uid> = BTreeMap::new();
        for put in self.puts.values().filter(|p| p.delivered) {
            if put.target.0 != node || put.shown.iter().any(|s| s.left) {
                seen.insert(path(put), put.uid);
            }
        }
        for put in self.puts.values_mut() {
            put.delivered &= seen.get(&path(put)).is_some_and(|last| put.uid <= *last);
        }
        self.order = seen;
    }

    /// How a put stands, seen from its end.
    pub(crate) fn put_fate(&self, put: &Put) -> Fate {
        let Some(unit) = put.unit.and_then(|u| self.units.get(&u)) else {
            return put.fate;
        };
        match (put.fate, unit.state) {
            (Fate::Refused, _) | (_, UnitState::BackedOut) => Fate::Refused,
            (_, UnitState::Open) => Fate::Asked,
            (Fate::Done, UnitState::Committed) => Fate::Done,
            (Fate::Asked | Fate::Unknown, UnitState::Committed) | (_, UnitState::Unknown) => {
                Fate::Unknown
            }
        }
    }

    /// How a get stands.
    pub(crate) fn get_fate(&self, shown: &Shown) -> Fate {
        let Some(unit) = shown.unit.and_then(|u| self.units.get(&u)) else {
            return shown.fate;
        };
        match unit.state {
            UnitState::Committed => Fate::Done,
            UnitState::BackedOut => Fate::Refused,
            UnitState::Unknown => Fate::Unknown,
            UnitState::Open if unit.committing => Fate::Done,
            UnitState::Open => Fate::Asked,
        }
    }

    /// What every sight of a message must hold to; says which it is.
    pub(crate) fn seen(&self, sight: &Sight<'_>) -> Result<Uid, Violation> {
        let put = invariants::inv_c3_no_invention::known(self, sight)?;
        invariants::inv_c2_in_doubt_at_most_once::seen(self, put, sight)?;
        invariants::inv_a1_invisible::seen(self, put, sight)?;
        invariants::inv_c6_bytes_intact::seen(put, sight)?;
        Ok(put.uid)
    }

    /// A message is shown to a getter; says which message, and the how-manieth time. `threshold` is that of its queue.
    pub(crate) fn got(
        &mut self,
        sight: &Sight<'_>,
        unit: Option<UnitOfWorkId>,
        threshold: Option<u32>,
    ) -> Result<(Uid, usize), Violation> {
        let uid = self.seen(sight)?;
        let put = self.put(uid);
        invariants::inv_c7_routes::got(put, sight)?;
        invariants::inv_c4_no_return::got(self, put)?;
        invariants::inv_a4_held::got(put, unit)?;
        invariants::inv_b1_backout_count::got(self, put, sight, threshold)?;
        invariants::inv_d7_expiry::got(put, sight)?;
        self.delivered(uid)?;
        if let Some(unit) = unit.and_then(|u| self.units.get_mut(&u)) {
            unit.gets.push(uid);
        }
        let mut which = 0;
        if let Some(put) = self.puts.get_mut(&uid) {
            put.held_by = unit;
            which = put.shown.len();
            put.shown.push(Shown {
                node: sight.node,
                unit,
                fate: Fate::Asked,
                left: false,
            });
        }
        Ok((uid, which))
    }

    /// A message comes to its turn.
    pub(crate) fn delivered(&mut self, uid: Uid) -> Check {
        invariants::inv_o1_order::delivered(self, uid)?;
        if let Some(put) = self.puts.get_mut(&uid) {
            put.delivered = true;
        }
        Ok(())
    }

    /// The answer to a get left the node.
    pub(crate) fn get_answered(&mut self, uid: Uid, which: usize) {
        let shown = self.puts.get_mut(&uid).and_then(|p| p.shown.get_mut(which));
        if let Some(shown) = shown {
            shown.left = true;
            if shown.unit.is_none() {
                shown.fate = Fate::Done;
            }
        }
    }

    /// A node told of an entry of its account.
    pub(crate) fn account(&mut self, entry: &AccountEntry) -> Check {
        let uid = invariants::inv_c3_no_invention::accounted(self, entry)?;
        invariants::inv_d7_expiry::accounted(self.put(uid), entry)?;
        if invariants::is_of_report(entry) {
            return Ok(());
        }
        self.accounted.entry(uid).or_default().push(Accounted {
            gone: entry.to.is_none(),
        });
        Ok(())
    }

    /// Messages of puts that nobody answered and nobody lost: there must be none once all is at rest.
    pub(crate) fn unanswered(&self) -> BTreeSet<Uid> {
        self.puts
            .values()
            .filter(|p| p.fate == Fate::Asked)
            .map(|p| p.uid)
            .collect()
    }
}
