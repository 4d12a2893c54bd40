//! The suite, a function per rule.

use bytes::Bytes;

use ferrymq_types::{
    BodyId, Change, ChannelName, Epoch, ObjectId, Position, QueueManagerId, QueueManagerName,
    QueueName, QueueRow, ReceiverRow, SenderRow, Sequence, UnitOfWorkId, WriteSet,
};

use crate::{LogSync as _, RowStore as _, StoreError, Table};

use super::{Factory, Harness, message, row_of};

const Q1: u64 = 1;
const Q2: u64 = 2;

fn delete(queue: u64, n: u64) -> Vec<Change> {
    vec![
        Change::DeleteMessage {
            queue: ObjectId::new(queue),
            sequence: Sequence::new(n),
        },
        Change::DeleteBody { id: BodyId::new(n) },
    ]
}

fn count_of(queue: u64, n: u64, count: u32) -> Vec<Change> {
    vec![Change::SetDeliveryCount {
        queue: ObjectId::new(queue),
        sequence: Sequence::new(n),
        count,
    }]
}

fn channel(name: &str) -> ChannelName {
    ChannelName::new(name).expect("a name")
}

fn receiver(name: &str, sender: u8, last_committed: u64) -> Vec<Change> {
    vec![Change::SetReceiver(Box::new(ReceiverRow {
        channel: channel(name),
        sender: QueueManagerId::new([sender; 16]),
        sender_name: QueueManagerName::new("QM2").expect("a name"),
        generation: 1,
        last_committed,
        last_batch: UnitOfWorkId::new([1; 16]),
        reset_to: None,
    }))]
}

fn sender(name: &str, last_confirmed: u64) -> Vec<Change> {
    vec![Change::SetSender(Box::new(SenderRow {
        channel: channel(name),
        transmission_queue: ObjectId::new(Q1),
        generation: 1,
        last_confirmed,
        last_batch: UnitOfWorkId::NONE,
        in_doubt: Vec::new(),
        partner: None,
        start: 0,
        reset_to: None,
    }))]
}

/// What was synced is there after a crash; of the rest a first part may be, in order.
///
/// # Panics
/// If it is not so.
pub fn what_was_synced_survives_and_the_rest_vanishes_as_a_suffix<F: Factory>(make: fn() -> F) {
    for seed in 0..16 {
        let mut harness = Harness::new(make());
        for n in 1..=3 {
            harness.append(message(Q1, n, vec![1; 10]));
        }
        harness.sync();
        for n in 4..=9 {
            harness.append(message(Q1, n, vec![2; 10]));
        }
        harness.check();
        harness.crash(seed);
        let kept = harness.opened.position.get();
        assert!((3..=9).contains(&kept));
        // Positions go on behind what is left.
        harness.append(message(Q1, kept + 1, vec![3; 10]));
        harness.sync();
        harness.crash(seed + 100);
        assert_eq!(harness.opened.position.get(), kept + 1);
    }
}

/// A checkpoint syncs the journal up to its position before it writes a row.
///
/// # Panics
/// If it is not so.
pub fn u1_a_checkpoint_makes_its_position_durable_first<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    harness.append(message(Q1, 1, "one"));
    harness.sync();
    // A get-commit that nobody has synced: the checkpoint already counts it.
    let position = harness.append(delete(Q1, 1));
    let sync = harness.store.syncer();
    assert!(sync.durable() < position);
    let job = harness
        .store
        .begin_checkpoint()
        .expect("begin")
        .expect("a job");
    assert_eq!(job.position(), position);
    assert!(harness.store.begin_checkpoint().expect("begin").is_none());
    let done = job.run(&mut |_| {
        assert!(
            sync.durable() >= position,
            "a row is written before its write set is durable"
        );
    });
    assert!(sync.durable() >= position);
    harness.store.finish_checkpoint(done).expect("finish");
    harness.set_durable(position);
    harness.crash(1);
    assert!(harness.model.messages.is_empty());
}

/// A crash before, between and after the batches of a checkpoint; also when new rows came in the meantime.
///
/// # Panics
/// If it is not so.
pub fn u1_a_crash_at_any_moment_of_a_checkpoint_loses_nothing<F: Factory>(make: fn() -> F) {
    for batch in 0..12_u32 {
        let mut harness = Harness::new(make());
        let seed = u64::from(batch) * 7;
        for n in 1..=6 {
            harness.append(message(Q1, n, vec![1; 300]));
        }
        harness.checkpoint();
        for n in 7..=12 {
            harness.append(message(Q1, n, vec![2; 300]));
        }
        for n in [2, 4, 8] {
            harness.append(delete(Q1, n));
        }
        harness.append(count_of(Q1, 5, 3));
        harness.sync();
        let job = harness
            .store
            .begin_checkpoint()
            .expect("begin")
            .expect("a job");
        harness.append(message(Q1, 13, "young"));
        harness.append(delete(Q1, 1));
        harness.append(delete(Q1, 9));
        harness.sync();
        let mut seen = 0;
        let factory = &mut harness.factory;
        let done = job.run(&mut |_| {
            if seen == batch {
                factory.crash(seed);
            }
            seen += 1;
        });
        if seen > batch {
            // Whatever came after was done by a dead process.
            drop(done);
            harness.reopen();
        } else {
            harness.store.finish_checkpoint(done).expect("finish");
            harness.check();
            harness.crash(seed);
        }
        harness.checkpoint();
        harness.check();
        harness.crash(seed + 1);
        assert_eq!(harness.model.messages.len(), 8);
    }
}

/// The rows of a message that was consumed before its checkpoint are never written.
///
/// # Panics
/// If it is not so.
pub fn u2_a_message_put_and_deleted_between_checkpoints_never_reaches_the_rows<F: Factory>(
    make: fn() -> F,
) {
    let mut harness = Harness::new(make());
    for n in 1..=20 {
        harness.append(message(Q1, n, vec![1; 100]));
        harness.append(count_of(Q1, n, 1));
        if n != 7 {
            harness.append(delete(Q1, n));
        }
    }
    let job = harness
        .store
        .begin_checkpoint()
        .expect("begin")
        .expect("a job");
    let mut bytes = 0;
    let done = job.run(&mut |batch| bytes += batch);
    harness.store.finish_checkpoint(done).expect("finish");
    assert!(bytes < 1000, "{bytes} bytes for one message of 100");
    assert_eq!(harness.count(Table::Messages), 1);
    assert_eq!(harness.count(Table::DeliveryCounts), 1);
    assert_eq!(harness.count(Table::Bodies), 1);
    harness.check();
}

/// Rows of an earlier checkpoint are changed and deleted by a later one.
///
/// # Panics
/// If it is not so.
pub fn u2_deletions_and_changes_of_old_rows_reach_the_rows<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    for n in 1..=5 {
        harness.append(message(Q1, n, vec![1; 100]));
    }
    harness.checkpoint();
    assert_eq!(harness.count(Table::Messages), 5);
    harness.append(delete(Q1, 1));
    let body = Bytes::from(vec![1; 100]);
    let mut row = row_of(BodyId::new(2), &body);
    row.header = Bytes::from_static(b"a header");
    harness.append(vec![Change::SetMessage {
        queue: ObjectId::new(Q1),
        sequence: Sequence::new(2),
        row: Box::new(row),
    }]);
    harness.check();
    harness.checkpoint();
    assert_eq!(harness.count(Table::Messages), 4);
    assert_eq!(harness.count(Table::Bodies), 4);
    // The journal is recycled: only the rows can tell.
    harness.crash(5);
    for n in 2..=5 {
        harness.append(delete(Q1, n));
    }
    harness.checkpoint();
    assert_eq!(harness.count(Table::Messages), 0);
    assert_eq!(harness.count(Table::Bodies), 0);
    harness.crash(6);
    assert!(harness.model.messages.is_empty());
}

/// A body outlives the row that brought it as long as another names it.
///
/// # Panics
/// If it is not so.
pub fn u8_a_body_that_is_shared_or_moved_survives<F: Factory>(make: fn() -> F) {
    let body = Bytes::from(vec![9; 500]);
    let also = |queue: u64| Change::SetMessage {
        queue: ObjectId::new(queue),
        sequence: Sequence::new(1),
        row: Box::new(row_of(BodyId::new(1), &body)),
    };
    let gone = |queue: u64| Change::DeleteMessage {
        queue: ObjectId::new(queue),
        sequence: Sequence::new(1),
    };
    // With and without a checkpoint between each two steps.
    for checkpoints in 0..16_u32 {
        let mut harness = Harness::new(make());
        let steps = [
            message(Q1, 1, body.clone()),
            // A move to another queue: one write set, the body goes with it.
            vec![gone(Q1), also(Q2)],
            // A copy, as a publication makes it.
            vec![also(Q1)],
            vec![gone(Q2)],
        ];
        for (step, changes) in steps.into_iter().enumerate() {
            harness.append(changes);
            if checkpoints & (1 << step) != 0 {
                harness.checkpoint();
            }
            harness.check();
        }
        harness.sync();
        harness.crash(u64::from(checkpoints));
        assert_eq!(harness.model.bodies.len(), 1);
        harness.append(vec![gone(Q1), Change::DeleteBody { id: BodyId::new(1) }]);
        harness.checkpoint();
        harness.check();
        assert_eq!(harness.count(Table::Bodies), 0);
    }
}

/// A reader that was made once finds every body in the journal, under a checkpoint, and in the rows, while segments are reused.
///
/// # Panics
/// If it is not so.
pub fn u9_a_body_is_found_wherever_a_checkpoint_moves_it<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    let reader = harness.store.reader();
    let fetch = |n: u64| {
        reader
            .fetch(ObjectId::new(Q1), Sequence::new(n))
            .expect("fetch")
            .map(|(_, body)| body)
    };
    let body = |n: u64| {
        let byte = u8::try_from(n % 251).expect("below 251");
        Bytes::from(vec![byte; 2000])
    };
    for n in 1..=120 {
        harness.append(message(Q1, n, body(n)));
        if n % 3 != 0 {
            harness.append(delete(Q1, n));
        }
        if n % 10 == 0 {
            let job = harness
                .store
                .begin_checkpoint()
                .expect("begin")
                .expect("a job");
            harness.set_durable(job.position());
            assert_eq!(fetch(3), Some(body(3)));
            let done = job.run(&mut |_| assert_eq!(fetch(6), Some(body(6))));
            assert_eq!(fetch(n / 3 * 3), Some(body(n / 3 * 3)));
            harness.store.finish_checkpoint(done).expect("finish");
        }
        assert_eq!(fetch(3.min(n)), (n >= 3).then(|| body(3)));
    }
    harness.check();
    harness.crash(3);
}

/// Epochs rise from 1 by one with every opening.
///
/// # Panics
/// If it is not so.
pub fn u10_every_run_has_an_epoch_of_its_own<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    assert_eq!(harness.opened.epoch, Epoch::new(1));
    for n in 2..6 {
        harness.append(message(Q1, n, "x"));
        harness.crash(n);
        assert_eq!(harness.opened.epoch, Epoch::new(n));
        if n == 3 {
            harness.checkpoint();
        }
    }
}

/// Values that are set again and again, across checkpoints and crashes, are those that were set last.
///
/// # Panics
/// If it is not so.
pub fn u13_rows_are_absolute_values<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    harness.append(message(Q1, 1, "x"));
    for n in 1..=12_u32 {
        let number = u64::from(n);
        harness.append_all(vec![
            count_of(Q1, 1, n),
            sender("A.TO.B", number),
            receiver("B.TO.A", 1, number),
            receiver("B.TO.A", 2, number * 2),
            vec![
                Change::SetQueue {
                    queue: ObjectId::new(Q1),
                    row: QueueRow {
                        name: QueueName::new("Q").expect("a name"),
                        closed: n % 2 == 0,
                        trigger_used: None,
                        definition: None,
                    },
                },
                Change::SetCounters {
                    sequence: Sequence::new(number * 10),
                    body: BodyId::new(number * 20),
                },
                Change::SetChannelStopped {
                    channel: channel("A.TO.B"),
                    stopped: n % 3 == 0,
                },
            ],
        ]);
        match n % 4 {
            1 => harness.checkpoint(),
            2 => {
                harness.sync();
                harness.crash(number);
            }
            3 => {
                // The rows are newer than the checkpoint that the guard names: replay comes over them.
                let job = harness
                    .store
                    .begin_checkpoint()
                    .expect("begin")
                    .expect("a job");
                harness.sync();
                let done = job.run(&mut |_| {});
                drop(done);
                harness.crash(number);
            }
            _ => {}
        }
        harness.check();
    }
    assert_eq!(harness.count(Table::Receivers), 2);
    assert_eq!(harness.count(Table::Counters), 1);
}

/// The state of a deleted channel is gone from the overlay, from under a checkpoint, and from the rows.
///
/// # Panics
/// If it is not so.
pub fn u13_a_deleted_channel_leaves_no_row_in_any_layer<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    harness.append(receiver("B.TO.A", 1, 1));
    harness.append(receiver("B.TO", 9, 1));
    harness.append(sender("B.TO.A", 1));
    harness.checkpoint();
    harness.append(receiver("B.TO.A", 2, 1));
    let job = harness
        .store
        .begin_checkpoint()
        .expect("begin")
        .expect("a job");
    harness.set_durable(job.position());
    // One more in the same record as the deletion, and one after it.
    harness.append_all(vec![
        receiver("B.TO.A", 3, 1),
        vec![
            Change::SetChannelStopped {
                channel: channel("B.TO.A"),
                stopped: true,
            },
            Change::DeleteChannel {
                channel: channel("B.TO.A"),
            },
        ],
        receiver("B.TO.A", 4, 1),
    ]);
    harness.check();
    let done = job.run(&mut |_| {});
    harness.store.finish_checkpoint(done).expect("finish");
    harness.check();
    harness.sync();
    harness.crash(1);
    harness.checkpoint();
    assert_eq!(harness.count(Table::Receivers), 2);
    assert_eq!(harness.count(Table::Senders), 0);
    harness.crash(2);
}

/// A write set that is larger than half the log is refused and leaves no trace; several that are too large together are not.
///
/// # Panics
/// If it is not so.
pub fn u20_a_write_set_larger_than_half_the_log_is_refused<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    let max = harness.bytes_max();
    let set = WriteSet {
        position: Position::new(1),
        changes: message(Q1, 1, vec![0; max]),
    };
    assert!(matches!(
        harness.store.append(&[set]),
        Err(StoreError::TooLarge { .. })
    ));
    assert_eq!(harness.store.position(), Position::ZERO);
    harness.append_all(vec![
        message(Q1, 1, vec![1; max / 2]),
        message(Q1, 2, vec![2; max / 2]),
        message(Q1, 3, vec![3; max / 2]),
    ]);
    harness.sync();
    harness.check();
    harness.crash(1);
}

/// A write set that is larger than a record goes in parts: it is read in whole, survives a crash and checkpoints in whole, and is
/// lost in whole. Segments stay as long as a part in them is needed, and no longer.
///
/// # Panics
/// If it is not so.
pub fn u20_a_write_set_larger_than_a_record_goes_in_parts<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    let large = harness.bytes_max() / 4 * 3;
    let body = |n: usize| -> Vec<u8> { (0_u8..=250).cycle().skip(n).take(large + n).collect() };
    harness.append(message(Q1, 1, "small"));
    let before = harness.append(message(Q1, 2, body(2)));
    harness.sync();
    harness.check();
    // It is younger than this checkpoint, and so are its parts.
    for seed in 1..8 {
        harness.crash(seed);
        harness.check();
    }
    harness.checkpoint();
    harness.check();
    // Not synced: a crash takes all of it, whatever of its parts reached the disk.
    for seed in 1..8 {
        harness.append(message(Q2, 3, body(3)));
        harness.crash(seed);
        harness.check();
        if harness.store.position() > before {
            harness.append(delete(Q2, 3));
        }
        harness.checkpoint();
    }
    // Several one after the other: more than the log holds at once.
    for n in 4..10 {
        harness.append_all(vec![message(Q1, n, body(4)), delete(Q1, n - 2)]);
        harness.sync();
    }
    harness.check();
    harness.crash(1);
    harness.checkpoint();
    harness.check();
}

/// Bodies of more than one chunk, in the journal and in the rows.
///
/// # Panics
/// If it is not so.
pub fn large_bodies_come_back_in_one_piece<F: Factory>(make: fn() -> F) {
    const CHUNK: usize = crate::body::CHUNK_BYTES;
    let mut harness = Harness::new(make());
    let lengths = [0, 1, CHUNK - 1, CHUNK, CHUNK + 1, 3 * CHUNK, 3 * CHUNK + 5];
    let fits = |l: &&usize| **l + 1000 < harness.bytes_max();
    let lengths: Vec<usize> = lengths.iter().filter(fits).copied().collect();
    let mut rows = 0;
    for (n, length) in (1..).zip(&lengths) {
        let body: Vec<u8> = (0_u8..=250).cycle().take(*length).collect();
        harness.append(message(Q1, n, body));
        rows += length.div_ceil(CHUNK).max(1) as u64;
    }
    harness.check();
    harness.checkpoint();
    harness.check();
    assert_eq!(harness.count(Table::Bodies), rows);
    harness.crash(1);
    for n in 1..=lengths.len() as u64 {
        harness.append(delete(Q1, n));
    }
    harness.checkpoint();
    assert_eq!(harness.count(Table::Bodies), 0);
}

/// A gap or a repetition is refused.
///
/// # Panics
/// If it is not so.
pub fn write_sets_follow_each_other_without_a_gap<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    harness.append(message(Q1, 1, "x"));
    for position in [0, 1, 3] {
        let set = WriteSet {
            position: Position::new(position),
            changes: message(Q1, 2, "y"),
        };
        assert!(matches!(
            harness.store.append(&[set]),
            Err(StoreError::Position { .. })
        ));
    }
    harness.check();
}

/// A dump equals the model, also while a checkpoint is being written, and writes nothing.
///
/// # Panics
/// If it is not so.
pub fn inv_s1_a_dump_is_of_one_moment_and_changes_nothing<F: Factory>(make: fn() -> F) {
    let mut harness = Harness::new(make());
    for n in 1..=10 {
        harness.append(message(Q1, n, vec![1; 300]));
    }
    harness.checkpoint();
    for n in 11..=20 {
        harness.append(message(Q2, n, vec![2; 300]));
        harness.append(delete(Q1, n - 10));
    }
    let job = harness
        .store
        .begin_checkpoint()
        .expect("begin")
        .expect("a job");
    harness.set_durable(job.position());
    harness.append(delete(Q2, 11));
    let mut batches = 0;
    let done = job.run(&mut |_| {
        batches += 1;
        harness.check();
    });
    assert!(batches > 3, "{batches}");
    let before = harness.store.rows().state().expect("state");
    harness.check();
    assert_eq!(harness.store.rows().state().expect("state"), before);
    harness.store.finish_checkpoint(done).expect("finish");
    harness.check();
}
