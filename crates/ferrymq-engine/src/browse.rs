//! Looking at messages without taking them.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferrymq_types::{Message, MessageRow, Position, ReasonCode, Sequence};

use crate::engine::Step;
use crate::pending::{Pending, PendingBrowse};
use crate::queue::{State, Wanted};
use crate::selection::{Walk, Walked};
use crate::{
    Browse, BrowseStep, Browsed, ConnectionId, Engine, Failure, MatchIds, Reply, RequestId,
};

impl Engine {
    pub(crate) fn browse(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        connection: ConnectionId,
        browse: Browse,
    ) {
        match self.start_browse(connection, browse) {
            Ok(pending) => self.run_browse(step, id, pending),
            Err(failure) => step.reply(id, Position::ZERO, Err(failure)),
        }
    }

    /// Where a browse begins; the cursor of its handle moves, so what it has locked is free.
    fn start_browse(
        &mut self,
        connection: ConnectionId,
        browse: Browse,
    ) -> Result<PendingBrowse, Failure> {
        self.check_quiescing(browse.fail_if_quiescing)?;
        let (name, handle, after, only) = match &browse.step {
            BrowseStep::First(name) => (name.clone(), None, None, None),
            BrowseStep::After(name, cursor) => (name.clone(), None, Some(*cursor), None),
            BrowseStep::FirstOf(handle) => {
                let (name, _) = self.handle_for_browse(connection, *handle)?;
                (name, Some(*handle), None, None)
            }
            BrowseStep::Next(handle) => {
                let (name, cursor) = self.handle_for_browse(connection, *handle)?;
                (name, Some(*handle), cursor, None)
            }
            BrowseStep::UnderCursor(handle) => {
                let (name, cursor) = self.handle_for_browse(connection, *handle)?;
                if cursor.is_none() {
                    return Err(Failure::of(ReasonCode::NO_MSG_UNDER_CURSOR, &name));
                }
                (name, Some(*handle), None, cursor)
            }
        };
        if handle.is_none() && browse.lock {
            return Err(Failure::of(ReasonCode::OPTIONS_ERROR, &name));
        }
        let (wanted, after, moves) = match only {
            None => {
                let kept = self.wanted_by_browse(connection, &browse, &name, after)?;
                (kept.0, kept.1, Some(kept.2))
            }
            // Whatever else is asked for.
            Some(_) => (Wanted::new(MatchIds::default()), None, None),
        };
        let queue = self.input_queue(&name)?;
        if let Some(handle) = handle {
            self.check_reads(connection, handle, queue)?;
            self.unlock_cursor(connection, handle);
        }
        let selector = match only {
            None => self
                .selector(connection, handle, browse.selector.as_ref())
                .map_err(|reason| Failure::of(reason, &name))?,
            Some(_) => None,
        };
        if selector.is_some() {
            self.check_walks(&name)?;
        }
        let key = |cursor| self.queues.get(&queue).map(|q| q.key_of_cursor(cursor));
        Ok(PendingBrowse {
            connection,
            name,
            properties: browse.properties,
            queue,
            wanted,
            moves,
            walk: selector.map(|selector| Box::new(Walk::new(selector, after.and_then(key)))),
            after: after.and_then(key),
            only: only.and_then(key),
            handle: handle.map(|handle| (handle, browse.lock)),
        })
    }

    /// Looks for the next message that is in memory, or starts to read one.
    pub(crate) fn run_browse(&mut self, step: &mut Step<'_>, id: RequestId, mut p: PendingBrowse) {
        loop {
            let Some(q) = self.queues.get(&p.queue) else {
                return step.fail(id, Position::ZERO, ReasonCode::Q_DELETED);
            };
            let last_change = q.last_change;
            let found = match (p.only, p.walk.as_deref_mut()) {
                (None, None) => q.find(&p.wanted, p.after, &BTreeSet::new()),
                (None, Some(walk)) => {
                    let none = BTreeSet::new();
                    match self.walk_on(step.now, p.queue, &p.wanted, &none, walk) {
                        Walked::Found(key) => Some(key),
                        Walked::End => None,
                        Walked::Rows(rows) => {
                            return self.rest_walk(step, id, Pending::Browse(p), Some(rows));
                        }
                        Walked::Pause => {
                            return self.rest_walk(step, id, Pending::Browse(p), None);
                        }
                    }
                }
                (Some(key), _) => Some(key).filter(|key| q.available(*key).is_some()),
            };
            let Some(key) = found else {
                if let Some(walk) = p.walk.as_deref_mut() {
                    self.report_walk(step, p.queue, walk);
                }
                let reason = match (p.only, &p.walk) {
                    (None, Some(walk)) => {
                        let examined = walk.examined();
                        let none = Reply::NothingSelected { examined };
                        return step.reply(id, last_change, Ok(none));
                    }
                    (None, None) => ReasonCode::NO_MSG_AVAILABLE,
                    (Some(_), _) => ReasonCode::NO_MSG_UNDER_CURSOR,
                };
                return step.fail(id, last_change, reason);
            };
            let sequence = key.sequence;
            let Some(entry) = q.available(key) else {
                return step.fail(id, Position::ZERO, ReasonCode::UNEXPECTED_ERROR);
            };
            if entry.is_expired(step.now) && !q.keeps_expired {
                self.expire(step, &[(p.queue, sequence)]);
                continue;
            }
            let Some(message) = self.memory.get(sequence).cloned() else {
                // Not locked: who gets it meanwhile may have it. `after` stays before it until it is read.
                self.fetch(step, id, p.queue, sequence);
                if p.walk.is_some() {
                    self.walks.insert((p.queue, id));
                }
                return self.wait(id, Pending::Browse(p));
            };
            if !p.is_as_asked(&message) {
                return step.fail(id, entry.position, ReasonCode::MATCH_OPTIONS_ERROR);
            }
            if p.only.is_some() || p.wanted.is(&message) {
                return self.browsed(step, id, p, sequence, message);
            }
            p.pass(key);
        }
    }

    fn browsed(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        mut p: PendingBrowse,
        sequence: Sequence,
        message: Arc<Message>,
    ) {
        let Some(q) = self.queues.get(&p.queue) else {
            return step.fail(id, Position::ZERO, ReasonCode::Q_DELETED);
        };
        let Some(entry) = q.entry(sequence) else {
            return step.fail(id, q.last_change, ReasonCode::NO_MSG_AVAILABLE);
        };
        if let Some(walk) = p.walk.as_deref_mut() {
            self.report_walk(step, p.queue, walk);
        }
        let properties = &message.descriptor.properties;
        let browsed = Browsed {
            presentation: self.presentation(&p.name, p.properties, properties),
            examined: p.walk.as_ref().map_or(0, |walk| walk.examined()),
            message,
            backout_count: entry.backout_count,
            cursor: q.cursor(sequence, &entry),
        };
        if let Some((handle, lock)) = p.handle {
            self.set_cursor(p.connection, handle, browsed.cursor, lock);
            if let Some(moves) = &p.moves {
                self.moved_by_browse(p.connection, handle, moves, &entry, browsed.cursor);
            }
        }
        step.reply(id, entry.position, Ok(Reply::Browsed(browsed)));
    }

    pub(crate) fn browse_fetched(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        mut p: PendingBrowse,
        sequence: Sequence,
        read: Option<(Box<MessageRow>, Arc<Message>)>,
    ) {
        if let Some(q) = self.queues.get(&p.queue)
            && let Some(entry) = q.entry(sequence)
            && entry.state == State::Available
            && let Some((_, message)) = read
        {
            let expired = entry.is_expired(step.now) && !q.keeps_expired;
            if !expired && !p.is_as_asked(&message) {
                return step.fail(id, entry.position, ReasonCode::MATCH_OPTIONS_ERROR);
            }
            let key = q.key(sequence, entry.priority);
            let selected = p
                .walk
                .as_deref_mut()
                .is_none_or(|walk| walk.confirm(sequence, &message.descriptor, &entry, step.now));
            if !expired && (p.only.is_some() || p.wanted.is(&message) && selected) {
                return self.browsed(step, id, p, sequence, message);
            }
            // Not the wanted one after all: go on behind it.
            if !expired {
                p.pass(key);
            }
        }
        self.run_browse(step, id, p);
    }
}
