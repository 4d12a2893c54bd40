//! Settling: some of what a unit of work has locked ends, or goes over to another one. So a consumer that holds many messages
//! makes each final by itself, or together with what it puts.

use ferrymq_types::{Position, ReasonCode, Sequence, UnitOfWorkId};

use crate::engine::{Answer, Step};
use crate::unit_of_work::{CommitRecord, LockedMessage};
use crate::{ConnectionId, Engine, Failure, Reply, Settlement};

impl Engine {
    pub(crate) fn settle(
        &mut self,
        step: &mut Step<'_>,
        connection: ConnectionId,
        of: UnitOfWorkId,
        messages: &[Sequence],
        settlement: Settlement,
    ) -> Answer {
        let (id, commits) = match settlement {
            Settlement::Commit(id) => (id, true),
            Settlement::BackOut(id) => (id, false),
            Settlement::Join(id) => return self.join(connection, of, messages, id),
        };
        if let Some(id) = id
            && self.outcomes.get(id).is_some()
        {
            // Asked again: answered as the first time.
            return if commits {
                self.commit(step, connection, id)
            } else {
                self.back_out(step, connection, id)
            };
        }
        self.own_unit(connection, of)?;
        let locked = self.take_locked(of, messages)?;
        // A unit of work of its own, under the caller's id or one that only this step knows.
        let unit = id.unwrap_or(UnitOfWorkId::NONE);
        if let Err(failure) = self.begin(connection, unit) {
            self.give_locked(of, locked);
            return Err(failure);
        }
        self.give_locked(unit, locked);
        let position = if commits {
            let record = match id {
                Some(_) => CommitRecord::Outcome,
                None => CommitRecord::Nothing,
            };
            self.commit_unit(step, unit, record)
        } else if id.is_some() {
            self.back_out_unit(step, unit)
        } else {
            self.back_out_quietly(step, unit)
        };
        Ok((position, Reply::Done))
    }

    /// Lets an open unit of work have the messages.
    fn join(
        &mut self,
        connection: ConnectionId,
        of: UnitOfWorkId,
        messages: &[Sequence],
        into: UnitOfWorkId,
    ) -> Answer {
        self.own_unit(connection, of)?;
        self.own_unit(connection, into)?;
        if of == into {
            return Err(Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &into));
        }
        let locked = self.take_locked(of, messages)?;
        let reports = locked
            .iter()
            .filter_map(|(_, locked)| locked.report)
            .fold(0_u64, |sum, report| sum.saturating_add(report.write_bytes));
        if let Err(failure) = self.check_unit_gets(into, locked.len(), reports) {
            self.give_locked(of, locked);
            return Err(failure);
        }
        self.give_locked(into, locked);
        Ok((Position::ZERO, Reply::Done))
    }

    /// Takes the messages out of a unit of work; none of them if one is not there.
    fn take_locked(
        &mut self,
        of: UnitOfWorkId,
        messages: &[Sequence],
    ) -> Result<Vec<(Sequence, LockedMessage)>, Failure> {
        let unit = self
            .unit(of)
            .ok_or_else(|| Failure::of(ReasonCode::UOW_NOT_AVAILABLE, &of))?;
        let taken = unit
            .take_gets(messages)
            .ok_or(ReasonCode::NO_MSG_UNDER_CURSOR)?;
        for report in taken.iter().filter_map(|(_, locked)| locked.report) {
            self.unit_of_work_bytes = self.unit_of_work_bytes.saturating_sub(report.bytes);
        }
        Ok(taken)
    }

    fn give_locked(&mut self, to: UnitOfWorkId, locked: Vec<(Sequence, LockedMessage)>) {
        for (sequence, LockedMessage { queue, row, report }) in locked {
            self.add_get(to, queue, sequence, row, report);
        }
    }
}
