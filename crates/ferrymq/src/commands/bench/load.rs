//! The tasks of a load: each has a connection of its own.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use bytes::Bytes;
use ferrymq_client::{
    Answer, Client, ClientError, ConsumeMode, Consumer, Delivered, Session, wire,
};
use ferrymq_types::{MessageId, UnitOfWorkId};
use tokio_util::sync::CancellationToken;

use super::body::{self, Bodies, Ledger, Run};
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
    run: Run,
    /// Messages that are to arrive; not known before all are put.
    expected: AtomicU64,
    ledger: Mutex<Ledger>,
    /// When a message arrived last, or the last one was put: nanoseconds since the run began.
    last_sign: AtomicU64,
    /// When a task had its last answer: nanoseconds since the run began.
    finished: AtomicU64,
    /// All have arrived, or no more come.
    over: CancellationToken,
}

/// What one task saw.
#[derive(Debug, Default)]
pub(super) struct Seen {
    pub(super) tally: Tally,
    /// Messages that it put and that are to arrive.
    pub(super) sent: u64,
}

impl Seen {
    pub(super) fn add(&mut self, other: &Self) {
        self.tally.add(&other.tally);
        self.sent = self.sent.saturating_add(other.sent);
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
    pub(super) fn new(args: BenchArgs, gets_only: bool, queue_manager: String, run: Run) -> Self {
        let expected = if gets_only {
            args.messages.saturating_mul(u64::from(args.clients))
        } else {
            u64::MAX
        };
        Self {
            args,
            queue_manager,
            run,
            expected: AtomicU64::new(expected),
            ledger: Mutex::default(),
            last_sign: AtomicU64::new(0),
            finished: AtomicU64::new(0),
            over: CancellationToken::new(),
        }
    }

    pub(super) fn expected(&self) -> u64 {
        self.expected.load(Ordering::Acquire)
    }

    pub(super) fn ledger(&self) -> MutexGuard<'_, Ledger> {
        // Nothing that is done under the lock leaves a ledger half written.
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Nanoseconds since the run began.
    fn now(&self) -> u64 {
        u64::try_from(self.run.began.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }

    /// How long the work took, without the looking afterwards.
    pub(super) fn took(&self) -> Duration {
        Duration::from_nanos(self.finished.load(Ordering::Acquire))
    }

    fn finish(&self) {
        self.finished.fetch_max(self.now(), Ordering::AcqRel);
    }

    /// No more are put: whoever waits for more than have been put waits for nothing.
    pub(super) fn all_are_produced(&self, sent: u64) {
        if self.expected() == u64::MAX {
            self.expected.store(sent, Ordering::Release);
        }
        self.last_sign.fetch_max(self.now(), Ordering::AcqRel);
        self.end_if_all_arrived(self.ledger().arrived());
    }

    /// Nobody waits for more.
    pub(super) fn end(&self) {
        self.over.cancel();
    }

    /// Ends the load when nothing arrives any more; a message that was lost would be waited for without end.
    pub(super) async fn end_when_idle(&self) -> Infallible {
        loop {
            let last = Duration::from_nanos(self.last_sign.load(Ordering::Acquire));
            let end = last.saturating_add(self.args.idle);
            let left = end.saturating_sub(self.run.began.elapsed());
            if left.is_zero() {
                self.end();
                return std::future::pending().await;
            }
            tokio::time::sleep(left).await;
        }
    }

    fn end_if_all_arrived(&self, arrived: u64) {
        if arrived >= self.expected() {
            self.over.cancel();
        }
    }

    /// Enters what arrived together.
    fn enter(&self, arrivals: &[Option<body::Seen>]) {
        let arrived = {
            let mut ledger = self.ledger();
            for arrival in arrivals {
                ledger.enter(*arrival);
            }
            ledger.arrived()
        };
        self.last_sign.fetch_max(self.now(), Ordering::AcqRel);
        self.end_if_all_arrived(arrived);
    }

    pub(super) fn read(&self, body: &[u8]) -> Option<body::Seen> {
        body::read(body, self.run, self.args.verify)
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
            Some(duration) => self.run.began.elapsed() >= duration,
            None => put >= self.args.messages,
        }
    }

    /// Puts messages, as many under way as the window allows.
    pub(super) async fn produce(&self, client: Client, index: u32) -> Result<Seen, Failure> {
        let session = client.session().await?;
        let queue = self.queue(index);
        let mut bodies = Bodies::new(self.run, index, self.args.size);
        let mut seen = Seen::default();
        let mut under_way: VecDeque<Under> = VecDeque::new();
        let each = u64::from(self.args.syncpoint.unwrap_or(1));
        let window = (u64::from(self.args.window) / each).max(1);
        let pause = self.args.rate.map(|rate| {
            let share = f64::from(rate) / f64::from(self.args.clients);
            Duration::from_secs_f64(1.0 / share).saturating_mul(self.args.syncpoint.unwrap_or(1))
        });
        let mut due = self.run.began;
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
        self.finish();
        session.close().await?;
        seen.sent = seen.tally.messages;
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

    /// Gets messages until all have arrived or no more come, and settles what came together.
    pub(super) async fn consume(&self, client: Client, index: u32) -> Result<Seen, Failure> {
        let session = client.session().await?;
        let mut consumer = self.consumer(&session, self.queue(index)).await?;
        let mut seen = Seen::default();
        let mut settling: VecDeque<Answer<()>> = VecDeque::new();
        let mut arrivals = Vec::new();
        loop {
            let first = tokio::select! {
                next = consumer.next() => next?,
                () = self.over.cancelled() => break,
            };
            arrivals.clear();
            arrivals.push(self.arrival(&mut seen, &first));
            let mut together = vec![first.delivery];
            while let Some(next) = consumer.try_next()? {
                arrivals.push(self.arrival(&mut seen, &next));
                together.push(next.delivery);
            }
            settling.push_back(consumer.send_commit(together, None).await?);
            if settling.len() > SETTLING_MAX
                && let Some(oldest) = settling.pop_front()
            {
                settled(oldest, &mut seen.tally).await?;
            }
            self.enter(&arrivals);
        }
        for answer in settling {
            settled(answer, &mut seen.tally).await?;
        }
        self.finish();
        // What is on its way goes back to the queue, where it is looked at.
        consumer.stop().await?;
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

    /// Reads and counts a message that arrived.
    fn arrival(&self, seen: &mut Seen, delivered: &Delivered) -> Option<body::Seen> {
        let read = self.read(&delivered.message.data);
        seen.tally.messages = seen.tally.messages.saturating_add(1);
        if let Some(age) = read.and_then(|read| read.age) {
            seen.tally.took(age);
        }
        read
    }

    fn reply_queue(&self, index: u32) -> String {
        reply_queue_name(&self.args, index)
    }

    /// Sends requests, one at a time, and waits for their replies. One that does not come ends it.
    pub(super) async fn request(&self, client: Client, index: u32) -> Result<Seen, Failure> {
        let session = client.session().await?;
        let reply_queue = self.reply_queue(index);
        let mut replies = self.consumer(&session, reply_queue.clone()).await?;
        let mut bodies = Bodies::new(self.run, index, self.args.size);
        let mut seen = Seen::default();
        let mut settling: VecDeque<Answer<()>> = VecDeque::new();
        let mut is_lost = false;
        while !is_lost && !self.is_over(seen.sent) {
            let mut request = self.put_of(&self.queue(index), bodies.next());
            if let Some(descriptor) = request.message.as_mut().and_then(|m| m.descriptor.as_mut()) {
                descriptor.message_type = ferrymq_types::MessageType::REQUEST.get();
                descriptor.reply_to_queue.clone_from(&reply_queue);
            }
            let put = session.send_put_brief(request, None).await?;
            // A copy of an earlier reply, or a ruin, is none to this request.
            let mut is_answered = false;
            while !is_answered && !is_lost {
                let Ok(reply) = tokio::time::timeout(self.args.idle, replies.next()).await else {
                    is_lost = true;
                    continue;
                };
                let reply = reply?;
                let read = self.arrival(&mut seen, &reply);
                is_answered = read.is_some_and(|r| r.is(self.run, index, seen.sent));
                self.enter(&[read]);
                let settle = replies.send_commit(vec![reply.delivery], None);
                settling.push_back(settle.await?);
            }
            // The reply is the proof that the request was put.
            put.wait().await?;
            while settling.len() > SETTLING_MAX
                && let Some(oldest) = settling.pop_front()
            {
                settled(oldest, &mut seen.tally).await?;
            }
            seen.sent = seen.sent.saturating_add(1);
        }
        for answer in settling {
            settled(answer, &mut seen.tally).await?;
        }
        self.finish();
        replies.stop().await?;
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
        requests.stop().await?;
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

/// The queue of the replies to a client.
pub(super) fn reply_queue_name(args: &BenchArgs, index: u32) -> String {
    format!("{}.REPLY.{}", args.queue, index.saturating_add(1))
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
