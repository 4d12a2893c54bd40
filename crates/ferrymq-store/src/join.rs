//! The join of a record log and a row store: what a queue manager calls its store.

use std::collections::BTreeSet;
use std::sync::{Arc, RwLock};

use bytes::Bytes;
use prost::Message as _;

use ferrymq_proto::storage::{EncodedBatch, StoredRow, encode_write_sets};
use ferrymq_proto::storage_v1 as pb;
use ferrymq_types::{BodyId, Change, ChannelName, Epoch, MessageRow, Position, WriteSet};

use crate::{
    CheckpointDone, CheckpointJob, LogSync, LogUsage, Reader, RecordLog, Recovered, RecoveredRow,
    RowCounts, RowKey, RowStore, StoreError, Table, body,
    body::Places,
    compare_with_guard, crash_point,
    overlay::{BodyPlace, Ceilings, Frozen, Layers, RowChange},
    reader::{Shared, poisoned},
    recovery::{Visit, compare_counts, replay},
};

/// Bytes of a record: a payload that is larger goes in parts, so that no more than this has to be gathered in memory at once.
const RECORD_BYTES: u64 = 8 * 1024 * 1024;

/// Settings of a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoreOptions {
    /// A checkpoint is wanted when the journal holds this many bytes. Default 256 MiB.
    pub checkpoint_bytes: u64,
    /// A checkpoint is wanted when the journal is this full. Unit: percent of its limit. Default 50.
    pub checkpoint_percent: u8,
    /// Bytes of one batch that a checkpoint writes. Default 512 KiB: small enough for a processor's cache.
    pub checkpoint_batch_bytes: usize,
}

impl StoreOptions {
    /// The defaults.
    pub const DEFAULTS: Self = Self {
        checkpoint_bytes: 256 * 1024 * 1024,
        checkpoint_percent: 50,
        checkpoint_batch_bytes: 512 * 1024,
    };
}

impl Default for StoreOptions {
    fn default() -> Self {
        Self::DEFAULTS
    }
}

/// What opening a store found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// The last write set that survived.
    pub position: Position,
    /// The run that begins.
    pub epoch: Epoch,
    /// Where a tail that was never acknowledged was cut off, if one was.
    pub cut: Option<String>,
}

/// How full the journal is, for the admission of puts (rules U18, U19).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pressure {
    /// Bytes in use.
    pub used: u64,
    /// Bytes that open units of work will need.
    pub reserved: u64,
    /// Bytes that the journal may use.
    pub limit: u64,
}

impl Pressure {
    /// In use and reserved, as a part of the limit: 0 is empty, 1 is full.
    #[must_use]
    pub fn fraction(&self) -> f64 {
        if self.limit == 0 {
            return 1.0;
        }
        // Sizes of disks are far below 2^53.
        self.used.saturating_add(self.reserved) as f64 / self.limit as f64
    }
}

/// How far the checkpoint under way is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Attempt {
    /// A job is out.
    Running,
    /// There was no room; the next job starts over.
    NoSpace,
}

/// The store of a queue manager: a log for the young rows, a row store for the old ones, and an overlay in memory that says what
/// the log holds and the row store does not.
///
/// One thread owns it and calls [`append`](Self::append), [`begin_checkpoint`](Self::begin_checkpoint) and
/// [`finish_checkpoint`](Self::finish_checkpoint). Syncs, reads and the work of a checkpoint go through handles for any thread.
#[derive(Debug)]
pub struct QueueManagerStore<L: RecordLog, R> {
    log: L,
    shared: Arc<Shared<R>>,
    options: StoreOptions,
    /// Of the row store.
    row_ceilings: Ceilings,
    checkpoint: Position,
    attempt: Option<Attempt>,
    reserved: u64,
    reserve_released: bool,
    failed: Option<String>,
}

/// The job of a checkpoint of a [`QueueManagerStore`].
pub type Job<L, R> = CheckpointJob<<L as RecordLog>::Sync, <L as RecordLog>::Read, R>;

impl<L: RecordLog, R: RowStore> QueueManagerStore<L, R> {
    /// Opens a store: compares log and rows, replays the log, gives every row to `visit` and starts an epoch.
    ///
    /// `open_rows` opens the row store once it is known what it must hold; it should compare read-only first, by
    /// [`compare_with_guard`]. When this returns, the epoch and everything that was read are durable (rule U10).
    ///
    /// # Errors
    /// [`StoreError::Corrupt`] for damage, naming the file; what `open_rows` or `visit` returned; what the disk says. Nothing
    /// that was acknowledged has been changed, except if starting the epoch failed, which may be tried again.
    pub fn open(
        mut log: L,
        open_rows: impl FnOnce(&Recovered) -> Result<R, StoreError>,
        options: StoreOptions,
        visit: &mut dyn FnMut(RecoveredRow) -> Result<(), StoreError>,
    ) -> Result<(Self, Opened), StoreError> {
        crash_point("store.recovery_start");
        let recovered = log.recovered().clone();
        let rows = open_rows(&recovered)?;
        let state = rows.state()?;
        compare_with_guard(&rows.name(), &state, &recovered)?;

        let mut layers = Self::replayed(&log, &rows, &state, &recovered)?;
        crash_point("store.recovery_middle");
        let row_ceilings = Self::visit(&rows, &layers, &state, visit)?;
        layers.below = row_ceilings.clone();

        let epoch = log.start()?;
        let mut store = Self {
            log,
            shared: Arc::new(Shared {
                layers: RwLock::new(layers),
                rows,
            }),
            options,
            row_ceilings,
            checkpoint: state.position,
            attempt: None,
            reserved: 0,
            reserve_released: false,
            failed: None,
        };
        if state.position > recovered.guard.checkpoint {
            // The crash came between the flush of the rows and the guard.
            store
                .log
                .syncer()
                .checkpoint(state.position, &state.counts)?;
            store.log.recycle(state.position)?;
        }
        crash_point("store.recovery_end");
        let opened = Opened {
            position: recovered.last,
            epoch,
            cut: recovered.cut,
        };
        Ok((store, opened))
    }

    /// Gives every row to `visit`, as a store that is opened would have it, and changes nothing.
    ///
    /// # Errors
    /// As [`QueueManagerStore::open`].
    pub fn read(
        log: &L,
        rows: &R,
        visit: &mut dyn FnMut(RecoveredRow) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let recovered = log.recovered();
        let state = rows.state()?;
        compare_with_guard(&rows.name(), &state, recovered)?;
        let layers = Self::replayed(log, rows, &state, recovered)?;
        Self::visit(rows, &layers, &state, visit).map(|_| ())
    }

    /// What the log has above the rows.
    fn replayed(
        log: &L,
        rows: &R,
        state: &crate::RowState,
        recovered: &Recovered,
    ) -> Result<Layers, StoreError> {
        let mut layers = Layers {
            below: Ceilings::unknown(),
            position: state.position,
            ..Layers::default()
        };
        replay(log, state.position, &mut |set, bodies| {
            if set.position > state.position {
                let receivers = receivers_of(&set, &layers, rows)?;
                let changes = row_changes(&set, &receivers, bodies, &mut encode_row)?;
                layers.apply(changes, set.position);
            } else {
                bodies.by_ref().take(bodies_in(&set)).for_each(|_| ());
            }
            Ok(())
        })?;
        if layers.position != recovered.last {
            return Err(StoreError::corrupt(
                rows.name(),
                None,
                format!(
                    "the journal ends at position {}, its write sets at {}",
                    recovered.last, layers.position
                ),
            ));
        }
        Ok(layers)
    }

    fn visit(
        rows: &R,
        layers: &Layers,
        state: &crate::RowState,
        visit: &mut dyn FnMut(RecoveredRow) -> Result<(), StoreError>,
    ) -> Result<Ceilings, StoreError> {
        let mut found = (RowCounts::default(), Ceilings::default());
        rows.view(&mut |view| {
            let mut all = Visit {
                rows,
                view,
                above: Table::ALL.map(|table| layers.active.table(table)),
                visit: &mut *visit,
                counts: RowCounts::default(),
                ceilings: Ceilings::default(),
            };
            all.all()?;
            let (counts, mut ceilings) = (all.counts, all.ceilings);
            if let Some(key) = view.last_key(Table::Bodies)? {
                ceilings.raise(Table::Bodies, &key);
            }
            found = (counts, ceilings);
            Ok(())
        })?;
        compare_counts(rows, state, &found.0)?;
        Ok(found.1)
    }

    /// The last write set that was appended.
    #[must_use]
    pub fn position(&self) -> Position {
        self.log.last()
    }

    /// Bytes that one write set may have (rule U20): what is larger than a record goes in parts, of at most half the log.
    #[must_use]
    pub fn write_set_bytes_max(&self) -> u64 {
        (self.log.usage().limit / 2).max(self.log.payload_bytes_max())
    }

    /// Appends write sets and returns the position of the last. They are seen by readers at once and are durable when a sync
    /// that begins now has ended.
    ///
    /// # Errors
    /// [`StoreError::Position`] if one does not follow the one before; [`StoreError::TooLarge`] (nothing was appended);
    /// [`StoreError::LogFull`], [`StoreError::NoSpace`], [`StoreError::Io`]: write sets behind [`position`](Self::position) were
    /// not appended. [`StoreError::Failed`] after a failure that is final.
    pub fn append(&mut self, sets: &[WriteSet]) -> Result<Position, StoreError> {
        self.check()?;
        crash_point("store.before_append");
        let mut expected = self.log.last();
        for set in sets {
            if set.position != expected.next() {
                return Err(StoreError::Position {
                    last: expected,
                    found: set.position,
                });
            }
            expected = set.position;
        }
        let mut records = Vec::new();
        self.encode(sets, &mut records)?;
        for (sets, encoded) in records {
            self.append_record(sets, &encoded)?;
        }
        crash_point("store.after_append");
        Ok(self.log.last())
    }

    /// Few records that hold `sets`: each as large as is still cheap to gather in memory.
    fn encode<'a>(
        &self,
        sets: &'a [WriteSet],
        records: &mut Vec<(&'a [WriteSet], EncodedBatch)>,
    ) -> Result<(), StoreError> {
        let mut rest = sets;
        while !rest.is_empty() {
            let mut bytes = 0_u64;
            let fit = rest
                .iter()
                .take_while(|set| {
                    bytes = bytes.saturating_add(body_bytes(set));
                    bytes <= RECORD_BYTES
                })
                .count();
            let (first, others) = rest.split_at(fit.max(1));
            self.encode_some(first, records)?;
            rest = others;
        }
        Ok(())
    }

    fn encode_some<'a>(
        &self,
        sets: &'a [WriteSet],
        records: &mut Vec<(&'a [WriteSet], EncodedBatch)>,
    ) -> Result<(), StoreError> {
        let encoded = encode_write_sets(sets, body::checksum);
        let bytes = body::payload_bytes(&encoded);
        if sets.len() < 2 || bytes <= self.log.payload_bytes_max() {
            let max = self.write_set_bytes_max();
            if bytes > max {
                return Err(StoreError::TooLarge { bytes, max });
            }
            records.push((sets, encoded));
            return Ok(());
        }
        let (first, second) = sets.split_at(sets.len() / 2);
        self.encode_some(first, records)?;
        self.encode_some(second, records)
    }

    fn append_record(
        &mut self,
        sets: &[WriteSet],
        encoded: &EncodedBatch,
    ) -> Result<(), StoreError> {
        let receivers = {
            let layers = self.shared.layers.read().map_err(poisoned)?;
            sets.iter()
                .map(|set| receivers_of(set, &layers, &self.shared.rows))
                .collect::<Result<Vec<_>, _>>()?
        };
        let head = body::payload_head(encoded)?;
        let mut payload: Vec<&[u8]> = vec![&head, &encoded.batch];
        payload.extend(encoded.bodies.iter().map(|b| &*b.bytes));
        let bytes = body::payload_bytes(encoded);
        let whole = if bytes <= self.log.payload_bytes_max().min(RECORD_BYTES) {
            Places::One(self.log.append(sets.len() as u64, &payload)?.place)
        } else {
            self.append_in_parts(sets.len() as u64, &payload, bytes)?
        };

        let start = (encoded.batch.len() as u64).saturating_add(4);
        let named = encoded
            .bodies
            .iter()
            .map(|b| (b.id, b.bytes.len() as u64, b.checksum));
        let places = body::body_places(named, &whole, start);
        let mut bodies = places.unwrap_or_default().into_iter();
        let mut message_rows = encoded.message_rows.iter();
        let mut row = |row: &MessageRow| {
            message_rows
                .next()
                .map_or_else(|| encode_row(row), Bytes::clone)
        };
        let mut layers = self.shared.layers.write().map_err(poisoned)?;
        let mut earlier: BTreeSet<RowKey> = BTreeSet::new();
        for (set, mut receivers) in sets.iter().zip(receivers) {
            // Receivers that an earlier write set of this record made are in no layer yet when the list is made.
            receivers.extend(earlier.iter().copied());
            earlier.extend(set.changes.iter().filter_map(receiver_key));
            let changes = row_changes(set, &receivers, &mut bodies, &mut row)?;
            layers.apply(changes, set.position);
        }
        Ok(())
    }

    /// Appends a payload of so many bytes in parts, and behind them the record that names them. What is in parts counts only with
    /// that record: the chain of records has them in front of it.
    fn append_in_parts(
        &mut self,
        span: u64,
        payload: &[&[u8]],
        bytes: u64,
    ) -> Result<Places, StoreError> {
        let part_bytes = self.log.part_bytes_max().max(1);
        let LogUsage { used, limit } = self.log.usage();
        if !self.log.has_room(bytes.div_ceil(part_bytes)) {
            return Err(StoreError::LogFull { used, limit });
        }
        let part_bytes = usize::try_from(part_bytes).unwrap_or(usize::MAX);
        let mut places = Vec::new();
        let (mut part, mut room) = (Vec::new(), part_bytes);
        for piece in payload {
            let mut rest = *piece;
            while !rest.is_empty() {
                let (now, later) = rest.split_at(rest.len().min(room));
                part.push(now);
                room = room.saturating_sub(now.len());
                rest = later;
                if room == 0 {
                    places.push(self.log.append_part(&part)?);
                    crash_point("store.between_parts");
                    part.clear();
                    room = part_bytes;
                }
            }
        }
        if !part.is_empty() {
            places.push(self.log.append_part(&part)?);
        }
        crash_point("store.after_parts");
        let record = body::parts_to_payload(&places);
        self.log.append(span, &[&record])?;
        Ok(Places::Several(places.into()))
    }

    /// A handle that makes write sets durable, for any thread.
    #[must_use]
    pub fn syncer(&self) -> L::Sync {
        self.log.syncer()
    }

    /// A handle that reads, for any thread.
    #[must_use]
    pub fn reader(&self) -> Reader<L::Read, R> {
        Reader {
            shared: Arc::clone(&self.shared),
            log: self.log.reader(),
        }
    }

    /// The row store, for metrics and examinations. Only checkpoints write it.
    #[must_use]
    pub fn rows(&self) -> &R {
        &self.shared.rows
    }

    /// Sets the bytes that open units of work will need when they commit (rule U18).
    pub fn set_reserved(&mut self, bytes: u64) {
        self.reserved = bytes;
    }

    /// How full the journal is. From three quarters on puts are slowed, at the limit they are refused (rule U19).
    #[must_use]
    pub fn pressure(&self) -> Pressure {
        let LogUsage { used, limit } = self.log.usage();
        Pressure {
            used,
            reserved: self.reserved,
            limit,
        }
    }

    /// Whether a checkpoint should begin: the journal is full enough and none is under way, or one has to be tried again.
    #[must_use]
    pub fn wants_checkpoint(&self) -> bool {
        match self.attempt {
            Some(Attempt::Running) => false,
            Some(Attempt::NoSpace) => true,
            None => {
                let LogUsage { used, limit } = self.log.usage();
                let percent = u64::from(self.options.checkpoint_percent);
                let threshold = (limit / 100).saturating_mul(percent);
                self.log.last() > self.checkpoint
                    && used >= threshold.min(self.options.checkpoint_bytes)
            }
        }
    }

    /// Whether a checkpoint's job is out.
    #[must_use]
    pub fn is_checkpoint_running(&self) -> bool {
        self.attempt == Some(Attempt::Running)
    }

    /// Begins a checkpoint at the last position: who survives is judged as of it (rule U1). `None` if one is under way or there is
    /// nothing to do. The job runs anywhere; what it returns goes to [`finish_checkpoint`](Self::finish_checkpoint).
    ///
    /// # Errors
    /// [`StoreError::Failed`] after a failure that is final.
    pub fn begin_checkpoint(&mut self) -> Result<Option<Job<L, R>>, StoreError> {
        self.check()?;
        let mut layers = self.shared.layers.write().map_err(poisoned)?;
        let frozen: Arc<Frozen> = match (self.attempt, &layers.frozen) {
            (Some(Attempt::Running), _) => return Ok(None),
            (_, Some(frozen)) => Arc::clone(frozen),
            (_, None) if layers.position == self.checkpoint => return Ok(None),
            (_, None) => layers.freeze(&self.row_ceilings),
        };
        let again = self.attempt == Some(Attempt::NoSpace);
        self.attempt = Some(Attempt::Running);
        Ok(Some(CheckpointJob {
            frozen,
            shared: Arc::clone(&self.shared),
            sync: self.log.syncer(),
            log: self.log.reader(),
            piece_bytes: self.options.checkpoint_batch_bytes.max(1),
            again,
        }))
    }

    /// Ends a checkpoint: the moved rows leave the overlay, then their segments are recycled (rule U1).
    ///
    /// # Errors
    /// The error that ended the job. [`StoreError::NoSpace`]: the reserve has been given back, the next
    /// [`begin_checkpoint`](Self::begin_checkpoint) tries again, and the store goes on until the journal is full. Any other is
    /// final, as a failed sync is.
    pub fn finish_checkpoint(&mut self, done: CheckpointDone) -> Result<(), StoreError> {
        if let Err(error) = done.result {
            if error.is_no_space() && self.failed.is_none() {
                self.attempt = Some(Attempt::NoSpace);
                self.reserve_released = true;
                self.log.release_reserve()?;
                return Err(error);
            }
            return Err(self.fail(error));
        }
        {
            let mut layers = self.shared.layers.write().map_err(poisoned)?;
            if let Some(frozen) = layers.frozen.take() {
                self.row_ceilings.merge(&frozen.overlay.ceilings);
            }
        }
        self.attempt = None;
        self.checkpoint = done.position;
        crash_point("store.before_recycle");
        if let Err(error) = self.log.recycle(done.position) {
            return Err(self.fail(error));
        }
        crash_point("store.after_recycle");
        if self.reserve_released {
            self.reserve_released = !self.log.restore_reserve()?;
        }
        Ok(())
    }

    /// A copy has ended that kept segments from being recycled.
    ///
    /// # Errors
    /// As [`finish_checkpoint`](Self::finish_checkpoint).
    pub fn copied(&mut self) -> Result<(), StoreError> {
        self.check()?;
        let position = self.checkpoint;
        self.log.recycle(position).map_err(|error| self.fail(error))
    }

    fn check(&self) -> Result<(), StoreError> {
        match &self.failed {
            None => Ok(()),
            Some(cause) => Err(StoreError::Failed {
                cause: cause.clone(),
            }),
        }
    }

    fn fail(&mut self, error: StoreError) -> StoreError {
        self.failed.get_or_insert_with(|| error.to_string());
        error
    }
}

/// Bytes of the bodies of a write set.
fn body_bytes(set: &WriteSet) -> u64 {
    let lengths = set.changes.iter().map(|c| match c {
        Change::SetBody { body, .. } => body.len() as u64,
        _ => 0,
    });
    lengths.fold(0, u64::saturating_add)
}

fn bodies_in(set: &WriteSet) -> usize {
    set.changes
        .iter()
        .filter(|c| matches!(c, Change::SetBody { .. }))
        .count()
}

fn receiver_key(change: &Change) -> Option<RowKey> {
    match change {
        Change::SetReceiver(row) => Some(RowKey::receiver(&row.channel, row.sender)),
        _ => None,
    }
}

/// The receiver rows of the channels that a write set deletes: they are keyed by their senders, which the change does not name.
fn receivers_of<R: RowStore>(
    set: &WriteSet,
    layers: &Layers,
    rows: &R,
) -> Result<BTreeSet<RowKey>, StoreError> {
    let mut found = BTreeSet::new();
    for change in &set.changes {
        let Change::DeleteChannel { channel } = change else {
            continue;
        };
        let (from, to) = receiver_range(channel);
        found.extend(
            layers
                .merged(Table::Receivers)
                .range(from..to)
                .map(|(key, _)| *key),
        );
        rows.view(&mut |view| {
            view.scan(Table::Receivers, &from, Some(&to), &mut |key, _| {
                found.insert(key);
                Ok(())
            })
        })?;
    }
    Ok(found)
}

/// The keys of a channel's receivers: the name, a zero byte, anything.
fn receiver_range(channel: &ChannelName) -> (RowKey, RowKey) {
    let key = |end: u8| {
        let bytes = [channel.as_str().as_bytes(), &[end]].concat();
        RowKey::new(&bytes).expect("a channel name has at most 20 bytes")
    };
    (key(0), key(1))
}

fn encode_row(row: &MessageRow) -> Bytes {
    row.to_stored().into()
}

/// A write set as changes of rows. `bodies` gives the places of its bodies in order, `message_row` the bytes of the row of each of
/// its messages in turn.
fn row_changes(
    set: &WriteSet,
    receivers: &BTreeSet<RowKey>,
    bodies: &mut std::vec::IntoIter<(BodyId, BodyPlace)>,
    message_row: &mut impl FnMut(&MessageRow) -> Bytes,
) -> Result<Vec<RowChange>, StoreError> {
    let mut known = receivers.clone();
    let mut out = Vec::with_capacity(set.changes.len());
    for change in &set.changes {
        let next = match change {
            Change::SetMessage {
                queue,
                sequence,
                row,
            } => RowChange::Put(
                Table::Messages,
                RowKey::message(*queue, *sequence),
                message_row(row),
            ),
            Change::DeleteMessage { queue, sequence } => {
                let key = RowKey::message(*queue, *sequence);
                out.push(RowChange::Delete(Table::DeliveryCounts, key));
                RowChange::Delete(Table::Messages, key)
            }
            Change::SetDeliveryCount {
                queue,
                sequence,
                count,
            } => put(
                Table::DeliveryCounts,
                RowKey::message(*queue, *sequence),
                pb::DeliveryCountRow { count: *count }.encode_to_vec(),
            ),
            Change::SetBody { id, .. } => match bodies.next() {
                Some((found, place)) if found == *id => RowChange::PutBody(*id, place),
                Some(_) | None => {
                    return Err(StoreError::Failed {
                        cause: format!("the record of write set {} lacks body {id}", set.position),
                    });
                }
            },
            Change::DeleteBody { id } => RowChange::DeleteBody(*id),
            Change::SetQueue { queue, row } => {
                put(Table::Queues, RowKey::queue(*queue), row.to_stored())
            }
            Change::DeleteQueue { queue } => {
                RowChange::Delete(Table::Queues, RowKey::queue(*queue))
            }
            Change::SetCounters { sequence, body } => put(
                Table::Counters,
                RowKey::EMPTY,
                pb::Counters {
                    sequence: sequence.get(),
                    body: body.get(),
                }
                .encode_to_vec(),
            ),
            Change::SetSender(row) => put(
                Table::Senders,
                RowKey::channel(&row.channel),
                row.to_stored(),
            ),
            Change::SetReceiver(row) => {
                let key = RowKey::receiver(&row.channel, row.sender);
                known.insert(key);
                put(Table::Receivers, key, row.to_stored())
            }
            Change::SetChannelStopped { channel, stopped } => {
                let key = RowKey::channel(channel);
                if *stopped {
                    put(Table::StoppedChannels, key, channel.to_stored())
                } else {
                    RowChange::Delete(Table::StoppedChannels, key)
                }
            }
            Change::DeleteChannel { channel } => {
                let (from, to) = receiver_range(channel);
                for key in known.range(from..to) {
                    out.push(RowChange::Delete(Table::Receivers, *key));
                }
                out.push(RowChange::Delete(
                    Table::StoppedChannels,
                    RowKey::channel(channel),
                ));
                RowChange::Delete(Table::Senders, RowKey::channel(channel))
            }
            Change::SetUnitOfWork(row) => put(
                Table::UnitsOfWork,
                RowKey::unit_of_work(row.id),
                row.to_stored(),
            ),
            Change::DeleteUnitOfWork { id } => {
                RowChange::Delete(Table::UnitsOfWork, RowKey::unit_of_work(*id))
            }
            Change::SetAccount(row) => put(
                Table::Accounts,
                RowKey::account(row.number),
                row.to_stored(),
            ),
            Change::DeleteAccount { number } => {
                RowChange::Delete(Table::Accounts, RowKey::account(*number))
            }
        };
        out.push(next);
    }
    Ok(out)
}

fn put(table: Table, key: RowKey, value: Vec<u8>) -> RowChange {
    RowChange::Put(table, key, Bytes::from(value))
}
