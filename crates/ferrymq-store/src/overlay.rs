//! What the log holds and the row store does not yet: the net effect of the write sets since the last checkpoint.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;

use ferrymq_types::{BodyId, Position};

use crate::{RowKey, Table, body::Places};

/// Where a young body is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct BodyPlace {
    pub(crate) places: Places,
    /// XXH3-64 of its bytes.
    pub(crate) checksum: u64,
}

/// One change of a row, ready to be applied.
#[derive(Debug, Clone)]
pub(crate) enum RowChange {
    Put(Table, RowKey, Bytes),
    Delete(Table, RowKey),
    PutBody(BodyId, BodyPlace),
    DeleteBody(BodyId),
}

/// Rows of one table; `None` is a row that is deleted and may exist below.
pub(crate) type TableOverlay = BTreeMap<RowKey, Option<Bytes>>;

/// The highest numbers that rows of a table have, per queue: a row with a higher number is surely not there.
///
/// Most messages are put with a number that is new to their queue and leave before a checkpoint. This tells so without asking
/// the row store, and so neither a row nor a deletion of it ever gets there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Ceilings {
    /// Nothing is known: every row may be there.
    pub(crate) unknown: bool,
    highest: BTreeMap<(Table, u64), u64>,
}

impl Ceilings {
    pub(crate) fn unknown() -> Self {
        Self {
            unknown: true,
            highest: BTreeMap::new(),
        }
    }

    fn numbers(table: Table, key: &RowKey) -> Option<(u64, u64)> {
        match table {
            Table::Messages | Table::DeliveryCounts => key.numbers(),
            Table::Bodies | Table::Accounts => key.number().map(|n| (0, n)),
            Table::Queues
            | Table::Counters
            | Table::Senders
            | Table::Receivers
            | Table::UnitsOfWork
            | Table::StoppedChannels => None,
        }
    }

    pub(crate) fn raise(&mut self, table: Table, key: &RowKey) {
        if let Some((group, number)) = Self::numbers(table, key) {
            let highest = self.highest.entry((table, group)).or_insert(number);
            *highest = (*highest).max(number);
        }
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.unknown |= other.unknown;
        for (group, number) in &other.highest {
            let highest = self.highest.entry(*group).or_insert(*number);
            *highest = (*highest).max(*number);
        }
    }

    pub(crate) fn may_contain(&self, table: Table, key: &RowKey) -> bool {
        if self.unknown {
            return true;
        }
        Self::numbers(table, key).is_none_or(|(group, number)| {
            self.highest
                .get(&(table, group))
                .is_some_and(|h| number <= *h)
        })
    }
}

/// The net effect of some write sets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Overlay {
    tables: [TableOverlay; Table::COUNT],
    pub(crate) bodies: BTreeMap<BodyId, Option<BodyPlace>>,
    /// Of the rows that were put here.
    pub(crate) ceilings: Ceilings,
}

impl Overlay {
    pub(crate) fn table(&self, table: Table) -> &TableOverlay {
        &self.tables[table.index()]
    }

    fn apply(&mut self, change: RowChange, below: &Ceilings) {
        match change {
            RowChange::Put(table, key, value) => {
                self.ceilings.raise(table, &key);
                self.tables[table.index()].insert(key, Some(value));
            }
            RowChange::Delete(table, key) => {
                if below.may_contain(table, &key) {
                    self.tables[table.index()].insert(key, None);
                } else {
                    self.tables[table.index()].remove(&key);
                }
            }
            RowChange::PutBody(id, place) => {
                self.ceilings.raise(Table::Bodies, &RowKey::body(id, 0));
                self.bodies.insert(id, Some(place));
            }
            RowChange::DeleteBody(id) => {
                if below.may_contain(Table::Bodies, &RowKey::body(id, 0)) {
                    self.bodies.insert(id, None);
                } else {
                    self.bodies.remove(&id);
                }
            }
        }
    }
}

/// An overlay whose checkpoint is under way.
#[derive(Debug)]
pub(crate) struct Frozen {
    pub(crate) overlay: Overlay,
    /// Who survives is judged as of here (rule U1).
    pub(crate) position: Position,
    /// Of the rows below it.
    pub(crate) below: Ceilings,
}

/// The overlays above the row store.
#[derive(Debug, Default)]
pub(crate) struct Layers {
    pub(crate) active: Overlay,
    pub(crate) frozen: Option<Arc<Frozen>>,
    /// Of everything under `active`.
    pub(crate) below: Ceilings,
    /// The last write set that is in here.
    pub(crate) position: Position,
}

/// What the overlays say of a row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Found<T> {
    Here(T),
    Deleted,
    Below,
}

impl Layers {
    pub(crate) fn apply(&mut self, changes: Vec<RowChange>, position: Position) {
        for change in changes {
            self.active.apply(change, &self.below);
        }
        self.position = position;
    }

    fn overlays(&self) -> impl Iterator<Item = &Overlay> {
        core::iter::once(&self.active).chain(self.frozen.as_deref().map(|f| &f.overlay))
    }

    pub(crate) fn row(&self, table: Table, key: &RowKey) -> Found<Bytes> {
        match self.overlays().find_map(|o| o.table(table).get(key)) {
            Some(Some(value)) => Found::Here(value.clone()),
            Some(None) => Found::Deleted,
            None => Found::Below,
        }
    }

    pub(crate) fn body(&self, id: BodyId) -> Found<BodyPlace> {
        match self.overlays().find_map(|o| o.bodies.get(&id)) {
            Some(Some(place)) => Found::Here(place.clone()),
            Some(None) => Found::Deleted,
            None => Found::Below,
        }
    }

    /// Both overlays of a table as one.
    pub(crate) fn merged(&self, table: Table) -> TableOverlay {
        let mut all = self
            .frozen
            .as_deref()
            .map(|f| f.overlay.table(table).clone())
            .unwrap_or_default();
        all.extend(
            self.active
                .table(table)
                .iter()
                .map(|(k, v)| (*k, v.clone())),
        );
        all
    }

    /// Begins a checkpoint of everything that is here. There is none under way.
    pub(crate) fn freeze(&mut self, rows: &Ceilings) -> Arc<Frozen> {
        let overlay = core::mem::take(&mut self.active);
        self.below.merge(&overlay.ceilings);
        let frozen = Arc::new(Frozen {
            overlay,
            position: self.position,
            below: rows.clone(),
        });
        self.frozen = Some(Arc::clone(&frozen));
        frozen
    }
}
