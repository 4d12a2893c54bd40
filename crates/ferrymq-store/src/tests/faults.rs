//! What the suite cannot ask of every disk: full disks, failed syncs, damage.

use ferrymq_types::{BodyId, Change, ObjectId, Position, ReasonCode, Sequence};

use crate::{
    Guard, LogSync as _, QueueManagerStore, Recovered, RowBatch, RowCounts, RowKey, RowState,
    RowStore as _, StoreError, StoreOptions, Table, compare_with_guard,
    conformance::{Harness, message},
    memory::{MemoryDisk, MemoryOptions},
};

use super::InMemory;

fn harness() -> (MemoryDisk, Harness<InMemory>) {
    let disk = MemoryDisk::new();
    (disk.clone(), Harness::new(InMemory(disk)))
}

#[test]
fn u18_a_checkpoint_on_a_full_disk_is_tried_again_when_there_is_room() {
    let (disk, mut harness) = harness();
    for n in 1..=20 {
        harness.append(message(1, n, vec![1; 300]));
    }
    harness.sync();
    disk.set_full(true);
    for _ in 0..2 {
        let job = harness.store.begin_checkpoint().unwrap().unwrap();
        let done = job.run(&mut |_| {});
        assert!(done.error().is_some_and(StoreError::is_no_space));
        let error = harness.store.finish_checkpoint(done).unwrap_err();
        assert_eq!(error.reason(), ReasonCode::STORAGE_MEDIUM_FULL);
        assert!(harness.store.wants_checkpoint());
        // The journal still serves: gets free messages.
        harness.append(vec![
            Change::DeleteMessage {
                queue: ObjectId::new(1),
                sequence: Sequence::new(5),
            },
            Change::DeleteBody { id: BodyId::new(5) },
        ]);
        harness.check();
    }
    disk.set_full(false);
    harness.checkpoint();
    assert!(!harness.store.wants_checkpoint());
    harness.check();
    harness.checkpoint();
    harness.check();
    assert_eq!(harness.count(Table::Messages), 19);
    harness.crash(1);
}

#[test]
fn u18_a_crash_between_two_attempts_loses_nothing() {
    for seed in 0..10 {
        let (disk, mut harness) = harness();
        for n in 1..=20 {
            harness.append(message(1, n, vec![1; 300]));
        }
        harness.sync();
        let job = harness.store.begin_checkpoint().unwrap().unwrap();
        let mut batches = 0;
        let done = job.run(&mut |_| {
            batches += 1;
            disk.set_full(batches == 3);
        });
        assert!(harness.store.finish_checkpoint(done).is_err());
        harness.crash(seed);
        harness.checkpoint();
        assert_eq!(harness.count(Table::Bodies), 20);
        harness.crash(seed);
    }
}

#[test]
fn u18_an_attempt_that_got_half_way_is_made_again_as_a_whole() {
    let (disk, mut harness) = harness();
    for n in 1..=20 {
        harness.append(message(1, n, vec![1; 300]));
    }
    let job = harness.store.begin_checkpoint().unwrap().unwrap();
    harness.set_durable(job.position());
    let mut batches = 0;
    let done = job.run(&mut |_| {
        batches += 1;
        disk.set_full(batches == 8);
    });
    assert!(harness.store.finish_checkpoint(done).is_err());
    disk.set_full(false);
    harness.check();
    harness.checkpoint();
    assert_eq!(harness.count(Table::Messages), 20);
    assert_eq!(harness.count(Table::Bodies), 20);
    harness.crash(1);
}

#[test]
fn u13_a_row_that_vanished_from_the_rows_is_refused_at_open() {
    let (disk, mut harness) = harness();
    for n in 1..=5 {
        harness.append(message(1, n, "x"));
    }
    harness.checkpoint();
    let rows = harness.store.rows();
    let mut batch = RowBatch::default();
    batch.delete(
        Table::Messages,
        RowKey::message(ObjectId::new(1), Sequence::new(3)),
    );
    rows.write(&batch, &rows.state().unwrap()).unwrap();
    rows.flush().unwrap();
    disk.crash(1);
    let error = QueueManagerStore::open(
        disk.open_log(MemoryOptions::default()),
        |recovered| disk.open_rows(recovered),
        StoreOptions::DEFAULTS,
        &mut |_| Ok(()),
    )
    .unwrap_err();
    let text = error.to_string();
    assert!(
        text.contains("table messages") && text.contains("it has 4 rows, 5 were written"),
        "{text}"
    );
}

#[test]
fn inv_s2_a_failed_sync_is_final_for_the_store() {
    let (disk, mut harness) = harness();
    harness.append(message(1, 1, "x"));
    disk.fail_next_sync();
    let job = harness.store.begin_checkpoint().unwrap().unwrap();
    let done = job.run(&mut |_| {});
    assert!(matches!(
        harness.store.finish_checkpoint(done),
        Err(StoreError::Io { .. })
    ));
    assert!(matches!(
        harness.store.append(&[]),
        Err(StoreError::Failed { .. })
    ));
    assert!(harness.store.begin_checkpoint().is_err());
    assert!(harness.store.syncer().sync().is_err());
}

#[test]
fn u19_the_pressure_counts_what_open_units_of_work_reserve() {
    let (_, mut harness) = harness();
    let empty = harness.store.pressure();
    assert!(empty.fraction() < 0.01);
    assert!(!harness.store.wants_checkpoint());
    harness.store.set_reserved(empty.limit);
    assert!(harness.store.pressure().fraction() >= 1.0);
    harness.store.set_reserved(0);
    let mut n = 0;
    while !harness.store.wants_checkpoint() {
        n += 1;
        harness.append(message(1, n, vec![0; 100_000]));
    }
    assert!(harness.store.pressure().fraction() >= 0.5);
    let job = harness.store.begin_checkpoint().unwrap().unwrap();
    assert!(!harness.store.wants_checkpoint() && harness.store.is_checkpoint_running());
    harness
        .store
        .finish_checkpoint(job.run(&mut |_| {}))
        .unwrap();
    assert!(harness.store.pressure().fraction() < 0.1);
}

#[test]
fn u19_batches_are_bounded_and_the_position_comes_last() {
    let (_, mut harness) = harness();
    for n in 1..=30 {
        harness.append(message(1, n, vec![1; 300]));
    }
    let last = harness.store.position();
    let job = harness.store.begin_checkpoint().unwrap().unwrap();
    let mut seen = Vec::new();
    let rows = harness.store.reader();
    let done = job.run(&mut |bytes| {
        seen.push((bytes, rows.shared.rows.state().unwrap().position));
    });
    harness.store.finish_checkpoint(done).unwrap();
    assert!(seen.len() > 10);
    assert!(seen.iter().all(|(bytes, _)| *bytes < 1100));
    let (end, before) = seen.split_last().unwrap();
    assert_eq!(end.1, last);
    assert!(before.iter().all(|(_, p)| *p == Position::ZERO));
}

#[test]
fn u12_rows_that_are_not_what_the_guard_says_are_refused() {
    let counts = |messages: u64| RowCounts::from_slice(&[messages]).unwrap();
    let state = |position: u64, messages: u64| RowState {
        position: Position::new(position),
        counts: counts(messages),
        counts_now: counts(messages),
    };
    let recovered = Recovered {
        guard: Guard {
            acknowledged: Position::new(12),
            checkpoint: Position::new(10),
            counts: counts(3),
        },
        last: Position::new(12),
        epoch: ferrymq_types::Epoch::new(1),
        cut: None,
    };
    let check = |position, messages| {
        compare_with_guard("dir", &state(position, messages), &recovered).map_err(|e| e.to_string())
    };
    assert_eq!(check(10, 3), Ok(()));
    // A crash came between the flush and the guard.
    assert_eq!(check(12, 9), Ok(()));
    for (position, messages, text) in [
        (9, 3, "holds the checkpoint at position 9"),
        (0, 0, "holds the checkpoint at position 0"),
        (10, 2, "table messages has 2 rows, the journal counted 3"),
        (13, 3, "the journal ends at 12"),
    ] {
        let error = check(position, messages).unwrap_err();
        assert!(error.contains(text) && error.starts_with("dir"), "{error}");
    }
}

#[test]
fn inv_s6_a_visitor_that_fails_ends_the_dump_with_its_error() {
    let (_, mut harness) = harness();
    for n in 1..=5 {
        harness.append(message(1, n, "x"));
    }
    let mut seen = 0;
    let result = harness.store.reader().dump(&mut |_| {
        seen += 1;
        if seen == 3 {
            return Err(StoreError::corrupt("here", None, "enough"));
        }
        Ok(())
    });
    assert!(matches!(result, Err(StoreError::Corrupt { .. })));
    assert_eq!(seen, 3);
}

#[test]
fn crash_points_of_other_crates_join_the_list() {
    crate::register_crash_points(&["channel.before_confirm", "journal.before_sync"]);
    crate::register_crash_points(&["channel.before_confirm"]);
    let all = crate::crash_points();
    let known = |name: &str| all.iter().filter(|n| **n == name).count();
    assert_eq!(known("channel.before_confirm"), 1);
    assert_eq!(known("journal.before_sync"), 1);
}
