//! Crashes, epochs, recycling.

use ferrymq_store::{LogRead as _, LogSync as _, RecordLog as _, RowCounts, StoreError};
use ferrymq_types::{Epoch, Position};

use crate::{
    Journal, JournalOptions,
    meta::Meta,
    record::{Header, Kind},
    sim::SimDisk,
};

use super::*;

#[test]
fn records_come_back_in_order_with_their_places() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    let a = journal.append(2, &[b"a", b"b"]).unwrap();
    assert_eq!((a.first.get(), a.last.get()), (1, 2));
    let c = append(&mut journal, "c");
    assert_eq!(journal.last(), Position::new(3));
    assert_eq!(journal.reader().read(&a.place).unwrap().unwrap(), "ab");
    assert_eq!(
        journal
            .reader()
            .read(&a.place.part(1, 1).unwrap())
            .unwrap()
            .unwrap(),
        "b"
    );
    journal.syncer().sync().unwrap();
    drop(journal);

    let journal = open(&disk).unwrap();
    let mut found = Vec::new();
    journal
        .replay(Position::ZERO, &mut |r| {
            found.push((r.first.get(), r.last.get(), r.payload, r.place));
            Ok(())
        })
        .unwrap();
    assert_eq!(
        found,
        [(1, 2, "ab".into(), a.place), (3, 3, "c".into(), c.place)]
    );
    let mut after = 0;
    journal
        .replay(Position::new(2), &mut |_| {
            after += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(after, 1);
}

#[test]
fn u1_segments_are_recycled_only_after_the_guard_names_the_checkpoint() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    for _ in 0..4 {
        append_blocks(&mut journal, 10).unwrap();
    }
    let last = journal.last();
    let counts = RowCounts::default();
    assert!(matches!(
        journal.recycle(last),
        Err(StoreError::Failed { .. })
    ));
    assert!(matches!(
        journal.syncer().checkpoint(last, &counts),
        Err(StoreError::Position { .. })
    ));
    let used = journal.usage().used;
    journal.syncer().sync().unwrap();
    journal.syncer().checkpoint(last, &counts).unwrap();
    assert_eq!(journal.usage().used, used);
    journal.recycle(last).unwrap();
    assert!(journal.usage().used < 64 * 1024);
}

#[test]
fn u3_unharmed_records_behind_the_guard_are_kept() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    for text in ["a", "b", "c"] {
        append(&mut journal, text);
        journal.syncer().sync().unwrap();
    }
    assert_eq!(journal.recovered().guard.acknowledged, Position::ZERO);
    disk.crash(1);
    let journal = open(&disk).unwrap();
    assert_eq!(journal.recovered().guard.acknowledged, Position::ZERO);
    assert_eq!(texts(&journal), ["a", "b", "c"]);
}

#[test]
fn u3_what_was_not_synced_vanishes_as_a_suffix_and_nothing_else() {
    let mut lengths = std::collections::BTreeSet::new();
    for seed in 0..200 {
        let disk = SimDisk::new();
        let mut journal = started(&disk);
        let all = ["a", "b", "c", "d", "e", "f"];
        for text in &all[..2] {
            append(&mut journal, text);
        }
        journal.syncer().sync().unwrap();
        for text in &all[2..] {
            append(&mut journal, text);
        }
        disk.crash(seed);
        let mut journal = open(&disk).unwrap();
        let found = texts(&journal);
        assert!(found.len() >= 2, "seed {seed}");
        assert_eq!(found, all[..found.len()], "seed {seed}");
        lengths.insert(found.len());
        // Life goes on behind the cut.
        journal.start().unwrap();
        append(&mut journal, "new");
        journal.syncer().sync().unwrap();
        disk.crash(seed + 1000);
        let journal = open(&disk).unwrap();
        assert_eq!(texts(&journal)[found.len()..], ["new"], "seed {seed}");
    }
    assert_eq!(lengths.len(), 5, "every length of the tail was tried");
}

#[test]
fn u10_what_recovery_served_is_durable() {
    for seed in 0..50 {
        let disk = SimDisk::new();
        let mut journal = started(&disk);
        for text in ["a", "b", "c"] {
            append(&mut journal, text);
        }
        // The process dies: the records are in the page cache only.
        disk.kill();
        let journal = started(&disk);
        assert_eq!(texts(&journal), ["a", "b", "c"]);
        disk.crash(seed);
        assert_eq!(texts(&open(&disk).unwrap()), ["a", "b", "c"], "seed {seed}");
    }
}

#[test]
fn u10_recovery_syncs_every_segment_that_it_read() {
    for seed in 0..20 {
        let disk = SimDisk::new();
        let mut journal = started(&disk);
        for _ in 0..6 {
            append_blocks(&mut journal, 7).unwrap();
        }
        assert_eq!(segment_files(&disk).len(), 3);
        disk.kill();
        let journal = started(&disk);
        assert_eq!(records(&journal).len(), 6);
        disk.crash(seed);
        assert_eq!(records(&open(&disk).unwrap()).len(), 6, "seed {seed}");
    }
}

#[test]
fn u11_a_record_that_does_not_name_the_one_before_it_is_not_of_the_chain() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append(&mut journal, "a");
    journal.syncer().sync().unwrap();
    let b = append(&mut journal, "b");
    disk.kill();
    // Right in everything, checksum included, but for its predecessor: the record of another history.
    let offset = b.place.offset - crate::HEADER_BYTES as u64;
    let mut other = Vec::new();
    Header {
        kind: Kind::Data,
        epoch: Epoch::new(1),
        segment: b.place.segment,
        incarnation: b.place.incarnation,
        offset,
        first: b.first,
        last: b.last,
        predecessor: 7,
        durable: Position::new(1),
        length: 1,
    }
    .write(Meta::read(&disk).unwrap().secret, &[b"x"], &mut other);
    let file = segment::name(b.place.segment);
    let mut bytes = disk.read(&file).unwrap();
    let start = usize::try_from(offset).unwrap();
    bytes[start..start + other.len()].copy_from_slice(&other);
    disk.write(&file, &bytes).unwrap();
    assert_eq!(texts(&open(&disk).unwrap()), ["a"]);
}

#[test]
fn u10_every_run_has_an_epoch_of_its_own() {
    let disk = SimDisk::new();
    for n in 1..10 {
        let mut journal = open(&disk).unwrap();
        assert_eq!(journal.recovered().epoch, Epoch::new(n - 1));
        assert_eq!(journal.start().unwrap(), Epoch::new(n));
        assert!(matches!(journal.start(), Err(StoreError::Failed { .. })));
        if n % 3 == 0 {
            append(&mut journal, "x");
        }
        disk.crash(n);
    }
}

#[test]
fn nothing_is_appended_before_the_start() {
    let disk = SimDisk::new();
    let mut journal = open(&disk).unwrap();
    assert!(matches!(
        journal.append(1, &[b"x"]),
        Err(StoreError::Failed { .. })
    ));
}

#[test]
fn u11_stale_records_of_a_recycled_segment_do_not_count() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    for round in 0..40 {
        for n in 0..5 {
            journal
                .append(1, &[format!("{round}.{n}").as_bytes(), &[b'.'; 9000]])
                .unwrap();
        }
        let last = journal.last();
        checkpoint(&mut journal, last);
        append(&mut journal, &format!("kept {round}"));
        journal.syncer().sync().unwrap();
        disk.kill();
        journal = open(&disk).unwrap();
        let after: Vec<String> = {
            let mut all = Vec::new();
            journal
                .replay(last, &mut |r| {
                    all.push(String::from_utf8(r.payload.to_vec()).unwrap());
                    Ok(())
                })
                .unwrap();
            all
        };
        assert_eq!(after, [format!("kept {round}")]);
        journal.start().unwrap();
    }
    assert!(segment_files(&disk).len() <= 4);
}

#[test]
fn u11_bytes_of_a_message_that_are_shaped_like_a_record_prove_nothing() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append(&mut journal, "a");
    journal.syncer().sync().unwrap();
    let next = append(&mut journal, "b");
    let offset = next.place.offset - crate::HEADER_BYTES as u64 + 4096;
    // The putter guesses everything but the secret, and claims that position 1000 was acknowledged.
    let mut forged = Vec::new();
    Header {
        kind: Kind::Data,
        epoch: Epoch::new(1),
        segment: next.place.segment,
        incarnation: next.place.incarnation,
        offset: offset + 4096,
        first: Position::new(4),
        last: Position::new(4),
        predecessor: 0,
        durable: Position::new(1000),
        length: 4,
    }
    .write(0, &[b"evil"], &mut forged);
    let padding = vec![0; 4096 - crate::HEADER_BYTES];
    let outer = journal.append(1, &[&padding, &forged]).unwrap();
    assert_eq!(outer.place.offset, offset + crate::HEADER_BYTES as u64);
    // The record around it is torn and was never acknowledged.
    let (file, bit) = bit_of(&outer);
    disk.kill();
    disk.flip(&file, bit).unwrap();
    assert_eq!(texts(&open(&disk).unwrap()), ["a", "b"]);
}

#[test]
fn u11_a_block_that_holds_acknowledged_bytes_is_not_written_again() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    let mut before: Vec<u8> = Vec::new();
    for n in 0..12 {
        append(&mut journal, &format!("record {n}"));
        journal.syncer().sync().unwrap();
        let now = disk.read(&segment::name(1)).unwrap();
        assert_eq!(now[..before.len()], before);
        let written = usize::try_from(journal.usage().used).unwrap();
        before = now[..written].to_vec();
        if n % 4 == 3 {
            disk.crash(n);
            journal = started(&disk);
        }
    }
}

#[test]
fn u9_a_place_in_a_recycled_segment_gives_nothing() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    let old = append_blocks(&mut journal, 10).unwrap();
    let reader = journal.reader();
    assert!(reader.read(&old.place).unwrap().is_some());
    for _ in 0..3 {
        append_blocks(&mut journal, 10).unwrap();
        let last = journal.last();
        checkpoint(&mut journal, last);
    }
    assert_eq!(reader.read(&old.place).unwrap(), None);
    // Also when the segment is in use again.
    for _ in 0..3 {
        append_blocks(&mut journal, 10).unwrap();
    }
    assert_eq!(reader.read(&old.place).unwrap(), None);
}

#[test]
fn a_directory_has_one_owner() {
    let directory = tempfile::tempdir().unwrap();
    let mut journal = Journal::open_directory(directory.path(), options()).unwrap();
    journal.start().unwrap();
    assert!(matches!(
        Journal::open_directory(directory.path(), options()),
        Err(StoreError::InUse { .. })
    ));
    assert!(matches!(
        crate::check(directory.path()),
        Err(StoreError::InUse { .. })
    ));
    drop(journal);
    Journal::open_directory(directory.path(), options()).unwrap();
}

#[test]
fn real_files_keep_records_over_many_segments() {
    let directory = tempfile::tempdir().unwrap();
    let options = JournalOptions {
        prepare_in_background: true,
        reserve_bytes: 10_000,
        ..options()
    };
    let mut expected = Vec::new();
    for run in 0..4_u64 {
        let mut journal = Journal::open_directory(directory.path(), options).unwrap();
        let mut found = Vec::new();
        journal
            .replay(journal.recovered().guard.checkpoint, &mut |r| {
                found.push(r.payload.to_vec());
                Ok(())
            })
            .unwrap();
        assert_eq!(found, expected);
        journal.start().unwrap();
        if run == 2 {
            let last = journal.last();
            journal
                .syncer()
                .checkpoint(last, &RowCounts::default())
                .unwrap();
            journal.recycle(last).unwrap();
            expected.clear();
        }
        for n in 0..6_u64 {
            let payload = vec![u8::try_from(run * 10 + n).unwrap(); 12_000];
            journal.append(1, &[&payload]).unwrap();
            expected.push(payload);
        }
        journal.syncer().sync().unwrap();
    }
    let reserve = std::fs::metadata(directory.path().join("reserve.bin")).unwrap();
    assert_eq!(reserve.len(), 10_000);
    assert_eq!(crate::check(directory.path()).unwrap().findings, []);
}

#[test]
fn a_crash_while_the_journal_is_created_leaves_nothing_that_is_in_the_way() {
    for seed in 0..40 {
        for writes in 1..12 {
            let disk = SimDisk::new();
            disk.fail_write_in(writes);
            let _unfinished = open(&disk).and_then(|mut j| j.start());
            disk.crash(seed);
            let mut journal = started(&disk);
            append(&mut journal, "a");
        }
    }
}
