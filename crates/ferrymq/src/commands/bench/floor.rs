//! The floor: a gRPC server that gathers what has arrived, appends it to a file that was written before, syncs once for
//! all of it, keeps the messages in memory and answers. It speaks the sessions of `ferrymq.v1.Messaging` so that the same
//! load runs against both, and does nothing else of a queue manager's work: what it reaches is what wire and disk allow.

use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::pin::Pin;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use ferrymq_proto::v1::messaging_server::{Messaging, MessagingServer};
use ferrymq_proto::v1::session_answer::Answer;
use ferrymq_proto::v1::session_call::Call;
use ferrymq_proto::v1::{self, SessionAnswer, SessionCall, SessionRequest, SessionResponse};
use ferrymq_tls::{ClientVerification, RevocationPolicy, TlsFiles, TlsReloader};
use ferrymq_transport::{Listener, ListenerSecurity, ServerLimits, server_builder};
use futures::{Stream, StreamExt as _};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use crate::cli::{FloorArgs, GlobalOptions};
use crate::failure::Failure;
use crate::invocation::Invocation;

/// Blocks of the file.
const BLOCK: usize = 4096;

/// Bytes of deliveries that are enough for a frame.
const FRAME_BYTES: usize = 128 * 1024;

type Frames = mpsc::UnboundedSender<Result<SessionResponse, Status>>;

/// A connection.
#[derive(Debug)]
struct Peer {
    number: u64,
    frames: Frames,
}

/// Calls of a connection that arrived together.
type Arrived = (Arc<Peer>, Vec<SessionCall>);

pub(crate) async fn run(invocation: &mut Invocation, args: FloorArgs) -> Result<(), Failure> {
    let system =
        |what: &str, error: &dyn std::fmt::Display| Failure::System(format!("{what}: {error}"));
    let log = Log::create(&args.file, args.length).map_err(|e| system("write the file", &e))?;
    let (arrivals, arrived) = std::sync::mpsc::channel();
    let mut writer = Writer::new(log);
    let ended = std::thread::Builder::new()
        .name("floor".to_owned())
        .spawn(move || writer.run(&arrived))
        .map_err(|e| system("start a thread", &e))?;
    let address = ([127, 0, 0, 1], args.port).into();
    let limits = ServerLimits::default();
    let security = security(&invocation.options)?;
    let listener = Listener::bind(address, security, limits.clone());
    let listener = listener.map_err(|e| system("listen", &e))?;
    let output = &mut invocation.output;
    output.line(&format!("listening on {}", listener.local_addr()))?;
    output.flush()?;
    let service = Floor {
        arrivals,
        peers: std::sync::atomic::AtomicU64::new(0),
    };
    let longest = ferrymq_types::MESSAGE_LENGTH_MAX as usize * 2;
    let service = MessagingServer::new(service)
        .max_decoding_message_size(longest)
        .max_encoding_message_size(longest);
    let handle = listener.start(server_builder(&limits).add_service(service));
    // Until it is interrupted, or the disk fails.
    let wrong = tokio::task::spawn_blocking(move || ended.join()).await;
    handle.stop().await.map_err(|e| system("stop", &e))?;
    match wrong {
        Ok(Ok(Err(error))) => Err(system("write the file", &error)),
        _ => Ok(()),
    }
}

/// Mutual TLS with the certificate of the command, or none without one.
fn security(options: &GlobalOptions) -> Result<ListenerSecurity, Failure> {
    let (certificate, key, authorities) = match (&options.cert, &options.key, &options.ca) {
        (None, None, None) => return Ok(ListenerSecurity::PlainLoopback),
        (Some(certificate), Some(key), Some(authorities)) => (certificate, key, authorities),
        _ => {
            return Err(Failure::Usage(
                "TLS needs --cert, --key and --ca together".to_owned(),
            ));
        }
    };
    let files = TlsFiles {
        certificate: certificate.clone(),
        key: key.clone(),
        authorities: authorities.clone(),
        revocation_lists: Vec::new(),
        revocation: RevocationPolicy::default(),
    };
    let loaded = TlsReloader::load(files, ClientVerification::Required)?;
    Ok(ListenerSecurity::Tls(Arc::new(loaded)))
}

/// The file, written round and round.
struct Log {
    file: File,
    length: usize,
    at: usize,
    batch: BytesMut,
}

impl Log {
    fn create(path: &Path, length: usize) -> std::io::Result<Self> {
        let options = OpenOptions::new()
            .write(true)
            .create(true)
            .truncate(true)
            .clone();
        let file = options.open(path)?;
        let length = length.next_multiple_of(BLOCK).max(16 * 1024 * 1024);
        // A file that grows costs more for each sync than one that was written before.
        let zeros = vec![0; 1024 * 1024];
        for at in (0..length).step_by(zeros.len()) {
            file.write_all_at(&zeros, at as u64)?;
        }
        file.sync_all()?;
        Ok(Self {
            file,
            length,
            at: 0,
            batch: BytesMut::new(),
        })
    }

    /// Writes the batch and syncs it.
    fn flush(&mut self) -> std::io::Result<()> {
        if self.batch.is_empty() {
            return Ok(());
        }
        let padded = self.batch.len().next_multiple_of(BLOCK);
        self.batch.resize(padded, 0);
        let mut rest = &self.batch[..];
        while !rest.is_empty() {
            let (now, later) = rest.split_at(rest.len().min(self.length - self.at));
            self.file.write_all_at(now, self.at as u64)?;
            self.at = (self.at + now.len()) % self.length;
            rest = later;
        }
        self.file.sync_data()?;
        self.batch.clear();
        Ok(())
    }
}

#[derive(Default)]
struct Queue {
    messages: VecDeque<v1::Message>,
    consumers: Vec<Consumer>,
}

fn is_persistent(message: &v1::Message) -> bool {
    let descriptor = message.descriptor.as_ref();
    descriptor.is_some_and(|d| d.persistence() == v1::Persistence::Persistent)
}

struct Consumer {
    peer: Arc<Peer>,
    call_id: u64,
    credit: usize,
    delivered: u64,
    /// Deliveries whose settlement goes to the file, in order.
    persistent: VecDeque<u64>,
}

impl Consumer {
    /// Whether the settlement of a delivery has to be synced.
    fn settles_persistent(&mut self, delivery: u64) -> bool {
        match self.persistent.binary_search(&delivery) {
            Ok(at) => self.persistent.remove(at).is_some(),
            Err(_) => false,
        }
    }
}

/// The one thread that does everything.
struct Writer {
    log: Log,
    queues: BTreeMap<String, Queue>,
    /// Puts of units of work.
    units: BTreeMap<Bytes, Vec<(String, v1::Message)>>,
    /// Messages that are visible after the sync.
    visible: Vec<(String, v1::Message)>,
    answers: BTreeMap<u64, (Arc<Peer>, Vec<SessionAnswer>)>,
    numbers: u64,
}

impl Writer {
    fn new(log: Log) -> Self {
        Self {
            log,
            queues: BTreeMap::new(),
            units: BTreeMap::new(),
            visible: Vec::new(),
            answers: BTreeMap::new(),
            numbers: 0,
        }
    }

    fn run(&mut self, arrived: &std::sync::mpsc::Receiver<Arrived>) -> std::io::Result<()> {
        while let Ok((peer, calls)) = arrived.recv() {
            self.take(&peer, calls);
            while let Ok((peer, calls)) = arrived.try_recv() {
                self.take(&peer, calls);
            }
            self.log.flush()?;
            for (peer, answers) in std::mem::take(&mut self.answers).into_values() {
                // A failure means that the client has gone.
                drop(peer.frames.send(Ok(SessionResponse { answers })));
            }
            for (queue, message) in std::mem::take(&mut self.visible) {
                self.queues
                    .entry(queue)
                    .or_default()
                    .messages
                    .push_back(message);
            }
            self.queues.values_mut().for_each(Queue::deliver);
        }
        Ok(())
    }

    fn take(&mut self, peer: &Arc<Peer>, calls: Vec<SessionCall>) {
        for SessionCall { call_id, call } in calls {
            let Some(call) = call else { continue };
            if let Some(answer) = self.call(peer, call_id, call) {
                self.answer(peer, call_id, answer);
            }
        }
    }

    fn call(&mut self, peer: &Arc<Peer>, call_id: u64, call: Call) -> Option<Answer> {
        match call {
            Call::Put(put) => self.put(put),
            Call::Begin(begin) => Some(Answer::Begin(v1::BeginAnswer {
                unit_of_work_id: begin.unit_of_work_id,
            })),
            Call::Commit(commit) => {
                self.log.batch.extend_from_slice(&commit.unit_of_work_id);
                let puts = self.units.remove(&commit.unit_of_work_id);
                self.visible.extend(puts.unwrap_or_default());
                Some(Answer::Done(v1::DoneAnswer::default()))
            }
            Call::Consume(consume) => {
                let queue = consume.get.unwrap_or_default().queue;
                self.queues
                    .entry(queue)
                    .or_default()
                    .consumers
                    .push(Consumer {
                        peer: peer.clone(),
                        call_id,
                        credit: consume.credit as usize,
                        delivered: 0,
                        persistent: VecDeque::new(),
                    });
                None
            }
            Call::Settle(settle) => {
                self.credit(peer, settle.consumer, settle.credit);
                if settle.settlement() == v1::Settlement::Commit {
                    self.settle(peer, &settle);
                }
                Some(Answer::Done(v1::DoneAnswer::default()))
            }
            Call::Credit(credit) => {
                self.credit(peer, credit.consumer, credit.credit);
                None
            }
            Call::Back(_)
            | Call::Get(_)
            | Call::Open(_)
            | Call::Close(_)
            | Call::Browse(_)
            | Call::Unlock(_)
            | Call::Inquire(_)
            | Call::Set(_) => Some(Answer::Error(v1::Error {
                completion_code: 2,
                reason: ferrymq_types::ReasonCode::OPTIONS_ERROR.get(),
                ..v1::Error::default()
            })),
            Call::Cancel(cancel) => {
                self.cancel(peer, cancel.call_id);
                None
            }
            Call::Chunk(_) => None,
        }
    }

    fn put(&mut self, call: v1::PutCall) -> Option<Answer> {
        let put = call.put?;
        let mut message = put.message?;
        let descriptor = message.descriptor.get_or_insert_default();
        if descriptor.persistence() == v1::Persistence::Persistent {
            self.log.batch.extend_from_slice(&message.data);
        }
        self.numbers += 1;
        let mut id = [0; 24];
        id[..8].copy_from_slice(&self.numbers.to_le_bytes());
        let message_ids = Bytes::copy_from_slice(&id);
        descriptor.message_id = message_ids.clone();
        if call.syncpoint.is_empty() {
            self.visible.push((put.queue, message));
        } else {
            self.units
                .entry(call.syncpoint)
                .or_default()
                .push((put.queue, message));
        }
        Some(Answer::Puts(v1::PutsAnswer { message_ids }))
    }

    fn consumer(&mut self, peer: &Arc<Peer>, call_id: u64) -> Option<&mut Consumer> {
        let mut consumers = self.queues.values_mut().flat_map(|q| &mut q.consumers);
        consumers.find(|one| one.call_id == call_id && one.peer.number == peer.number)
    }

    fn credit(&mut self, peer: &Arc<Peer>, consumer: u64, credit: u32) {
        if let Some(consumer) = self.consumer(peer, consumer) {
            consumer.credit += credit as usize;
        }
    }

    /// The settlement of a message that does not survive a restart need not survive one.
    fn settle(&mut self, peer: &Arc<Peer>, settle: &v1::SettleCall) {
        let mut bytes = BytesMut::new();
        if let Some(consumer) = self.consumer(peer, settle.consumer) {
            for delivery in &settle.deliveries {
                if consumer.settles_persistent(*delivery) {
                    bytes.extend_from_slice(&delivery.to_le_bytes());
                }
            }
        }
        self.log.batch.extend_from_slice(&bytes);
    }

    /// Ends a consumer, and says so.
    fn cancel(&mut self, peer: &Arc<Peer>, call_id: u64) {
        if self.consumer(peer, call_id).is_none() {
            return;
        }
        for queue in self.queues.values_mut() {
            let others = |c: &Consumer| c.call_id != call_id || c.peer.number != peer.number;
            queue.consumers.retain(others);
        }
        let end = v1::Error {
            completion_code: 2,
            reason: ferrymq_types::ReasonCode::NO_MSG_AVAILABLE.get(),
            ..v1::Error::default()
        };
        self.answer(peer, call_id, Answer::Error(end));
    }

    /// Adds an answer to the frame of its connection; puts with consecutive ids are one.
    fn answer(&mut self, peer: &Arc<Peer>, call_id: u64, answer: Answer) {
        let (_, answers) = self
            .answers
            .entry(peer.number)
            .or_insert_with(|| (peer.clone(), Vec::new()));
        if let Answer::Puts(one) = &answer
            && let Some(SessionAnswer {
                call_id: first,
                answer: Some(Answer::Puts(many)),
            }) = answers.last_mut()
            && *first + many.message_ids.len() as u64 / 24 == call_id
        {
            let mut ids = BytesMut::from(std::mem::take(&mut many.message_ids));
            ids.extend_from_slice(&one.message_ids);
            many.message_ids = ids.freeze();
            return;
        }
        answers.push(SessionAnswer {
            call_id,
            answer: Some(answer),
        });
    }
}

impl Queue {
    fn deliver(&mut self) {
        self.consumers.retain(|c| !c.peer.frames.is_closed());
        for consumer in &mut self.consumers {
            while consumer.credit > 0 && !self.messages.is_empty() {
                let mut deliveries = Vec::new();
                let mut bytes = 0;
                while consumer.credit > 0
                    && bytes < FRAME_BYTES
                    && let Some(message) = self.messages.pop_front()
                {
                    consumer.credit -= 1;
                    consumer.delivered += 1;
                    bytes += message.data.len();
                    if is_persistent(&message) {
                        consumer.persistent.push_back(consumer.delivered);
                    }
                    deliveries.push(v1::Delivery {
                        delivery: consumer.delivered,
                        message: Some(message),
                        data_length: 0,
                        examined: 0,
                    });
                }
                let answer = Answer::Deliveries(v1::Deliveries { deliveries });
                let frame = SessionResponse {
                    answers: vec![SessionAnswer {
                        call_id: consumer.call_id,
                        answer: Some(answer),
                    }],
                };
                // A failure means that the client has gone.
                drop(consumer.peer.frames.send(Ok(frame)));
            }
        }
    }
}

struct Floor {
    arrivals: std::sync::mpsc::Sender<Arrived>,
    peers: std::sync::atomic::AtomicU64,
}

fn not_here<T>() -> Result<T, Status> {
    Err(Status::unimplemented("the floor has sessions only"))
}

type Answers<T> = Pin<Box<dyn Stream<Item = Result<T, Status>> + Send>>;

#[tonic::async_trait]
impl Messaging for Floor {
    type BrowseStream = Answers<v1::BrowseResponse>;
    type SessionStream = UnboundedReceiverStream<Result<SessionResponse, Status>>;

    async fn put(&self, _: Request<v1::PutRequest>) -> Result<Response<v1::PutResponse>, Status> {
        not_here()
    }

    async fn get(&self, _: Request<v1::GetRequest>) -> Result<Response<v1::GetResponse>, Status> {
        not_here()
    }

    async fn browse(
        &self,
        _: Request<v1::BrowseRequest>,
    ) -> Result<Response<Self::BrowseStream>, Status> {
        // A load looks whether its queues are empty; here they are new with each start.
        Ok(Response::new(Box::pin(futures::stream::empty())))
    }

    async fn get_unit_of_work(
        &self,
        _: Request<v1::GetUnitOfWorkRequest>,
    ) -> Result<Response<v1::GetUnitOfWorkResponse>, Status> {
        not_here()
    }

    async fn session(
        &self,
        request: Request<Streaming<SessionRequest>>,
    ) -> Result<Response<Self::SessionStream>, Status> {
        let (frames, receiver) = mpsc::unbounded_channel();
        let number = self
            .peers
            .fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let peer = Arc::new(Peer { number, frames });
        let arrivals = self.arrivals.clone();
        let mut requests = request.into_inner();
        tokio::spawn(async move {
            let mut large = BTreeMap::new();
            while let Some(Ok(request)) = requests.next().await {
                let calls = request.calls.into_iter();
                let calls: Vec<SessionCall> = calls.filter_map(|c| gather(&mut large, c)).collect();
                if !calls.is_empty() && arrivals.send((peer.clone(), calls)).is_err() {
                    return;
                }
            }
        });
        Ok(Response::new(UnboundedReceiverStream::new(receiver)))
    }
}

/// Puts the data of a large message together. Returns what is complete.
fn gather(
    large: &mut BTreeMap<u64, (v1::PutCall, BytesMut)>,
    call: SessionCall,
) -> Option<SessionCall> {
    match call.call {
        Some(Call::Put(put)) if put.data_length > 0 => {
            let data = BytesMut::with_capacity(put.data_length as usize);
            large.insert(call.call_id, (put, data));
            None
        }
        Some(Call::Chunk(chunk)) => {
            let (put, data) = large.get_mut(&call.call_id)?;
            data.extend_from_slice(&chunk.data);
            if data.len() < put.data_length as usize {
                return None;
            }
            let (mut put, data) = large.remove(&call.call_id)?;
            put.put.as_mut()?.message.as_mut()?.data = data.freeze();
            Some(SessionCall {
                call_id: call.call_id,
                call: Some(Call::Put(put)),
            })
        }
        _ => Some(call),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writer() -> Writer {
        let file = tempfile::NamedTempFile::new().unwrap();
        Writer::new(Log::create(file.path(), 0).unwrap())
    }

    fn put(persistence: v1::Persistence) -> Call {
        let descriptor = v1::MessageDescriptor {
            persistence: persistence.into(),
            ..v1::MessageDescriptor::default()
        };
        let message = v1::Message {
            descriptor: Some(descriptor),
            data: Bytes::from_static(b"x"),
        };
        let put = v1::PutRequest {
            queue: "A".to_owned(),
            message: Some(message),
            ..v1::PutRequest::default()
        };
        Call::Put(v1::PutCall {
            put: Some(put),
            ..v1::PutCall::default()
        })
    }

    /// Does what a turn of the thread does, without its sync. Returns how much would have been synced.
    fn turn(writer: &mut Writer) -> usize {
        let synced = writer.log.batch.len();
        writer.log.batch.clear();
        writer.answers.clear();
        for (queue, message) in std::mem::take(&mut writer.visible) {
            let queue = writer.queues.entry(queue).or_default();
            queue.messages.push_back(message);
        }
        writer.queues.values_mut().for_each(Queue::deliver);
        synced
    }

    #[test]
    fn only_settlements_of_persistent_messages_are_synced() {
        for (persistence, is_synced) in [
            (v1::Persistence::Persistent, true),
            (v1::Persistence::NonPersistent, false),
        ] {
            let mut writer = writer();
            let (frames, mut received) = mpsc::unbounded_channel();
            let peer = Arc::new(Peer { number: 1, frames });
            let get = v1::GetRequest {
                queue: "A".to_owned(),
                ..v1::GetRequest::default()
            };
            let consume = v1::ConsumeCall {
                get: Some(get),
                credit: 10,
                ..v1::ConsumeCall::default()
            };
            writer.call(&peer, 1, Call::Consume(consume));
            writer.call(&peer, 2, put(persistence));
            assert_eq!(turn(&mut writer) > 0, is_synced);
            assert!(received.try_recv().is_ok(), "delivered");
            let settle = v1::SettleCall {
                consumer: 1,
                deliveries: vec![1],
                settlement: v1::Settlement::Commit.into(),
                ..v1::SettleCall::default()
            };
            writer.call(&peer, 3, Call::Settle(settle));
            assert_eq!(turn(&mut writer) > 0, is_synced);
        }
    }
}
