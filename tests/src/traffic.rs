//! A producer and a consumer that go on through crashes, and know for every message whether it was acknowledged.

use std::time::Duration;

use ferrymq_client::{Client, ClientError, ConnectOptions, Session, wire};
use ferrymq_types::{ReasonCode, UnitOfWorkId};

/// Pause before a call is tried again.
const AGAIN: Duration = Duration::from_millis(20);

/// An id of a unit of work: whose it is and its number.
fn id(who: u8, number: u64) -> UnitOfWorkId {
    let mut bytes = [who; 16];
    bytes[8..].copy_from_slice(&number.to_be_bytes());
    UnitOfWorkId::new(bytes)
}

async fn connect(options: &ConnectOptions) -> Client {
    loop {
        if let Ok(client) = Client::connect(options).await {
            // The timeout of the options is for connecting; calls have their own ends.
            return client.with_timeout(None);
        }
        tokio::time::sleep(AGAIN).await;
    }
}

/// Whether trying again may help: the node is down or going down.
pub(crate) fn is_passing(error: &ClientError) -> bool {
    const PASSING: [ReasonCode; 6] = [
        ReasonCode::CONNECTION_BROKEN,
        ReasonCode::Q_MGR_NOT_AVAILABLE,
        ReasonCode::HOST_NOT_AVAILABLE,
        ReasonCode::IN_DOUBT,
        ReasonCode::STOPPING,
        ReasonCode::STORAGE_MEDIUM_FULL,
    ];
    PASSING.contains(&error.reason()) || error.reason() == ReasonCode::new(2393)
}

/// Puts messages `0..count` to `queue`, each until it is acknowledged: a put that is repeated has the same id and takes
/// effect once.
///
/// # Panics
/// If a put is refused for good.
pub async fn produce(options: ConnectOptions, queue: String, count: u64) {
    let mut client = connect(&options).await;
    for number in 0..count {
        loop {
            let put = wire::PutRequest {
                queue: queue.clone(),
                message: Some(wire::Message {
                    data: number.to_string().into(),
                    ..wire::Message::default()
                }),
                unit_of_work_id: bytes::Bytes::copy_from_slice(id(1, number).as_bytes()),
                ..wire::PutRequest::default()
            };
            match client.put(put).await {
                Ok(_) => break,
                Err(error) if is_passing(&error) => client = connect(&options).await,
                Err(error) => panic!("put {number}: {error} ({})", error.reason()),
            }
        }
    }
}

/// Gets messages from `queue` under syncpoint, some at a time, until `count` are committed; returns their bodies in the order
/// of the commits. Every fifth unit of work is backed out.
///
/// # Panics
/// If a call is refused for good.
pub async fn consume(options: ConnectOptions, queue: String, count: usize) -> Vec<String> {
    let mut consumer = Consumer {
        options,
        queue,
        next: 0,
        committed: Vec::new(),
    };
    while consumer.committed.len() < count {
        let client = connect(&consumer.options).await;
        match client.session().await {
            Ok(session) => match consumer.work(&client, &session, count).await {
                Ok(()) => {}
                Err(error) if is_passing(&error) => {}
                Err(error) => panic!("consume: {error} ({})", error.reason()),
            },
            Err(error) if is_passing(&error) => {}
            Err(error) => panic!("session: {error} ({})", error.reason()),
        }
    }
    consumer.committed
}

struct Consumer {
    options: ConnectOptions,
    queue: String,
    next: u64,
    committed: Vec<String>,
}

impl Consumer {
    async fn work(
        &mut self,
        client: &Client,
        session: &Session,
        count: usize,
    ) -> Result<(), ClientError> {
        while self.committed.len() < count {
            let uow = id(2, self.next);
            self.next += 1;
            session.begin(Some(uow)).await?;
            let mut bodies = Vec::new();
            for _ in 0..10 {
                let get = wire::GetRequest {
                    queue: self.queue.clone(),
                    wait_ms: if bodies.is_empty() { 500 } else { 0 },
                    ..wire::GetRequest::default()
                };
                match session.get(get, Some(uow)).await? {
                    Some(message) => {
                        bodies.push(String::from_utf8_lossy(&message.data).into_owned());
                    }
                    None => break,
                }
            }
            if self.next.is_multiple_of(5) {
                session.back(uow).await?;
                continue;
            }
            match session.commit(uow).await {
                Ok(()) => self.committed.append(&mut bodies),
                Err(error) if is_passing(&error) => {
                    if self.was_committed(uow).await {
                        self.committed.append(&mut bodies);
                    }
                    return Err(error);
                }
                Err(error) => return Err(error),
            }
        }
        // Kept until here: its end ends the session.
        let _address = client.address();
        Ok(())
    }

    /// Asks for the outcome of a commit whose answer was lost, until there is an answer.
    async fn was_committed(&self, uow: UnitOfWorkId) -> bool {
        loop {
            let client = connect(&self.options).await;
            let request = wire::GetUnitOfWorkRequest {
                unit_of_work_id: bytes::Bytes::copy_from_slice(uow.as_bytes()),
                ..wire::GetUnitOfWorkRequest::default()
            };
            match client.get_unit_of_work(request).await {
                Ok(answer) => {
                    return answer.state() == wire::UnitOfWorkState::Committed;
                }
                Err(error) if is_passing(&error) => tokio::time::sleep(AGAIN).await,
                Err(error) => panic!("outcome: {error} ({})", error.reason()),
            }
        }
    }
}

/// The put of a persistent message.
#[must_use]
pub fn put_to(queue: &str, data: impl Into<bytes::Bytes>) -> wire::PutRequest {
    wire::PutRequest {
        queue: queue.to_owned(),
        message: Some(wire::Message {
            descriptor: Some(wire::MessageDescriptor {
                persistence: wire::Persistence::Persistent.into(),
                ..wire::MessageDescriptor::default()
            }),
            data: data.into(),
        }),
        ..wire::PutRequest::default()
    }
}

/// A get of whatever comes first.
#[must_use]
pub fn get_from(queue: &str) -> wire::GetRequest {
    wire::GetRequest {
        queue: queue.to_owned(),
        ..wire::GetRequest::default()
    }
}
