//! Producers and consumers that go on through every fault, and write down what they were told.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use ferrymq_client::{Client, ClientError, ConnectOptions, Session, wire};
use ferrymq_types::UnitOfWorkId;
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};

use super::history::{Flow, Got, History, Name, Outcome, Put};
use crate::traffic::{get_from, is_passing};

/// How long a call may take before its connection is given up.
const CALL: Duration = Duration::from_secs(5);

/// Pause before a connection is tried again.
const AGAIN: Duration = Duration::from_millis(100);

/// How long a consumer waits for a message.
const WAIT_MS: u32 = 300;

/// Longest pause between two puts of a producer.
const PAUSE_MAX: Duration = Duration::from_millis(40);

/// Sizes of data in bytes: mostly up to the first, now and then up to the second, which travels in chunks.
const LENGTHS_MAX: (usize, usize) = (4_000, 400_000);

/// What all producers and consumers share.
#[derive(Debug)]
pub struct World {
    options: BTreeMap<usize, ConnectOptions>,
    start: Instant,
    seed: u64,
    history: Mutex<History>,
    /// When the last message of a flow was consumed.
    reached: Mutex<BTreeMap<Flow, Duration>>,
    producers_stop: AtomicBool,
    consumers_stop: AtomicBool,
    sessions: AtomicU32,
}

/// Why a call did not do what was asked.
enum Trouble {
    /// The connection, or the node, is gone or too slow.
    Passing,
    /// It was refused: that should not be.
    Refused(String),
}

impl From<ClientError> for Trouble {
    fn from(error: ClientError) -> Self {
        if is_passing(&error) {
            Self::Passing
        } else {
            Self::Refused(format!("{error} ({})", error.reason()))
        }
    }
}

struct Connection {
    /// The session ends with its client.
    client: Client,
    session: Session,
}

/// A call that takes too long has failed.
async fn bounded<T>(call: impl Future<Output = Result<T, ClientError>>) -> Result<T, Trouble> {
    match tokio::time::timeout(CALL, call).await {
        Ok(result) => result.map_err(Trouble::from),
        Err(_) => Err(Trouble::Passing),
    }
}

impl World {
    /// `options`: how an application connects to each queue manager.
    #[must_use]
    pub fn new(options: BTreeMap<usize, ConnectOptions>, seed: u64) -> Self {
        Self {
            options,
            start: Instant::now(),
            seed,
            history: Mutex::default(),
            reached: Mutex::default(),
            producers_stop: AtomicBool::new(false),
            consumers_stop: AtomicBool::new(false),
            sessions: AtomicU32::new(0),
        }
    }

    /// What was seen so far.
    pub fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Time since the start.
    #[must_use]
    pub fn now(&self) -> Duration {
        self.start.elapsed()
    }

    /// When the last message of each flow was consumed.
    #[must_use]
    pub fn reached(&self) -> BTreeMap<Flow, Duration> {
        let reached = self.reached.lock().unwrap_or_else(PoisonError::into_inner);
        reached.clone()
    }

    /// No more is put.
    pub fn stop_producers(&self) {
        self.producers_stop.store(true, Ordering::Release);
    }

    /// No more is got.
    pub fn stop_consumers(&self) {
        self.consumers_stop.store(true, Ordering::Release);
    }

    /// Writes down what should not happen.
    pub fn complain(&self, what: String) {
        self.history().complaints.push(what);
    }

    fn random(&self, of: &str) -> StdRng {
        let seed = of.bytes().fold(self.seed, |seed, byte| {
            seed.wrapping_mul(31).wrapping_add(u64::from(byte))
        });
        StdRng::seed_from_u64(seed)
    }

    async fn connect(&self, number: usize) -> Connection {
        loop {
            let connecting = async {
                let client = Client::connect(&self.options[&number]).await?;
                let client = client.with_timeout(None);
                let session = client.session().await?;
                Ok(Connection { client, session })
            };
            match bounded(connecting).await {
                Ok(connection) => return connection,
                Err(Trouble::Passing) => {}
                Err(Trouble::Refused(why)) => self.complain(format!("connect: {why}")),
            }
            tokio::time::sleep(AGAIN).await;
        }
    }

    /// How a unit of work ended whose end was not answered.
    async fn outcome(&self, number: usize, id: UnitOfWorkId) -> Outcome {
        loop {
            let connection = self.connect(number).await;
            let request = wire::GetUnitOfWorkRequest {
                unit_of_work_id: bytes::Bytes::copy_from_slice(id.as_bytes()),
                ..wire::GetUnitOfWorkRequest::default()
            };
            let asked = Box::pin(connection.client.get_unit_of_work(request));
            match bounded(asked).await {
                Ok(answer) => {
                    return match answer.state() {
                        wire::UnitOfWorkState::Committed => Outcome::Done,
                        wire::UnitOfWorkState::BackedOut => Outcome::NotDone,
                        // Its commit may be under way on a connection that the node does not know to be dead.
                        wire::UnitOfWorkState::Unknown | wire::UnitOfWorkState::Unspecified => {
                            Outcome::Unknown
                        }
                    };
                }
                Err(Trouble::Passing) => {}
                Err(Trouble::Refused(why)) => self.complain(format!("outcome: {why}")),
            }
        }
    }

    fn was_put(&self, names: impl IntoIterator<Item = Name>, outcome: Outcome) {
        let puts = names.into_iter().map(|name| Put { name, outcome });
        self.history().puts.extend(puts);
    }
}

/// Puts messages of one flow until it is told to stop.
pub async fn produce(world: Arc<World>, flow: Flow) {
    let mut producer = Producer {
        random: world.random(&format!("put {flow}")),
        world,
        flow,
        next: 0,
        connection: None,
    };
    while !producer.world.producers_stop.load(Ordering::Acquire) {
        if producer.random.random_bool(0.5) {
            producer.put_alone().await;
        } else {
            Box::pin(producer.put_together()).await;
        }
        let pause = producer.random.random_range(Duration::ZERO..PAUSE_MAX);
        tokio::time::sleep(pause).await;
    }
}

struct Producer {
    world: Arc<World>,
    flow: Flow,
    next: u64,
    connection: Option<Connection>,
    random: StdRng,
}

impl Producer {
    fn name(&mut self) -> Name {
        self.next += 1;
        Name {
            flow: self.flow,
            number: self.next,
        }
    }

    fn put(&mut self, name: Name) -> wire::PutRequest {
        let longest = if self.random.random_bool(0.01) {
            LENGTHS_MAX.1
        } else {
            LENGTHS_MAX.0
        };
        let persistence = if self.flow.persistent {
            wire::Persistence::Persistent
        } else {
            wire::Persistence::NonPersistent
        };
        let data = name.data(self.random.random_range(0..longest));
        let mut put = crate::traffic::put_to(&format!("OUT.{}", self.flow.to), data);
        if let Some(descriptor) = put.message.as_mut().and_then(|m| m.descriptor.as_mut()) {
            descriptor.persistence = persistence.into();
        }
        put
    }

    fn unit_of_work(&mut self) -> UnitOfWorkId {
        let mut id = [0; 16];
        self.random.fill(&mut id);
        UnitOfWorkId::new(id)
    }

    async fn session(&mut self) -> &Session {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.world.connect(self.flow.from).await,
        };
        &self.connection.insert(connection).session
    }

    /// One put. A persistent one is repeated under its id until it is answered, and takes effect once.
    async fn put_alone(&mut self) {
        let name = self.name();
        let mut put = self.put(name);
        if self.flow.persistent {
            let id = self.unit_of_work();
            put.unit_of_work_id = bytes::Bytes::copy_from_slice(id.as_bytes());
        }
        let outcome = loop {
            let put = put.clone();
            match bounded(self.session().await.put(put, None)).await {
                Ok(_) => break Outcome::Done,
                Err(Trouble::Passing) => self.connection = None,
                Err(Trouble::Refused(why)) => {
                    self.world.complain(format!("put {name}: {why}"));
                    break Outcome::NotDone;
                }
            }
            if !self.flow.persistent {
                break Outcome::Unknown;
            }
        };
        self.world.was_put([name], outcome);
    }

    /// Some puts in a unit of work, which is sometimes backed out.
    async fn put_together(&mut self) {
        let id = self.unit_of_work();
        let count = self.random.random_range(1..6);
        let names: Vec<Name> = (0..count).map(|_| self.name()).collect();
        let puts: Vec<wire::PutRequest> = names.iter().map(|name| self.put(*name)).collect();
        let back_out = self.random.random_bool(0.15);
        let mut ending = false;
        let session = self.session().await;
        let work = async {
            session.begin(Some(id)).await?;
            for put in puts {
                session.put(put, Some(id)).await?;
            }
            if back_out {
                return session.back(id).await;
            }
            ending = true;
            session.commit(id).await
        };
        let outcome = match bounded(work).await {
            Ok(()) if back_out => Outcome::NotDone,
            Ok(()) => Outcome::Done,
            Err(trouble) => {
                if let Trouble::Refused(why) = trouble {
                    self.world.complain(format!("puts of {}: {why}", names[0]));
                }
                self.connection = None;
                if ending {
                    Box::pin(self.world.outcome(self.flow.from, id)).await
                } else {
                    Outcome::NotDone
                }
            }
        };
        self.world.was_put(names, outcome);
    }
}

/// Gets what arrives at a queue manager, some messages at a time, until it is told to stop.
pub async fn consume(world: Arc<World>, number: usize) {
    let mut random = world.random(&format!("get {number}"));
    while !world.consumers_stop.load(Ordering::Acquire) {
        let connection = world.connect(number).await;
        let session = world.sessions.fetch_add(1, Ordering::Relaxed);
        while !world.consumers_stop.load(Ordering::Acquire) {
            let work = unit_of_gets(&world, &connection, session, number, &mut random);
            if !Box::pin(work).await {
                break;
            }
        }
    }
}

/// One unit of work of a consumer. Says whether its connection is still good.
async fn unit_of_gets(
    world: &World,
    connection: &Connection,
    number_of_session: u32,
    number: usize,
    random: &mut StdRng,
) -> bool {
    let mut id = [0; 16];
    random.fill(&mut id);
    let id = UnitOfWorkId::new(id);
    let back_out = random.random_bool(0.15);
    let mut gets = Vec::new();
    let mut ending = false;
    let session = &connection.session;
    let work = async {
        session.begin(Some(id)).await?;
        for _ in 0..20 {
            let get = wire::GetRequest {
                wait_ms: if gets.is_empty() { WAIT_MS } else { 0 },
                ..get_from("IN")
            };
            let Some(message) = session.get(get, Some(id)).await? else {
                break;
            };
            gets.push(message);
        }
        if back_out {
            return session.back(id).await;
        }
        ending = true;
        session.commit(id).await
    };
    let (outcome, good) = match bounded(work).await {
        Ok(()) if back_out => (Outcome::NotDone, true),
        Ok(()) => (Outcome::Done, true),
        Err(trouble) => {
            if let Trouble::Refused(why) = trouble {
                world.complain(format!("gets of QM{number}: {why}"));
            }
            if ending {
                (Box::pin(world.outcome(number, id)).await, false)
            } else {
                (Outcome::NotDone, false)
            }
        }
    };
    let at = world.now();
    for message in gets {
        let Some(name) = Name::of(&message.data) else {
            let start = String::from_utf8_lossy(&message.data[..message.data.len().min(60)]);
            world.complain(format!(
                "C6: QM{number} gave a message that nobody put: {start}"
            ));
            continue;
        };
        let backouts = message.descriptor.map_or(0, |d| d.backout_count);
        world.history().gets.push(Got {
            name,
            session: number_of_session,
            again: backouts > 0,
            outcome,
            at,
        });
        if outcome == Outcome::Done {
            let mut reached = world.reached.lock().unwrap_or_else(PoisonError::into_inner);
            reached.insert(name.flow, at);
        }
    }
    good
}
