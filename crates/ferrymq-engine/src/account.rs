//! The account: what left a queue by another way than a committed get (invariant V2).

use std::collections::BTreeMap;
use std::sync::Arc;

use ferrymq_types::{
    AccountEntry, AccountReason, Change, MessageId, Position, QueueName, Timestamp,
};

use crate::engine::Step;
use crate::limits::CHANGES_PER_WRITE_SET;
use crate::{Engine, Event, Reply};

#[derive(Debug)]
struct Accounted {
    entry: Arc<AccountEntry>,
    position: Position,
    written: bool,
}

/// Entries by number. Those of non-persistent messages are in memory only, as the messages were.
#[derive(Debug, Default)]
pub(crate) struct Account {
    entries: BTreeMap<u64, Accounted>,
    last: u64,
    /// Rows to delete with the next write set.
    forgotten: Vec<u64>,
}

/// An entry to be made.
#[derive(Debug)]
pub(crate) struct Note {
    pub(crate) message_id: MessageId,
    pub(crate) from: QueueName,
    pub(crate) to: Option<String>,
    pub(crate) reason: AccountReason,
    pub(crate) who: String,
    /// Whether it must survive a restart: the message would.
    pub(crate) durable: bool,
}

impl Account {
    pub(crate) fn recover(&mut self, entry: AccountEntry) {
        self.last = self.last.max(entry.number);
        self.entries.insert(
            entry.number,
            Accounted {
                entry: Arc::new(entry),
                position: Position::ZERO,
                written: true,
            },
        );
    }

    pub(crate) fn take_forgotten(&mut self, changes: &mut Vec<Change>) {
        let some = self.forgotten.len().min(CHANGES_PER_WRITE_SET);
        changes.extend(
            self.forgotten
                .drain(..some)
                .map(|number| Change::DeleteAccount { number }),
        );
    }
}

/// Entries that have numbers and wait for their write set.
pub(crate) type Numbered = Vec<(Arc<AccountEntry>, bool)>;

impl Engine {
    /// Numbers the entries and adds the changes of durable ones.
    pub(crate) fn account_entries(
        &mut self,
        now: Timestamp,
        notes: Vec<Note>,
        changes: &mut Vec<Change>,
    ) -> Numbered {
        let mut numbered = Vec::with_capacity(notes.len());
        for note in notes {
            self.account.last = self.account.last.saturating_add(1);
            let entry = AccountEntry {
                number: self.account.last,
                message_id: note.message_id,
                from: note.from,
                to: note.to,
                reason: note.reason,
                who: note.who,
                time: now,
            };
            if note.durable {
                changes.push(Change::SetAccount(Box::new(entry.clone())));
            }
            numbered.push((Arc::new(entry), note.durable));
        }
        numbered
    }

    /// Keeps the entries and tells of them.
    pub(crate) fn account_written(
        &mut self,
        step: &mut Step<'_>,
        entries: Numbered,
        position: Position,
    ) {
        for (entry, written) in entries {
            step.report(position, Event::Accounted(Arc::clone(&entry)));
            self.account.entries.insert(
                entry.number,
                Accounted {
                    entry,
                    position,
                    written,
                },
            );
        }
        while self.account.entries.len() > self.limits.account_entries_max {
            if let Some((number, old)) = self.account.entries.pop_first()
                && old.written
            {
                self.account.forgotten.push(number);
            }
        }
    }

    pub(crate) fn account_page(
        &self,
        after: u64,
        since: Timestamp,
        limit: u32,
    ) -> (Position, Reply) {
        let mut position = Position::ZERO;
        let mut page = Vec::new();
        if let Some(first) = after.checked_add(1) {
            for accounted in self
                .account
                .entries
                .range(first..)
                .map(|(_, a)| a)
                .filter(|a| a.entry.time >= since)
                .take(limit as usize)
            {
                position = position.max(accounted.position);
                page.push(Arc::clone(&accounted.entry));
            }
        }
        (position, Reply::Account(page))
    }
}
