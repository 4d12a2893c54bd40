//! Units of work: in memory until they are committed, then one write set.

use std::collections::{BTreeMap, BTreeSet};

use ferrymq_types::{
    Change, MessageRow, ObjectId, Position, ReasonCode, Sequence, UnitOfWorkId, UnitOfWorkOutcome,
    UnitOfWorkRow,
};

use crate::account::Note;
use crate::engine::{Answer, Step};
use crate::messages::row_of;
use crate::performance::Watched;
use crate::queue::State;
use crate::report::PendingReport;
use crate::trigger::PendingTrigger;
use crate::{ConnectionId, Engine, Failure, HandleId, Reply};

/// A unit of work that is open.
#[derive(Debug)]
pub(crate) struct UnitOfWork {
    connection: ConnectionId,
    puts: Vec<(ObjectId, Sequence)>,
    /// By sequence, which is unique for the queue manager.
    pub(crate) gets: BTreeMap<Sequence, LockedMessage>,
    /// What a receiving channel discarded in it.
    notes: Vec<Note>,
    /// Trigger messages that its puts made.
    triggers: Vec<PendingTrigger>,
    /// Handles that it moved on in a group: a backout takes them back.
    pub(crate) moved_handles: BTreeSet<HandleId>,
    /// Bytes that it holds in memory.
    bytes: u64,
    /// Bytes of its write set, estimated.
    write_bytes: u64,
}

#[derive(Debug)]
pub(crate) struct LockedMessage {
    pub(crate) queue: ObjectId,
    /// For the move to a backout queue, if its queue has a threshold.
    pub(crate) row: Option<Box<MessageRow>>,
    /// The confirmation of its delivery, which shares its fate.
    pub(crate) report: Option<PendingReport>,
}

/// Bytes that the move of a message to a backout queue takes for its properties.
fn properties_of(row: Option<&MessageRow>) -> u64 {
    row.map_or(0, |row| row.descriptor.properties.length() as u64)
}

impl UnitOfWork {
    const fn new(connection: ConnectionId) -> Self {
        Self {
            connection,
            puts: Vec::new(),
            gets: BTreeMap::new(),
            notes: Vec::new(),
            triggers: Vec::new(),
            moved_handles: BTreeSet::new(),
            bytes: 0,
            write_bytes: 0,
        }
    }

    /// Adds an account entry that becomes durable with the commit.
    pub(crate) fn note(&mut self, note: Note) {
        self.notes.push(note);
        self.write_bytes = self.write_bytes.saturating_add(crate::messages::ROW_BYTES);
    }

    /// Takes the locked messages out; none of them if one is not there.
    pub(crate) fn take_gets(
        &mut self,
        messages: &[Sequence],
    ) -> Option<Vec<(Sequence, LockedMessage)>> {
        let mut taken: Vec<(Sequence, LockedMessage)> = Vec::with_capacity(messages.len());
        for sequence in messages {
            match self.gets.remove(sequence) {
                Some(locked) => taken.push((*sequence, locked)),
                None => {
                    self.gets.extend(taken);
                    return None;
                }
            }
        }
        self.write_bytes = self.write_bytes.saturating_sub(bytes_of_gets(taken.len()));
        for (_, locked) in &taken {
            let properties = properties_of(locked.row.as_deref());
            self.write_bytes = self.write_bytes.saturating_sub(properties);
        }
        for report in taken.iter().filter_map(|(_, locked)| locked.report) {
            self.bytes = self.bytes.saturating_sub(report.bytes);
            self.write_bytes = self.write_bytes.saturating_sub(report.write_bytes);
        }
        Some(taken)
    }

    fn messages(&self) -> usize {
        self.puts
            .len()
            .saturating_add(self.gets.len())
            .saturating_add(self.notes.len())
            .saturating_add(self.triggers.len())
    }
}

/// What locked messages add to a write set: the deletion of row and body.
fn bytes_of_gets(gets: usize) -> u64 {
    crate::messages::DELETE_BYTES
        .saturating_mul(2)
        .saturating_mul(gets as u64)
}

/// What a commit adds to the write set.
pub(crate) enum CommitRecord {
    /// The outcome, for whoever asks.
    Outcome,
    /// Nothing: nobody knows an id to ask by.
    Nothing,
    /// The outcome of a put with a token.
    Token(UnitOfWorkRow),
    /// The state of a receiving channel (rule U5).
    Channel(Change),
}

impl Engine {
    pub(crate) fn begin(&mut self, connection: ConnectionId, id: UnitOfWorkId) -> Answer {
        if self.units.contains_key(&id) || self.outcomes.get(id).is_some() {
            return Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &id));
        }
        if self.units.len() >= self.limits.units_of_work_max {
            return Err(ReasonCode::LIMIT_EXCEEDED.into());
        }
        self.units.insert(id, UnitOfWork::new(connection));
        self.units_by_connection.insert((connection, id));
        Ok((Position::ZERO, Reply::Done))
    }

    /// Whether a unit of work is open and this connection's (invariant A6).
    pub(crate) fn own_unit(
        &self,
        connection: ConnectionId,
        id: UnitOfWorkId,
    ) -> Result<(), Failure> {
        if self
            .units
            .get(&id)
            .is_some_and(|unit| unit.connection == connection)
        {
            Ok(())
        } else {
            Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &id))
        }
    }

    /// Whether a unit of work can grow by one message: `MAXUMSGS`, the bytes that all hold together, the largest write set
    /// (rules U18, U20).
    pub(crate) fn check_unit_room(
        &self,
        id: UnitOfWorkId,
        bytes: u64,
        write_bytes: u64,
    ) -> Result<(), Failure> {
        let Some(unit) = self.units.get(&id) else {
            return Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &id));
        };
        let messages = unit.messages() as u64;
        if messages >= u64::from(self.qmgr.attributes.max_uncommitted_messages)
            || self.unit_of_work_bytes.saturating_add(bytes) > self.limits.unit_of_work_bytes_max
            || unit.write_bytes.saturating_add(write_bytes) > self.limits.write_set_bytes_max
        {
            return Err(Failure::of(ReasonCode::SYNCPOINT_LIMIT_REACHED, &id));
        }
        Ok(())
    }

    pub(crate) fn add_put(
        &mut self,
        id: UnitOfWorkId,
        queue: ObjectId,
        sequence: Sequence,
        bytes: u64,
        write_bytes: u64,
    ) {
        self.arrived_in(id, sequence);
        if let Some(unit) = self.units.get_mut(&id) {
            unit.puts.push((queue, sequence));
            unit.bytes = unit.bytes.saturating_add(bytes);
            unit.write_bytes = unit.write_bytes.saturating_add(write_bytes);
            self.unit_of_work_bytes = self.unit_of_work_bytes.saturating_add(bytes);
        }
    }

    /// Adds a trigger message that is seen when the unit of work ends.
    pub(crate) fn add_trigger(&mut self, id: UnitOfWorkId, trigger: PendingTrigger, bytes: u64) {
        if let Some(unit) = self.units.get_mut(&id) {
            unit.triggers.push(trigger);
            unit.bytes = unit.bytes.saturating_add(bytes);
            self.unit_of_work_bytes = self.unit_of_work_bytes.saturating_add(bytes);
        }
    }

    pub(crate) fn add_get(
        &mut self,
        id: UnitOfWorkId,
        queue: ObjectId,
        sequence: Sequence,
        row: Option<Box<MessageRow>>,
        report: Option<PendingReport>,
    ) {
        if let Some(report) = report {
            self.arrived_in(id, report.sequence);
        }
        if let Some(unit) = self.units.get_mut(&id) {
            let (bytes, write_bytes) = report.map_or((0, 0), |r| (r.bytes, r.write_bytes));
            let properties = properties_of(row.as_deref());
            let locked = LockedMessage { queue, row, report };
            unit.gets.insert(sequence, locked);
            unit.bytes = unit.bytes.saturating_add(bytes);
            unit.write_bytes = unit
                .write_bytes
                .saturating_add(bytes_of_gets(1))
                .saturating_add(properties)
                .saturating_add(write_bytes);
            self.unit_of_work_bytes = self.unit_of_work_bytes.saturating_add(bytes);
        }
    }

    /// A unit of work of this step alone, which nobody else knows: it is committed before the step ends.
    pub(crate) fn begin_own(&mut self, connection: ConnectionId) -> UnitOfWorkId {
        let id = UnitOfWorkId::NONE;
        self.units.insert(id, UnitOfWork::new(connection));
        self.units_by_connection.insert((connection, id));
        id
    }

    pub(crate) fn close_unit(&mut self, id: UnitOfWorkId) -> Option<UnitOfWork> {
        let unit = self.units.remove(&id)?;
        self.units_by_connection.remove(&(unit.connection, id));
        self.unit_of_work_bytes = self.unit_of_work_bytes.saturating_sub(unit.bytes);
        Some(unit)
    }

    fn moved_handles_of(&mut self, unit: &UnitOfWork, id: UnitOfWorkId, committed: bool) {
        for handle in &unit.moved_handles {
            let open = self.handles.get_mut(&(unit.connection, *handle));
            if let Some(grouping) = open.and_then(|open| open.grouping.as_mut()) {
                grouping.unit_ended(id, committed);
            }
        }
    }

    pub(crate) fn commit(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        id: UnitOfWorkId,
    ) -> Answer {
        if let Some(outcome) = self.outcomes.get(id) {
            // Asked again: answered as the first time, if this was a unit of work and it committed.
            return match (outcome.row.outcome, outcome.row.message_id) {
                (UnitOfWorkOutcome::Committed, None) => Ok((outcome.position, Reply::Done)),
                (UnitOfWorkOutcome::BackedOut, _) => Err(Failure::of(ReasonCode::BACKED_OUT, &id)),
                (UnitOfWorkOutcome::Committed, Some(_)) => {
                    Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &id))
                }
            };
        }
        self.own_unit(connection, id)?;
        let position = self.commit_unit(step, id, CommitRecord::Outcome);
        Ok((position, Reply::Done))
    }

    /// Commits: all puts become visible and all gets final in one write set (invariants A2, A3). A unit of work that changed
    /// nothing durable writes nothing, and its outcome is remembered in memory only: after a crash there is nothing that it
    /// could tell.
    pub(crate) fn commit_unit(
        &mut self,
        step: &mut Step<'_>,
        id: UnitOfWorkId,
        record: CommitRecord,
    ) -> Position {
        let Some(mut unit) = self.close_unit(id) else {
            return Position::ZERO;
        };
        self.moved_handles_of(&unit, id, true);
        // A report of a delivery is put by what delivers.
        let reports = unit.gets.values().filter_map(|locked| locked.report);
        unit.puts.extend(reports.map(|r| (r.queue, r.sequence)));
        let mut changes = Vec::new();
        for &(queue, sequence) in &unit.puts {
            if let Some(entry) = self.entry(queue, sequence)
                && entry.is_persistent()
                && let Some(message) = self.memory.get(sequence).cloned()
            {
                let row = row_of(&message, entry.body);
                let body = Some(message.body.clone());
                self.changes_of_put(queue, sequence, row, body, &mut changes);
            }
        }
        for (sequence, locked) in &unit.gets {
            if let Some(entry) = self.entry(locked.queue, *sequence) {
                Self::changes_of_removal(locked.queue, *sequence, &entry, &mut changes);
            }
        }
        let entries = self.account_entries(step.now, unit.notes, &mut changes);
        let outcome = match record {
            CommitRecord::Outcome => Some(UnitOfWorkRow {
                id,
                outcome: UnitOfWorkOutcome::Committed,
                time: step.now,
                message_id: None,
            }),
            CommitRecord::Nothing => None,
            CommitRecord::Token(row) => Some(row),
            CommitRecord::Channel(change) => {
                changes.push(change);
                None
            }
        };
        if let (Some(row), false) = (&outcome, changes.is_empty()) {
            changes.push(Change::SetUnitOfWork(row.clone()));
        }
        let position = self.write_any(step, changes);
        let mut after = position;
        for (sequence, locked) in &unit.gets {
            // A commit that writes nothing still says that these messages were there (rule U7).
            if let Some(removed) = self.remove(locked.queue, *sequence) {
                after = after.max(removed.entry.position);
            }
            self.watch(locked.queue, Watched::Left);
            if let Some(q) = self.queue(locked.queue) {
                q.changed(position);
            }
        }
        for (queue, sequence) in unit.puts {
            if let Some(q) = self.queue(queue) {
                q.last_put = Some(step.now);
            }
            self.show(queue, sequence, position);
        }
        self.show_triggers(step, &unit.triggers, true, after);
        self.account_written(step, entries, position);
        if let Some(row) = outcome {
            self.remember_outcome(row, after, position > Position::ZERO);
        }
        after
    }

    /// Shows the trigger messages of a unit of work that ended, however it did; those of `TRIGTYPE(EVERY)` only if it was
    /// committed.
    fn show_triggers(
        &mut self,
        step: &Step<'_>,
        triggers: &[PendingTrigger],
        committed: bool,
        after: Position,
    ) {
        for trigger in triggers {
            let (queue, sequence) = (trigger.queue, trigger.sequence);
            if committed || trigger.if_backed_out {
                if let Some(q) = self.queue(queue) {
                    q.last_put = Some(step.now);
                }
                self.show(queue, sequence, after);
            } else {
                self.remove(queue, sequence);
            }
        }
    }

    pub(crate) fn back_out(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        id: UnitOfWorkId,
    ) -> Answer {
        if let Some(outcome) = self.outcomes.get(id) {
            return match outcome.row.outcome {
                UnitOfWorkOutcome::BackedOut => Ok((outcome.position, Reply::Done)),
                UnitOfWorkOutcome::Committed => {
                    Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &id))
                }
            };
        }
        self.own_unit(connection, id)?;
        let position = self.back_out_unit(step, id);
        Ok((position, Reply::Done))
    }

    /// Whether a unit of work can have so many locked messages more: as [`Engine::check_unit_room`].
    pub(crate) fn check_unit_gets(
        &self,
        id: UnitOfWorkId,
        gets: usize,
        report_bytes: u64,
    ) -> Result<(), Failure> {
        let Some(unit) = self.units.get(&id) else {
            return Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &id));
        };
        let messages = unit.messages().saturating_add(gets) as u64;
        let more = bytes_of_gets(gets).saturating_add(report_bytes);
        if messages > u64::from(self.qmgr.attributes.max_uncommitted_messages)
            || unit.write_bytes.saturating_add(more) > self.limits.write_set_bytes_max
        {
            return Err(Failure::of(ReasonCode::SYNCPOINT_LIMIT_REACHED, &id));
        }
        Ok(())
    }

    /// An open unit of work.
    pub(crate) fn unit(&mut self, id: UnitOfWorkId) -> Option<&mut UnitOfWork> {
        self.units.get_mut(&id)
    }

    /// Backs out: its puts are gone, its gets are back in their places with one backout more, and those whose count reached
    /// the threshold are moved, in one write set (invariants B1, B2, O3).
    pub(crate) fn back_out_unit(&mut self, step: &mut Step<'_>, id: UnitOfWorkId) -> Position {
        let after = self.back_out_quietly(step, id);
        self.remember_outcome(
            UnitOfWorkRow {
                id,
                outcome: UnitOfWorkOutcome::BackedOut,
                time: step.now,
                message_id: None,
            },
            after,
            false,
        );
        after
    }

    /// As [`Engine::back_out_unit`], for one whose outcome nobody can ask for.
    pub(crate) fn back_out_quietly(&mut self, step: &mut Step<'_>, id: UnitOfWorkId) -> Position {
        let Some(unit) = self.close_unit(id) else {
            return Position::ZERO;
        };
        self.moved_handles_of(&unit, id, false);
        for (queue, sequence) in unit.puts {
            self.remove(queue, sequence);
        }
        let mut plan = crate::moves::Plan::default();
        let mut returned = Vec::new();
        for (sequence, locked) in unit.gets {
            let queue = locked.queue;
            if let Some(report) = locked.report {
                self.remove(report.queue, report.sequence);
            }
            let entry = self.queues.get_mut(&queue).and_then(|q| {
                q.change(sequence, |entry| {
                    entry.backout_count = entry.backout_count.saturating_add(1);
                })
            });
            let Some(entry) = entry else {
                continue;
            };
            let count = entry.backout_count;
            let to_journal = entry.is_persistent() && entry.journaled_count != count;
            let moved = match locked.row {
                // One whose bytes are written aside moves when a get comes upon it and has read it.
                Some(row)
                    if self.is_poison(queue, sequence)
                        && (entry.is_persistent() || self.memory.get(sequence).is_some()) =>
                {
                    self.plan_poison(step, queue, sequence, row, &mut plan)
                }
                Some(_) | None => false,
            };
            if !moved {
                if to_journal {
                    plan.changes.push(Change::SetDeliveryCount {
                        queue,
                        sequence,
                        count,
                    });
                }
                returned.push((queue, sequence, count, to_journal));
            }
        }
        let mut after = self.carry_out(step, plan);
        for (queue, sequence, count, journaled) in returned {
            if journaled {
                self.counted(queue, sequence, count, after);
            } else if let Some(entry) = self.entry(queue, sequence) {
                // Its count was journaled when it was shown: whoever hears of the backout waits for that.
                after = after.max(entry.position);
            }
            if self
                .entry(queue, sequence)
                .is_some_and(|e| e.state == State::Locked)
            {
                self.show(queue, sequence, Position::ZERO);
            }
        }
        self.show_triggers(step, &unit.triggers, false, after);
        after
    }

    /// Backs out everything that a connection has open.
    pub(crate) fn back_out_all(&mut self, step: &mut Step<'_>, connection: ConnectionId) {
        let (first, last) = (UnitOfWorkId::NONE, UnitOfWorkId::new([u8::MAX; 16]));
        let open: Vec<UnitOfWorkId> = self
            .units_by_connection
            .range((connection, first)..=(connection, last))
            .map(|(_, id)| *id)
            .collect();
        for id in open {
            self.back_out_unit(step, id);
        }
    }

    pub(crate) fn get_unit_of_work(&self, id: UnitOfWorkId) -> (Position, Reply) {
        match self.outcomes.get(id) {
            Some(outcome) => (
                outcome.position,
                Reply::UnitOfWork(Some(outcome.row.clone())),
            ),
            None => (Position::ZERO, Reply::UnitOfWork(None)),
        }
    }

    /// How many units of work have uncommitted puts on each queue.
    pub(crate) fn putters(&self) -> BTreeMap<ObjectId, u32> {
        let mut putters = BTreeMap::new();
        for unit in self.units.values() {
            let queues: BTreeSet<ObjectId> = unit.puts.iter().map(|(queue, _)| *queue).collect();
            for queue in queues {
                let n: &mut u32 = putters.entry(queue).or_default();
                *n = n.saturating_add(1);
            }
        }
        putters
    }
}
