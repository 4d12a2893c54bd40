//! Getting: find, lock, read, verify, remove.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use ferrymq_objects::Enabled;
use ferrymq_types::{
    Change, Message, MessageDescriptor, MessageRow, ObjectId, Position, QueueName, ReasonCode,
    RequestedReport, Sequence, Timestamp, UnitOfWorkId,
};

use crate::engine::{Step, Woken};
use crate::limits::DELIVERY_NOTE_DELAY;
use crate::messages::{DELETE_BYTES, row_of};
use crate::pending::Pending;
use crate::performance::Watched;
use crate::queue::{Entry, QueueState, State, Wanted};
use crate::report::{Report, report_bytes_max};
use crate::selection::{Walk, Walked};
use crate::trigger::Cause;
use crate::unit_of_work::CommitRecord;
use crate::{ConnectionId, Cursor, Engine, Failure, FetchId, Get, Got, Reply, RequestId, Source};

/// A get that looks for a message, waits for one, or waits for the store.
#[derive(Debug)]
pub(crate) struct PendingGet {
    pub(crate) connection: ConnectionId,
    pub(crate) get: Get,
    /// What the queue is called by who gets: an alias, perhaps.
    pub(crate) name: QueueName,
    pub(crate) queue: ObjectId,
    pub(crate) wanted: Wanted,
    /// The message under a cursor: no other.
    only: Option<Cursor>,
    /// Where it is, if it has a selector.
    pub(crate) walk: Option<Box<Walk>>,
    /// Until when it waits, and when it came: set once it waits.
    pub(crate) waiting: Option<(Timestamp, u64)>,
    /// The message that is locked for it while it is read.
    pub(crate) fetch: Option<(FetchId, Sequence)>,
    /// Messages whose ids only looked like the wanted ones.
    rejected: BTreeSet<Sequence>,
    /// What a get of many has taken, and the position that it depends on.
    taken: Vec<Got>,
    taken_bytes: u64,
    after: Position,
}

/// A message in hand: what was found, not yet taken.
struct Found {
    sequence: Sequence,
    message: Arc<Message>,
    row: Option<Box<MessageRow>>,
}

impl Engine {
    /// The local queue that a get or a browse reads, if it may: 2016, 2052, and those of name resolution.
    pub(crate) fn input_queue(&self, name: &QueueName) -> Result<ObjectId, Failure> {
        let (local, alias) = self
            .qmgr
            .resolve_for_input(name)
            .map_err(|reason| Failure::of(reason, name))?;
        let id = local.base.id;
        if self.queues.get(&id).is_none_or(|q| q.closed) {
            return Err(Failure::of(ReasonCode::Q_DELETED, &local.base.name));
        }
        if let Some(alias) = alias
            && alias.get == Enabled::No
        {
            return Err(Failure::of(ReasonCode::GET_INHIBITED, &alias.base.name));
        }
        if local.get == Enabled::No {
            return Err(Failure::of(ReasonCode::GET_INHIBITED, &local.base.name));
        }
        Ok(id)
    }

    /// What a get reads: the name that it is known by, the queue, and the message under a cursor.
    fn source(
        &mut self,
        connection: ConnectionId,
        source: &Source,
    ) -> Result<(QueueName, ObjectId, Option<Cursor>), Failure> {
        let (handle, under_cursor) = match source {
            Source::Queue(name) => {
                let queue = self.input_queue(name)?;
                if self.queues.get(&queue).is_some_and(QueueState::exclusive) {
                    return Err(Failure::of(ReasonCode::OBJECT_IN_USE, name));
                }
                return Ok((name.clone(), queue, None));
            }
            Source::Handle(handle) => (*handle, false),
            Source::UnderCursor(handle) => (*handle, true),
        };
        let name = self.handle_for_input(connection, handle)?;
        let queue = self.input_queue(&name)?;
        self.check_reads(connection, handle, queue)?;
        if !under_cursor {
            return Ok((name, queue, None));
        }
        let (_, cursor) = self.handle_for_browse(connection, handle)?;
        let cursor = cursor.ok_or_else(|| Failure::of(ReasonCode::NO_MSG_UNDER_CURSOR, &name))?;
        // Free for a moment: within this step nobody else is served.
        self.unlock_cursor(connection, handle);
        Ok((name, queue, Some(cursor)))
    }

    pub(crate) fn get(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        connection: ConnectionId,
        get: Get,
    ) {
        if let Err(failure) = self.check_quiescing(get.fail_if_quiescing) {
            return step.reply(id, Position::ZERO, Err(failure));
        }
        if get.syncpoint_if_persistent && get.syncpoint.is_none() {
            // A persistent message would be gone at once, which is what was not wanted.
            let failure = ReasonCode::OPTIONS_ERROR.into();
            return step.reply(id, Position::ZERO, Err(failure));
        }
        if let Some(unit) = get.syncpoint
            && let Err(failure) = self.own_unit(connection, unit)
        {
            return step.reply(id, Position::ZERO, Err(failure));
        }
        let (name, queue, only) = match self.source(connection, &get.source) {
            Ok(source) => source,
            Err(failure) => return step.reply(id, Position::ZERO, Err(failure)),
        };
        let wanted = match self.wanted_by_get(connection, id, &get) {
            Ok(wanted) => wanted,
            Err(reason) => return step.reply(id, Position::ZERO, Err(Failure::of(reason, &name))),
        };
        let selector = if only.is_some() {
            // Whatever else is asked for.
            Ok(None)
        } else {
            self.selector(connection, get.source.handle(), get.selector.as_ref())
        };
        let walk = match selector {
            Ok(selector) => selector
                .map(|selector| self.walk_of_get((queue, connection), &get, &wanted, selector)),
            Err(reason) => return step.reply(id, Position::ZERO, Err(Failure::of(reason, &name))),
        };
        if walk.is_some()
            && let Err(failure) = self.check_walks(&name)
        {
            return step.reply(id, Position::ZERO, Err(failure));
        }
        let pending = PendingGet {
            connection,
            walk,
            get,
            name,
            queue,
            wanted,
            only,
            waiting: None,
            fetch: None,
            rejected: BTreeSet::new(),
            taken: Vec::new(),
            taken_bytes: 0,
            after: Position::ZERO,
        };
        self.run_get(step, id, pending);
    }

    /// Looks for a message until one is taken, one is being read, or there is none.
    pub(crate) fn run_get(&mut self, step: &mut Step<'_>, id: RequestId, mut p: PendingGet) {
        loop {
            let Some(q) = self.queues.get(&p.queue) else {
                return step.fail(id, Position::ZERO, ReasonCode::Q_DELETED);
            };
            let last_change = q.last_change;
            let found = match (p.only, p.walk.as_deref_mut()) {
                (None, None) => q.find(&p.wanted, None, &p.rejected),
                (None, Some(walk)) => {
                    let walked = self.walk_on(step.now, p.queue, &p.wanted, &p.rejected, walk);
                    match walked {
                        Walked::Found(key) => Some(key),
                        Walked::End => None,
                        Walked::Rows(_) | Walked::Pause if !p.taken.is_empty() => {
                            return self.reply_many(step, id, p);
                        }
                        Walked::Rows(rows) => {
                            return self.rest_walk(step, id, Pending::Get(Box::new(p)), Some(rows));
                        }
                        Walked::Pause => {
                            return self.rest_walk(step, id, Pending::Get(Box::new(p)), None);
                        }
                    }
                }
                (Some(cursor), _) => Some(q.key_of_cursor(cursor)).filter(|key| {
                    q.available(*key).is_some() && !p.rejected.contains(&key.sequence)
                }),
            };
            let Some(key) = found else {
                return self.not_found(step, id, p, last_change);
            };
            let sequence = key.sequence;
            let Some(entry) = q.available(key) else {
                return step.fail(id, Position::ZERO, ReasonCode::UNEXPECTED_ERROR);
            };
            if entry.is_expired(step.now) && !q.keeps_expired {
                self.expire(step, &[(p.queue, sequence)]);
                continue;
            }
            if p.only.is_some() && !q.is_in_order(&p.wanted, &entry) {
                return step.fail(id, entry.position, ReasonCode::INVALID_MSG_UNDER_CURSOR);
            }
            let Some(message) = self.memory.get(sequence).cloned() else {
                if !p.taken.is_empty() {
                    return self.reply_many(step, id, p);
                }
                self.hide(p.queue, sequence, State::Fetching);
                let fetch = self.fetch(step, id, p.queue, sequence);
                if p.walk.is_some() {
                    self.walks.insert((p.queue, id));
                } else if p.wanted.is_any() || p.get.logical_order {
                    self.read_ahead(step, p.queue, key);
                }
                p.fetch = Some((fetch, sequence));
                return self.wait(id, Pending::Get(Box::new(p)));
            };
            let found = Found {
                sequence,
                message,
                row: None,
            };
            match self.take(step, id, p, found) {
                Some(again) => p = again,
                None => return,
            }
        }
    }

    fn not_found(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        mut p: PendingGet,
        last_change: Position,
    ) {
        if let Some(walk) = p.walk.as_deref_mut() {
            self.report_walk(step, p.queue, walk);
        }
        if !p.taken.is_empty() {
            return self.reply_many(step, id, p);
        }
        if p.only.is_some() {
            return step.fail(id, last_change, ReasonCode::NO_MSG_UNDER_CURSOR);
        }
        let Some(until) = p.get.wait_until.filter(|until| *until > step.now) else {
            return match (&p.walk, p.get.many) {
                (Some(walk), None) => {
                    let examined = walk.examined();
                    step.reply(id, last_change, Ok(Reply::NothingSelected { examined }));
                }
                (_, _) => step.fail(id, last_change, ReasonCode::NO_MSG_AVAILABLE),
            };
        };
        let arrival = match p.waiting {
            Some((_, arrival)) => arrival,
            None => self.next_arrival(),
        };
        p.waiting = Some((until, arrival));
        self.waits.insert((until, id));
        if let Some(q) = self.queues.get_mut(&p.queue) {
            q.waiters.insert(&p.wanted, arrival, id);
        }
        self.opened_for_input(p.queue, Cause::Missed);
        self.wait(id, Pending::Get(Box::new(p)));
    }

    pub(crate) fn get_fetched(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        mut p: PendingGet,
        sequence: Sequence,
        read: Option<(Box<MessageRow>, Arc<Message>)>,
    ) {
        p.fetch = None;
        let still_locked = self
            .entry(p.queue, sequence)
            .is_some_and(|e| e.state == State::Fetching);
        let again = match read {
            Some((row, message)) if still_locked => {
                let found = Found {
                    sequence,
                    message,
                    row: Some(row),
                };
                self.take(step, id, p, found)
            }
            Some(_) | None => Some(p),
        };
        if let Some(p) = again {
            self.run_get(step, id, p);
        }
    }

    /// Takes a message that is in hand: available, or locked for this get. `None` if the get is answered; else it is to look
    /// on.
    fn take(
        &mut self,
        step: &mut Step<'_>,
        id: RequestId,
        mut p: PendingGet,
        found: Found,
    ) -> Option<PendingGet> {
        let (queue, sequence) = (p.queue, found.sequence);
        if p.only.is_none() && !p.wanted.is(&found.message) {
            p.rejected.insert(sequence);
            self.unlock(queue, sequence);
            return Some(p);
        }
        let q = self.queues.get(&queue)?;
        let entry = q.entry(sequence)?;
        if entry.is_expired(step.now) && !q.keeps_expired {
            // It expired while it was read.
            self.unlock(queue, sequence);
            return Some(p);
        }
        if let Some(walk) = p.walk.as_deref_mut() {
            let descriptor = &found.message.descriptor;
            if !walk.confirm(sequence, descriptor, &entry, step.now) {
                self.unlock(queue, sequence);
                return Some(p);
            }
        }
        if self.is_poisoned(queue, &entry) {
            let row = match found.row {
                Some(row) => row,
                None => Box::new(row_of(&found.message, entry.body)),
            };
            self.recall(sequence, &found.message);
            self.move_poison(step, queue, sequence, row);
            return Some(p);
        }
        let length = entry.length;
        let misses = self
            .matched_in_order(p.connection, &p.get)
            .is_some_and(|asked| !asked.is(&found.message));
        let too_long = p.get.length_max.is_some_and(|max| {
            let properties = &found.message.descriptor.properties;
            let header = self.header_length(&p.name, p.get.properties, properties);
            u64::from(length).saturating_add(header) > u64::from(max)
        });
        let refused = if misses {
            Some(Failure::of(ReasonCode::MATCH_OPTIONS_ERROR, &p.name))
        } else if too_long && !p.get.accept_truncated {
            Some(Failure::of(ReasonCode::TRUNCATED_MSG_FAILED, &p.name))
        } else if let Some(unit) = p.get.syncpoint {
            // It may have ended while the message was read.
            self.own_unit(p.connection, unit)
                .and_then(|()| {
                    let requested = found.message.descriptor.report.confirm_on_delivery();
                    let report = report_bytes_max(requested, u64::from(length));
                    // A move to a backout queue would take them along.
                    let properties = found.message.descriptor.properties.length() as u64;
                    let bytes = DELETE_BYTES
                        .saturating_mul(2)
                        .saturating_add(report)
                        .saturating_add(properties);
                    self.check_unit_room(unit, report, bytes)
                })
                .err()
        } else {
            None
        };
        if let Some(failure) = refused {
            let position = entry.position;
            self.unlock(queue, sequence);
            if p.taken.is_empty() {
                step.reply(id, position, Err(failure));
            } else {
                self.reply_many(step, id, p);
            }
            return None;
        }
        if let Some(walk) = p.walk.as_deref_mut() {
            self.report_walk(step, queue, walk);
        }
        let Some(many) = p.get.many else {
            let (after, got) = self.deliver(step, &p, found, &entry);
            step.reply(id, after, Ok(Reply::Got(got)));
            return None;
        };
        let (after, got) = self.deliver(step, &p, found, &entry);
        p.after = p.after.max(after);
        let properties = got.message.descriptor.properties.length() as u64;
        p.taken_bytes = p
            .taken_bytes
            .saturating_add(u64::from(length))
            .saturating_add(properties);
        p.taken.push(got);
        if p.taken.len() as u64 >= u64::from(many.messages_max) || p.taken_bytes >= many.bytes_max {
            self.reply_many(step, id, p);
            return None;
        }
        Some(p)
    }

    /// Answers a get of many with what it has.
    fn reply_many(&mut self, step: &mut Step<'_>, id: RequestId, mut p: PendingGet) {
        self.park_walk(&mut p);
        step.reply(id, p.after, Ok(Reply::GotMany(p.taken)));
    }

    /// Gives a message back that was locked while it was read.
    fn unlock(&mut self, queue: ObjectId, sequence: Sequence) {
        if self
            .entry(queue, sequence)
            .is_some_and(|e| e.state == State::Fetching)
        {
            self.show(queue, sequence, Position::ZERO);
            self.check_trigger(queue, Cause::Closed);
        }
    }

    /// Removes the message, or locks it under syncpoint.
    fn deliver(
        &mut self,
        step: &mut Step<'_>,
        p: &PendingGet,
        found: Found,
        entry: &Entry,
    ) -> (Position, Got) {
        let (queue, sequence) = (p.queue, found.sequence);
        let backout_count = entry.backout_count;
        let mut after = entry.position;
        let at_once = p.get.syncpoint_if_persistent && !entry.is_persistent();
        let report = self.delivery_report(step, queue, &found.message);
        match p.get.syncpoint.filter(|_| !at_once) {
            None if report.is_some() => {
                let unit = self.begin_own(p.connection);
                self.hide(queue, sequence, State::Locked);
                self.lock_in_unit(unit, queue, sequence, None, report);
                after = after.max(self.commit_unit(step, unit, CommitRecord::Nothing));
            }
            None => {
                let mut changes = Vec::new();
                Self::changes_of_removal(queue, sequence, entry, &mut changes);
                self.remove(queue, sequence);
                self.watch(queue, Watched::Left);
                let position = self.write_any(step, changes);
                if let Some(q) = self.queue(queue) {
                    q.changed(position);
                }
                after = after.max(position);
            }
            Some(unit) => {
                self.hide(queue, sequence, State::Locked);
                let noted = self.note_delivery(step, queue, sequence, entry);
                after = after.max(noted);
                let row = self.threshold(queue).map(|_| {
                    found
                        .row
                        .unwrap_or_else(|| Box::new(row_of(&found.message, entry.body)))
                });
                self.lock_in_unit(unit, queue, sequence, row, report);
            }
        }
        if let Some(q) = self.queue(queue) {
            q.last_get = Some(step.now);
        }
        self.watch(queue, Watched::Got);
        if let Source::Handle(handle) | Source::UnderCursor(handle) = p.get.source {
            self.save_context(p.connection, handle, &found.message.descriptor);
        }
        self.taken_ahead(step, queue);
        let properties = &found.message.descriptor.properties;
        let presentation = self.presentation(&p.name, p.get.properties, properties);
        let got = Got {
            message: found.message,
            backout_count,
            sequence,
            warning: self.moved_by_get(p.connection, &p.get, entry),
            examined: p.walk.as_ref().map_or(0, |walk| walk.examined()),
            presentation,
        };
        (after, got)
    }

    /// The confirmation of a delivery, if one is asked for.
    fn delivery_report(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        message: &Message,
    ) -> Option<Report> {
        let requested = message.descriptor.report.confirm_on_delivery();
        if requested == RequestedReport::No || !self.is_destination(queue) {
            return None;
        }
        let beside = DELETE_BYTES.saturating_mul(2);
        let feedback = MessageDescriptor::FEEDBACK_COD;
        self.make_report(step, message, requested, feedback, beside)
    }

    /// A message that was got belongs to a unit of work, and so does the report of it.
    fn lock_in_unit(
        &mut self,
        unit: UnitOfWorkId,
        queue: ObjectId,
        sequence: Sequence,
        row: Option<Box<MessageRow>>,
        report: Option<Report>,
    ) {
        let pending = match report {
            Some(Report::To { queue, message }) => Some(self.add_pending_report(queue, *message)),
            Some(Report::Nowhere(note)) => {
                if let Some(unit) = self.unit(unit) {
                    unit.note(note);
                }
                None
            }
            None => None,
        };
        self.add_get(unit, queue, sequence, row, pending);
    }

    /// Journals that a persistent message is shown under syncpoint: at once on a queue with a threshold, where the answer
    /// waits for it; else only if the unit of work lasts (rule U14).
    fn note_delivery(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        sequence: Sequence,
        entry: &Entry,
    ) -> Position {
        let count = entry.backout_count.saturating_add(1);
        if !entry.is_persistent() || entry.journaled_count >= count {
            return entry.position;
        }
        if self.threshold(queue).is_none() {
            let due = step.now.saturating_add(DELIVERY_NOTE_DELAY);
            self.notes.push_back((due, queue, sequence));
            return Position::ZERO;
        }
        let position = self.write(
            step,
            vec![Change::SetDeliveryCount {
                queue,
                sequence,
                count,
            }],
        );
        self.counted(queue, sequence, count, position);
        position
    }

    /// Notes in memory what the journal was told about a delivery count.
    pub(crate) fn counted(
        &mut self,
        queue: ObjectId,
        sequence: Sequence,
        count: u32,
        position: Position,
    ) {
        if let Some(q) = self.queues.get_mut(&queue) {
            q.changed(position);
            q.change(sequence, |entry| {
                entry.journaled_count = count;
                entry.position = entry.position.max(position);
            });
        }
    }

    /// Journals the deliveries that last.
    pub(crate) fn write_notes(&mut self, step: &mut Step<'_>) {
        // By place: a message that was locked twice in a moment has two notes.
        let mut counts = BTreeMap::new();
        while let Some((due, queue, sequence)) = self.notes.front().copied() {
            if due > step.now {
                break;
            }
            self.notes.pop_front();
            if let Some(entry) = self.entry(queue, sequence)
                && entry.state == State::Locked
                && entry.journaled_count <= entry.backout_count
            {
                counts.insert((queue, sequence), entry.backout_count.saturating_add(1));
            }
        }
        let changes = counts
            .iter()
            .map(|(&(queue, sequence), &count)| Change::SetDeliveryCount {
                queue,
                sequence,
                count,
            })
            .collect();
        let position = self.write_any(step, changes);
        for ((queue, sequence), count) in counts {
            self.counted(queue, sequence, count, position);
        }
    }

    /// Serves who waits for the messages that became available in this step, then starts channels whose trigger is due.
    pub(crate) fn serve(&mut self, step: &mut Step<'_>) {
        loop {
            self.follow(step);
            let Some(woken) = self.woken.pop_front() else {
                if self.trigger_checks.is_empty() {
                    return;
                }
                self.fire_checks(step);
                continue;
            };
            self.note_walks(woken);
            let mut last = None;
            while let Some((arrival, id)) = self.next_waiter(woken, last) {
                last = Some(arrival);
                if let Some(Pending::Get(mut p)) = self.resume(id) {
                    if let Some(walk) = p.walk.as_deref_mut() {
                        walk.note(woken.key, &p.wanted);
                    }
                    self.run_get(step, id, *p);
                }
            }
            if self.is_available(woken) {
                self.serve_channel(step, woken);
            }
        }
    }

    fn is_available(&self, woken: Woken) -> bool {
        self.queues
            .get(&woken.queue)
            .is_some_and(|q| q.available(woken.key).is_some())
    }

    /// The next get, in order of arrival, that waits for a message like this one; none if it is not available any more.
    fn next_waiter(&self, woken: Woken, last: Option<u64>) -> Option<(u64, RequestId)> {
        let q = self.queues.get(&woken.queue)?;
        if q.waiters.is_empty() {
            return None;
        }
        let entry = q.available(woken.key)?;
        let complete = entry.group.is_none_or(|member| q.is_complete(&member));
        q.waiters.next(&entry, complete, last)
    }
}
