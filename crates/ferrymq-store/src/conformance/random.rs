//! Random write sets, checkpoints and crashes against the model.

use std::collections::BTreeMap;

use bytes::Bytes;

use ferrymq_types::{
    AccountEntry, AccountReason, BatchInDoubt, BodyId, Change, ChannelName, MessageId, ObjectId,
    QueueManagerId, QueueManagerName, QueueName, QueueRow, ReasonCode, ReceiverRow, SenderRow,
    Sequence, Timestamp, UnitOfWorkId, UnitOfWorkOutcome, UnitOfWorkRow,
};

use crate::{CheckpointDone, Job, memory::Random};

use super::{Factory, Harness, row_of};

/// Runs of random write sets with checkpoints that take their time, syncs, and crashes at every point.
///
/// The environment variable `FERRYMQ_SEED` runs one seed.
///
/// # Panics
/// If a store is not what the model says; the seed is printed before.
pub fn random_runs_equal_the_model<F: Factory>(make: fn() -> F) {
    let one = std::env::var("FERRYMQ_SEED")
        .ok()
        .and_then(|text| text.parse().ok());
    let seeds: Vec<u64> = one.map_or_else(|| (1..=12).collect(), |seed| vec![seed]);
    for seed in seeds {
        let run = std::panic::AssertUnwindSafe(|| run(make, seed));
        if let Err(panic) = std::panic::catch_unwind(run) {
            tracing::error!(seed, "FERRYMQ_SEED={seed} repeats this failure");
            std::panic::resume_unwind(Box::new(match panic.downcast::<String>() {
                Ok(text) => format!("FERRYMQ_SEED={seed}: {text}"),
                Err(_) => format!("FERRYMQ_SEED={seed}"),
            }));
        }
    }
}

enum Checkpoint<F: Factory> {
    None,
    Begun(Job<F::Log, F::Rows>),
    Written(CheckpointDone),
}

fn run<F: Factory>(make: fn() -> F, seed: u64) {
    let mut random = Random::new(seed);
    let mut harness = Harness::new(make());
    let mut writer = Writer::default();
    let mut checkpoint: Checkpoint<F> = Checkpoint::None;
    for _ in 0..160 {
        match random.below(20) {
            0..=12 => {
                let sets = 1 + random.below(3);
                // Some are larger than a record.
                let max = harness.bytes_max().min(6 * 1024 * 1024) as u64;
                let mut all = Vec::new();
                for _ in 0..sets {
                    all.push(writer.changes(&mut random, max));
                }
                // A full journal makes room by a checkpoint of its own, so none may be under way.
                let usage = harness.store.pressure();
                if usage.fraction() > 0.5 {
                    checkpoint = finish(&mut harness, checkpoint);
                    harness.checkpoint();
                }
                harness.append_all(all);
            }
            13..=14 => harness.sync(),
            15..=17 => {
                checkpoint = match checkpoint {
                    Checkpoint::None => match harness.store.begin_checkpoint().expect("begin") {
                        Some(job) => Checkpoint::Begun(job),
                        None => Checkpoint::None,
                    },
                    Checkpoint::Begun(job) if random.below(4) == 0 => {
                        crash_in(&mut harness, job, &mut random);
                        writer = Writer::of(&harness, &writer);
                        Checkpoint::None
                    }
                    Checkpoint::Begun(job) => {
                        harness.set_durable(job.position());
                        Checkpoint::Written(job.run(&mut |_| {}))
                    }
                    Checkpoint::Written(done) => {
                        harness.store.finish_checkpoint(done).expect("finish");
                        Checkpoint::None
                    }
                };
            }
            18 => harness.check(),
            _ => {
                checkpoint = Checkpoint::None;
                harness.crash(random.number());
                writer = Writer::of(&harness, &writer);
            }
        }
    }
    finish(&mut harness, checkpoint);
    harness.checkpoint();
    harness.check();
    harness.crash(seed);
}

fn finish<F: Factory>(harness: &mut Harness<F>, checkpoint: Checkpoint<F>) -> Checkpoint<F> {
    let done = match checkpoint {
        Checkpoint::None => return Checkpoint::None,
        Checkpoint::Begun(job) => {
            harness.set_durable(job.position());
            job.run(&mut |_| {})
        }
        Checkpoint::Written(done) => done,
    };
    harness.store.finish_checkpoint(done).expect("finish");
    Checkpoint::None
}

/// The power fails at one of the batches of a checkpoint, or right behind it.
fn crash_in<F: Factory>(harness: &mut Harness<F>, job: Job<F::Log, F::Rows>, random: &mut Random) {
    let (at, seed) = (random.below(6), random.number());
    let mut batch = 0;
    let factory = &mut harness.factory;
    let done = job.run(&mut |_| {
        if batch == at {
            factory.crash(seed);
        }
        batch += 1;
    });
    drop(done);
    if batch <= at {
        harness.factory.crash(seed);
    }
    harness.reopen();
}

/// Makes write sets as an engine does: a body goes with the last row that names it.
#[derive(Debug, Default)]
struct Writer {
    next: u64,
    /// Messages and their bodies.
    messages: BTreeMap<(u64, u64), u64>,
    bodies: BTreeMap<u64, Bytes>,
}

impl Writer {
    /// What the model holds after a crash. Numbers go on, as counters make sure.
    fn of<F: Factory>(harness: &Harness<F>, before: &Self) -> Self {
        let messages = &harness.model.messages;
        Self {
            next: before.next,
            messages: messages
                .iter()
                .map(|((queue, sequence), (row, _))| {
                    ((queue.get(), sequence.get()), row.body.get())
                })
                .collect(),
            bodies: harness
                .model
                .bodies
                .iter()
                .map(|(id, body)| (id.get(), body.clone()))
                .collect(),
        }
    }

    fn any(&self, random: &mut Random) -> Option<((u64, u64), u64)> {
        let index = random.below(self.messages.len() as u64);
        let index = usize::try_from(index).expect("small");
        self.messages.iter().nth(index).map(|(k, v)| (*k, *v))
    }

    fn set(&mut self, queue: u64, sequence: u64, body: u64) -> Change {
        self.messages.insert((queue, sequence), body);
        Change::SetMessage {
            queue: ObjectId::new(queue),
            sequence: Sequence::new(sequence),
            row: Box::new(row_of(BodyId::new(body), &self.bodies[&body])),
        }
    }

    fn delete(&mut self, (queue, sequence): (u64, u64), body: u64, out: &mut Vec<Change>) {
        self.messages.remove(&(queue, sequence));
        out.push(Change::DeleteMessage {
            queue: ObjectId::new(queue),
            sequence: Sequence::new(sequence),
        });
        if !self.messages.values().any(|b| *b == body) {
            self.bodies.remove(&body);
            out.push(Change::DeleteBody {
                id: BodyId::new(body),
            });
        }
    }

    fn put(&mut self, random: &mut Random, max: u64, out: &mut Vec<Change>) {
        self.next += 1;
        let id = self.next;
        let length = match random.below(12) {
            0 => random.below(max / 3),
            1 => 0,
            _ => random.below(400),
        };
        let byte = u8::try_from(id % 256).expect("below 256");
        let body = Bytes::from(vec![byte; usize::try_from(length).expect("small")]);
        self.bodies.insert(id, body.clone());
        let queue = 1 + random.below(3);
        out.push(self.set(queue, id, id));
        out.push(Change::SetBody {
            id: BodyId::new(id),
            body,
        });
    }

    fn changes(&mut self, random: &mut Random, max: u64) -> Vec<Change> {
        let mut out = Vec::new();
        match random.below(16) {
            0..=5 => self.put(random, max, &mut out),
            6..=9 => {
                if let Some((key, body)) = self.any(random) {
                    self.delete(key, body, &mut out);
                }
            }
            10 => {
                // A move, or a copy.
                if let Some((key, body)) = self.any(random) {
                    self.next += 1;
                    let (queue, sequence) = (1 + random.below(3), self.next);
                    out.push(self.set(queue, sequence, body));
                    if random.below(2) == 0 {
                        self.delete(key, body, &mut out);
                    }
                }
            }
            11 => {
                if let Some(((queue, sequence), _)) = self.any(random) {
                    out.push(Change::SetDeliveryCount {
                        queue: ObjectId::new(queue),
                        sequence: Sequence::new(sequence),
                        count: u32::try_from(random.below(9)).expect("below 9"),
                    });
                }
            }
            12 => out.push(channel(random)),
            13 => out.push(unit_of_work(random)),
            14 => out.push(account(random)),
            _ => out.push(queue(random, self.next)),
        }
        out
    }
}

fn channel(random: &mut Random) -> Change {
    let name = ["A", "A.B", "B"][usize::try_from(random.below(3)).expect("below 3")];
    let channel = ChannelName::new(name).expect("a name");
    let number = random.below(1000);
    match random.below(6) {
        0 => Change::DeleteChannel { channel },
        1 => Change::SetChannelStopped {
            channel,
            stopped: number.is_multiple_of(2),
        },
        2 | 3 => Change::SetSender(Box::new(SenderRow {
            channel,
            transmission_queue: ObjectId::new(1),
            generation: 1,
            last_confirmed: number,
            last_batch: UnitOfWorkId::NONE,
            in_doubt: vec![BatchInDoubt {
                id: UnitOfWorkId::new([3; 16]),
                first_number: number + 1,
                last_number: number + 2,
                messages: vec![Sequence::new(number), Sequence::new(number + 1)],
            }],
            partner: None,
            start: 0,
            reset_to: None,
        })),
        _ => Change::SetReceiver(Box::new(ReceiverRow {
            channel,
            sender: QueueManagerId::new([u8::try_from(number % 4).expect("below 4"); 16]),
            sender_name: QueueManagerName::new("QM2").expect("a name"),
            generation: 1,
            last_committed: number,
            last_batch: UnitOfWorkId::new([4; 16]),
            reset_to: None,
        })),
    }
}

fn unit_of_work(random: &mut Random) -> Change {
    let id = UnitOfWorkId::new([u8::try_from(random.below(20)).expect("below 20"); 16]);
    if random.below(2) == 0 {
        return Change::DeleteUnitOfWork { id };
    }
    Change::SetUnitOfWork(UnitOfWorkRow {
        id,
        outcome: UnitOfWorkOutcome::Committed,
        time: Timestamp::from_millis(random.below(1000)),
        message_id: Some(MessageId::new([5; 24])),
    })
}

fn account(random: &mut Random) -> Change {
    let number = random.below(30);
    if random.below(3) == 0 {
        return Change::DeleteAccount { number };
    }
    Change::SetAccount(Box::new(AccountEntry {
        number,
        message_id: MessageId::new([6; 24]),
        from: QueueName::new("Q").expect("a name"),
        to: None,
        reason: AccountReason::Discarded(ReasonCode::Q_FULL),
        who: "A.B".to_owned(),
        time: Timestamp::from_millis(random.below(1000)),
    }))
}

fn queue(random: &mut Random, next: u64) -> Change {
    let queue = ObjectId::new(10 + random.below(5));
    match random.below(3) {
        0 => Change::DeleteQueue { queue },
        1 => Change::SetQueue {
            queue,
            row: QueueRow {
                name: QueueName::new("Q").expect("a name"),
                closed: random.below(2) == 0,
                trigger_used: (random.below(2) == 0).then(|| Timestamp::from_millis(next)),
                definition: None,
            },
        },
        _ => Change::SetCounters {
            sequence: Sequence::new(next + 100),
            body: BodyId::new(next + 100),
        },
    }
}
