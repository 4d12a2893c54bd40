//! Looking at messages without taking them.

use std::collections::BTreeSet;
use std::sync::Arc;

use ferrymq_types::{Message, MessageRow, Position, ReasonCode, Sequence};

use crate::engine::Step;
use crate::pending::{Pending, PendingBrowse};
use crate::queue::{State, Wanted};
use crate::{Browse, Browsed, ConnectionId, Engine, Reply, RequestId};

impl Engine {
    pub(crate) fn browse(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        connection: ConnectionId,
        browse: Browse,
    ) {
        let queue = match self.input_queue(&browse.queue) {
            Ok(queue) => queue,
            Err(failure) => return step.reply(id, Position::ZERO, Err(failure)),
        };
        let after = browse
            .after
            .and_then(|cursor| self.queues.get(&queue).map(|q| q.key_of_cursor(cursor)));
        let pending = PendingBrowse {
            connection,
            queue,
            wanted: Wanted::new(browse.matching),
            after,
        };
        self.run_browse(step, id, pending);
    }

    /// Looks for the next message that is in memory, or starts to read one.
    fn run_browse(&mut self, step: &mut Step<'_>, id: RequestId, mut p: PendingBrowse) {
        loop {
            let Some(q) = self.queues.get(&p.queue) else {
                return step.fail(id, Position::ZERO, ReasonCode::Q_DELETED);
            };
            let last_change = q.last_change;
            let Some(key) = q.find(&p.wanted, p.after, &BTreeSet::new()) else {
                return step.fail(id, last_change, ReasonCode::NO_MSG_AVAILABLE);
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
                return self.wait(id, Pending::Browse(p));
            };
            if p.wanted.is(&message) {
                return self.browsed(step, id, &p, sequence, message);
            }
            p.after = Some(key);
        }
    }

    fn browsed(
        &self,
        step: &mut Step<'_>,
        id: RequestId,
        p: &PendingBrowse,
        sequence: Sequence,
        message: Arc<Message>,
    ) {
        let Some(q) = self.queues.get(&p.queue) else {
            return step.fail(id, Position::ZERO, ReasonCode::Q_DELETED);
        };
        let Some(entry) = q.entry(sequence) else {
            return step.fail(id, q.last_change, ReasonCode::NO_MSG_AVAILABLE);
        };
        let browsed = Browsed {
            message,
            backout_count: entry.backout_count,
            cursor: q.cursor(sequence, &entry),
        };
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
            if !expired && p.wanted.is(&message) {
                return self.browsed(step, id, &p, sequence, message);
            }
            // Not the wanted one after all: go on behind it.
            if !expired {
                p.after = Some(q.key(sequence, entry.priority));
            }
        }
        self.run_browse(step, id, p);
    }
}
