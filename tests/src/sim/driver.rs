//! Performs what engines want done, by the rules of the runtime: write sets are gathered, appended and synced; what depends on
//! them is held until they are durable. Power may fail between any two steps of that.

use std::sync::Arc;

use ferrymq_engine::{
    ConnectionId, Effect, EngineBuilder, Event as EngineEvent, FetchId, Fetched, Input, Limits,
    Request, RequestId,
};
use ferrymq_store::memory::MemoryOptions;
use ferrymq_store::{LogSync as _, QueueManagerStore, RecoveredRow, StoreOptions};
use ferrymq_types::{ObjectId, Position, Sequence, Timestamp};

use crate::invariants::{Check, inv_s1_store_opens, violated};
use crate::sim::node::{Answer, Asked, Asker, Held, Running};
use crate::sim::rows::{SimRows, plan};
use crate::sim::words;
use crate::sim::world::{Event, Phase, World, after};
use crate::sim::{Fault, QMGRS};

impl World {
    pub(crate) fn running(&mut self, node: usize, run: u64) -> Option<&mut Running> {
        self.nodes[node]
            .running
            .as_mut()
            .filter(|r| r.number == run)
    }

    fn is_running(&self, node: usize, run: u64) -> bool {
        self.nodes[node]
            .running
            .as_ref()
            .is_some_and(|r| r.number == run)
    }

    /// A place where power may fail. Says whether it did.
    pub(crate) fn boundary(&mut self, node: usize) -> bool {
        match &mut self.nodes[node].crash_in {
            Some(0) => {
                self.crash(node);
                true
            }
            Some(left) => {
                *left -= 1;
                false
            }
            None => false,
        }
    }

    pub(crate) fn crash(&mut self, node: usize) {
        self.nodes[node].crash_in = None;
        let Some(running) = self.nodes[node].running.take() else {
            return;
        };
        let (number, unsynced) = (
            running.number,
            running.store.position().get() - running.durable.get(),
        );
        let gathered = running.write_sets.len();
        self.statistics.crashes += 1;
        self.statistics.unknown += running.held.values().map(|h| h.len() as u64).sum::<u64>();
        drop(running);
        let seed = self.dice.seed();
        self.nodes[node].disk.crash(seed);
        self.trace.add(self.now, || {
            format!(
                "{} CRASHES in run {number}: {gathered} write sets not appended, {unsynced} not synced",
                QMGRS[node]
            )
        });
        self.oracle.crashed(node, self.now);
        self.links_of_crashed(node);
        self.clients_of_crashed(node);
        let down = self.dice.pick(&[5, 100, 800, 4_000]);
        let at = after(self.now, 1 + self.dice.below(down));
        self.at(at, Event::Restart(node));
    }

    /// Opens the store and builds an engine from it.
    pub(crate) fn start(&mut self, node: usize) -> Check {
        if self.nodes[node].running.is_some() {
            return Ok(());
        }
        self.nodes[node].runs += 1;
        let number = self.nodes[node].runs;
        let disk = self.nodes[node].disk.clone();
        let rows_plan = Arc::clone(&self.nodes[node].rows_plan);
        let log = disk.open_log(MemoryOptions::default());
        let mut rows = Vec::new();
        let opened = QueueManagerStore::open(
            log,
            |recovered| {
                let inner = disk.open_rows(recovered)?;
                Ok(SimRows::new(inner, disk.clone(), rows_plan))
            },
            StoreOptions {
                // Small, so that a checkpoint has several writes.
                checkpoint_batch_bytes: 2_000,
                ..StoreOptions::DEFAULTS
            },
            &mut |row| {
                rows.push(row);
                Ok(())
            },
        );
        let (store, opened) = match opened {
            Ok(opened) => opened,
            Err(error) => return inv_s1_store_opens::refused(QMGRS[node], &error),
        };
        let qmgr = self.metadata.of(node);
        let mut builder = EngineBuilder::new(qmgr, opened.epoch, opened.position, self.now);
        builder.limits(Limits {
            cache_bytes_max: self.profile.cache_bytes,
            ..Limits::default()
        });
        let stopped = self.recover_rows(node, &mut builder, rows, opened.position)?;
        let mut effects = Vec::new();
        let engine = builder.finish(&mut effects);
        self.trace.add(self.now, || {
            format!("{} starts run {number} at {}", QMGRS[node], opened.position)
        });
        self.nodes[node].running = Some(Running {
            number,
            engine,
            store,
            inbox: Default::default(),
            working: false,
            write_sets: Vec::new(),
            appending: false,
            syncing: false,
            durable: opened.position,
            held: Default::default(),
            asked: Default::default(),
            next_request: 0,
            next_connection: 0,
            connections: Default::default(),
            tick: None,
            job: None,
            done: None,
            sender: None,
            receivers: Default::default(),
            stopped,
            committing_batch: None,
            stash: Vec::new(),
            prepared: 0,
            last_body: None,
        });
        self.perform(node, number, effects)?;
        self.start_channel_initiator(node, number)?;
        self.watch_tick(node, number);
        Ok(())
    }

    /// Feeds the engine, and what the simulator keeps beside it. Says whether the channel is stopped.
    fn recover_rows(
        &mut self,
        node: usize,
        builder: &mut EngineBuilder,
        rows: Vec<RecoveredRow>,
        position: Position,
    ) -> Result<bool, crate::invariants::Violation> {
        let (mut stopped, mut last) = (false, 0);
        for row in rows {
            match row {
                RecoveredRow::Counters { sequence, body } => builder.counters(sequence, body),
                RecoveredRow::Queue { queue, row } => builder.queue(queue, row),
                RecoveredRow::Message {
                    queue,
                    sequence,
                    row,
                    delivery_count,
                } => builder.message(queue, sequence, &row, delivery_count),
                RecoveredRow::Sender(row) => builder.sender(*row),
                RecoveredRow::Receiver(row) => {
                    last = row.last_committed;
                    builder.receiver(*row);
                }
                RecoveredRow::StoppedChannel(channel) => {
                    stopped = true;
                    builder.channel_stopped(channel);
                }
                RecoveredRow::UnitOfWork(row) => builder.unit_of_work(row),
                RecoveredRow::Account(entry) => builder.account(*entry),
            }
        }
        self.nodes[node].numbers.recovered(last)?;
        self.received_until(node, position);
        // What was committed and not durable is gone.
        self.nodes[node].received.clear();
        Ok(stopped)
    }

    /// Batches up to `position` are durable.
    fn received_until(&mut self, node: usize, position: Position) {
        let node = &mut self.nodes[node];
        let durable = &mut node.received_durable;
        node.received.retain(|(at, uids)| {
            if *at <= position {
                durable.extend(uids.iter().copied());
            }
            *at > position
        });
    }

    /// Hands an input to the engine, behind those before.
    pub(crate) fn hand_in(&mut self, node: usize, run: u64, input: Input) {
        let Some(running) = self.running(node, run) else {
            return;
        };
        running.inbox.push_back(input);
        if !running.working {
            running.working = true;
            self.soon(1, Event::Work(node, run));
        }
    }

    /// Asks the engine; the answer goes to `asker`.
    pub(crate) fn ask(
        &mut self,
        node: usize,
        run: u64,
        connection: ConnectionId,
        mut request: Request,
        asker: Asker,
    ) -> Option<RequestId> {
        let fault = self.fault;
        let running = self.running(node, run)?;
        let mut early = fault == Some(Fault::AnswerBeforeDurable);
        if let Request::PrepareBatch { last_number, .. } = &request {
            running.prepared = running.prepared.max(*last_number);
            early |= fault == Some(Fault::PrepareNotAwaited);
        }
        if let (Some(Fault::SettleWithoutComparing), Request::SettleSender { last_committed, .. }) =
            (fault, &mut request)
        {
            *last_committed = (*last_committed).max(running.prepared);
        }
        match (fault, &mut request) {
            (Some(Fault::GroupsInPhysicalOrder), Request::Get(get)) => get.logical_order = false,
            (Some(Fault::IncompleteGroups), Request::Get(get)) => {
                get.all_messages_available = false;
            }
            (Some(Fault::GroupsNotNumbered), Request::Put(put)) => put.logical_order = false,
            _ => {}
        }
        running.next_request += 1;
        let id = RequestId(running.next_request);
        running.asked.insert(id, Asked { asker, early });
        self.hand_in(
            node,
            run,
            Input::Requests {
                connection,
                requests: vec![(id, request)],
            },
        );
        Some(id)
    }

    /// The engine takes what has arrived.
    pub(crate) fn work(&mut self, node: usize, run: u64) -> Check {
        if let Some(running) = self.running(node, run) {
            running.working = false;
        }
        while let Some(input) = self.running(node, run).and_then(|r| r.inbox.pop_front()) {
            self.step(node, run, input)?;
        }
        Ok(())
    }

    pub(crate) fn step(&mut self, node: usize, run: u64, input: Input) -> Check {
        if self.boundary(node) {
            return Ok(());
        }
        let now = self.now;
        self.trace.add(now, || {
            format!("{} <- {}", QMGRS[node], words::input(&input))
        });
        if let Input::Disconnected { connection } = &input {
            let owner = self
                .running(node, run)
                .and_then(|r| r.connections.get(connection).copied());
            if let Some(owner) = owner {
                self.oracle.disconnected(owner);
            }
        }
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        let cancelled = match &input {
            Input::Cancelled { id } => Some(*id),
            _ => None,
        };
        running.committing_batch = match &input {
            Input::Requests { requests, .. } => {
                requests.iter().find_map(|(_, request)| match request {
                    Request::CommitReceived { first_number, .. } => Some(*first_number),
                    _ => None,
                })
            }
            _ => None,
        };
        let mut effects = Vec::new();
        running.engine.step(now, input, &mut effects);
        if let Some(id) = cancelled {
            running.asked.remove(&id);
        }
        self.perform(node, run, effects)?;
        self.watch_tick(node, run);
        Ok(())
    }

    fn watch_tick(&mut self, node: usize, run: u64) {
        let now = self.now;
        let Some(running) = self.running(node, run) else {
            return;
        };
        let Some(at) = running.engine.next_tick() else {
            return;
        };
        // One that is due already comes a moment later, so that time goes on.
        let at = at.max(after(now, 1));
        if running.tick.is_none_or(|tick| tick <= now || at < tick) {
            running.tick = Some(at);
            self.at(at, Event::Tick(node, run, at));
        }
    }

    pub(crate) fn tick(&mut self, node: usize, run: u64, at: Timestamp) -> Check {
        match self.running(node, run) {
            Some(running) if running.tick == Some(at) => {
                running.tick = None;
                self.step(node, run, Input::Ticked)
            }
            Some(_) | None => Ok(()),
        }
    }

    fn perform(&mut self, node: usize, run: u64, effects: Vec<Effect>) -> Check {
        for effect in effects {
            if self.boundary(node) || !self.is_running(node, run) {
                return Ok(());
            }
            match effect {
                Effect::Write(set) => {
                    let set = self.spoil(node, set);
                    self.trace.add(self.now, || {
                        format!(
                            "{} writes {}: {}",
                            QMGRS[node],
                            set.position,
                            words::changes(&set)
                        )
                    });
                    self.written(node, &set)?;
                    let Some(running) = self.running(node, run) else {
                        return Ok(());
                    };
                    running.write_sets.push(set);
                    if !running.appending {
                        running.appending = true;
                        self.soon(2, Event::Append(node, run));
                    }
                }
                Effect::Reply { id, after, reply } => self.reply(node, run, id, after, reply)?,
                Effect::Report { after, event } => {
                    self.hold(node, run, after, Held::Event(event))?;
                }
                Effect::Fetch {
                    fetch,
                    queue,
                    sequence,
                } => {
                    self.fetching(node, queue, sequence)?;
                    self.statistics.fetches += 1;
                    self.soon(20, Event::Fetch(node, run, fetch, queue, sequence));
                }
                Effect::ReadRows {
                    fetch,
                    queue,
                    sequences,
                } => self.soon(20, Event::ReadRows(node, run, fetch, queue, sequences)),
                Effect::ReadAhead { queue, sequences } => {
                    self.statistics.read_aheads += 1;
                    self.soon(20, Event::ReadAhead(node, run, queue, sequences));
                }
                Effect::Spill { .. } | Effect::Forget { .. } => {
                    unreachable!("its limits write nothing aside")
                }
            }
        }
        Ok(())
    }

    fn reply(
        &mut self,
        node: usize,
        run: u64,
        id: RequestId,
        after: Position,
        reply: Answer,
    ) -> Check {
        self.trace.add(self.now, || {
            format!(
                "{} answers {id:?} after {after}: {}",
                QMGRS[node],
                words::answer(&reply)
            )
        });
        let Some(asked) = self.running(node, run).and_then(|r| r.asked.remove(&id)) else {
            return violated(
                "inv_l1_drains",
                format!(
                    "{} answers {id:?}, which nobody waits for: {reply:?}",
                    QMGRS[node]
                ),
            );
        };
        let got = self.answered(node, &asked.asker, &reply)?;
        let after = if asked.early { Position::ZERO } else { after };
        let held = Held::Answer {
            asker: asked.asker,
            answer: Box::new(reply),
            got,
        };
        self.hold(node, run, after, held)
    }

    fn hold(&mut self, node: usize, run: u64, after: Position, held: Held) -> Check {
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        if after <= running.durable {
            return self.leave(node, run, held);
        }
        running.held.entry(after).or_default().push(held);
        Ok(())
    }

    /// It leaves the engine's thread.
    fn leave(&mut self, node: usize, run: u64, held: Held) -> Check {
        match held {
            Held::Answer { asker, answer, got } => {
                self.left(&asker, &answer, got)?;
                let delay = if matches!(asker, Asker::Client { .. }) {
                    3
                } else {
                    1
                };
                self.soon(delay, Event::Answer(node, run, asker, answer));
                Ok(())
            }
            Held::Event(event) => self.reported(node, run, &event),
        }
    }

    fn reported(&mut self, node: usize, run: u64, event: &EngineEvent) -> Check {
        self.trace
            .add(self.now, || format!("{} reports {event:?}", QMGRS[node]));
        match event {
            EngineEvent::Accounted(entry) => {
                if entry.to.is_some() {
                    self.statistics.undelivered += 1;
                }
                self.oracle.account(entry)
            }
            EngineEvent::TransmissionQueueTriggered { .. } => {
                self.soon(2, Event::Triggered(node, run));
                Ok(())
            }
            EngineEvent::Damaged { .. } | EngineEvent::UnknownQueue { .. } => violated(
                "inv_s1_store_opens",
                format!("{} reports {event:?}, and nothing was damaged", QMGRS[node]),
            ),
            EngineEvent::QueueFull { .. }
            | EngineEvent::LongSelection { .. }
            | EngineEvent::PoisonHeld { .. }
            | EngineEvent::EventDropped { .. }
            | EngineEvent::EventsDropped { .. }
            | EngineEvent::TriggerNotDelivered { .. } => Ok(()),
        }
    }

    pub(crate) fn append(&mut self, node: usize, run: u64) -> Check {
        if self.boundary(node) {
            return Ok(());
        }
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        running.appending = false;
        let sets = std::mem::take(&mut running.write_sets);
        if let Err(error) = running.store.append(&sets) {
            return violated(
                "inv_s1_store_opens",
                format!("{} cannot append: {error}", QMGRS[node]),
            );
        }
        self.sync_later(node, run);
        Ok(())
    }

    fn sync_later(&mut self, node: usize, run: u64) {
        let Some(running) = self.running(node, run) else {
            return;
        };
        if running.syncing || running.store.position() <= running.durable {
            return;
        }
        running.syncing = true;
        let sync = self.profile.sync;
        self.soon(sync, Event::Sync(node, run));
    }

    /// The disk has what was appended; nobody was told yet.
    pub(crate) fn sync(&mut self, node: usize, run: u64) -> Check {
        if self.boundary(node) {
            return Ok(());
        }
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        match running.store.syncer().sync() {
            Ok(position) => {
                self.received_until(node, position);
                self.soon(2, Event::Synced(node, run));
                Ok(())
            }
            Err(error) => violated(
                "inv_s1_store_opens",
                format!("{} cannot sync: {error}", QMGRS[node]),
            ),
        }
    }

    /// What waited for the sync leaves, one after another.
    pub(crate) fn synced(&mut self, node: usize, run: u64) -> Check {
        if self.boundary(node) {
            return Ok(());
        }
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        running.syncing = false;
        running.durable = running.store.syncer().durable();
        let durable = running.durable;
        self.trace.add(self.now, || {
            format!("{} is durable up to {durable}", QMGRS[node])
        });
        while let Some(running) = self.running(node, run) {
            let Some(mut first) = running.held.first_entry().filter(|e| *e.key() <= durable) else {
                break;
            };
            let held = first.get_mut().remove(0);
            if first.get().is_empty() {
                first.remove();
            }
            self.leave(node, run, held)?;
            if self.boundary(node) {
                return Ok(());
            }
        }
        self.sync_later(node, run);
        Ok(())
    }

    pub(crate) fn fetch(
        &mut self,
        node: usize,
        run: u64,
        fetch: FetchId,
        queue: ObjectId,
        sequence: Sequence,
    ) -> Check {
        // It is read behind the write sets that came before it.
        if self.running(node, run).is_some_and(|r| r.appending) {
            self.append(node, run)?;
        }
        let mixed = self.fault == Some(Fault::BodiesMixedUp) && self.dice.percent(30);
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        let result = match running.store.reader().fetch(queue, sequence) {
            Ok(Some((row, body))) => {
                let other = running.last_body.replace(body.clone());
                let body = other.filter(|_| mixed).unwrap_or(body);
                Fetched::Message(Box::new(row), body)
            }
            Ok(None) => Fetched::Damaged(format!(
                "message {sequence} of queue {queue} is not in the store"
            )),
            Err(error) => Fetched::Damaged(error.to_string()),
        };
        self.hand_in(node, run, Input::Fetched { fetch, result });
        Ok(())
    }

    pub(crate) fn read_ahead(
        &mut self,
        node: usize,
        run: u64,
        queue: ObjectId,
        sequences: Vec<Sequence>,
    ) -> Check {
        if self.running(node, run).is_some_and(|r| r.appending) {
            self.append(node, run)?;
        }
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        let reader = running.store.reader();
        let messages = sequences
            .into_iter()
            .filter_map(|sequence| match reader.fetch(queue, sequence) {
                Ok(Some((row, body))) => Some((sequence, Box::new(row), body)),
                Ok(None) | Err(_) => None,
            })
            .collect();
        self.hand_in(node, run, Input::ReadAhead { queue, messages });
        Ok(())
    }

    /// A checkpoint begins, if none is under way.
    pub(crate) fn checkpoint(&mut self, node: usize) -> Check {
        if self.phase == Phase::Working {
            let next = after(self.now, 20 + self.dice.below(1_500));
            self.at(next, Event::Checkpoint(node));
        }
        if self.boundary(node) {
            return Ok(());
        }
        let Some(running) = &mut self.nodes[node].running else {
            return Ok(());
        };
        let run = running.number;
        match running.store.begin_checkpoint() {
            Ok(Some(job)) => {
                let position = job.position();
                running.job = Some(job);
                self.trace.add(self.now, || {
                    format!("{} begins a checkpoint at {position}", QMGRS[node])
                });
                self.soon(60, Event::CheckpointRuns(node, run));
                Ok(())
            }
            Ok(None) => Ok(()),
            Err(error) => violated("inv_s1_store_opens", format!("checkpoint: {error}")),
        }
    }

    pub(crate) fn checkpoint_runs(&mut self, node: usize, run: u64) -> Check {
        if self.boundary(node) {
            return Ok(());
        }
        let (in_the_middle, writes) = (self.nodes[node].crash_in.is_some(), self.dice.below(5));
        let seed = self.dice.seed();
        let Some(job) = self.running(node, run).and_then(|r| r.job.take()) else {
            return Ok(());
        };
        let rows_plan = Arc::clone(&self.nodes[node].rows_plan);
        if in_the_middle {
            plan(&rows_plan).crash_in = Some((writes, seed));
        }
        let done = job.run(&mut |_| {});
        let crashed = {
            let mut plan = plan(&rows_plan);
            plan.crash_in = None;
            std::mem::take(&mut plan.crashed)
        };
        if crashed {
            self.trace.add(self.now, || {
                format!("{} loses power in its checkpoint", QMGRS[node])
            });
            self.crash(node);
            return Ok(());
        }
        // It synced the journal if that was behind.
        let durable = self.running(node, run).map(|r| r.store.syncer().durable());
        self.received_until(node, durable.unwrap_or_default());
        if let Some(running) = self.running(node, run) {
            running.done = Some(done);
        }
        self.soon(60, Event::CheckpointEnds(node, run));
        Ok(())
    }

    pub(crate) fn checkpoint_ends(&mut self, node: usize, run: u64) -> Check {
        if self.boundary(node) {
            return Ok(());
        }
        let Some(running) = self.running(node, run) else {
            return Ok(());
        };
        let Some(done) = running.done.take() else {
            return Ok(());
        };
        if let Err(error) = running.store.finish_checkpoint(done) {
            return violated("inv_s1_store_opens", format!("checkpoint: {error}"));
        }
        self.statistics.checkpoints += 1;
        self.trace
            .add(self.now, || format!("{} ends a checkpoint", QMGRS[node]));
        Ok(())
    }

    /// The node has new definitions.
    pub(crate) fn definitions_changed(&mut self, node: usize) {
        let qmgr = self.metadata.of(node);
        if let Some(run) = self.nodes[node].running.as_ref().map(|r| r.number) {
            self.hand_in(node, run, Input::DefinitionsChanged(qmgr));
        }
    }
}
