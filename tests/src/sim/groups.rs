//! Clients that put and get groups in logical order through a handle, and what they know of where they are in one.

use ferrymq_engine::{
    CloseOption, Get, HandleId, InputUse, Object, ObjectName, OpenOptions, Put, Reply, Request,
    Source,
};
use ferrymq_types::{CorrelationId, MessageDescriptor, Persistence, UnitOfWorkId};

use crate::invariants::{Check, inv_g1_groups};
use crate::oracle::Uid;
use crate::sim::clients::queue_name;
use crate::sim::node::{Answer, What};
use crate::sim::world::{World, after};

/// Where groups go.
pub(crate) const GROUP_QUEUE: &str = "GROUP.Q";

/// What a client does with groups.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Grouping {
    /// Nothing.
    No,
    Puts,
    Gets,
}

/// A message in a group: `GroupId`, `MsgSeqNumber`.
pub(crate) type Member = (CorrelationId, u32);

/// What a client has open, and where it is in a group.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) handle: Option<HandleId>,
    /// The last message of the group that is under way.
    pub(crate) current: Option<Member>,
    /// Where it was before the unit of work that is open, and the persistence there.
    before: Option<(Option<Member>, Persistence)>,
    /// Of the group that the last put was of.
    put_persistence: Persistence,
    /// Of the messages of the group that is under way.
    persistence: Persistence,
}

impl Progress {
    fn advance(&mut self, unit: Option<UnitOfWorkId>, to: Option<Member>) {
        if unit.is_some() {
            self.before.get_or_insert((self.current, self.persistence));
        }
        self.current = to;
        self.persistence = self.put_persistence;
    }

    fn unit_ended(&mut self, committed: bool) {
        if let Some((current, persistence)) = self.before.take()
            && !committed
        {
            self.current = current;
            self.persistence = persistence;
        }
    }
}

impl World {
    /// What a client of groups does next; it opens its queue first, and closes it now and then.
    pub(crate) fn group_request(
        &mut self,
        number: usize,
        unit: Option<UnitOfWorkId>,
    ) -> (What, Request) {
        let grouping = self.client_groups(number);
        // One that puts comes here only to open or to close.
        let closes = grouping == Grouping::Puts || (unit.is_none() && self.dice.percent(4));
        let Some(handle) = self.progress(number).handle else {
            let name = ObjectName::local(queue_name(GROUP_QUEUE));
            let options = OpenOptions {
                input: (grouping == Grouping::Gets).then_some(InputUse::Shared),
                output: grouping == Grouping::Puts,
                ..OpenOptions::default()
            };
            let open = Request::Open {
                name,
                options,
                dynamic_name: None,
                selector: None,
            };
            return (What::Open, open);
        };
        if closes {
            return self.group_closes(number, handle);
        }
        let wait = self.dice.below(600);
        let get = Get {
            logical_order: true,
            all_messages_available: true,
            wait_until: (wait > 200).then(|| after(self.now, wait)),
            syncpoint: unit,
            ..Get::of(Source::Handle(handle))
        };
        let what = What::Get {
            node: 1,
            queue: GROUP_QUEUE,
            unit,
        };
        (what, Request::Get(get))
    }

    /// Closes the queue, wherever the client is in a group.
    pub(crate) fn group_closes(&mut self, number: usize, handle: HandleId) -> (What, Request) {
        let current = self.progress(number).current;
        self.trace.add(self.now, || {
            format!("client {number} closes its queue at {current:?}")
        });
        let option = CloseOption::None;
        (What::Close, Request::Close { handle, option })
    }

    /// Makes a put one of a group, in logical order.
    pub(crate) fn group_put(&mut self, number: usize, handle: HandleId, put: &mut Put) {
        let last = self.dice.percent(35);
        let persistent = self.dice.percent(self.profile.persistent);
        let progress = self.progress(number);
        progress.put_persistence = match (progress.current, persistent) {
            (Some(_), _) => progress.persistence,
            (None, true) => Persistence::Persistent,
            (None, false) => Persistence::NonPersistent,
        };
        put.persistence = Some(progress.put_persistence);
        put.object = Object::Handle(handle);
        put.logical_order = true;
        put.descriptor.message_flags = if last {
            MessageDescriptor::FLAG_LAST_MSG_IN_GROUP
        } else {
            MessageDescriptor::FLAG_MSG_IN_GROUP
        };
    }

    /// The engine answered a client of groups, which still has the connection.
    pub(crate) fn group_answered(&mut self, number: usize, what: What, answer: &Answer) -> Check {
        if let Err(failure) = answer {
            return inv_g1_groups::refused(failure.reason);
        }
        let now = self.now;
        match (what, answer) {
            (What::Open, Ok(Reply::Opened(opened))) => {
                let handle = Some(opened.handle);
                *self.progress(number) = Progress {
                    handle,
                    ..Progress::default()
                };
            }
            (What::Close, Ok(Reply::Closed { warning })) => {
                inv_g1_groups::closed(self.progress(number).current, *warning)?;
                *self.progress(number) = Progress::default();
            }
            (What::Put(uid), Ok(Reply::Put(done))) => {
                let member = (done.group_id, done.message_sequence_number);
                let current = self.progress(number).current;
                inv_g1_groups::put(&self.oracle, uid, member, current)?;
                let put = self.oracle.put(uid);
                let (unit, last) = (put.unit, put.ends_group);
                self.progress(number)
                    .advance(unit, (!last).then_some(member));
            }
            (What::Get { unit, .. }, Ok(Reply::Got(got))) => {
                self.statistics.group_gets += 1;
                let uid = Uid::read(&got.message.descriptor.correlation_id);
                let current = self.progress(number).current;
                let (member, last) = inv_g1_groups::got(&self.oracle, uid, current, now)?;
                self.progress(number)
                    .advance(unit, (!last).then_some(member));
            }
            (What::Commit(_), Ok(_)) => self.progress(number).unit_ended(true),
            (What::BackOut(_), Ok(_)) => self.progress(number).unit_ended(false),
            (_, Ok(_) | Err(_)) => {}
        }
        Ok(())
    }
}
