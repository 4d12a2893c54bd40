//! The tasks of a load: each has a connection of its own.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ferrymq_client::{
    Answer, Client, ClientError, ConsumeMode, Consumer, Delivered, Session, wire,
};
use ferrymq_types::{MessageId, UnitOfWorkId};
use tokio_util::sync::CancellationToken;

use super::body::{self, Bodies, Ledger};
use super::report::Tally;
use crate::cli::BenchArgs;
use crate::failure::Failure;
use crate::invocation::fresh_unit_of_work_id;

/// Settlements of a consumer whose answers are not waited for yet.
const SETTLING_MAX: usize = 64;

/// What all tasks of a load know.
#[derive(Debug)]
pub(super) struct Load {
    pub(super) args: BenchArgs,
    queue_manager: String,
    began: Instant,
    /// Messages that are to arrive; not known before all are put.
    expected: AtomicU64,
    arrived: AtomicU64,
    /// All have arrived.
    over: CancellationToken,
}

/// What one task saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) tally: Tally,
    /// What arrived, if it is to be verified.
    arrivals: Vec<Option<body::Seen>>,
}

impl Seen {
    pub(super) fn enter_into(&self, ledger: &mut Ledger) {
        for arrival in &self.arrivals {
            ledger.enter(*arrival);
        }
    }
}

/// Puts whose answers are not here yet: one, or a unit of work.
struct Under {
    since: Instant,
    begun: Option<Answer<()>>,
    puts: Vec<Answer<MessageId>>,
    commit: Option<Answer<()>>,
}

impl Under {
    async fn wait(self, tally: &mut Tally) -> Result<(), ClientError> {
        let count = self.puts.len() as u64;
        let mut first = None;
        if let Some(begun) = self.begun {
            first = begun.wait().await.err();
        }
        for put in self.puts {
            if let Err(error) = put.wait().await {
                first.get_or_insert(error);
            }
        }
        if let Some(commit) = self.commit
            && let Err(error) = commit.wait().await
        {
            first.get_or_insert(error);
        }
        match first {
            None => {
                tally.messages = tally.messages.saturating_add(count);
                tally.took(self.since.elapsed());
                Ok(())
            }
            Some(error) => {
                tally.failed(&error);
                match error {
                    // Said by the queue manager of these messages; others may be taken.
                    ClientError::Refused(_) => Ok(()),
                    error => Err(error),
                }
            }
        }
    }
}

impl Load {
    pub(super) fn new(
        args: BenchArgs,
        gets_only: bool,
        queue_manager: String,
        began: Instant,
    ) -> Self {
        let expected = if gets_only {
            args.messages.saturating_mul(u64::from(args.clients))
        } else {
            u64::MAX
        };
        Self {
            args,
            queue_manager,
            began,
            expected: AtomicU64::new(expected),
            arrived: AtomicU64::new(0),
            over: CancellationToken::new(),
        }
    }

    pub(super) fn expected(&self) -> u64 {
        self.expected.load(Ordering::Acquire)
    }

    /// No more are put: whoever waits for more than have been put waits for nothing.
    pub(super) fn all_are_produced(&self, produced: &Tally) {
        if self.expected() == u64::MAX {
            self.expected.store(produced.messages, Ordering::Release);
        }
        self.end_if_all_arrived(self.arrived.load(Ordering::Acquire));
    }

    /// Nobody waits for more.
    pub(super) fn end(&self) {
        self.over.cancel();
    }

    fn end_if_all_arrived(&self, arrived: u64) {
        if arrived >= self.expected() {
            self.over.cancel();
        }
    }

    fn queue(&self, index: u32) -> String {
        queue_name(&self.args, index)
    }

    fn put_of(&self, queue: &str, data: Bytes) -> wire::PutRequest {
        let persistence = if self.args.nonpersistent {
            wire::Persistence::NonPersistent
        } else {
            wire::Persistence::Persistent
        };
        let descriptor = wire::MessageDescriptor {
            persistence: persistence.into(),
            ..wire::MessageDescriptor::default()
        };
        wire::PutRequest {
            queue_manager: self.queue_manager.clone(),
            queue: queue.to_owned(),
            message: Some(message(descriptor, data)),
            ..wire::PutRequest::default()
        }
    }

    fn is_over(&self, put: u64) -> bool {
        match self.args.duration {
            Some(duration) => self.began.elapsed() >= duration,
            None => put >= self.args.messages,
        }
    }

    /// Puts messages, as many under way as the window allows.
    pub(super) async fn produce(&self, client: Client, index: u32) -> Result<Seen, Failure> {
        let session = client.session().await?;
        let queue = self.queue(index);
        let mut bodies = Bodies::new(index, self.args.size, self.began);
        let mut seen = Seen::default();
        let mut under_way: VecDeque<Under> = VecDeque::new();
        let each = u64::from(self.args.syncpoint.unwrap_or(1));
        let window = (u64::from(self.args.window) / each).max(1);
        let pause = self.args.rate.map(|rate| {
            let share = f64::from(rate) / f64::from(self.args.clients);
            Duration::from_secs_f64(1.0 / share).saturating_mul(self.args.syncpoint.unwrap_or(1))
        });
        let mut due = self.began;
        let mut put: u64 = 0;
        while !self.is_over(put) {
            if under_way.len() as u64 >= window
                && let Some(oldest) = under_way.pop_front()
            {
                oldest.wait(&mut seen.tally).await?;
            }
            let mut since = Instant::now();
            if let Some(pause) = pause {
                // Lateness counts from when it was due, so that a stall is not hidden by what it held up.
                since = due;
                tokio::time::sleep_until(due.into()).await;
                due = due.checked_add(pause).unwrap_or(due);
            }
            let unit = self.send_unit(&session, &queue, &mut bodies, since).await?;
            put = put.saturating_add(each);
            under_way.push_back(unit);
        }
        for unit in under_way {
            unit.wait(&mut seen.tally).await?;
        }
        session.close().await?;
        Ok(seen)
    }

    async fn send_unit(
        &self,
        session: &Session,
        queue: &str,
        bodies: &mut Bodies,
        since: Instant,
    ) -> Result<Under, Failure> {
        let Some(count) = self.args.syncpoint else {
            let put = self.put_of(queue, bodies.next());
            return Ok(Under {
                since,
                begun: None,
                puts: vec![session.send_put_brief(put, None).await?],
                commit: None,
            });
        };
        let id = fresh_unit_of_work_id()?;
        let begun = session.send_begin(id).await?;
        let mut puts = Vec::with_capacity(count as usize);
        for _ in 0..count {
            let put = self.put_of(queue, bodies.next());
            puts.push(session.send_put_brief(put, Some(id)).await?);
        }
        Ok(Under {
            since,
            begun: Some(begun),
            puts,
            commit: Some(session.send_commit(id).await?),
        })
    }

    /// Gets messages until all have arrived, and settles what came together.
    pub(super) async fn consume(&self, client: Client, index: u32) -> Result<Seen, Failure> {
        let session = client.session().await?;
        let mut consumer = self.consumer(&session, self.queue(index)).await?;
        let mut seen = Seen::default();
        let mut settling: VecDeque<Answer<()>> = VecDeque::new();
        loop {
            let first = tokio::select! {
                next = consumer.next() => next?,
                () = self.over.cancelled() => break,
            };
            let mut together = vec![self.arrival(&mut seen, &first)];
            while let Some(next) = consumer.try_next()? {
                together.push(self.arrival(&mut seen, &next));
            }
            let count = together.len() as u64;
            settling.push_back(consumer.send_commit(together, None).await?);
            if settling.len() > SETTLING_MAX
                && let Some(oldest) = settling.pop_front()
            {
                settled(oldest, &mut seen.tally).await?;
            }
            let before = self.arrived.fetch_add(count, Ordering::AcqRel);
            self.end_if_all_arrived(before.saturating_add(count));
        }
        for answer in settling {
            settled(answer, &mut seen.tally).await?;
        }
        Ok(seen)
    }

    async fn consumer(&self, session: &Session, queue: String) -> Result<Consumer, Failure> {
        let get = wire::GetRequest {
            queue_manager: self.queue_manager.clone(),
            queue,
            ..wire::GetRequest::default()
        };
        let mode = ConsumeMode::Settle;
        Ok(session.consume(get, mode, self.args.window).await?)
    }

    /// Counts a message that arrived. Returns the number by which it is settled.
    fn arrival(&self, seen: &mut Seen, delivered: &Delivered) -> u64 {
        let verify = self.args.verify;
        let read = body::read(&delivered.message.data, self.began, verify);
        seen.tally.messages = seen.tally.messages.saturating_add(1);
        if let Some(read) = read {
            seen.tally.took(read.age);
        }
        if verify {
            seen.arrivals.push(read);
        }
        delivered.delivery
    }

    fn reply_queue(&self, index: u32) -> String {
        format!("{}.REPLY.{}", self.args.queue, index.saturating_add(1))
    }

    /// Sends requests, one at a time, and waits for their replies.
    pub(super) async fn request(&self, client: Client, index: u32) -> Result<Seen, Failure> {
        let session = client.session().await?;
        let reply_queue = self.reply_queue(index);
        let mut replies = self.consumer(&session, reply_queue.clone()).await?;
        let mut bodies = Bodies::new(index, self.args.size, self.began);
        let mut seen = Seen::default();
        let mut settling: VecDeque<Answer<()>> = VecDeque::new();
        let mut sent: u64 = 0;
        while !self.is_over(sent) {
            let mut request = self.put_of(&self.queue(index), bodies.next());
            if let Some(descriptor) = request.message.as_mut().and_then(|m| m.descriptor.as_mut()) {
                descriptor.message_type = ferrymq_types::MessageType::REQUEST.get();
                descriptor.reply_to_queue.clone_from(&reply_queue);
            }
            let put = session.send_put_brief(request, None).await?;
            let reply = replies.next().await?;
            // The reply is the proof that the request was put.
            put.wait().await?;
            let delivery = self.arrival(&mut seen, &reply);
            settling.push_back(replies.send_commit(vec![delivery], None).await?);
            if settling.len() > SETTLING_MAX
                && let Some(oldest) = settling.pop_front()
            {
                settled(oldest, &mut seen.tally).await?;
            }
            sent = sent.saturating_add(1);
        }
        for answer in settling {
            settled(answer, &mut seen.tally).await?;
        }
        Ok(seen)
    }

    /// Replies to requests, each in one unit of work with the request, until there are no more requesters.
    pub(super) async fn respond(&self, client: Client, index: u32) -> Result<Seen, Failure> {
        let session = client.session().await?;
        let mut requests = self.consumer(&session, self.queue(index)).await?;
        let mut seen = Seen::default();
        let mut under_way: VecDeque<Under> = VecDeque::new();
        let mut joining: VecDeque<Answer<()>> = VecDeque::new();
        loop {
            let request = tokio::select! {
                next = requests.next() => next?,
                () = self.over.cancelled() => break,
            };
            let descriptor = request.message.descriptor.unwrap_or_default();
            let mut reply = self.put_of(&descriptor.reply_to_queue, request.message.data);
            if let Some(to) = reply.message.as_mut().and_then(|m| m.descriptor.as_mut()) {
                to.message_type = ferrymq_types::MessageType::REPLY.get();
                to.correlation_id = descriptor.message_id;
            }
            let id: UnitOfWorkId = fresh_unit_of_work_id()?;
            let begun = Some(session.send_begin(id).await?);
            let puts = vec![session.send_put_brief(reply, Some(id)).await?];
            joining.push_back(requests.send_join(vec![request.delivery], id).await?);
            let commit = Some(session.send_commit(id).await?);
            under_way.push_back(Under {
                since: Instant::now(),
                begun,
                puts,
                commit,
            });
            if under_way.len() > SETTLING_MAX
                && let (Some(oldest), Some(joined)) = (under_way.pop_front(), joining.pop_front())
            {
                joined.wait().await?;
                oldest.wait(&mut seen.tally).await?;
            }
        }
        for (oldest, joined) in under_way.into_iter().zip(joining) {
            joined.wait().await?;
            oldest.wait(&mut seen.tally).await?;
        }
        Ok(seen)
    }
}

/// The queue of a client.
pub(super) fn queue_name(args: &BenchArgs, index: u32) -> String {
    let queues = args.queues.max(1);
    if queues == 1 {
        args.queue.to_string()
    } else {
        format!("{}.{}", args.queue, (index % queues).saturating_add(1))
    }
}

/// A message of nothing but what is given.
fn message(descriptor: wire::MessageDescriptor, data: Bytes) -> wire::Message {
    wire::Message {
        descriptor: Some(descriptor),
        data,
    }
}

/// Waits until a settlement is final.
async fn settled(answer: Answer<()>, tally: &mut Tally) -> Result<(), Failure> {
    match answer.wait().await {
        Ok(()) => Ok(()),
        Err(error @ ClientError::Refused(_)) => {
            tally.failed(&error);
            Ok(())
        }
        Err(error) => Err(error.into()),
    }
}
