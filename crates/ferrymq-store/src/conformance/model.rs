//! A store of maps to compare with, and the harness that holds both.

use std::collections::BTreeMap;

use bytes::Bytes;

use ferrymq_types::{
    AccountEntry, BodyId, Change, ChannelName, MessageDescriptor, MessageId, MessageRow, ObjectId,
    Persistence, Position, QueueManagerId, QueueRow, ReceiverRow, SenderRow, Sequence, Timestamp,
    UnitOfWorkId, UnitOfWorkRow, WriteSet,
};

use crate::{
    LogSync as _, Opened, QueueManagerStore, RecoveredRow, RowStore as _, StoreError, StoreOptions,
    Table,
};

use super::Factory;

/// What a store should hold.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Model {
    /// Messages with their delivery counts.
    pub messages: BTreeMap<(ObjectId, Sequence), (MessageRow, u32)>,
    /// Bodies.
    pub bodies: BTreeMap<BodyId, Bytes>,
    queues: BTreeMap<ObjectId, QueueRow>,
    counters: Option<(Sequence, BodyId)>,
    senders: BTreeMap<ChannelName, SenderRow>,
    receivers: BTreeMap<(ChannelName, QueueManagerId), ReceiverRow>,
    stopped: BTreeMap<ChannelName, ()>,
    units_of_work: BTreeMap<UnitOfWorkId, UnitOfWorkRow>,
    accounts: BTreeMap<u64, AccountEntry>,
}

impl Model {
    /// Applies a write set.
    pub fn apply(&mut self, set: &WriteSet) {
        for change in set.changes.clone() {
            match change {
                Change::SetMessage {
                    queue,
                    sequence,
                    row,
                } => {
                    let count = self.messages.get(&(queue, sequence)).map_or(0, |m| m.1);
                    self.messages.insert((queue, sequence), (*row, count));
                }
                Change::DeleteMessage { queue, sequence } => {
                    self.messages.remove(&(queue, sequence));
                }
                Change::SetDeliveryCount {
                    queue,
                    sequence,
                    count,
                } => {
                    if let Some(message) = self.messages.get_mut(&(queue, sequence)) {
                        message.1 = count;
                    }
                }
                Change::SetBody { id, body } => {
                    self.bodies.insert(id, body);
                }
                Change::DeleteBody { id } => {
                    self.bodies.remove(&id);
                }
                Change::SetQueue { queue, row } => {
                    self.queues.insert(queue, row);
                }
                Change::DeleteQueue { queue } => {
                    self.queues.remove(&queue);
                }
                Change::SetCounters { sequence, body } => self.counters = Some((sequence, body)),
                Change::SetSender(row) => {
                    self.senders.insert(row.channel.clone(), *row);
                }
                Change::SetReceiver(row) => {
                    self.receivers
                        .insert((row.channel.clone(), row.sender), *row);
                }
                Change::SetChannelStopped { channel, stopped } => {
                    if stopped {
                        self.stopped.insert(channel, ());
                    } else {
                        self.stopped.remove(&channel);
                    }
                }
                Change::DeleteChannel { channel } => {
                    self.senders.remove(&channel);
                    self.stopped.remove(&channel);
                    self.receivers.retain(|(name, _), _| *name != channel);
                }
                Change::SetUnitOfWork(row) => {
                    self.units_of_work.insert(row.id, row);
                }
                Change::DeleteUnitOfWork { id } => {
                    self.units_of_work.remove(&id);
                }
                Change::SetAccount(row) => {
                    self.accounts.insert(row.number, *row);
                }
                Change::DeleteAccount { number } => {
                    self.accounts.remove(&number);
                }
            }
        }
    }

    /// All rows, in the order in which a store gives them.
    #[must_use]
    pub fn rows(&self) -> Vec<RecoveredRow> {
        let mut rows = Vec::new();
        rows.extend(
            self.counters
                .map(|(sequence, body)| RecoveredRow::Counters { sequence, body }),
        );
        rows.extend(self.queues.iter().map(|(queue, row)| RecoveredRow::Queue {
            queue: *queue,
            row: row.clone(),
        }));
        rows.extend(
            self.messages
                .iter()
                .map(|((queue, sequence), (row, count))| RecoveredRow::Message {
                    queue: *queue,
                    sequence: *sequence,
                    row: Box::new(row.clone()),
                    delivery_count: *count,
                }),
        );
        let boxed = |r: &SenderRow| RecoveredRow::Sender(Box::new(r.clone()));
        rows.extend(self.senders.values().map(boxed));
        let boxed = |r: &ReceiverRow| RecoveredRow::Receiver(Box::new(r.clone()));
        rows.extend(self.receivers.values().map(boxed));
        let stopped = self.stopped.keys().cloned();
        rows.extend(stopped.map(RecoveredRow::StoppedChannel));
        let units = self.units_of_work.values().cloned();
        rows.extend(units.map(RecoveredRow::UnitOfWork));
        let boxed = |r: &AccountEntry| RecoveredRow::Account(Box::new(r.clone()));
        rows.extend(self.accounts.values().map(boxed));
        rows
    }
}

/// A row for a message with this body.
#[must_use]
pub fn row_of(body: BodyId, bytes: &Bytes) -> MessageRow {
    let mut id = [0; 24];
    id[..8].copy_from_slice(&body.get().to_be_bytes());
    MessageRow {
        descriptor: MessageDescriptor {
            message_id: MessageId::new(id),
            persistence: Persistence::Persistent,
            put_time: Timestamp::from_millis(body.get()),
            ..MessageDescriptor::default()
        },
        header: Bytes::new(),
        body,
        body_length: u32::try_from(bytes.len()).expect("bodies of tests are small"),
    }
}

/// The changes of a put: message `n` of queue `queue`, with body `n`.
#[must_use]
pub fn message(queue: u64, n: u64, body: impl Into<Bytes>) -> Vec<Change> {
    let body = body.into();
    let id = BodyId::new(n);
    vec![
        Change::SetMessage {
            queue: ObjectId::new(queue),
            sequence: Sequence::new(n),
            row: Box::new(row_of(id, &body)),
        },
        Change::SetBody { id, body },
    ]
}

/// A store, the model of it, and everything that was appended.
#[derive(Debug)]
pub struct Harness<F: Factory> {
    /// Where stores come from.
    pub factory: F,
    /// The store.
    pub store: QueueManagerStore<F::Log, F::Rows>,
    /// What it should hold.
    pub model: Model,
    /// The last opening.
    pub opened: Opened,
    history: Vec<WriteSet>,
    /// The highest body id.
    bodies: u64,
    options: StoreOptions,
    /// What a crash must keep.
    durable: Position,
}

/// Small batches, so that a checkpoint has several.
const OPTIONS: StoreOptions = StoreOptions {
    checkpoint_batch_bytes: 700,
    ..StoreOptions::DEFAULTS
};

type Open<F> = (
    QueueManagerStore<<F as Factory>::Log, <F as Factory>::Rows>,
    Opened,
    Vec<RecoveredRow>,
);

fn open<F: Factory>(factory: &mut F, options: StoreOptions) -> Result<Open<F>, StoreError> {
    let log = factory.open_log()?;
    let mut rows = Vec::new();
    let (store, opened) = QueueManagerStore::open(
        log,
        |recovered| factory.open_rows(recovered),
        options,
        &mut |row| {
            rows.push(row);
            Ok(())
        },
    )?;
    Ok((store, opened, rows))
}

impl<F: Factory> Harness<F> {
    /// An empty store.
    ///
    /// # Panics
    /// If it does not open empty.
    #[must_use]
    pub fn new(mut factory: F) -> Self {
        let (store, opened, rows) = open(&mut factory, OPTIONS).expect("an empty store opens");
        assert_eq!(rows, []);
        assert_eq!(opened.position, Position::ZERO);
        Self {
            factory,
            store,
            model: Model::default(),
            opened,
            history: Vec::new(),
            bodies: 0,
            options: OPTIONS,
            durable: Position::ZERO,
        }
    }

    /// Appends one write set with these changes; makes room by a checkpoint if there is none.
    ///
    /// # Panics
    /// If it is refused.
    pub fn append(&mut self, changes: Vec<Change>) -> Position {
        self.append_all(vec![changes])
    }

    /// Appends write sets in one call; makes room by a checkpoint if there is none.
    ///
    /// # Panics
    /// If they are refused.
    pub fn append_all(&mut self, all: Vec<Vec<Change>>) -> Position {
        let mut position = self.store.position();
        let sets: Vec<WriteSet> = all
            .into_iter()
            .map(|changes| {
                position = position.next();
                WriteSet { position, changes }
            })
            .collect();
        for set in &sets {
            self.model.apply(set);
            for change in &set.changes {
                if let Change::SetBody { id, .. } = change {
                    self.bodies = self.bodies.max(id.get());
                }
            }
        }
        self.history.extend(sets.iter().cloned());
        let mut rest = &sets[..];
        for _ in 0..100 {
            match self.store.append(rest) {
                Ok(last) => {
                    assert_eq!(last, position);
                    return last;
                }
                Err(StoreError::LogFull { .. }) => {
                    let done = self.store.position();
                    rest = rest
                        .iter()
                        .position(|s| s.position > done)
                        .map_or(&[], |at| &rest[at..]);
                    // The model is ahead of the store here.
                    self.checkpoint();
                }
                Err(error) => panic!("{error}"),
            }
        }
        panic!("a checkpoint makes no room");
    }

    /// Syncs.
    ///
    /// # Panics
    /// If it fails.
    pub fn sync(&mut self) {
        let durable = self.store.syncer().sync().expect("sync");
        assert_eq!(durable, self.store.position());
        self.durable = durable;
    }

    /// A whole checkpoint, if there is something to do.
    ///
    /// # Panics
    /// If it fails.
    pub fn checkpoint(&mut self) {
        if let Some(job) = self.store.begin_checkpoint().expect("begin") {
            self.durable = self.durable.max(job.position());
            let done = job.run(&mut |_| {});
            self.store.finish_checkpoint(done).expect("checkpoint");
        }
    }

    /// What a crash must keep now.
    pub fn set_durable(&mut self, position: Position) {
        self.durable = self.durable.max(position);
    }

    /// The power fails; the store is opened again and compared.
    ///
    /// # Panics
    /// If something that was durable is missing, or something is there that should not be.
    pub fn crash(&mut self, seed: u64) {
        self.factory.crash(seed);
        self.reopen();
    }

    /// Opens the store again, after the factory's disk crashed, and compares.
    ///
    /// # Panics
    /// As [`Harness::crash`].
    pub fn reopen(&mut self) {
        // The old store is still there: its handles are dead, or belong to what the disk was before the crash.
        let (store, opened, rows) = open(&mut self.factory, self.options).expect("open");
        assert!(
            opened.position >= self.durable,
            "{opened:?} {}",
            self.durable
        );
        assert!(opened.epoch > self.opened.epoch);
        let kept = usize::try_from(opened.position.get()).expect("small");
        assert!(kept <= self.history.len());
        self.history.truncate(kept);
        self.model = Model::default();
        for set in &self.history {
            self.model.apply(set);
        }
        assert_eq!(store.position(), opened.position);
        self.durable = opened.position;
        self.store = store;
        self.opened = opened;
        assert_eq!(rows, self.model.rows());
        self.check();
    }

    /// Compares everything that readers see.
    ///
    /// # Panics
    /// If it is not what the model says.
    pub fn check(&self) {
        let reader = self.store.reader();
        let mut rows = Vec::new();
        let position = reader
            .dump(&mut |row| {
                rows.push(row);
                Ok(())
            })
            .expect("dump");
        assert_eq!(position, self.store.position());
        assert_eq!(rows, self.model.rows());
        for ((queue, sequence), (row, _)) in &self.model.messages {
            let found = reader.fetch(*queue, *sequence).expect("fetch");
            let body = self.model.bodies[&row.body].clone();
            assert_eq!(found, Some((row.clone(), body)));
        }
        for id in (1..=self.bodies).map(BodyId::new) {
            if !self.model.bodies.contains_key(&id) {
                assert_eq!(reader.fetch_body(id).expect("fetch body"), None);
            }
        }
    }

    /// Rows of a table that the row store has now.
    #[must_use]
    pub fn count(&self, table: Table) -> u64 {
        let state = self.store.rows().state().expect("state");
        state.counts_now.get(table)
    }

    /// Bytes that one write set may have.
    #[must_use]
    pub fn bytes_max(&self) -> usize {
        usize::try_from(self.store.write_set_bytes_max()).expect("small")
    }
}
