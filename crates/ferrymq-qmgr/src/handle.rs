//! The handle of a running queue manager: how listeners, channels and commands talk to its engine.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use ferrymq_engine::{ConnectionId, Failure, Input, Reply, Request, RequestId};
use ferrymq_objects::{Enabled, QueueManager};
use ferrymq_store::StoreError;
use ferrymq_types::{Message, ObjectId, Position, QueueManagerName, ReasonCode, Sequence};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc, oneshot, watch};
use tokio_util::sync::CancellationToken;

use crate::answers::{Answers, CallTag};
use crate::clock::Clock;

/// Requests that wait for the engine; beyond it callers wait (limit L3).
pub(crate) const REQUESTS_MAX: usize = 4096;

/// What the engine's thread is sent, all through one queue: that a connection is gone comes after everything that it asked.
#[derive(Debug)]
pub(crate) enum Job {
    /// Requests of one connection, in order, and where their answers go.
    Ask {
        connection: ConnectionId,
        requests: Vec<Asking>,
        /// Given back when the requests reach the engine; none for what a session asks by itself, once for each consumer.
        permit: Option<OwnedSemaphorePermit>,
    },
    /// An input without an answer.
    Input(Input),
    /// The definitions changed; the answer says that the engine has them.
    Definitions {
        objects: Arc<QueueManager>,
        answer: oneshot::Sender<()>,
    },
    /// A checkpoint has run.
    CheckpointDone(crate::engine_thread::CheckpointOutcome),
    /// The store has been copied: what was kept for that can be given back.
    Copied,
    /// Stop in good order: a last sync, then the end.
    Stop,
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(crate) id: RequestId,
    pub(crate) request: Request,
    pub(crate) answer: AnswerTo,
}

/// Where an answer goes.
#[derive(Debug)]
pub(crate) enum AnswerTo {
    /// To one who waits for it alone.
    Once(oneshot::Sender<Result<Reply, Failure>>),
    /// To a session, which takes many at a time.
    Session(Arc<Answers>, CallTag),
}

#[derive(Debug)]
struct Shared {
    name: QueueManagerName,
    /// Without a bound of its own, since disconnects and cancellations come from `drop`, which cannot wait. There are no more
    /// of them than of connections and requests, and requests need a permit.
    jobs: mpsc::UnboundedSender<Job>,
    permits: Arc<Semaphore>,
    next_request: AtomicU64,
    next_connection: AtomicU64,
    objects: watch::Receiver<Arc<QueueManager>>,
    clock: Clock,
    reader: ReadMessage,
    copy: CopyStore,
    /// Milliseconds that a put waits before it is sent: back pressure of a journal that fills up (rule U19).
    put_delay_ms: Arc<AtomicU64>,
    /// Cancelled when the thread has ended and has let go of its store.
    ended: CancellationToken,
}

/// Reads a stored message beside the engine; may wait for the disk.
#[derive(Clone)]
pub(crate) struct ReadMessage(pub(crate) Arc<ReadFn>);

/// What [`ReadMessage`] calls.
pub(crate) type ReadFn =
    dyn Fn(ObjectId, Sequence) -> Result<Option<Message>, String> + Send + Sync;

impl std::fmt::Debug for ReadMessage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("ReadMessage")
    }
}

/// Copies the store of a running queue manager into a directory, as of the position that it returns; takes its time, and tells
/// the second argument after each piece how many bytes it had.
#[derive(Clone)]
pub(crate) struct CopyStore(pub(crate) Arc<CopyFn>);

/// What [`CopyStore`] calls.
pub(crate) type CopyFn =
    dyn Fn(&Path, &mut dyn FnMut(usize)) -> Result<Position, StoreError> + Send + Sync;

impl std::fmt::Debug for CopyStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CopyStore")
    }
}

/// A running queue manager.
#[derive(Debug, Clone)]
pub(crate) struct QueueManagerHandle {
    shared: Arc<Shared>,
}

impl QueueManagerHandle {
    pub(crate) fn new(
        name: QueueManagerName,
        jobs: mpsc::UnboundedSender<Job>,
        objects: watch::Receiver<Arc<QueueManager>>,
        clock: Clock,
        reader: ReadMessage,
        copy: CopyStore,
    ) -> Self {
        Self {
            shared: Arc::new(Shared {
                name,
                jobs,
                permits: Arc::new(Semaphore::new(REQUESTS_MAX)),
                next_request: AtomicU64::new(1),
                next_connection: AtomicU64::new(1),
                objects,
                clock,
                reader,
                copy,
                put_delay_ms: Arc::default(),
                ended: CancellationToken::new(),
            }),
        }
    }

    /// Where its thread says how many milliseconds a put waits.
    pub(crate) fn put_delay_ms(&self) -> Arc<AtomicU64> {
        self.shared.put_delay_ms.clone()
    }

    /// For its thread to cancel when it has let go of its store.
    pub(crate) fn ended(&self) -> CancellationToken {
        self.shared.ended.clone()
    }

    /// Its name.
    #[must_use]
    pub(crate) fn name(&self) -> &QueueManagerName {
        &self.shared.name
    }

    /// Its clock.
    #[must_use]
    pub(crate) fn clock(&self) -> Clock {
        self.shared.clock
    }

    /// Its definitions, as its engine has them.
    #[must_use]
    pub(crate) fn objects(&self) -> Arc<QueueManager> {
        self.shared.objects.borrow().clone()
    }

    /// Reads a stored message beside the engine, for a dump; `None` if it has left its queue.
    pub(crate) async fn read(
        &self,
        queue: ObjectId,
        sequence: Sequence,
    ) -> Result<Option<Message>, String> {
        let reader = self.shared.reader.clone();
        let read = tokio::task::spawn_blocking(move || (reader.0)(queue, sequence));
        read.await.map_err(|error| error.to_string())?
    }

    /// Copies the store, on this thread; the queue manager goes on meanwhile.
    pub(crate) fn copy_store(
        &self,
        directory: &Path,
        pace: &mut dyn FnMut(usize),
    ) -> Result<Position, StoreError> {
        let copied = (self.shared.copy.0)(directory, pace);
        // A failure means that it has stopped meanwhile.
        drop(self.shared.jobs.send(Job::Copied));
        copied
    }

    /// A new connection. Dropping it backs its units of work out.
    #[must_use]
    pub(crate) fn connect(&self) -> Connection {
        let id = ConnectionId(self.shared.next_connection.fetch_add(1, Ordering::Relaxed));
        Connection {
            handle: self.clone(),
            id,
        }
    }

    /// Gives the engine new definitions and waits until it has them.
    pub(crate) async fn set_objects(&self, objects: Arc<QueueManager>) -> Result<(), Failure> {
        let (answer, done) = oneshot::channel();
        self.shared
            .jobs
            .send(Job::Definitions { objects, answer })
            .map_err(|_| stopping())?;
        done.await.map_err(|_| stopping())
    }

    /// Tells the engine that the queue manager is to stop: what asks for it fails from now on (2161), the rest goes on.
    pub(crate) fn quiesce(&self) {
        // A failure means that it has stopped already.
        drop(self.shared.jobs.send(Job::Input(Input::Quiesced)));
    }

    pub(crate) fn stop(&self) {
        // A failure means that it has stopped already.
        drop(self.shared.jobs.send(Job::Stop));
    }

    /// Resolves when the engine's thread has ended and has let go of its store.
    pub(crate) async fn stopped(&self) {
        self.shared.ended.cancelled().await;
    }
}

/// A connection to a queue manager.
#[derive(Debug)]
pub(crate) struct Connection {
    handle: QueueManagerHandle,
    id: ConnectionId,
}

impl Connection {
    /// The queue manager.
    #[must_use]
    pub(crate) fn queue_manager(&self) -> &QueueManagerHandle {
        &self.handle
    }

    /// Asks and waits for the answer. If the caller gives up, a waiting get ends and takes nothing.
    ///
    /// # Errors
    /// The failure of the engine; 9007 if the queue manager stops.
    pub(crate) async fn ask(&self, request: Request) -> Result<Reply, Failure> {
        let (asked, answer) = self.start(request).await?;
        let reply = answer.await.map_err(|_| stopping());
        asked.answered();
        reply?
    }

    /// Sends the request, in order after those sent before, and leaves waiting to the caller.
    pub(crate) async fn start(
        &self,
        request: Request,
    ) -> Result<(Asked, oneshot::Receiver<Result<Reply, Failure>>), Failure> {
        let shared = &self.handle.shared;
        let delay_ms = shared.put_delay_ms.load(Ordering::Relaxed);
        if delay_ms > 0 && matches!(request, Request::Put(_)) {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        let id = shared.request_ids(1);
        let (answer, receiver) = oneshot::channel();
        let permit = shared.permit(1).await?;
        let asking = Asking {
            id,
            request,
            answer: AnswerTo::Once(answer),
        };
        self.send(vec![asking], Some(permit))?;
        Ok((
            Asked {
                jobs: Some(shared.jobs.clone()),
                id,
            },
            receiver,
        ))
    }
}

impl Shared {
    /// The first of `count` numbers for requests.
    fn request_ids(&self, count: u64) -> RequestId {
        RequestId(self.next_request.fetch_add(count, Ordering::Relaxed))
    }

    async fn permit(&self, requests: u32) -> Result<OwnedSemaphorePermit, Failure> {
        let permits = self.permits.clone();
        let permit = permits.acquire_many_owned(requests).await;
        permit.map_err(|_| stopping())
    }
}

impl Connection {
    /// Says what the application calls itself: for the events that its calls may cause.
    pub(crate) fn introduce(&self, application: &str) {
        let input = Input::Connected {
            connection: self.id,
            application: application.to_owned(),
        };
        // A failure means that the engine has stopped.
        drop(self.handle.shared.jobs.send(Job::Input(input)));
    }

    /// As [`Connection::introduce`], for a connection of one call: only if an event may come of it.
    pub(crate) fn introduce_once(&self, application: &str) {
        let events = self.handle.shared.objects.borrow().attributes.events;
        if [events.inhibit, events.local, events.remote].contains(&Enabled::Yes) {
            self.introduce(application);
        }
    }

    /// The first of `count` numbers for requests, each higher than those before.
    pub(crate) fn request_ids(&self, count: u64) -> RequestId {
        self.handle.shared.request_ids(count)
    }

    /// Waits until the engine can be asked so much, puts among it or not.
    pub(crate) async fn ready_for(
        &self,
        requests: u32,
        puts: bool,
    ) -> Result<OwnedSemaphorePermit, Failure> {
        let shared = &self.handle.shared;
        let delay_ms = shared.put_delay_ms.load(Ordering::Relaxed);
        if delay_ms > 0 && puts {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        shared.permit(requests).await
    }

    /// Sends requests, in order after those sent before.
    pub(crate) fn send(
        &self,
        requests: Vec<Asking>,
        permit: Option<OwnedSemaphorePermit>,
    ) -> Result<(), Failure> {
        let job = Job::Ask {
            connection: self.id,
            requests,
            permit,
        };
        self.handle.shared.jobs.send(job).map_err(|_| stopping())
    }

    /// Cancels a request that waits: it takes nothing, and is not answered any more.
    pub(crate) fn cancel(&self, id: RequestId) {
        // A failure means that the engine has stopped.
        drop(
            self.handle
                .shared
                .jobs
                .send(Job::Input(Input::Cancelled { id })),
        );
    }
}

impl Drop for Connection {
    fn drop(&mut self) {
        // A failure means that the engine has stopped: its units of work are gone with it.
        let input = Input::Disconnected {
            connection: self.id,
        };
        drop(self.handle.shared.jobs.send(Job::Input(input)));
    }
}

/// A request that was sent; dropping it before it is answered cancels it.
#[derive(Debug)]
pub(crate) struct Asked {
    jobs: Option<mpsc::UnboundedSender<Job>>,
    id: RequestId,
}

impl Asked {
    /// The answer is here.
    pub(crate) fn answered(mut self) {
        self.jobs = None;
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        if let Some(jobs) = self.jobs.take() {
            // A failure means that the engine has stopped.
            drop(jobs.send(Job::Input(Input::Cancelled { id: self.id })));
        }
    }
}

/// The queue manager stops: recovery decides what is in doubt.
pub(crate) fn stopping() -> Failure {
    Failure {
        reason: ReasonCode::STOPPING,
        object: None,
    }
}
