//! How units of work ended, and puts with a token: kept for a while, for whoever lost the answer (invariants A6, I1).

use std::collections::BTreeMap;

use ferrymq_types::{Change, Position, Timestamp, UnitOfWorkId, UnitOfWorkRow};

use crate::Engine;
use crate::limits::{
    CHANGES_PER_WRITE_SET, DELIVERY_NOTE_DELAY, OUTCOME_KEPT, OUTCOME_SCAN_INTERVAL,
    POISON_RETRY_INTERVAL,
};
use crate::ordered::Ordered;

#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) row: UnitOfWorkRow,
    /// The write set that it depends on.
    pub(crate) position: Position,
    /// Whether the journal has a row for it.
    written: bool,
}

/// Outcomes by id and by age.
#[derive(Debug, Default)]
pub(crate) struct Outcomes {
    by_id: BTreeMap<UnitOfWorkId, Outcome>,
    by_time: Ordered<(Timestamp, UnitOfWorkId), ()>,
    /// Rows to delete with the next write set.
    forgotten: Vec<UnitOfWorkId>,
    scanned: Timestamp,
}

impl Outcomes {
    pub(crate) fn get(&self, id: UnitOfWorkId) -> Option<&Outcome> {
        self.by_id.get(&id)
    }

    pub(crate) fn len(&self) -> usize {
        self.by_id.len()
    }

    pub(crate) fn insert(&mut self, row: UnitOfWorkRow, position: Position, written: bool) {
        self.by_time.insert((row.time, row.id), ());
        self.by_id.insert(
            row.id,
            Outcome {
                row,
                position,
                written,
            },
        );
    }

    fn forget_first(&mut self) {
        if let Some(((_, id), ())) = self.by_time.pop_first()
            && let Some(outcome) = self.by_id.remove(&id)
            && outcome.written
        {
            self.forgotten.push(id);
        }
    }

    /// When old ones are to be looked for.
    pub(crate) fn due(&self) -> Option<Timestamp> {
        let ((oldest, _), ()) = self.by_time.first()?;
        let due = oldest.saturating_add(OUTCOME_KEPT);
        Some(due.max(self.scanned.saturating_add(OUTCOME_SCAN_INTERVAL)))
    }

    pub(crate) fn take_forgotten(&mut self, changes: &mut Vec<Change>) {
        let some = self.forgotten.len().min(CHANGES_PER_WRITE_SET);
        changes.extend(
            self.forgotten
                .drain(..some)
                .map(|id| Change::DeleteUnitOfWork { id }),
        );
    }
}

impl Engine {
    /// Keeps an outcome; `written` says whether the journal has a row for it. Of what had no effect it has none: an id that
    /// is not known was not committed.
    pub(crate) fn remember_outcome(
        &mut self,
        row: UnitOfWorkRow,
        position: Position,
        written: bool,
    ) {
        self.outcomes.insert(row, position, written);
        while self.outcomes.len() > self.limits.outcomes_max {
            self.outcomes.forget_first();
        }
    }

    /// Forgets what is past its time, with a write set for what has rows.
    pub(crate) fn forget_outcomes(&mut self, step: &mut crate::engine::Step<'_>) {
        if self.outcomes.due().is_none_or(|due| due > step.now) {
            return;
        }
        self.outcomes.scanned = step.now;
        while let Some(((time, _), ())) = self.outcomes.by_time.first()
            && time.saturating_add(OUTCOME_KEPT) <= step.now
        {
            self.outcomes.forget_first();
        }
        while !self.outcomes.forgotten.is_empty() {
            self.write(step, Vec::new());
        }
    }

    /// A clock that stepped back must not stop what is done every so often.
    pub(crate) fn clamp(&mut self, now: Timestamp) {
        self.outcomes.scanned = self.outcomes.scanned.min(now);
        self.expiry_scanned = self.expiry_scanned.min(now);
        if let Some(due) = &mut self.poison_retry {
            *due = (*due).min(now.saturating_add(POISON_RETRY_INTERVAL));
        }
        let latest = now.saturating_add(DELIVERY_NOTE_DELAY);
        if self.notes.front().is_some_and(|(due, ..)| *due > latest) {
            for (due, ..) in &mut self.notes {
                *due = (*due).min(latest);
            }
        }
    }
}
