//! Messages whose time has passed, and everything else that time brings.
//!
//! Source: IBM MQ, "Expiry": an expired message is never returned; it goes when a get or browse reaches it, or by a scan.

use std::sync::Arc;

use ferrymq_types::{
    AccountReason, Change, Message, MessageDescriptor, ObjectId, Position, Sequence, Timestamp,
};

use crate::account::Note;
use crate::engine::Step;
use crate::limits::{CHANGES_PER_WRITE_SET, EXPIRY_SCAN_INTERVAL};
use crate::messages::{ROW_BYTES, Removed, row_of};
use crate::pending::Pending;
use crate::put::new_entry;
use crate::queue::State;
use crate::report::Report;
use crate::{Engine, RequestId};

impl Engine {
    /// Takes expired messages away in one write set, with account entries. One whose expiry is to be reported goes by itself,
    /// with its report; if it is not in memory it is read first.
    pub(crate) fn expire(&mut self, step: &mut Step<'_>, messages: &[(ObjectId, Sequence)]) {
        let mut silent = Vec::with_capacity(messages.len());
        for &(queue, sequence) in messages {
            let reports = self
                .entry(queue, sequence)
                .is_some_and(|entry| entry.reports_expiry);
            if !reports {
                silent.push((queue, sequence));
            } else if let Some(message) = self.memory.get(sequence).cloned() {
                self.expire_with_report(step, queue, sequence, &message);
            } else {
                self.hide(queue, sequence, State::Fetching);
                self.fetch_for(step, None, queue, sequence);
            }
        }
        if !silent.is_empty() {
            let who = format!("queue manager {}", self.qmgr.attributes.name);
            let reason = AccountReason::Expired;
            self.take_away(step, &silent, &reason, &who, Vec::new(), Vec::new());
        }
    }

    /// A message that expired was read for its report; one that could not be read stays and was reported as damaged.
    pub(crate) fn expired_fetched(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        sequence: Sequence,
        message: Option<Arc<Message>>,
    ) {
        let waits = self
            .entry(queue, sequence)
            .is_some_and(|entry| entry.state == State::Fetching);
        if let (true, Some(message)) = (waits, message) {
            self.expire_with_report(step, queue, sequence, &message);
        }
    }

    fn expire_with_report(
        &mut self,
        step: &mut Step<'_>,
        queue: ObjectId,
        sequence: Sequence,
        message: &Message,
    ) {
        let who = format!("queue manager {}", self.qmgr.attributes.name);
        let requested = message.descriptor.report.expiration();
        let feedback = MessageDescriptor::FEEDBACK_EXPIRATION;
        let report = self.make_report(step, message, requested, feedback, ROW_BYTES);
        let (mut changes, mut arrival, mut notes) = (Vec::new(), None, Vec::new());
        match report {
            Some(Report::To { queue, message }) => {
                let sequence = self.next_sequence();
                let entry = new_entry(&message, sequence, State::Available);
                if entry.is_persistent() {
                    let row = row_of(&message, entry.body);
                    let body = Some(message.body.clone());
                    self.changes_of_put(queue, sequence, row, body, &mut changes);
                }
                arrival = Some((queue, sequence, entry, message));
            }
            Some(Report::Nowhere(note)) => notes.push(note),
            None => {}
        }
        let expired = [(queue, sequence)];
        let reason = AccountReason::Expired;
        let position = self.take_away(step, &expired, &reason, &who, changes, notes);
        if let Some((queue, sequence, entry, message)) = arrival {
            self.insert_shown(queue, sequence, entry, Arc::new(*message), position);
        }
    }

    /// Takes messages away that nobody got: expired, cleared. One write set, with an account entry for each, and with the changes
    /// and account entries that belong to it.
    pub(crate) fn take_away(
        &mut self,
        step: &mut Step<'_>,
        messages: &[(ObjectId, Sequence)],
        reason: &AccountReason,
        who: &str,
        mut changes: Vec<Change>,
        mut notes: Vec<Note>,
    ) -> Position {
        for &(queue, sequence) in messages {
            let Some(name) = self.queues.get(&queue).map(|q| q.name.clone()) else {
                continue;
            };
            let Some(Removed { entry, .. }) = self.remove(queue, sequence) else {
                continue;
            };
            Self::changes_of_removal(queue, sequence, &entry, &mut changes);
            notes.push(Note {
                message_id: entry.message_id,
                from: name,
                to: None,
                reason: *reason,
                who: who.to_owned(),
                durable: entry.is_persistent(),
            });
        }
        let entries = self.account_entries(step.now, notes, &mut changes);
        let position = self.write_any(step, changes);
        for &(queue, _) in messages {
            if let Some(q) = self.queue(queue) {
                q.changed(position);
            }
        }
        self.account_written(step, entries, position);
        position
    }

    fn scan_expiry(&mut self, step: &mut Step<'_>) {
        if self.expiry_due().is_none_or(|due| due > step.now) {
            return;
        }
        let expired: Vec<(ObjectId, Sequence)> = self
            .expiry
            .iter()
            .take_while(|((at, ..), ())| *at <= step.now)
            .take(CHANGES_PER_WRITE_SET)
            .map(|((_, queue, sequence), ())| (queue, sequence))
            .collect();
        // A full load means that there may be more: the next scan is due at once then.
        if expired.len() < CHANGES_PER_WRITE_SET {
            self.expiry_scanned = step.now;
        }
        self.expire(step, &expired);
    }

    fn expiry_due(&self) -> Option<Timestamp> {
        let ((at, ..), ()) = self.expiry.first()?;
        Some(at.max(self.expiry_scanned.saturating_add(EXPIRY_SCAN_INTERVAL)))
    }

    /// When [`crate::Input::Ticked`] is wanted next; `None` is never, until another step.
    #[must_use]
    pub fn next_tick(&self) -> Option<Timestamp> {
        [
            self.waits.first().map(|(until, _)| *until),
            self.expiry_due(),
            self.outcomes.due(),
            self.notes.front().map(|(due, ..)| *due),
            self.poison_retry,
            self.spill_retry(),
            (!self.paused.is_empty()).then_some(Timestamp::ZERO),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(crate) fn tick(&mut self, step: &mut Step<'_>) {
        self.scan_expiry(step);
        self.write_notes(step);
        if self.poison_retry.is_some_and(|due| due <= step.now) {
            self.retry_poison(step);
        }
        self.go_on_walking(step);
        self.end_waits(step);
        self.forget_outcomes(step);
        self.retry_spill(step);
    }

    /// Ends the waits that are over: each looks once more, and is answered 2033.
    fn end_waits(&mut self, step: &mut Step<'_>) {
        let over: Vec<RequestId> = self
            .waits
            .iter()
            .take_while(|(until, _)| *until <= step.now)
            .map(|(_, id)| *id)
            .collect();
        for id in over {
            match self.resume(id) {
                Some(Pending::Get(p)) => self.run_get(step, id, *p),
                Some(Pending::SenderGet(p)) => self.run_sender_get(step, id, p),
                // These do not wait for a time.
                Some(other @ (Pending::Browse(_) | Pending::DeadLetter(_))) => self.wait(id, other),
                None => {}
            }
        }
    }
}
