//! Requests that wait: for a message, for the store, or for both.

use std::sync::Arc;

use ferrymq_types::{
    ChannelName, Message, MessageRow, ObjectId, Position, QueueName, ReasonCode, Sequence,
};

use crate::channel::SenderGet;
use crate::engine::Step;
use crate::get::PendingGet;
use crate::logical::BrowseMove;
use crate::messages::{message_of, row_of};
use crate::queue::{Key, State, Wanted};
use crate::selection::Walk;
use crate::trigger::Cause;
use crate::{
    ConnectionId, Effect, Engine, Event, FetchId, Fetched, HandleId, PropertyOption, RequestId,
};

/// A request that is not answered yet.
#[derive(Debug)]
pub(crate) enum Pending {
    Get(Box<PendingGet>),
    Browse(PendingBrowse),
    SenderGet(SenderGet),
    DeadLetter(PendingDeadLetter),
}

/// A browse whose message is being read.
#[derive(Debug)]
pub(crate) struct PendingBrowse {
    pub(crate) connection: ConnectionId,
    /// What the queue is called by who browses: an alias, perhaps.
    pub(crate) name: QueueName,
    pub(crate) properties: PropertyOption,
    pub(crate) queue: ObjectId,
    pub(crate) wanted: Wanted,
    pub(crate) after: Option<Key>,
    /// Where it is, if it has a selector; `after` does not count then.
    pub(crate) walk: Option<Box<Walk>>,
    /// The message under a cursor: no other.
    pub(crate) only: Option<Key>,
    /// How far it moves its handle; not if it looks at the message under the cursor.
    pub(crate) moves: Option<BrowseMove>,
    /// Whose cursor moves, and whether it locks what it finds.
    pub(crate) handle: Option<(HandleId, bool)>,
}

impl PendingBrowse {
    /// Goes on behind a message that is not the wanted one.
    pub(crate) fn pass(&mut self, key: Key) {
        self.after = Some(key);
        if let Some(walk) = self.walk.as_deref_mut() {
            walk.pass(key);
        }
    }

    /// Whether the message is as asked for, where nothing else can be had: it is the next one of its group.
    pub(crate) fn is_as_asked(&self, message: &Message) -> bool {
        let asked = self.moves.as_ref().and_then(BrowseMove::matched);
        asked.is_none_or(|ids| Wanted::new(ids).is(message))
    }
}

/// A dead-letter move of a sending channel whose message is being read.
#[derive(Debug)]
pub(crate) struct PendingDeadLetter {
    pub(crate) connection: ConnectionId,
    pub(crate) channel: ChannelName,
    pub(crate) sequence: Sequence,
    pub(crate) reason: ReasonCode,
}

impl Pending {
    pub(crate) const fn connection(&self) -> ConnectionId {
        match self {
            Self::Get(p) => p.connection,
            Self::Browse(p) => p.connection,
            Self::SenderGet(p) => p.connection,
            Self::DeadLetter(p) => p.connection,
        }
    }
}

impl Pending {
    /// The queue that a get or a browse reads; of others none.
    pub(crate) const fn queue(&self) -> ObjectId {
        match self {
            Self::Get(p) => p.queue,
            Self::Browse(p) => p.queue,
            Self::SenderGet(_) | Self::DeadLetter(_) => ObjectId::ZERO,
        }
    }

    /// Its walk, if it has a selector.
    pub(crate) fn walk(&mut self) -> Option<&mut Walk> {
        match self {
            Self::Get(p) => p.walk.as_deref_mut(),
            Self::Browse(p) => p.walk.as_deref_mut(),
            Self::SenderGet(_) | Self::DeadLetter(_) => None,
        }
    }
}

/// What is being read, and for whom.
#[derive(Debug)]
pub(crate) struct Fetching {
    /// `None`: for the report of its expiry.
    pub(crate) request: Option<RequestId>,
    pub(crate) queue: ObjectId,
    pub(crate) sequence: Sequence,
}

impl Engine {
    pub(crate) fn wait(&mut self, id: RequestId, pending: Pending) {
        self.pending_by_connection
            .insert((pending.connection(), id));
        self.pending.insert(id, pending);
    }

    /// Takes a request up again; it is filed nowhere after this.
    pub(crate) fn resume(&mut self, id: RequestId) -> Option<Pending> {
        let mut pending = self.pending.remove(&id)?;
        self.wake_walk(id, &mut pending);
        self.pending_by_connection
            .remove(&(pending.connection(), id));
        match &pending {
            Pending::Get(p) => {
                if let Some((until, arrival)) = p.waiting {
                    self.waits.remove(&(until, id));
                    if let Some(q) = self.queues.get_mut(&p.queue) {
                        q.waiters.remove(&p.wanted, arrival, id);
                        if q.trigger.is_some() {
                            self.trigger_checks.insert((p.queue, Cause::Closed));
                        }
                    }
                }
            }
            Pending::SenderGet(p) => {
                if let Some(until) = p.wait_until {
                    self.waits.remove(&(until, id));
                }
            }
            Pending::Browse(_) | Pending::DeadLetter(_) => {}
        }
        Some(pending)
    }

    /// Asks the store for a message.
    pub(crate) fn fetch(
        &mut self,
        step: &mut Step<'_>,
        request: RequestId,
        queue: ObjectId,
        sequence: Sequence,
    ) -> FetchId {
        self.fetch_for(step, Some(request), queue, sequence)
    }

    /// Asks the store for a message, for a request or for the report of its expiry.
    pub(crate) fn fetch_for(
        &mut self,
        step: &mut Step<'_>,
        request: Option<RequestId>,
        queue: ObjectId,
        sequence: Sequence,
    ) -> FetchId {
        let fetch = self.next_fetch();
        self.fetches.insert(
            fetch,
            Fetching {
                request,
                queue,
                sequence,
            },
        );
        step.effects.push(Effect::Fetch {
            fetch,
            queue,
            sequence,
        });
        fetch
    }

    /// The request ends without an answer: what it held is given back (rule U9).
    pub(crate) fn cancel(&mut self, id: RequestId) {
        let Some(pending) = self.resume(id) else {
            return;
        };
        match pending {
            Pending::Get(p) => {
                if let Some((fetch, sequence)) = p.fetch {
                    self.fetches.remove(&fetch);
                    self.show(p.queue, sequence, Position::ZERO);
                    self.check_trigger(p.queue, Cause::Closed);
                }
            }
            Pending::SenderGet(p) => self.give_back(&p),
            Pending::Browse(_) | Pending::DeadLetter(_) => {}
        }
    }

    /// The connection is gone: what it waited for ends, what it did not commit is backed out (invariant A5).
    pub(crate) fn disconnect(&mut self, step: &mut Step<'_>, connection: ConnectionId) {
        let mut requests = Vec::new();
        for (_, id) in self
            .pending_by_connection
            .range((connection, RequestId(0))..=(connection, RequestId(u64::MAX)))
        {
            requests.push(*id);
        }
        for id in requests {
            self.cancel(id);
        }
        self.back_out_all(step, connection);
        self.close_all(step, connection);
        self.disconnect_channels(connection);
        self.applications.remove(&connection);
    }

    /// What the store read, or could not.
    pub(crate) fn fetched(&mut self, step: &mut Step<'_>, fetch: FetchId, result: Fetched) {
        // Nobody waits for it any more if it is not known.
        let Some(fetching) = self.fetches.remove(&fetch) else {
            return;
        };
        let (queue, sequence) = (fetching.queue, fetching.sequence);
        let read: Option<(Box<MessageRow>, Arc<Message>)> = match result {
            Fetched::Message(row, body) => {
                let message = message_of((*row).clone(), body);
                Some((row, message))
            }
            Fetched::Damaged(what) => match self.came_back(queue, sequence) {
                Some(read) => Some(read),
                None => {
                    self.damaged(step, queue, sequence, what);
                    None
                }
            },
        };
        let Some(request) = fetching.request else {
            return self.expired_fetched(step, queue, sequence, read.map(|(_, message)| message));
        };
        let Some(pending) = self.resume(request) else {
            return;
        };
        match pending {
            Pending::Get(p) => self.get_fetched(step, request, *p, sequence, read),
            Pending::Browse(p) => self.browse_fetched(step, request, p, sequence, read),
            Pending::SenderGet(p) => {
                self.sender_fetched(step, request, p, sequence, read.map(|(_, m)| m));
            }
            Pending::DeadLetter(p) => self.dead_letter_fetched(step, request, p, read),
        }
    }

    /// A message that was on the disk when it was asked for, and is in memory again by now.
    fn came_back(
        &self,
        queue: ObjectId,
        sequence: Sequence,
    ) -> Option<(Box<MessageRow>, Arc<Message>)> {
        let entry = self.entry(queue, sequence)?;
        let message = self.memory.only_here(sequence)?;
        let row = Box::new(row_of(message, entry.body));
        Some((row, Arc::clone(message)))
    }

    /// A message that cannot be read stays where it is, is shown to nobody, and is reported. One that left meanwhile, as under
    /// a browse, is none.
    fn damaged(&mut self, step: &mut Step<'_>, queue: ObjectId, sequence: Sequence, what: String) {
        let Some(entry) = self.entry(queue, sequence) else {
            return;
        };
        let position = entry.position;
        match entry.state {
            State::Available | State::Fetching => self.hide(queue, sequence, State::Damaged),
            // A batch in doubt keeps it: its partner may have it.
            State::Channel => {}
            State::Uncommitted
            | State::Locked
            | State::Browsed
            | State::Damaged
            | State::Poison => return,
        }
        if let Some(q) = self.queues.get(&queue) {
            step.report(
                position,
                Event::Damaged {
                    queue: q.name.clone(),
                    sequence,
                    what,
                },
            );
        }
    }
}
