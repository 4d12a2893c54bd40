use std::fs;
use std::path::{Path, PathBuf};

use bytes::Bytes;

use ferrymq_store::{
    Guard, Recovered, RowBatch, RowCounts, RowKey, RowState, RowStore, StoreError, Table,
};
use ferrymq_types::{Epoch, ObjectId, Position, Sequence};

use crate::{Durability, Kv, KvBatch, RocksOptions, RocksRows};

const OPTIONS: RocksOptions = RocksOptions {
    write_buffer_bytes: 1024 * 1024,
    ..RocksOptions::DEFAULTS
};

fn counts(messages: u64) -> RowCounts {
    RowCounts::from_slice(&[messages]).unwrap()
}

fn state(position: u64, messages: u64) -> RowState {
    RowState {
        position: Position::new(position),
        counts: counts(messages),
        counts_now: counts(messages),
    }
}

/// A journal that ends at `last` and names the checkpoint `state`.
fn recovered(state: &RowState, last: u64) -> Recovered {
    Recovered {
        guard: Guard {
            acknowledged: Position::new(last),
            checkpoint: state.position,
            counts: state.counts.clone(),
        },
        last: Position::new(last),
        epoch: Epoch::new(1),
        cut: None,
    }
}

fn key(n: u64) -> RowKey {
    RowKey::message(ObjectId::new(1), Sequence::new(n))
}

fn batch(range: std::ops::RangeInclusive<u64>) -> RowBatch {
    let mut batch = RowBatch::default();
    for n in range {
        batch.put(Table::Messages, key(n), Bytes::from(vec![b'x'; 200]));
    }
    batch
}

/// Two flushed checkpoints: 100 messages at position 10, 200 at 20.
fn filled() -> (tempfile::TempDir, RowState) {
    let directory = tempfile::tempdir().unwrap();
    let rows = RocksRows::open(
        directory.path(),
        &recovered(&RowState::default(), 0),
        OPTIONS,
    )
    .unwrap();
    for (position, messages) in [(10, 1..=100), (20, 101..=200)] {
        let state = state(position, *messages.end());
        rows.write(&batch(messages), &state).unwrap();
        rows.flush().unwrap();
    }
    (directory, state(20, 200))
}

fn keys(rows: &RocksRows) -> Result<Vec<RowKey>, StoreError> {
    let mut keys = Vec::new();
    rows.view(&mut |view| {
        view.scan(Table::Messages, &RowKey::EMPTY, None, &mut |key, _| {
            keys.push(key);
            Ok(())
        })
    })?;
    Ok(keys)
}

fn files(directory: &Path, part: &str) -> Vec<PathBuf> {
    let mut files: Vec<_> = fs::read_dir(directory)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_string_lossy().contains(part))
        .collect();
    files.sort();
    files
}

#[test]
fn rows_come_back_in_order_and_views_stand_still() {
    let (directory, state) = filled();
    let rows = RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS).unwrap();
    assert_eq!(rows.state().unwrap(), state);
    assert_eq!(keys(&rows).unwrap(), (1..=200).map(key).collect::<Vec<_>>());
    assert!(rows.contains(Table::Messages, &key(7)).unwrap());
    assert!(!rows.contains(Table::Messages, &key(201)).unwrap());
    assert!(!rows.contains(Table::Bodies, &key(7)).unwrap());
    rows.view(&mut |view| {
        let mut change = RowBatch::default();
        change.delete(Table::Messages, key(200));
        rows.write(&change, &state)?;
        assert_eq!(view.last_key(Table::Messages)?, Some(key(200)));
        assert_eq!(view.last_key(Table::Bodies)?, None);
        let mut seen = Vec::new();
        view.scan(
            Table::Messages,
            &key(198),
            Some(&key(200)),
            &mut |k, value| {
                assert_eq!(value.len(), 200);
                seen.push(k);
                Ok(())
            },
        )?;
        assert_eq!(seen, [key(198), key(199)]);
        Ok(())
    })
    .unwrap();
    assert!(!rows.contains(Table::Messages, &key(200)).unwrap());
}

#[test]
fn u13_what_was_not_flushed_is_gone_after_a_reopen_as_a_whole() {
    let (directory, before) = filled();
    let rows = RocksRows::open(directory.path(), &recovered(&before, 30), OPTIONS).unwrap();
    let copy = tempfile::tempdir().unwrap();
    rows.write(&batch(201..=300), &state(30, 300)).unwrap();
    for file in files(directory.path(), "") {
        fs::copy(&file, copy.path().join(file.file_name().unwrap())).unwrap();
    }
    // The copy is what a crash leaves.
    let after = RocksRows::open(copy.path(), &recovered(&before, 30), OPTIONS).unwrap();
    assert_eq!(after.state().unwrap(), before);
    assert_eq!(keys(&after).unwrap().len(), 200);
}

#[test]
fn u18_a_store_is_closed_and_opened_again_under_its_readers() {
    let (directory, state) = filled();
    let rows = RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS).unwrap();
    rows.reopen().unwrap();
    assert_eq!(keys(&rows).unwrap().len(), 200);
    rows.write(&batch(201..=201), &state).unwrap();
    rows.flush().unwrap();
}

#[test]
fn u13_a_cut_manifest_is_refused_and_nothing_is_deleted() {
    let (directory, state) = filled();
    let manifest = files(directory.path(), "MANIFEST").pop().unwrap();
    let tables = files(directory.path(), ".sst");
    let bytes = fs::read(&manifest).unwrap();
    let mut refused = 0;
    for cut in (30..bytes.len()).step_by(97) {
        fs::write(&manifest, &bytes[..bytes.len() - cut]).unwrap();
        let error = RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS).unwrap_err();
        let text = error.to_string();
        assert!(
            text.contains(&*directory.path().to_string_lossy()),
            "{cut}: {text}"
        );
        assert_eq!(files(directory.path(), ".sst"), tables, "{cut}");
        refused += 1;
    }
    assert!(refused > 5);
    // With its end back it opens as if nothing had been.
    fs::write(&manifest, &bytes).unwrap();
    let rows = RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS).unwrap();
    assert_eq!(keys(&rows).unwrap().len(), 200);
}

#[test]
fn inv_s3_lost_files_are_refused_by_name() {
    for part in [".sst", "MANIFEST", "CURRENT"] {
        for index in 0..2 {
            let (directory, state) = filled();
            let Some(file) = files(directory.path(), part).get(index).cloned() else {
                continue;
            };
            let before = files(directory.path(), ".sst").len();
            fs::remove_file(&file).unwrap();
            let error =
                RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS).unwrap_err();
            assert!(
                matches!(error, StoreError::Corrupt { .. }),
                "{part}: {error}"
            );
            let lost = usize::from(part == ".sst");
            assert_eq!(files(directory.path(), ".sst").len(), before - lost);
            let findings =
                RocksRows::check(directory.path(), Some(&recovered(&state, 30)), OPTIONS).unwrap();
            assert!(findings.iter().any(|f| f.refuses_open), "{part}");
        }
    }
    let state = state(20, 200);
    let nowhere = tempfile::tempdir().unwrap().path().join("gone");
    let error = RocksRows::open(&nowhere, &recovered(&state, 30), OPTIONS).unwrap_err();
    assert!(error.to_string().contains("it is missing"), "{error}");
    assert!(!nowhere.exists());
}

#[test]
fn inv_s6_a_flipped_bit_in_a_table_is_an_error_of_the_scan() {
    let (directory, state) = filled();
    let table = files(directory.path(), ".sst").pop().unwrap();
    let bytes = fs::read(&table).unwrap();
    let (mut errors, mut whole) = (0, 0);
    for bit in (0..bytes.len() * 8).step_by(bytes.len() / 5) {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&table, &bad).unwrap();
        let recovered = recovered(&state, 30);
        let result = RocksRows::open(directory.path(), &recovered, OPTIONS).and_then(|rows| {
            assert_eq!(rows.state()?, state);
            keys(&rows)
        });
        match result {
            Ok(keys) => {
                assert_eq!(keys.len(), 200, "bit {bit}");
                whole += 1;
            }
            Err(_) => errors += 1,
        }
    }
    assert!(errors > 10, "{errors} errors, {whole} harmless");
    fs::write(&table, &bytes).unwrap();
    assert_eq!(
        RocksRows::check(directory.path(), Some(&recovered(&state, 30)), OPTIONS).unwrap(),
        []
    );
}

#[test]
fn u12_a_row_that_vanished_is_found_by_the_examination() {
    let (directory, state) = filled();
    let rows = RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS).unwrap();
    let mut change = RowBatch::default();
    change.delete(Table::Messages, key(5));
    rows.write(&change, &state).unwrap();
    rows.flush().unwrap();
    drop(rows);
    let findings = RocksRows::check(directory.path(), None, OPTIONS).unwrap();
    assert_eq!(findings.len(), 1);
    assert_eq!(findings[0].what, "it has 199 rows, 200 were written");
}

#[test]
fn a_directory_has_one_owner() {
    let (directory, state) = filled();
    let _first = RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS).unwrap();
    assert!(matches!(
        RocksRows::open(directory.path(), &recovered(&state, 30), OPTIONS),
        Err(StoreError::InUse { .. })
    ));
}

#[test]
fn kv_keeps_values_per_table_over_restarts_and_copies() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("kv");
    let tables = ["objects", "meta"];
    for durability in [Durability::Synced, Durability::Buffered] {
        let kv = Kv::open(&path, &tables, OPTIONS).unwrap();
        let mut batch = KvBatch::new();
        for n in 0..10_u8 {
            batch.put("objects", &[n], &[n, n]);
        }
        batch.put("meta", b"applied", b"7");
        batch.delete_range("objects", &[3], &[6]);
        batch.delete("objects", &[9]);
        kv.write(&batch, durability).unwrap();
        if durability == Durability::Buffered {
            kv.flush().unwrap();
        }
        let copy = directory.path().join(format!("copy {durability:?}"));
        kv.checkpoint(&copy).unwrap();
        kv.reopen().unwrap();
        drop(kv);
        for place in [&path, &copy] {
            let kv = Kv::open(place, &tables, OPTIONS).unwrap();
            assert_eq!(kv.get("meta", b"applied").unwrap().unwrap(), b"7");
            assert_eq!(kv.get("meta", &[1]).unwrap(), None);
            assert!(matches!(
                kv.get("other", b"x"),
                Err(StoreError::Corrupt { .. })
            ));
            let mut found = Vec::new();
            kv.scan("objects", &[1], Some(&[8]), &mut |key, value| {
                found.push((key[0], value.to_vec()));
                Ok(())
            })
            .unwrap();
            let expected = [1, 2, 6, 7].map(|n| (n, vec![n, n]));
            assert_eq!(found, expected);
        }
    }
    let kv = Kv::open_read_only(&path, &tables, OPTIONS).unwrap();
    assert_eq!(kv.get("meta", b"applied").unwrap().unwrap(), b"7");
    assert!(Kv::open_read_only(&directory.path().join("no"), &tables, OPTIONS).is_err());
}
