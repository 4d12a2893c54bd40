//! The one writer of a queue manager: a thread that owns its engine and its store.
//!
//! It gathers what has arrived, steps the engine, appends the write sets as one record, and releases each answer when the
//! position that it depends on is durable (rule U7). When nothing else waits the sync is done in place; under load a second
//! thread syncs while the engine gathers the next batch.

use std::collections::{HashMap, VecDeque};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use ferrymq_engine::{Effect, Engine, Event, Failure, FetchId, Fetched, Input, Reply, RequestId};
use ferrymq_objects::QueueManager;
use ferrymq_store::{
    CheckpointDone, LogRead, LogSync, QueueManagerStore, Reader, RecordLog, RowStore, StoreError,
};
use ferrymq_types::{
    Message, MessageRow, ObjectId, Position, QueueManagerName, ReasonCode, Sequence, WriteSet,
};
use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, Sleep, sleep_until};
use tracing::{debug, error, info, warn};

use crate::answers::Answers;
use crate::channels::with_causes;
use crate::clock::Clock;
use crate::flusher::Flusher;
use crate::handle::{AnswerTo, Asking, CopyStore, Job, QueueManagerHandle, ReadMessage};
use crate::queue_manager::SPILL_WINDOW;
use crate::spill::{self, Order, Spill};

/// Inputs that one batch gathers at most, so that the first answer of a batch does not wait for ever.
const BATCH_INPUTS_MAX: usize = 1024;

/// Above this fraction of the journal puts are slowed, the more the fuller it is (rule U19).
const PUTS_SLOWED_ABOVE: f64 = 0.75;

/// The longest that one put is slowed, in milliseconds: just before puts are refused.
const PUT_DELAY_MAX_MS: f64 = 50.0;

/// How long nothing comes before the guard is written (rule U12); under load the journal writes it by itself.
const GUARD_IDLE: Duration = Duration::from_millis(500);

/// How often an append, or a checkpoint, that found no room is tried again.
const ROOM_RETRY: Duration = Duration::from_millis(200);

/// Above this fraction of the journal puts are refused; gets and commits keep the rest (rule U19).
const PUTS_REFUSED_ABOVE: f64 = 0.90;

/// Above this fraction of the journal a checkpoint goes as fast as it can: before puts have to wait for it.
const CHECKPOINT_HURRIES_ABOVE: f64 = 0.60;

/// Bytes a second that a checkpoint writes at most while it need not hurry: it shares the disk with the journal (rule U19).
const CHECKPOINT_BYTES_PER_SECOND: f64 = 256.0 * 1024.0 * 1024.0;

/// What a checkpoint's thread brings back.
pub(crate) type CheckpointOutcome = CheckpointDone;

/// Events and where they go.
pub(crate) type Events = mpsc::UnboundedSender<Event>;

/// What the thread is made of.
#[derive(Debug)]
pub(crate) struct Parts<L: RecordLog, R: RowStore> {
    pub(crate) name: QueueManagerName,
    pub(crate) engine: Engine,
    pub(crate) store: QueueManagerStore<L, R>,
    pub(crate) objects: Arc<QueueManager>,
    /// Effects of recovery, to be performed first.
    pub(crate) effects: Vec<Effect>,
    pub(crate) clock: Clock,
    pub(crate) events: Events,
    /// Copies the store.
    pub(crate) copy: CopyStore,
    /// Where non-persistent messages are that do not fit in memory.
    pub(crate) spill: Arc<Spill>,
}

/// Starts the thread. The second value resolves when it has ended, with the reason if it was not asked to.
///
/// # Errors
/// The operating system gives no thread.
pub(crate) fn start<L: RecordLog, R: RowStore>(
    parts: Parts<L, R>,
    runtime: tokio::runtime::Handle,
) -> std::io::Result<(QueueManagerHandle, oneshot::Receiver<Result<(), String>>)> {
    let (jobs, jobs_receiver) = mpsc::unbounded_channel();
    let (objects, objects_receiver) = watch::channel(parts.objects.clone());
    let (ended, end) = oneshot::channel();
    let (reader, spill) = (parts.store.reader(), parts.spill.clone());
    let read = move |queue, sequence| match stored(&reader, &spill, queue, sequence) {
        Ok(None) => Ok(None),
        Ok(Some((row, body))) => Ok(Some(Message {
            descriptor: row.descriptor,
            header: row.header,
            body,
        })),
        Err(error) => Err(error.to_string()),
    };
    let handle = QueueManagerHandle::new(
        parts.name.clone(),
        jobs.clone(),
        objects_receiver,
        parts.clock,
        ReadMessage(Arc::new(read)),
        parts.copy.clone(),
    );
    let syncer = parts.store.syncer();
    let orders = spill::start(
        parts.spill.clone(),
        parts.name.to_string(),
        jobs.downgrade(),
    )?;
    let thread = EngineThread {
        parts,
        runtime,
        internal: jobs.downgrade(),
        objects,
        answers: HashMap::new(),
        held: VecDeque::new(),
        to_wake: Vec::new(),
        effects: Vec::new(),
        write_sets: Vec::new(),
        fetches: Vec::new(),
        row_reads: Vec::new(),
        read_aheads: Vec::new(),
        orders,
        put_delays: (0, 0),
        durable: syncer.durable(),
        flusher: None,
        syncer,
        flushing: false,
        checkpoint_running: false,
        checkpoint_hurries: Arc::default(),
        puts_allowed: true,
        guard_behind: false,
        retry_at: None,
        released_at: Instant::now(),
        timer: None,
        without_room: false,
        put_delay_ms: handle.put_delay_ms(),
        jobs: jobs_receiver,
    };
    let let_go = handle.ended();
    let name = format!("qm-{}", handle.name());
    std::thread::Builder::new().name(name).spawn(move || {
        let result = thread.run();
        // Not before the store has gone with the thread's state: who waits may end the process.
        let_go.cancel();
        // A failure means that nobody waits for the end.
        drop(ended.send(result));
    })?;
    Ok((handle, end))
}

/// A message in the store, or one that was written aside.
fn stored<L: LogRead, R: RowStore>(
    reader: &Reader<L, R>,
    spill: &Spill,
    queue: ObjectId,
    sequence: Sequence,
) -> Result<Option<(MessageRow, Bytes)>, StoreError> {
    match reader.fetch(queue, sequence)? {
        Some(message) => Ok(Some(message)),
        None => spill.read(sequence),
    }
}

/// Resolves when the timer fires; never, if there is none.
async fn fired(timer: &mut Option<Pin<Box<Sleep>>>) {
    match timer {
        Some(timer) => timer.as_mut().await,
        None => std::future::pending().await,
    }
}

/// What waits for a position.
enum Held {
    Answer(AnswerTo, Result<Reply, Failure>),
    Event(Event),
}

struct EngineThread<L: RecordLog, R: RowStore> {
    parts: Parts<L, R>,
    runtime: tokio::runtime::Handle,
    internal: mpsc::WeakUnboundedSender<Job>,
    objects: watch::Sender<Arc<QueueManager>>,
    answers: HashMap<RequestId, AnswerTo>,
    /// What waits for a position, in order of positions.
    held: VecDeque<(Position, Held)>,
    /// Sessions that have answers and do not know it.
    to_wake: Vec<Arc<Answers>>,
    /// Kept for its room.
    effects: Vec<Effect>,
    write_sets: Vec<WriteSet>,
    /// What is to be read once the write sets are appended.
    fetches: Vec<(FetchId, ObjectId, Sequence)>,
    /// Rows that were asked for.
    row_reads: Vec<(FetchId, ObjectId, Vec<Sequence>)>,
    read_aheads: Vec<(ObjectId, Vec<Sequence>)>,
    /// To the thread that writes non-persistent messages aside.
    orders: std::sync::mpsc::Sender<Order>,
    /// Milliseconds that a put is slowed: by the journal, and by what is being written aside.
    put_delays: (u64, u64),
    durable: Position,
    syncer: L::Sync,
    flusher: Option<Flusher>,
    flushing: bool,
    checkpoint_running: bool,
    /// What the checkpoint that is running looks at.
    checkpoint_hurries: Arc<AtomicBool>,
    puts_allowed: bool,
    /// The guard does not name what is durable yet (rule U12).
    guard_behind: bool,
    /// An append or a checkpoint found no room: both are tried again (rule U18).
    without_room: bool,
    /// When the append or checkpoint is tried again.
    retry_at: Option<Instant>,
    /// When something became durable last.
    released_at: Instant,
    timer: Option<Pin<Box<Sleep>>>,
    /// Milliseconds that a put waits before it is taken.
    put_delay_ms: Arc<AtomicU64>,
    jobs: mpsc::UnboundedReceiver<Job>,
}

/// What woke the thread.
enum Woken {
    Job(Job),
    Tick,
    /// Nothing came for a while, and the guard says less than is durable.
    Idle,
    Synced(Result<Position, StoreError>),
    Closed,
}

impl<L: RecordLog, R: RowStore> EngineThread<L, R> {
    fn run(mut self) -> Result<(), String> {
        let mut effects = std::mem::take(&mut self.parts.effects);
        self.perform(&mut effects);
        let result = self.serve();
        if let Err(cause) = &result {
            error!(id = "FMQ9010S", qmgr = %self.parts.name, "the queue manager stops: {cause}");
        }
        // What waits is in doubt: recovery at the next start decides.
        self.jobs.close();
        let in_doubt = || Failure {
            reason: ReasonCode::IN_DOUBT,
            object: None,
        };
        for (_, held) in std::mem::take(&mut self.held) {
            if let Held::Answer(answer, _) = held {
                self.answer(answer, Err(in_doubt()));
            }
        }
        for answer in std::mem::take(&mut self.answers).into_values() {
            self.answer(answer, Err(in_doubt()));
        }
        self.wake_sessions();
        result
    }

    fn serve(&mut self) -> Result<(), String> {
        let mut batch = VecDeque::new();
        loop {
            self.flush()?;
            batch.push_back(self.wait());
            while batch.len() < BATCH_INPUTS_MAX
                && let Some(next) = self.poll()
            {
                batch.push_back(next);
            }
            while let Some(woken) = batch.pop_front() {
                match woken {
                    Woken::Job(Job::Stop) | Woken::Closed => return self.stop(),
                    Woken::Job(job) => self.job(job)?,
                    Woken::Tick => self.step(Input::Ticked),
                    Woken::Idle => {
                        self.guard_behind = false;
                        self.syncer.sync_guard().map_err(|e| with_causes(&e))?;
                    }
                    Woken::Synced(result) => {
                        self.flushing = false;
                        self.release(result.map_err(|e| with_causes(&e))?);
                    }
                }
            }
        }
    }

    /// Waits for something to do.
    ///
    /// There is one timer, which is set only where it would fire too late: where it fires too early there is one look more, and
    /// setting it for every wait would cost more than most of what is waited for.
    fn wait(&mut self) -> Woken {
        loop {
            if let Some(woken) = self.poll() {
                return woken;
            }
            let (tick, idle) = self.due();
            // Behind them: what is due at once is due now.
            let now = Instant::now();
            if tick.is_some_and(|at| at <= now) {
                self.retry_at = None;
                return Woken::Tick;
            }
            if idle.is_some_and(|at| at <= now) {
                return Woken::Idle;
            }
            let due = tick.into_iter().chain(idle).min();
            let (jobs, flusher, timer) = (&mut self.jobs, &mut self.flusher, &mut self.timer);
            let woken = self.runtime.block_on(async {
                if let Some(due) = due {
                    match timer.as_mut() {
                        Some(timer) if timer.deadline() <= due => {}
                        Some(timer) => timer.as_mut().reset(due),
                        None => *timer = Some(Box::pin(sleep_until(due))),
                    }
                }
                tokio::select! {
                    biased;
                    result = Flusher::done(flusher) => Some(Woken::Synced(result)),
                    job = jobs.recv() => Some(job.map_or(Woken::Closed, Woken::Job)),
                    () = fired(timer) => None,
                }
            });
            match woken {
                Some(woken) => return woken,
                None => self.timer = None,
            }
        }
    }

    /// When the engine, or an append that found no room, wants to be woken, and when the guard is to be written.
    fn due(&mut self) -> (Option<Instant>, Option<Instant>) {
        let tick = self
            .parts
            .engine
            .next_tick()
            .map(|at| self.parts.clock.instant(at));
        let retry = self.without_room.then(|| {
            *self
                .retry_at
                .get_or_insert_with(|| Instant::now() + ROOM_RETRY)
        });
        let idle = self.guard_behind.then(|| self.released_at + GUARD_IDLE);
        (tick.into_iter().chain(retry).min(), idle)
    }

    /// What has arrived already.
    fn poll(&mut self) -> Option<Woken> {
        if let Some(result) = self
            .flusher
            .as_mut()
            .and_then(|f| f.results.try_recv().ok())
        {
            return Some(Woken::Synced(result));
        }
        self.jobs.try_recv().ok().map(Woken::Job)
    }

    fn job(&mut self, job: Job) -> Result<(), String> {
        match job {
            Job::Ask {
                connection,
                requests,
                permit,
            } => {
                drop(permit);
                let mut asked = Vec::with_capacity(requests.len());
                for Asking {
                    id,
                    request,
                    answer,
                } in requests
                {
                    self.answers.insert(id, answer);
                    asked.push((id, request));
                }
                self.step(Input::Requests {
                    connection,
                    requests: asked,
                });
            }
            Job::Input(input) => {
                let cancelled = if let Input::Cancelled { id } = input {
                    Some(id)
                } else {
                    None
                };
                self.step(input);
                // A request that still waited comes to nothing.
                if let Some(answer) = cancelled.and_then(|id| self.answers.remove(&id)) {
                    let none = Failure {
                        reason: ReasonCode::NO_MSG_AVAILABLE,
                        object: None,
                    };
                    self.answer(answer, Err(none));
                }
            }
            Job::Definitions { objects, answer } => {
                self.step(Input::DefinitionsChanged(objects.clone()));
                self.objects.send_replace(objects);
                if answer.send(()).is_err() {
                    debug!("nobody waits for the definitions any more");
                }
            }
            Job::CheckpointDone(done) => self.checkpoint_done(done)?,
            Job::Copied => {
                self.parts.store.copied().map_err(|e| with_causes(&e))?;
                self.check_space();
            }
            Job::Stop => {}
        }
        Ok(())
    }

    fn step(&mut self, input: Input) {
        let mut effects = std::mem::take(&mut self.effects);
        self.parts
            .engine
            .step(self.parts.clock.now(), input, &mut effects);
        self.perform(&mut effects);
        self.effects = effects;
    }

    fn perform(&mut self, effects: &mut Vec<Effect>) {
        for effect in effects.drain(..) {
            match effect {
                Effect::Write(write_set) => self.write_sets.push(write_set),
                Effect::Reply { id, after, reply } => {
                    // No answer means that the caller cancelled.
                    if let Some(answer) = self.answers.remove(&id) {
                        self.hold(after, Held::Answer(answer, reply));
                    }
                }
                Effect::Report { after, event } => self.hold(after, Held::Event(event)),
                Effect::Fetch {
                    fetch,
                    queue,
                    sequence,
                } => self.fetches.push((fetch, queue, sequence)),
                Effect::ReadRows {
                    fetch,
                    queue,
                    sequences,
                } => self.row_reads.push((fetch, queue, sequences)),
                Effect::ReadAhead { queue, sequences } => self.read_aheads.push((queue, sequences)),
                // A failure means that its thread has ended, as it does after this one.
                Effect::Spill { messages } => drop(self.orders.send(Order::Write(messages))),
                Effect::Forget { sequences } => drop(self.orders.send(Order::Forget(sequences))),
            }
        }
    }

    /// Reads what the engine asked for, behind the write sets that may have made it.
    fn fetch(&mut self) {
        if !self.write_sets.is_empty() {
            return;
        }
        for (fetch, queue, sequence) in std::mem::take(&mut self.fetches) {
            let Some(jobs) = self.internal.upgrade() else {
                return;
            };
            let (reader, spill) = (self.parts.store.reader(), self.parts.spill.clone());
            self.runtime.spawn_blocking(move || {
                let result = match stored(&reader, &spill, queue, sequence) {
                    Ok(Some((row, body))) => Fetched::Message(Box::new(row), body),
                    Ok(None) => Fetched::Damaged(format!(
                        "message {sequence} of queue {queue} is not in the store"
                    )),
                    Err(error) => Fetched::Damaged(error.to_string()),
                };
                // A failure means that the engine has stopped.
                drop(jobs.send(Job::Input(Input::Fetched { fetch, result })));
            });
        }
    }

    /// Reads rows that selectors are to judge. What cannot be read is left out: it is fetched by itself, and reported.
    fn read_rows(&mut self) {
        if !self.write_sets.is_empty() {
            return;
        }
        for (fetch, queue, sequences) in std::mem::take(&mut self.row_reads) {
            let Some(jobs) = self.internal.upgrade() else {
                return;
            };
            let (reader, spill) = (self.parts.store.reader(), self.parts.spill.clone());
            self.runtime.spawn_blocking(move || {
                let row = |sequence| match reader.fetch_row(queue, sequence)? {
                    Some(row) => Ok(Some(row)),
                    None => Ok(spill.read(sequence)?.map(|(row, _)| row)),
                };
                let read = sequences.into_iter().filter_map(|sequence| {
                    let row: Result<_, StoreError> = row(sequence);
                    Some((sequence, Box::new(row.ok()??)))
                });
                let rows = read.collect();
                // A failure means that the engine has stopped.
                drop(jobs.send(Job::Input(Input::RowsRead { fetch, rows })));
            });
        }
    }

    /// Reads what will be wanted soon. What cannot be read is left out: a get that comes to it fetches it, and reports it.
    fn read_ahead(&mut self) {
        if !self.write_sets.is_empty() {
            return;
        }
        for (queue, sequences) in std::mem::take(&mut self.read_aheads) {
            let Some(jobs) = self.internal.upgrade() else {
                return;
            };
            let (reader, spill) = (self.parts.store.reader(), self.parts.spill.clone());
            self.runtime.spawn_blocking(move || {
                let messages = sequences
                    .into_iter()
                    .filter_map(|sequence| match stored(&reader, &spill, queue, sequence) {
                        Ok(Some((row, body))) => Some((sequence, Box::new(row), body)),
                        Ok(None) | Err(_) => None,
                    })
                    .collect();
                // A failure means that the engine has stopped.
                drop(jobs.send(Job::Input(Input::ReadAhead { queue, messages })));
            });
        }
    }

    fn hold(&mut self, after: Position, held: Held) {
        if after <= self.durable {
            self.leave(held);
            return;
        }
        // Nearly always the last: only what shows something older comes before others.
        let at = self
            .held
            .partition_point(|(position, _)| *position <= after);
        self.held.insert(at, (after, held));
    }

    fn leave(&mut self, held: Held) {
        match held {
            Held::Answer(answer, reply) => self.answer(answer, reply),
            // A failure means that nobody waits for it any more.
            Held::Event(event) => drop(self.parts.events.send(event)),
        }
    }

    fn answer(&mut self, to: AnswerTo, reply: Result<Reply, Failure>) {
        match to {
            // A failure means that nobody waits for it any more.
            AnswerTo::Once(sender) => drop(sender.send(reply)),
            AnswerTo::Session(answers, tag) => {
                if answers.push(tag, reply) {
                    self.to_wake.push(answers);
                }
            }
        }
    }

    /// Tells sessions of their answers: once for all that left together.
    fn wake_sessions(&mut self) {
        for answers in self.to_wake.drain(..) {
            answers.wake();
        }
    }

    fn release(&mut self, durable: Position) {
        if durable > self.durable {
            self.guard_behind = true;
            self.released_at = Instant::now();
        }
        self.durable = self.durable.max(durable);
        while self
            .held
            .front()
            .is_some_and(|(position, _)| *position <= self.durable)
        {
            if let Some((_, held)) = self.held.pop_front() {
                self.leave(held);
            }
        }
        self.wake_sessions();
    }

    /// Appends what the batch changed and makes it durable, here or beside.
    fn flush(&mut self) -> Result<(), String> {
        // What waits for nothing does not wait for the sync of others.
        self.wake_sessions();
        if !self.write_sets.is_empty() || self.without_room {
            self.append()?;
            self.check_space();
            self.begin_checkpoint()?;
        }
        self.check_spill();
        self.fetch();
        self.read_rows();
        self.read_ahead();
        if self.flushing || self.parts.store.position() <= self.durable {
            return Ok(());
        }
        if self.jobs.is_empty() {
            ferrymq_store::crash_point("engine.before_sync");
            let durable = self.syncer.sync().map_err(|e| with_causes(&e))?;
            ferrymq_store::crash_point("engine.before_reply");
            self.release(durable);
            ferrymq_store::crash_point("engine.after_reply");
            return Ok(());
        }
        let flusher = match &mut self.flusher {
            Some(flusher) => flusher,
            none => none.insert(
                Flusher::start(self.syncer.clone(), &self.parts.name)
                    .map_err(|e| with_causes(&e))?,
            ),
        };
        flusher.begin()?;
        self.flushing = true;
        Ok(())
    }

    /// Appends the write sets; where there is no room for them they stay, and so do their answers, until a checkpoint or an
    /// operator has made some (rule U18).
    fn append(&mut self) -> Result<(), String> {
        match self.parts.store.append(&self.write_sets) {
            Ok(_) => {
                self.write_sets.clear();
                if std::mem::take(&mut self.without_room) {
                    info!(id = "FMQ9013I", qmgr = %self.parts.name, "there is room again");
                }
            }
            Err(error) if error.is_no_space() => {
                let appended = self.parts.store.position();
                self.write_sets.retain(|set| set.position > appended);
                self.no_room(&error);
            }
            Err(error) => return Err(with_causes(&error)),
        }
        Ok(())
    }

    fn no_room(&mut self, error: &StoreError) {
        if !std::mem::replace(&mut self.without_room, true) {
            error!(id = "FMQ9014E", qmgr = %self.parts.name, "no room to store more; puts are refused with 2192, the rest waits: {error}");
        }
    }

    fn check_space(&mut self) {
        let uncommitted = self.parts.engine.unit_of_work_bytes();
        self.parts.store.set_reserved(uncommitted);
        let fraction = self.parts.store.pressure().fraction();
        self.checkpoint_hurries
            .store(fraction > CHECKPOINT_HURRIES_ABOVE, Ordering::Relaxed);
        let above = (fraction - PUTS_SLOWED_ABOVE) / (PUTS_REFUSED_ABOVE - PUTS_SLOWED_ABOVE);
        self.put_delays.0 = delay_ms(above);
        self.slow_puts();
        let allowed = fraction < PUTS_REFUSED_ABOVE && !self.without_room;
        if allowed != self.puts_allowed {
            self.puts_allowed = allowed;
            if allowed {
                info!(id = "FMQ9011I", qmgr = %self.parts.name, "the journal has room: puts are taken again");
            } else {
                warn!(id = "FMQ9012W", qmgr = %self.parts.name, "the journal is nearly full: puts are refused with 2192 until a checkpoint makes room");
            }
            self.step(Input::SpaceChanged {
                puts_allowed: allowed,
            });
        }
    }

    fn slow_puts(&self) {
        let (journal, spill) = self.put_delays;
        self.put_delay_ms
            .store(journal.max(spill), Ordering::Relaxed);
    }

    /// Slows puts to the pace of the disk, from a quarter of the window on.
    fn check_spill(&mut self) {
        let backlog = self.parts.engine.spill_backlog_bytes();
        #[allow(clippy::cast_precision_loss, reason = "a pace, not a sum")]
        let delay = match backlog {
            0 => 0,
            backlog => delay_ms(backlog as f64 / SPILL_WINDOW as f64 - 0.25),
        };
        if delay != self.put_delays.1 {
            self.put_delays.1 = delay;
            self.slow_puts();
        }
    }

    fn begin_checkpoint(&mut self) -> Result<(), String> {
        let wanted = self.parts.store.wants_checkpoint() || self.without_room;
        if self.checkpoint_running || !wanted {
            return Ok(());
        }
        let begun = self
            .parts
            .store
            .begin_checkpoint()
            .map_err(|e| with_causes(&e))?;
        let (Some(job), Some(jobs)) = (begun, self.internal.upgrade()) else {
            return Ok(());
        };
        self.checkpoint_running = true;
        let hurries = self.checkpoint_hurries.clone();
        self.runtime.spawn_blocking(move || {
            let done = job.run(&mut |bytes| {
                if hurries.load(Ordering::Relaxed) {
                    return;
                }
                #[allow(clippy::cast_precision_loss, reason = "a pace, not a sum")]
                let seconds = bytes as f64 / CHECKPOINT_BYTES_PER_SECOND;
                std::thread::sleep(Duration::from_secs_f64(seconds));
            });
            // A failure means that the engine has stopped: its next start finds the checkpoint or not.
            drop(jobs.send(Job::CheckpointDone(done)));
        });
        Ok(())
    }

    fn checkpoint_done(&mut self, done: CheckpointDone) -> Result<(), String> {
        self.checkpoint_running = false;
        match self.parts.store.finish_checkpoint(done) {
            Ok(()) => {}
            // The reserve has been given back: the next try has that much room.
            Err(error) if error.is_no_space() => self.no_room(&error),
            Err(error) => return Err(with_causes(&error)),
        }
        self.check_space();
        Ok(())
    }

    /// A stop in good order: everything that was answered or will be is durable first.
    fn stop(&mut self) -> Result<(), String> {
        self.step(Input::Stopping);
        if !self.write_sets.is_empty() {
            self.parts
                .store
                .append(&self.write_sets)
                .map_err(|e| with_causes(&e))?;
            self.write_sets.clear();
        }
        let durable = self.syncer.sync().map_err(|e| with_causes(&e))?;
        self.release(durable);
        self.syncer.sync_guard().map_err(|e| with_causes(&e))
    }
}

/// How long a put is slowed, for how much the pace is exceeded: nothing at 0, the longest at 1.
fn delay_ms(above: f64) -> u64 {
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "between 0 and the longest delay"
    )]
    let delay = (above.clamp(0.0, 1.0) * PUT_DELAY_MAX_MS) as u64;
    delay
}
