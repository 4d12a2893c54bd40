//! Full disks, full journals, failed calls.

use ferrymq_store::{LogSync as _, RecordLog as _, StoreError};
use ferrymq_types::Position;

use crate::{Journal, JournalOptions, sim::SimDisk};

use super::*;

#[test]
fn u20_a_record_that_no_segment_holds_is_refused() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    let max = journal.payload_bytes_max();
    let mut payload = vec![1; usize::try_from(max).unwrap()];
    journal.append(1, &[&payload]).unwrap();
    payload.push(1);
    assert!(matches!(
        journal.append(1, &[&payload]),
        Err(StoreError::TooLarge { bytes, max: m }) if bytes == max + 1 && m == max
    ));
    assert_eq!(journal.last(), Position::new(1));
}

#[test]
fn u19_a_full_journal_refuses_and_goes_on_after_a_checkpoint() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    let mut count = 0;
    let error = loop {
        match append_blocks(&mut journal, 5) {
            Ok(_) => count += 1,
            Err(error) => break error,
        }
    };
    assert!(
        matches!(error, StoreError::LogFull { used, limit } if used <= limit),
        "{error}"
    );
    assert_eq!(error.reason().get(), 2192);
    assert_eq!(
        count, 12,
        "three to a segment of sixteen blocks, the first has an epoch record"
    );
    let last = journal.last();
    checkpoint(&mut journal, last);
    append_blocks(&mut journal, 5).unwrap();
    disk.kill();
    assert_eq!(open(&disk).unwrap().recovered().last.get(), count + 1);
}

#[test]
fn u18_no_space_for_a_segment_is_an_error_that_passes() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    disk.set_room(Some(1000));
    let error = loop {
        if let Err(error) = append_blocks(&mut journal, 5) {
            break error;
        }
    };
    assert!(
        error.is_no_space() && error.to_string().contains("segment-"),
        "{error}"
    );
    let last = journal.last();
    journal.syncer().sync().unwrap();
    disk.set_room(None);
    append_blocks(&mut journal, 5).unwrap();
    assert_eq!(journal.last(), last.next());
}

#[test]
fn u18_the_reserve_is_given_back_and_taken_again_when_there_is_room() {
    let disk = SimDisk::new();
    let options = JournalOptions {
        reserve_bytes: 8192,
        ..options()
    };
    let mut journal = Journal::open(disk.clone(), options).unwrap();
    journal.start().unwrap();
    assert_eq!(disk.read("reserve.bin").unwrap().len(), 8192);
    journal.release_reserve().unwrap();
    journal.release_reserve().unwrap();
    assert!(disk.read("reserve.bin").is_err());
    disk.set_room(Some(0));
    assert!(!journal.restore_reserve().unwrap());
    disk.set_room(None);
    assert!(journal.restore_reserve().unwrap());
    assert_eq!(disk.read("reserve.bin").unwrap().len(), 8192);
}

#[test]
fn inv_s2_a_failed_sync_is_final() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append(&mut journal, "a");
    let sync = journal.syncer();
    sync.sync().unwrap();
    append(&mut journal, "b");
    disk.fail_next_sync();
    assert!(matches!(sync.sync(), Err(StoreError::Io { .. })));
    // The disk works again, and nobody trusts it.
    for result in [
        sync.sync().map(|_| ()),
        sync.sync_guard(),
        journal.append(1, &[b"c"]).map(|_| ()),
        journal.recycle(Position::ZERO),
    ] {
        assert!(matches!(result, Err(StoreError::Failed { .. })));
    }
    assert_eq!(sync.durable(), Position::new(1));
    disk.crash(3);
    let found = texts(&open(&disk).unwrap());
    assert_eq!(found[0], "a");
}

#[test]
fn inv_s2_a_failed_guard_is_final() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append(&mut journal, "a");
    journal.syncer().sync().unwrap();
    disk.fail_next_sync();
    assert!(journal.syncer().sync_guard().is_err());
    assert!(matches!(
        journal.append(1, &[b"b"]),
        Err(StoreError::Failed { .. })
    ));
}

#[test]
fn a_failed_write_names_the_file_and_leaves_no_trace() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append(&mut journal, "a");
    disk.fail_write_in(1);
    let error = journal.append(1, &[b"lost"]).unwrap_err();
    assert!(error.to_string().contains("segment-00000001"), "{error}");
    append(&mut journal, "b");
    journal.syncer().sync().unwrap();
    disk.crash(1);
    assert_eq!(texts(&open(&disk).unwrap()), ["a", "b"]);
}

#[test]
fn u12_the_guard_follows_under_load() {
    let disk = SimDisk::new();
    let options = JournalOptions {
        guard_interval: Duration::ZERO,
        ..options()
    };
    let mut journal = Journal::open(disk.clone(), options).unwrap();
    journal.start().unwrap();
    append(&mut journal, "a");
    journal.syncer().sync().unwrap();
    disk.kill();
    let guard = open(&disk).unwrap().recovered().guard.clone();
    assert_eq!(guard.acknowledged, Position::new(1));
}
