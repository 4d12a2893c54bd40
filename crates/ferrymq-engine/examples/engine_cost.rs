//! What a message costs in the engine: bytes of memory while it rests, and microseconds of CPU of its put and of its get, at
//! several depths. `cargo run --release -p ferrymq-engine --example engine_cost [DEPTH...] [Generated|Expiring|Random|Correlated...]`;
//! depths of 0, 100,000 and 10,000,000, and ids of all kinds, unless said otherwise.
#![allow(clippy::print_stdout, reason = "it prints its findings")]

use std::alloc::{GlobalAlloc, Layout, System};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use bytes::Bytes;
use ferrymq_engine::{
    ConnectionId, Context, Effect, Engine, EngineBuilder, Fetched, Get, Input, Limits, MatchIds,
    Object, ObjectName, Put, Reply, Request, RequestId, Settlement, Source,
};
use ferrymq_objects::{
    Enabled, LocalQueue, Queue, QueueBase, QueueManager, QueueManagerAttributes,
};
use ferrymq_types::{
    BodyId, CorrelationId, Epoch, MessageDescriptor, MessageId, MessageRow, ObjectId, Persistence,
    Position, Priority, QueueManagerId, QueueManagerName, QueueName, Sequence, Timestamp,
    UnitOfWorkId,
};

static ALLOCATED: AtomicU64 = AtomicU64::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);

/// The system's allocator, counting.
struct Counting;

#[allow(
    unsafe_code,
    reason = "an allocator is unsafe to implement; this one passes everything on"
)]
// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATED.fetch_add(layout.size() as u64, Ordering::Relaxed);
        ALLOCATIONS.fetch_add(1, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        ALLOCATED.fetch_sub(layout.size() as u64, Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// Puts or gets of one measurement.
const ROUNDS: u64 = 200_000;

const BODY: &[u8] = &[7; 1024];

/// CPU time of this thread, in nanoseconds.
fn cpu() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = text.split_whitespace().next();
    first.and_then(|ns| ns.parse().ok()).unwrap_or_default()
}

fn orders() -> QueueName {
    QueueName::new("ORDERS").expect("a name")
}

fn definitions() -> QueueManager {
    let name = orders();
    let queue = Queue::Local(LocalQueue {
        base: QueueBase {
            id: ObjectId::new(1),
            name: name.clone(),
            description: String::new(),
            put: Enabled::Yes,
            default_priority: Priority::default(),
            default_persistence: Persistence::Persistent,
            altered: Timestamp::ZERO,
        },
        max_depth: 999_999_999,
        ..LocalQueue::with_defaults(name.clone())
    });
    QueueManager {
        attributes: QueueManagerAttributes::with_defaults(
            QueueManagerName::new("QM1").expect("a name"),
            QueueManagerId::new([1; 16]),
            Timestamp::ZERO,
        ),
        queues: BTreeMap::from([(name, queue)]),
        channels: BTreeMap::new(),
        processes: BTreeMap::new(),
        channel_rules: BTreeMap::new(),
        node: 1,
    }
}

/// How the ids of messages are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ids {
    Generated,
    /// Generated, of messages that expire.
    Expiring,
    Random,
    /// Random, and a correlation id.
    Correlated,
}

fn random_id(n: u64) -> [u8; 24] {
    let mut id = [0; 24];
    let mut x = n.wrapping_add(1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for chunk in id.chunks_mut(8) {
        x ^= x >> 29;
        x = x.wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x ^= x >> 32;
        chunk.copy_from_slice(&x.to_be_bytes());
    }
    id
}

fn descriptor(ids: Ids, n: u64) -> MessageDescriptor {
    let mut d = MessageDescriptor {
        user_identifier: "app".to_owned(),
        put_application_name: "engine_cost".to_owned(),
        ..MessageDescriptor::default()
    };
    match ids {
        Ids::Generated => {}
        Ids::Expiring => d.expires_at = Some(Timestamp::from_millis(n.saturating_add(1 << 41))),
        Ids::Random => d.message_id = MessageId::new(random_id(n)),
        Ids::Correlated => {
            d.message_id = MessageId::new(random_id(n));
            d.correlation_id = CorrelationId::new(random_id(!n));
        }
    }
    d
}

/// An engine with so many messages on its queue, as recovery builds it.
fn recovered(depth: u64, ids: Ids) -> Engine {
    let (epoch, now) = (Epoch::new(2), Timestamp::from_millis(1));
    let mut builder = EngineBuilder::new(Arc::new(definitions()), epoch, Position::new(1), now);
    builder.limits(Limits {
        cache_bytes_max: 64 * 1024 * 1024,
        ..Limits::default()
    });
    let name = QueueManagerName::new("QM1").expect("a name");
    let mut row = MessageRow {
        descriptor: MessageDescriptor::default(),
        header: Bytes::new(),
        body: BodyId::ZERO,
        body_length: 1024,
    };
    row.descriptor.persistence = Persistence::Persistent;
    for n in 1..=depth {
        row.body = BodyId::new(n);
        let of_ids = descriptor(ids, n);
        row.descriptor.message_id = match ids {
            Ids::Generated | Ids::Expiring => MessageId::generate(&name, Epoch::new(1), n),
            Ids::Random | Ids::Correlated => of_ids.message_id,
        };
        row.descriptor.correlation_id = of_ids.correlation_id;
        row.descriptor.expires_at = of_ids.expires_at;
        builder.message(ObjectId::new(1), Sequence::new(n), &row, 0);
    }
    builder.finish(&mut Vec::new())
}

struct Bench {
    engine: Engine,
    effects: Vec<Effect>,
    next: u64,
    body: Bytes,
}

impl Bench {
    fn ask(&mut self, request: Request) -> Reply {
        self.next = self.next.wrapping_add(1);
        let input = Input::Requests {
            connection: ConnectionId(1),
            requests: vec![(RequestId(self.next), request)],
        };
        let mut input = Some(input);
        loop {
            let now = Timestamp::from_millis(2);
            if let Some(input) = input.take() {
                self.engine.step(now, input, &mut self.effects);
            }
            for effect in std::mem::take(&mut self.effects) {
                match effect {
                    Effect::Reply { reply, .. } => return reply.expect("no refusal"),
                    Effect::Fetch {
                        fetch, sequence, ..
                    } => {
                        let row = MessageRow {
                            descriptor: MessageDescriptor {
                                persistence: Persistence::Persistent,
                                ..MessageDescriptor::default()
                            },
                            header: Bytes::new(),
                            body: BodyId::new(sequence.get()),
                            body_length: 1024,
                        };
                        let result = Fetched::Message(Box::new(row), self.body.clone());
                        input = Some(Input::Fetched { fetch, result });
                    }
                    Effect::ReadRows { .. }
                    | Effect::ReadAhead { .. }
                    | Effect::Spill { .. }
                    | Effect::Forget { .. }
                    | Effect::Write(_)
                    | Effect::Report { .. } => {}
                }
            }
        }
    }

    fn put(&mut self, persistence: Persistence, ids: Ids, syncpoint: Option<UnitOfWorkId>) {
        let put = Put {
            object: Object::Named(ObjectName::local(orders())),
            descriptor: descriptor(ids, self.next | 1 << 40),
            priority: None,
            persistence: Some(persistence),
            header: Bytes::new(),
            body: self.body.clone(),
            context: Context::Default,
            options: ferrymq_engine::PutOptions::default(),
            syncpoint,
            logical_order: false,
            token: None,
        };
        self.ask(Request::Put(Box::new(put)));
    }

    fn get(&mut self, matching: MatchIds, syncpoint: Option<UnitOfWorkId>) -> Sequence {
        let get = Get {
            matching,
            syncpoint,
            ..Get::of(Source::Queue(orders()))
        };
        match self.ask(Request::Get(get)) {
            Reply::Got(got) => got.sequence,
            other => panic!("{other:?}"),
        }
    }
}

/// Nanoseconds and allocations of each of so many rounds.
fn measure(rounds: u64, mut round: impl FnMut(u64)) -> (u64, u64) {
    let (before, allocations) = (cpu(), ALLOCATIONS.load(Ordering::Relaxed));
    for n in 0..rounds {
        round(n);
    }
    let allocations = ALLOCATIONS
        .load(Ordering::Relaxed)
        .wrapping_sub(allocations);
    let ns = cpu().wrapping_sub(before);
    (ns / rounds.max(1), allocations / rounds.max(1))
}

fn at(depth: u64, ids: Ids) {
    let (before, cpu_before) = (ALLOCATED.load(Ordering::Relaxed), cpu());
    let engine = recovered(depth, ids);
    if let Some(bytes) = ALLOCATED
        .load(Ordering::Relaxed)
        .wrapping_sub(before)
        .checked_div(depth)
    {
        let ns = cpu().wrapping_sub(cpu_before) / depth;
        println!("{depth:>10} {ids:?}: {bytes} bytes a message; recovery {ns} ns each");
    }
    let mut b = Bench {
        engine,
        effects: Vec::new(),
        next: 0,
        body: Bytes::from_static(BODY),
    };
    for persistence in [Persistence::Persistent, Persistence::NonPersistent] {
        let (put, allocations_put) = measure(ROUNDS, |_| b.put(persistence, ids, None));
        let (get, allocations_get) = measure(ROUNDS, |_| {
            b.get(MatchIds::default(), None);
        });
        println!(
            "{depth:>10} {ids:?} {persistence:?}: put {put} ns, {allocations_put} allocations; get {get} ns, {allocations_get} allocations"
        );
    }
    let (both, _) = measure(ROUNDS, |n| {
        let unit = UnitOfWorkId::new((u128::from(n) | 1 << 65).to_be_bytes());
        b.ask(Request::Begin { id: unit });
        b.put(Persistence::Persistent, ids, Some(unit));
        b.ask(Request::Commit { id: unit });
    });
    let (get, _) = measure(ROUNDS, |n| {
        let unit = UnitOfWorkId::new((u128::from(n) | 1 << 64).to_be_bytes());
        b.ask(Request::Begin { id: unit });
        b.get(MatchIds::default(), Some(unit));
        b.ask(Request::Commit { id: unit });
    });
    let consumer = UnitOfWorkId::new([1; 16]);
    b.ask(Request::Begin { id: consumer });
    for _ in 0..ROUNDS {
        b.put(Persistence::Persistent, ids, None);
    }
    let (consumed, _) = measure(ROUNDS, |_| {
        let sequence = b.get(MatchIds::default(), Some(consumer));
        b.ask(Request::Settle {
            of: consumer,
            messages: vec![sequence],
            settlement: Settlement::Commit(None),
        });
    });
    println!(
        "{depth:>10} {ids:?}: begin, put, commit {both} ns; begin, get, commit {get} ns; get, settle {consumed} ns"
    );
}

fn main() {
    let (mut depths, mut only) = (Vec::new(), Vec::new());
    for word in std::env::args().skip(1) {
        match word.parse::<u64>() {
            Ok(depth) => depths.push(depth),
            Err(_) => only.push(word),
        }
    }
    if depths.is_empty() {
        depths = vec![0, 100_000, 10_000_000];
    }
    for depth in depths {
        for ids in [Ids::Generated, Ids::Expiring, Ids::Random, Ids::Correlated] {
            if only.is_empty() || only.contains(&format!("{ids:?}")) {
                at(depth, ids);
            }
        }
    }
}
