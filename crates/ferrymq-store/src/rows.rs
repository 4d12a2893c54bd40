//! The row store: what outlives a checkpoint, as tables of rows with keys in order.

use core::fmt;

use bytes::Bytes;

use ferrymq_types::{
    BodyId, ChannelName, ObjectId, Position, QueueManagerId, Sequence, UnitOfWorkId,
};

use crate::StoreError;

macro_rules! tables {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// A table of rows. The numbers are part of the format on disk.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Table {
            $($(#[$doc])* $name = $number,)*
        }

        impl Table {
            /// All tables, in the order of their numbers.
            pub const ALL: [Self; Self::COUNT] = [$(Self::$name),*];
            /// How many there are.
            pub const COUNT: usize = [$($number),*].len();

            /// Its name on disk and in messages.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$name => $text,)*
                }
            }
        }
    };
}

tables! {
    /// Messages without bodies. Key: queue, sequence.
    Messages = 0, "messages";
    /// Bodies in chunks. Key: body, chunk.
    Bodies = 1, "bodies";
    /// Delivery counts of messages shown under syncpoint. Key: queue, sequence.
    DeliveryCounts = 2, "delivery_counts";
    /// Queues. Key: queue.
    Queues = 3, "queues";
    /// The one row of counters. Key: empty.
    Counters = 4, "counters";
    /// Sending channels. Key: channel name.
    Senders = 5, "senders";
    /// Receiving channels. Key: channel name, a zero byte, id of the sending queue manager.
    Receivers = 6, "receivers";
    /// Outcomes of units of work. Key: id.
    UnitsOfWork = 7, "units_of_work";
    /// The account. Key: number.
    Accounts = 8, "accounts";
    /// Channels that an operator stopped. Key: channel name.
    StoppedChannels = 9, "stopped_channels";
}

impl Table {
    /// Its place in [`Table::ALL`].
    #[must_use]
    pub const fn index(self) -> usize {
        self as usize
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// The key of a row: at most 40 bytes, compared as bytes.
#[derive(Clone, Copy)]
pub struct RowKey {
    length: u8,
    bytes: [u8; Self::LENGTH_MAX],
}

impl RowKey {
    /// Bytes allowed.
    pub const LENGTH_MAX: usize = 40;
    /// No bytes: before every other key.
    pub const EMPTY: Self = Self {
        length: 0,
        bytes: [0; Self::LENGTH_MAX],
    };

    /// From its bytes; `None` if there are too many.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut key = Self::EMPTY;
        key.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        key.length = u8::try_from(bytes.len()).ok()?;
        Some(key)
    }

    fn of(parts: &[&[u8]]) -> Self {
        let mut key = Self::EMPTY;
        let mut length = 0;
        for byte in parts.iter().copied().flatten() {
            key.bytes[length] = *byte;
            length += 1;
        }
        key.length = u8::try_from(length).expect("a key has at most 40 bytes");
        key
    }

    /// Of a message or its delivery count.
    #[must_use]
    pub fn message(queue: ObjectId, sequence: Sequence) -> Self {
        Self::of(&[&queue.get().to_be_bytes(), &sequence.get().to_be_bytes()])
    }

    /// Of a chunk of a body.
    #[must_use]
    pub fn body(id: BodyId, chunk: u32) -> Self {
        Self::of(&[&id.get().to_be_bytes(), &chunk.to_be_bytes()])
    }

    /// Of a queue.
    #[must_use]
    pub fn queue(queue: ObjectId) -> Self {
        Self::of(&[&queue.get().to_be_bytes()])
    }

    /// Of a sending channel, or of the mark that a channel is stopped. A channel name has at most 20 bytes.
    #[must_use]
    pub fn channel(channel: &ChannelName) -> Self {
        Self::of(&[channel.as_str().as_bytes()])
    }

    /// Of a receiving channel. A channel name has at most 20 bytes and none is zero.
    #[must_use]
    pub fn receiver(channel: &ChannelName, sender: QueueManagerId) -> Self {
        Self::of(&[channel.as_str().as_bytes(), &[0], sender.as_bytes()])
    }

    /// Of a unit of work.
    #[must_use]
    pub fn unit_of_work(id: UnitOfWorkId) -> Self {
        Self::of(&[id.as_bytes()])
    }

    /// Of an account entry.
    #[must_use]
    pub fn account(number: u64) -> Self {
        Self::of(&[&number.to_be_bytes()])
    }

    /// The numbers in a key of two: queue and sequence.
    pub(crate) fn numbers(&self) -> Option<(u64, u64)> {
        let (high, low) = self.as_bytes().split_first_chunk::<8>()?;
        Some((
            u64::from_be_bytes(*high),
            u64::from_be_bytes(low.try_into().ok()?),
        ))
    }

    /// The number at the start of a key.
    pub(crate) fn number(&self) -> Option<u64> {
        let (number, _) = self.as_bytes().split_first_chunk::<8>()?;
        Some(u64::from_be_bytes(*number))
    }

    /// Its bytes.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes
            .get(..usize::from(self.length))
            .unwrap_or(&self.bytes)
    }
}

impl PartialEq for RowKey {
    fn eq(&self, other: &Self) -> bool {
        self.as_bytes() == other.as_bytes()
    }
}
impl Eq for RowKey {}
impl PartialOrd for RowKey {
    fn partial_cmp(&self, other: &Self) -> Option<core::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
impl Ord for RowKey {
    fn cmp(&self, other: &Self) -> core::cmp::Ordering {
        self.as_bytes().cmp(other.as_bytes())
    }
}
impl core::hash::Hash for RowKey {
    fn hash<H: core::hash::Hasher>(&self, state: &mut H) {
        self.as_bytes().hash(state);
    }
}
impl fmt::Debug for RowKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_bytes()
            .iter()
            .try_for_each(|b| write!(f, "{b:02x}"))
    }
}

/// Rows per table.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowCounts([u64; Table::COUNT]);

impl RowCounts {
    /// From one number per table, in the order of [`Table::ALL`]; tables that are missing at the end have none. `None` if there
    /// are too many.
    #[must_use]
    pub fn from_slice(counts: &[u64]) -> Option<Self> {
        let mut all = Self::default();
        all.0.get_mut(..counts.len())?.copy_from_slice(counts);
        Some(all)
    }

    /// One number per table, in the order of [`Table::ALL`].
    #[must_use]
    pub fn as_slice(&self) -> &[u64] {
        &self.0
    }

    /// Rows of a table.
    #[must_use]
    pub fn get(&self, table: Table) -> u64 {
        self.0[table.index()]
    }

    /// One more.
    pub fn increment(&mut self, table: Table) {
        let count = &mut self.0[table.index()];
        *count = count.saturating_add(1);
    }

    /// One less.
    pub fn decrement(&mut self, table: Table) {
        let count = &mut self.0[table.index()];
        *count = count.saturating_sub(1);
    }
}

/// What a row store knows of itself: set with every batch (rule U13).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowState {
    /// The last complete checkpoint.
    pub position: Position,
    /// Rows per table at that checkpoint.
    pub counts: RowCounts,
    /// Rows per table now; another number than in `counts` while a checkpoint is being written, or after a crash in it.
    pub counts_now: RowCounts,
}

/// Changes of rows that take effect together.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RowBatch {
    changes: Vec<(Table, RowKey, Option<Bytes>)>,
    bytes: usize,
}

impl RowBatch {
    /// Sets a row.
    pub fn put(&mut self, table: Table, key: RowKey, value: Bytes) {
        self.bytes = self.bytes.saturating_add(value.len().saturating_add(64));
        self.changes.push((table, key, Some(value)));
    }

    /// Removes a row.
    pub fn delete(&mut self, table: Table, key: RowKey) {
        self.bytes = self.bytes.saturating_add(64);
        self.changes.push((table, key, None));
    }

    /// The changes, in order.
    #[must_use]
    pub fn changes(&self) -> &[(Table, RowKey, Option<Bytes>)] {
        &self.changes
    }

    /// About how many bytes it has.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// A store of rows, written by checkpoints only.
pub trait RowStore: Send + Sync + 'static {
    /// What it is called in messages to an operator: its directory.
    fn name(&self) -> String;

    /// Position and row counts.
    ///
    /// # Errors
    /// What reading met.
    fn state(&self) -> Result<RowState, StoreError>;

    /// A row.
    ///
    /// # Errors
    /// What reading met; [`StoreError::Corrupt`] if the row does not pass its checksum.
    fn get(&self, table: Table, key: &RowKey) -> Result<Option<Bytes>, StoreError>;

    /// Whether a row is there.
    ///
    /// # Errors
    /// As [`RowStore::get`].
    fn contains(&self, table: Table, key: &RowKey) -> Result<bool, StoreError> {
        Ok(self
            .peek(table, &[*key], 0)?
            .into_iter()
            .any(|row| row.is_some()))
    }

    /// The beginnings of rows: for each key at most `bytes` bytes of its value, or `None` if there is no such row. Keys in order
    /// cost much less together than each by itself. With 0 bytes no value is read and no checksum compared.
    ///
    /// # Errors
    /// As [`RowStore::get`].
    fn peek(
        &self,
        table: Table,
        keys: &[RowKey],
        bytes: usize,
    ) -> Result<Vec<Option<Bytes>>, StoreError> {
        let peek = |key| Ok(self.get(table, key)?.map(|v| v.slice(..bytes.min(v.len()))));
        keys.iter().map(peek).collect()
    }

    /// Reads rows as of one moment: that of the call, before `read` runs.
    ///
    /// # Errors
    /// What `read` returned.
    fn view(
        &self,
        read: &mut dyn FnMut(&dyn RowView) -> Result<(), StoreError>,
    ) -> Result<(), StoreError>;

    /// Writes a batch and the state with it, in one step. Not durable before [`RowStore::flush`], but may become so by itself.
    ///
    /// # Errors
    /// What the disk says. The store must be [reopened](RowStore::reopen) before it is written again.
    fn write(&self, batch: &RowBatch, state: &RowState) -> Result<(), StoreError>;

    /// Makes everything that was written durable, all tables in one step (rule U13).
    ///
    /// # Errors
    /// As [`RowStore::write`].
    fn flush(&self) -> Result<(), StoreError>;

    /// Closes and opens again after an error (rule U18). What was not flushed may be gone.
    ///
    /// # Errors
    /// What opening met.
    fn reopen(&self) -> Result<(), StoreError>;
}

/// Takes a row.
pub type VisitRow<'a> = dyn FnMut(RowKey, &[u8]) -> Result<(), StoreError> + 'a;

/// Rows as of one moment.
pub trait RowView {
    /// Gives every row of a table from `from` on, below `to`, in the order of the keys.
    ///
    /// # Errors
    /// What reading met, or what `visit` returned; then what was given is not the whole (invariant S6).
    fn scan(
        &self,
        table: Table,
        from: &RowKey,
        to: Option<&RowKey>,
        visit: &mut VisitRow<'_>,
    ) -> Result<(), StoreError>;

    /// The highest key of a table.
    ///
    /// # Errors
    /// What reading met.
    fn last_key(&self, table: Table) -> Result<Option<RowKey>, StoreError>;
}
