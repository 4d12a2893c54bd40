//! Flipped bits, lost and cut files.

use ferrymq_store::{LogSync as _, RecordLog as _, StoreError};

use crate::{Disk as _, guard, meta, sim::SimDisk};

use super::*;

/// Three segments with everything acknowledged, and the guard saying so.
fn filled() -> (SimDisk, Vec<(u64, Vec<u8>)>) {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    for n in 0..8_u8 {
        journal.append(1, &[&[n; 18_000]]).unwrap();
        journal.syncer().sync().unwrap();
    }
    journal.syncer().sync_guard().unwrap();
    let all = records(&journal);
    assert_eq!(segment_files(&disk).len(), 3);
    disk.kill();
    (disk, all)
}

fn refused(disk: &SimDisk, file: &str) {
    match open(disk) {
        Err(StoreError::Corrupt { file: found, .. }) => assert_eq!(found, file),
        other => panic!("{file}: {other:?}"),
    }
    let findings = crate::check_on(disk).unwrap().findings;
    assert!(
        findings.iter().any(|f| f.refuses_open && f.file == file),
        "{findings:?}"
    );
}

#[test]
fn inv_s3_every_flipped_bit_is_refused_by_name_or_harmless() {
    let (disk, all) = filled();
    let mut refusals = 0;
    for file in disk.list().unwrap() {
        let bits = disk.read(&file).unwrap().len() * 8;
        let step = if file.starts_with("segment") {
            1361
        } else {
            13
        };
        for bit in (0..bits).step_by(step) {
            disk.flip(&file, bit).unwrap();
            match open(&disk) {
                Ok(journal) => assert_eq!(records(&journal), all, "{file} bit {bit}"),
                Err(StoreError::Corrupt { file: found, .. }) => {
                    assert_eq!(found, file, "bit {bit}");
                    refusals += 1;
                }
                Err(StoreError::NewerFormat { .. }) if file == meta::NAME => {}
                Err(error) => panic!("{file} bit {bit}: {error}"),
            }
            disk.kill();
            disk.flip(&file, bit).unwrap();
        }
    }
    assert!(refusals > 800, "{refusals}");
    assert_eq!(records(&open(&disk).unwrap()), all);
}

#[test]
fn inv_s3_a_file_that_is_lost_emptied_or_cut_is_refused_by_name() {
    for file in filled().0.list().unwrap() {
        let lost = filled().0;
        lost.remove(&file).unwrap();
        refused(&lost, &file);
        for half in [0, 1] {
            let cut = filled().0;
            let bytes = cut.read(&file).unwrap();
            let keep = bytes.len() / 2 * half;
            cut.write(&file, &bytes[..keep]).unwrap();
            refused(&cut, &file);
        }
    }
}

#[test]
fn u12_one_damaged_block_of_the_guard_is_survived() {
    for block in 0..2 {
        let (disk, all) = filled();
        disk.flip(guard::NAME, block * 4096 * 8 + 200).unwrap();
        let journal = open(&disk).unwrap();
        assert_eq!(records(&journal), all);
        drop(journal);
        let findings = crate::check_on(&disk).unwrap().findings;
        assert!(findings.iter().all(|f| !f.refuses_open) && findings.len() == 1);
    }
    let (disk, _) = filled();
    disk.flip(guard::NAME, 200).unwrap();
    disk.flip(guard::NAME, 4096 * 8 + 200).unwrap();
    refused(&disk, guard::NAME);
}

#[test]
fn u12_a_segment_is_named_before_it_is_used() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append_blocks(&mut journal, 10).unwrap();
    append_blocks(&mut journal, 10).unwrap();
    // Nothing was synced but the guard that names the second segment.
    disk.kill();
    let second = segment::name(2);
    disk.remove(&second).unwrap();
    refused(&disk, &second);
}

#[test]
fn u3_a_later_record_proves_the_ones_before_it() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    let mut all = Vec::new();
    for text in ["a", "b", "c"] {
        all.push(append(&mut journal, text));
        journal.syncer().sync().unwrap();
    }
    disk.kill();
    // The guard is old. The last record cannot be told from a torn tail; the one before it can.
    let (file, bit) = bit_of(&all[1]);
    disk.flip(&file, bit).unwrap();
    refused(&disk, &file);
    disk.flip(&file, bit).unwrap();
    let (file, bit) = bit_of(&all[2]);
    disk.flip(&file, bit).unwrap();
    let journal = open(&disk).unwrap();
    assert_eq!(texts(&journal), ["a", "b"]);
    assert!(journal.recovered().cut.is_some());
}

#[test]
fn inv_s4_a_torn_tail_of_what_was_not_acknowledged_is_cut_off() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append(&mut journal, "a");
    journal.syncer().sync().unwrap();
    let torn = append(&mut journal, "b");
    append(&mut journal, "c");
    append(&mut journal, "d");
    disk.kill();
    let (file, bit) = bit_of(&torn);
    disk.flip(&file, bit + 700).unwrap();
    let findings = crate::check_on(&disk).unwrap().findings;
    assert_eq!(findings.len(), 1);
    assert!(!findings[0].refuses_open && findings[0].file == file);
    let mut journal = open(&disk).unwrap();
    assert_eq!(texts(&journal), ["a"]);
    assert_eq!(
        journal.recovered().cut.as_deref(),
        Some(&*format!("{file} at byte {}", bit / 8))
    );
    journal.start().unwrap();
    drop(journal);
    // What was cut off is of an earlier epoch now and no news.
    assert_eq!(crate::check_on(&disk).unwrap().findings, []);
}

#[test]
fn u12_yesterdays_copy_of_a_segment_is_refused() {
    let disk = SimDisk::new();
    let mut journal = started(&disk);
    append(&mut journal, "a");
    journal.syncer().sync().unwrap();
    let file = segment::name(1);
    let copy = disk.read(&file).unwrap();
    append(&mut journal, "b");
    journal.syncer().sync().unwrap();
    journal.syncer().sync_guard().unwrap();
    disk.kill();
    disk.write(&file, &copy).unwrap();
    refused(&disk, &file);
}

#[test]
fn a_newer_format_is_refused_with_a_clear_message() {
    let (disk, _) = filled();
    let mut bytes = disk.read(meta::NAME).unwrap();
    bytes[8] = 2;
    disk.write(meta::NAME, &bytes).unwrap();
    let error = open(&disk).unwrap_err();
    assert!(matches!(
        error,
        StoreError::NewerFormat {
            found: 2,
            supported: 1,
            ..
        }
    ));
    assert!(error.to_string().contains("use the newer release"));
}
