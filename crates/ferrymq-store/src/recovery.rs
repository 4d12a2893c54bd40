//! What a store holds, row by row: for an engine that is rebuilt, and for a dump.

use std::collections::BTreeMap;
use std::vec::IntoIter;

use prost::Message as _;

use ferrymq_proto::storage::{FormatError, StoredRow};
use ferrymq_proto::storage_v1 as pb;
use ferrymq_types::{
    AccountEntry, BodyId, ChannelName, MessageRow, ObjectId, Position, QueueRow, ReceiverRow,
    SenderRow, Sequence, UnitOfWorkRow, WriteSet,
};

use crate::{
    RecordLog, Recovered, RowCounts, RowKey, RowState, RowStore, RowView, StoreError, Table,
    body::{format_error, read_payload, table_file},
    overlay::{BodyPlace, Ceilings, TableOverlay},
    rows::VisitRow,
};

/// A row of the store, without bodies. Counters come first, then queues, then messages in the order of queue and sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RecoveredRow {
    /// Numbers below these may have been used.
    Counters {
        /// Message sequences.
        sequence: Sequence,
        /// Body ids.
        body: BodyId,
    },
    /// A queue.
    Queue {
        /// Its id.
        queue: ObjectId,
        /// The row.
        row: QueueRow,
    },
    /// A message.
    Message {
        /// The queue.
        queue: ObjectId,
        /// Its place.
        sequence: Sequence,
        /// Everything but the body.
        row: Box<MessageRow>,
        /// How often it was shown under syncpoint without a commit (rule U14).
        delivery_count: u32,
    },
    /// A sending channel.
    Sender(Box<SenderRow>),
    /// A receiving channel.
    Receiver(Box<ReceiverRow>),
    /// A channel that an operator stopped.
    StoppedChannel(ChannelName),
    /// The outcome of a unit of work.
    UnitOfWork(UnitOfWorkRow),
    /// An entry of the account.
    Account(Box<AccountEntry>),
}

/// Compares a row store with what the log knows of it (rules U12, U13).
///
/// # Errors
/// [`StoreError::Corrupt`] if it is behind its checkpoint, has another number of rows, or is ahead of the log.
pub fn compare_with_guard(
    name: &str,
    state: &RowState,
    recovered: &Recovered,
) -> Result<(), StoreError> {
    let guard = &recovered.guard;
    let what = if state.position < guard.checkpoint {
        format!(
            "it holds the checkpoint at position {}, the journal names the one at {}: restore the directory or take a replica",
            state.position, guard.checkpoint
        )
    } else if state.position > recovered.last {
        format!(
            "it holds the checkpoint at position {}, the journal ends at {}: they do not belong together",
            state.position, recovered.last
        )
    } else if state.position == guard.checkpoint && state.counts != guard.counts {
        let differs = Table::ALL
            .iter()
            .find(|t| state.counts.get(**t) != guard.counts.get(**t));
        match differs {
            Some(table) => format!(
                "table {table} has {} rows, the journal counted {}",
                state.counts.get(*table),
                guard.counts.get(*table)
            ),
            None => "the row counts differ".to_owned(),
        }
    } else {
        return Ok(());
    };
    Err(StoreError::corrupt(name, None, what))
}

/// Gives the rows of a table with an overlay above it, and counts those of the table.
fn scan_merged(
    view: &dyn RowView,
    table: Table,
    above: &TableOverlay,
    seen: &mut dyn FnMut(&RowKey),
    visit: &mut VisitRow<'_>,
) -> Result<(), StoreError> {
    let mut above = above.iter().peekable();
    view.scan(table, &RowKey::EMPTY, None, &mut |key, value| {
        seen(&key);
        while let Some((k, v)) = above.next_if(|(k, _)| **k < key) {
            if let Some(v) = v {
                visit(*k, v)?;
            }
        }
        match above.next_if(|(k, _)| **k == key) {
            Some((_, Some(newer))) => visit(key, newer),
            Some((_, None)) => Ok(()),
            None => visit(key, value),
        }
    })?;
    for (k, v) in above {
        if let Some(v) = v {
            visit(*k, v)?;
        }
    }
    Ok(())
}

/// Visits all rows but bodies.
pub(crate) struct Visit<'a, R: ?Sized> {
    pub(crate) rows: &'a R,
    pub(crate) view: &'a dyn RowView,
    /// The overlay of each table.
    pub(crate) above: [&'a TableOverlay; Table::COUNT],
    pub(crate) visit: &'a mut dyn FnMut(RecoveredRow) -> Result<(), StoreError>,
    /// Rows that the row store has.
    pub(crate) counts: RowCounts,
    /// Of the row store.
    pub(crate) ceilings: Ceilings,
}

impl<R: RowStore + ?Sized> Visit<'_, R> {
    pub(crate) fn all(&mut self) -> Result<(), StoreError> {
        self.table(Table::Counters, |_, value| {
            let row = pb::Counters::decode(value)?;
            Ok(RecoveredRow::Counters {
                sequence: Sequence::new(row.sequence),
                body: BodyId::new(row.body),
            })
        })?;
        self.table(Table::Queues, |key, value| {
            Ok(RecoveredRow::Queue {
                queue: ObjectId::new(key.number().ok_or(FormatError::Missing("key"))?),
                row: QueueRow::from_stored(value)?,
            })
        })?;
        let mut counts = BTreeMap::new();
        self.scan(Table::DeliveryCounts, |key, value| {
            counts.insert(key, pb::DeliveryCountRow::decode(value)?.count);
            Ok(None)
        })?;
        self.table(Table::Messages, |key, value| {
            let (queue, sequence) = key.numbers().ok_or(FormatError::Missing("key"))?;
            Ok(RecoveredRow::Message {
                queue: ObjectId::new(queue),
                sequence: Sequence::new(sequence),
                row: Box::new(MessageRow::from_stored(value)?),
                delivery_count: counts.get(&key).copied().unwrap_or(0),
            })
        })?;
        self.table(Table::Senders, |_, value| {
            Ok(RecoveredRow::Sender(Box::new(SenderRow::from_stored(
                value,
            )?)))
        })?;
        self.table(Table::Receivers, |_, value| {
            Ok(RecoveredRow::Receiver(Box::new(ReceiverRow::from_stored(
                value,
            )?)))
        })?;
        self.table(Table::StoppedChannels, |_, value| {
            Ok(RecoveredRow::StoppedChannel(ChannelName::from_stored(
                value,
            )?))
        })?;
        self.table(Table::UnitsOfWork, |_, value| {
            Ok(RecoveredRow::UnitOfWork(UnitOfWorkRow::from_stored(value)?))
        })?;
        self.table(Table::Accounts, |_, value| {
            Ok(RecoveredRow::Account(Box::new(AccountEntry::from_stored(
                value,
            )?)))
        })
    }

    fn table(
        &mut self,
        table: Table,
        decode: impl Fn(RowKey, &[u8]) -> Result<RecoveredRow, FormatError>,
    ) -> Result<(), StoreError> {
        self.scan(table, |key, value| decode(key, value).map(Some))
    }

    fn scan(
        &mut self,
        table: Table,
        mut decode: impl FnMut(RowKey, &[u8]) -> Result<Option<RecoveredRow>, FormatError>,
    ) -> Result<(), StoreError> {
        let above = self.above[table.index()];
        let (counts, ceilings) = (&mut self.counts, &mut self.ceilings);
        let mut seen = |key: &RowKey| {
            counts.increment(table);
            ceilings.raise(table, key);
        };
        let (rows, visit) = (self.rows, &mut self.visit);
        scan_merged(
            self.view,
            table,
            above,
            &mut seen,
            &mut |key, value| match decode(key, value)
                .map_err(|e| format_error(rows, table, &key, e))?
            {
                Some(row) => visit(row),
                None => Ok(()),
            },
        )
    }
}

/// Checks that a row store has as many rows as it says. Bodies are not counted: reading all of them would take as long as the
/// store is large; one that is missing is noticed when it is fetched.
pub(crate) fn compare_counts<R: RowStore>(
    rows: &R,
    state: &RowState,
    found: &RowCounts,
) -> Result<(), StoreError> {
    for table in Table::ALL.into_iter().filter(|t| *t != Table::Bodies) {
        let (expected, found) = (state.counts_now.get(table), found.get(table));
        if expected != found {
            return Err(StoreError::corrupt(
                table_file(rows, table),
                None,
                format!("it has {found} rows, {expected} were written"),
            ));
        }
    }
    Ok(())
}

/// Takes a write set and, in order, the places of its bodies.
pub(crate) type ApplyWriteSet<'a> =
    dyn FnMut(WriteSet, &mut IntoIter<(BodyId, BodyPlace)>) -> Result<(), StoreError> + 'a;

/// Gives the write sets that the log holds after `position`.
pub(crate) fn replay<L: RecordLog>(
    log: &L,
    position: Position,
    apply: &mut ApplyWriteSet<'_>,
) -> Result<(), StoreError> {
    let reader = log.reader();
    log.replay(position, &mut |record| {
        let (sets, bodies) = read_payload(&record, &reader)?;
        let mut bodies = bodies.into_iter();
        sets.into_iter().try_for_each(|set| apply(set, &mut bodies))
    })
}
