//! The journal and RocksDB together, on real files and on a disk that loses power: the conformance suite, damage to every file,
//! and a process that dies at every crash point of the store.
#![allow(
    clippy::unwrap_used,
    reason = "helpers of tests: a panic is how they fail"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use bytes::Bytes;
use tempfile::TempDir;

use ferrymq_journal::{Journal, JournalOptions, OsDisk, sim::SimDisk};
use ferrymq_store::{
    CRASH_POINTS, LogSync as _, QueueManagerStore, RecordLog as _, Recovered, RecoveredRow,
    RowStore as _, StoreError, StoreOptions,
    conformance::{Factory, Model, message},
};
use ferrymq_store_rocksdb::{RocksOptions, RocksRows};
use ferrymq_types::{BodyId, Change, ObjectId, Position, Sequence, WriteSet};

const JOURNAL: JournalOptions = JournalOptions {
    segment_bytes: 64 * 1024,
    segments_max: 8,
    reserve_bytes: 0,
    guard_interval: Duration::ZERO,
    prepare_in_background: true,
};

const STORE: StoreOptions = StoreOptions {
    checkpoint_batch_bytes: 700,
    ..StoreOptions::DEFAULTS
};

const ROCKS: RocksOptions = RocksOptions {
    write_buffer_bytes: 1024 * 1024,
    ..RocksOptions::DEFAULTS
};

fn temporary() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

/// What is in the directory now: what a process that dies leaves, since the machine stays up.
fn copy(from: &Path, to: &Path) {
    let names = || -> BTreeMap<PathBuf, u64> {
        fs::read_dir(from)
            .unwrap()
            .filter_map(|entry| {
                let entry = entry.unwrap();
                Some((entry.path(), entry.metadata().ok()?.len()))
            })
            .collect()
    };
    // RocksDB compacts meanwhile: a copy is of one moment if nothing came, went or grew.
    loop {
        let before = names();
        fs::create_dir_all(to).unwrap();
        let copied = before
            .keys()
            .all(|path| fs::copy(path, to.join(path.file_name().unwrap())).is_ok());
        if copied && names() == before {
            return;
        }
        fs::remove_dir_all(to).unwrap();
    }
}

/// Journal and rows in real directories; a crash goes on with a copy of them.
#[derive(Debug)]
struct OnFiles {
    /// The last is in use.
    directories: Vec<TempDir>,
}

impl OnFiles {
    fn new() -> Self {
        Self {
            directories: vec![temporary()],
        }
    }

    fn at(&self, name: &str) -> PathBuf {
        self.directories.last().unwrap().path().join(name)
    }
}

impl Factory for OnFiles {
    type Log = Journal<OsDisk>;
    type Rows = RocksRows;

    fn open_log(&mut self) -> Result<Journal<OsDisk>, StoreError> {
        let options = JournalOptions {
            segment_bytes: 1024 * 1024,
            ..JOURNAL
        };
        Journal::open_directory(&self.at("journal"), options)
    }

    fn open_rows(&mut self, recovered: &Recovered) -> Result<RocksRows, StoreError> {
        RocksRows::open(&self.at("rows"), recovered, ROCKS)
    }

    fn crash(&mut self, _seed: u64) {
        let next = temporary();
        copy(&self.at("journal"), &next.path().join("journal"));
        copy(&self.at("rows"), &next.path().join("rows"));
        self.directories.push(next);
    }
}

mod files {
    ferrymq_store::conformance_suite!(super::OnFiles::new);
}

/// A journal that loses what was not synced, and RocksDB that loses what was not flushed.
#[derive(Debug)]
struct PowerLoss {
    journal: SimDisk,
    rows: Vec<TempDir>,
}

impl PowerLoss {
    fn new() -> Self {
        Self {
            journal: SimDisk::new(),
            rows: vec![temporary()],
        }
    }
}

impl Factory for PowerLoss {
    type Log = Journal<SimDisk>;
    type Rows = RocksRows;

    fn open_log(&mut self) -> Result<Journal<SimDisk>, StoreError> {
        let options = JournalOptions {
            guard_interval: Duration::MAX,
            prepare_in_background: false,
            ..JOURNAL
        };
        Journal::open(self.journal.clone(), options)
    }

    fn open_rows(&mut self, recovered: &Recovered) -> Result<RocksRows, StoreError> {
        RocksRows::open(self.rows.last().unwrap().path(), recovered, ROCKS)
    }

    fn crash(&mut self, seed: u64) {
        let next = temporary();
        copy(self.rows.last().unwrap().path(), next.path());
        self.rows.push(next);
        self.journal.crash(seed);
    }
}

mod power_loss {
    ferrymq_store::conformance_suite!(super::PowerLoss::new);
}

type Store = QueueManagerStore<Journal<OsDisk>, RocksRows>;

fn open(directory: &Path) -> Result<(Store, Vec<RecoveredRow>, Position), StoreError> {
    let log = Journal::open_directory(&directory.join("journal"), JOURNAL)?;
    let mut rows = Vec::new();
    let (store, opened) = QueueManagerStore::open(
        log,
        |recovered| RocksRows::open(&directory.join("rows"), recovered, ROCKS),
        STORE,
        &mut |row| {
            rows.push(row);
            Ok(())
        },
    )?;
    Ok((store, rows, opened.position))
}

/// The write set at a position: two puts, then a get of the first of them.
fn write_set(position: Position) -> WriteSet {
    let n = position.get();
    let changes = if n.is_multiple_of(3) {
        vec![
            Change::DeleteMessage {
                queue: ObjectId::new(1),
                sequence: Sequence::new(n - 2),
            },
            Change::DeleteBody {
                id: BodyId::new(n - 2),
            },
        ]
    } else {
        // Some are larger than a segment, and go in parts.
        let length = if n % 10 == 4 { 100_000 } else { 300 };
        message(1, n, vec![u8::try_from(n % 251).unwrap(); length])
    };
    WriteSet { position, changes }
}

fn model(position: Position) -> Model {
    let mut model = Model::default();
    for n in 1..=position.get() {
        model.apply(&write_set(Position::new(n)));
    }
    model
}

fn checkpoint(store: &mut Store) {
    if let Some(job) = store.begin_checkpoint().unwrap() {
        let done = job.run(&mut |_| {});
        store.finish_checkpoint(done).unwrap();
    }
}

/// Sixty write sets, each synced and then acknowledged, with a checkpoint after every tenth.
fn work(store: &mut Store, acknowledge: &mut dyn FnMut(Position)) {
    for _ in 0..60 {
        let position = store.position().next();
        store.append(&[write_set(position)]).unwrap();
        acknowledge(store.syncer().sync().unwrap());
        if position.get().is_multiple_of(10) {
            checkpoint(store);
        }
    }
}

/// Compares a store with its model. A body that cannot be read is an error that names it, which only damage excuses.
fn compare(store: &Store, rows: &[RecoveredRow], position: Position) -> Result<(), StoreError> {
    let model = model(position);
    assert_eq!(rows, model.rows());
    let reader = store.reader();
    for ((queue, sequence), (row, _)) in &model.messages {
        let found = reader.fetch(*queue, *sequence)?;
        let body: Bytes = model.bodies[&row.body].clone();
        assert_eq!(found, Some((row.clone(), body)));
    }
    Ok(())
}

/// Old rows in RocksDB, young ones in the journal, everything acknowledged.
fn filled() -> (TempDir, Position) {
    let directory = temporary();
    let (mut store, _, _) = open(directory.path()).unwrap();
    work(&mut store, &mut |_| {});
    for n in 61..=69 {
        store.append(&[write_set(Position::new(n))]).unwrap();
    }
    let last = store.syncer().sync().unwrap();
    store.syncer().sync_guard().unwrap();
    (directory, last)
}

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(directory: &Path) -> Files {
    ["journal", "rows"]
        .iter()
        .flat_map(|part| fs::read_dir(directory.join(part)).unwrap())
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(path).unwrap()))
        .collect()
}

/// Files of RocksDB that hold rows or say which files do.
fn holds_rows(path: &Path) -> bool {
    let name = path.file_name().unwrap().to_string_lossy();
    name.ends_with(".sst") || name.starts_with("MANIFEST") || name == "CURRENT"
}

/// Opens a copy in which one file is damaged. Either it is refused and the message names something in the directory, or
/// everything is there. Returns whether it was refused.
fn refused_or_whole(
    original: &Files,
    from: &Path,
    last: Position,
    name: &Path,
    change: &dyn Fn(&Path),
) -> bool {
    let directory = temporary();
    for (path, bytes) in original {
        let to = directory.path().join(path.strip_prefix(from).unwrap());
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::write(to, bytes).unwrap();
    }
    change(&directory.path().join(name));
    let before = files(directory.path());
    let result = open(directory.path()).and_then(|(store, rows, position)| {
        assert_eq!(position, last);
        compare(&store, &rows, position)
    });
    let Err(error) = result else {
        return false;
    };
    let text = error.to_string();
    assert!(
        text.contains(&*directory.path().to_string_lossy()),
        "{text}"
    );
    // A damaged table is found when its rows are read; everything else before RocksDB may write.
    if !name.to_string_lossy().ends_with(".sst") {
        let after = files(directory.path());
        for (path, bytes) in before.iter().filter(|(path, _)| holds_rows(path)) {
            let untouched = after.get(path) == Some(bytes);
            assert!(untouched, "{} was touched: {text}", path.display());
        }
    }
    true
}

/// Opens a copy in which a file was changed, and says whether it was refused.
type Attempt<'a> = dyn Fn(&dyn Fn(&Path)) -> bool + 'a;

fn each_file(check: &mut dyn FnMut(&Path, &[u8], &Attempt<'_>)) {
    let (directory, last) = filled();
    let original = files(directory.path());
    for (path, bytes) in &original {
        let name = path.strip_prefix(directory.path()).unwrap();
        // Neither is read: one is a lock, the other a text for people.
        if name.ends_with("LOCK")
            || name
                .file_name()
                .unwrap()
                .to_string_lossy()
                .starts_with("LOG")
        {
            continue;
        }
        let attempt = |change: &dyn Fn(&Path)| {
            refused_or_whole(&original, directory.path(), last, name, change)
        };
        check(name, bytes, &attempt);
    }
}

#[test]
fn inv_s3_a_flipped_bit_in_any_file_is_refused_or_harmless() {
    let mut refusals: BTreeMap<String, u32> = BTreeMap::new();
    each_file(&mut |name, bytes, attempt| {
        let bits = bytes.len() * 8;
        // From the start, where all that matters is in most files, and all over.
        for bit in (0..600)
            .step_by(61)
            .chain((600..bits).step_by((bits / 7).max(61)))
        {
            if bit >= bits {
                break;
            }
            let refused = attempt(&|path| {
                let mut bad = bytes.to_vec();
                bad[bit / 8] ^= 1 << (bit % 8);
                fs::write(path, bad).unwrap();
            });
            let count = refusals
                .entry(name.to_string_lossy().into_owned())
                .or_default();
            *count += u32::from(refused);
        }
    });
    let refused = |part: &str| -> u32 {
        let of = refusals.iter().filter(|(name, _)| name.contains(part));
        of.map(|(_, count)| count).sum()
    };
    for part in ["segment-", "journal.meta", ".sst", "MANIFEST"] {
        assert!(refused(part) > 0, "{part}: {refusals:?}");
    }
}

#[test]
fn inv_s3_a_file_that_is_lost_or_cut_is_refused_or_not_needed() {
    let mut refusals = Vec::new();
    let mut lost_segments = 0;
    each_file(&mut |name, bytes, attempt| {
        let cut = |keep: usize| attempt(&|path| fs::write(path, &bytes[..keep]).unwrap());
        let results = [
            attempt(&|path| fs::remove_file(path).unwrap()),
            cut(0),
            cut(bytes.len() / 2),
            cut(bytes.len().saturating_sub(30)),
        ];
        let segment = name.to_string_lossy().contains("segment-");
        if holds_rows(name) || name.starts_with("journal") {
            // A free segment may be gone, but whatever segment is there is whole.
            let must = &results[usize::from(segment)..];
            assert!(
                must.iter().all(|refused| *refused),
                "{} {results:?}",
                name.display()
            );
            lost_segments += u32::from(segment && results[0]);
        }
        refusals.push(name.to_owned());
    });
    assert!(refusals.len() > 8, "{refusals:?}");
    assert!(lost_segments > 0);
}

#[test]
fn inv_s3_yesterdays_rows_are_refused() {
    let directory = temporary();
    let (mut store, _, _) = open(directory.path()).unwrap();
    work(&mut store, &mut |_| {});
    drop(store);
    let yesterday = temporary();
    copy(&directory.path().join("rows"), yesterday.path());
    let (mut store, _, _) = open(directory.path()).unwrap();
    work(&mut store, &mut |_| {});
    drop(store);
    fs::remove_dir_all(directory.path().join("rows")).unwrap();
    copy(yesterday.path(), &directory.path().join("rows"));
    let error = open(directory.path()).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("the journal names the one at 120"),
        "{error}"
    );
    // And without any rows.
    fs::remove_dir_all(directory.path().join("rows")).unwrap();
    assert!(matches!(
        open(directory.path()),
        Err(StoreError::Corrupt { .. })
    ));
}

#[test]
fn inv_s4_a_torn_tail_of_real_files_is_cut_off() {
    let (directory, last) = filled();
    let (mut store, _, _) = open(directory.path()).unwrap();
    let next = last.next();
    store.append(&[write_set(next)]).unwrap();
    // The process dies before it syncs, and the record reaches the disk in part.
    let crashed = temporary();
    copy(
        &directory.path().join("journal"),
        &crashed.path().join("journal"),
    );
    copy(&directory.path().join("rows"), &crashed.path().join("rows"));
    let segment = fs::read_dir(crashed.path().join("journal"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.to_string_lossy().contains("segment-"))
        .find(|p| {
            let body = [u8::try_from(next.get() % 251).unwrap(); 300];
            fs::read(p).unwrap().windows(300).any(|w| w == body)
        })
        .unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let body = [u8::try_from(next.get() % 251).unwrap(); 300];
    let at = bytes.windows(300).position(|w| w == body).unwrap();
    bytes[at + 100..at + 300].fill(0);
    fs::write(&segment, bytes).unwrap();
    let (store, rows, position) = open(crashed.path()).unwrap();
    assert_eq!(position, last);
    compare(&store, &rows, position).unwrap();
}

#[test]
fn the_examination_finds_nothing_in_a_sound_store() {
    let (directory, _) = filled();
    assert_eq!(
        ferrymq_journal::check(&directory.path().join("journal"))
            .unwrap()
            .findings,
        []
    );
    let journal = Journal::open_directory(&directory.path().join("journal"), JOURNAL).unwrap();
    let findings = RocksRows::check(
        &directory.path().join("rows"),
        Some(journal.recovered()),
        ROCKS,
    )
    .unwrap();
    assert_eq!(findings, []);
    let rows = RocksRows::open(&directory.path().join("rows"), journal.recovered(), ROCKS).unwrap();
    assert_eq!(rows.state().unwrap().position, Position::new(60));
}

const CHILD: &str = "FERRYMQ_TEST_CRASH_CHILD";

/// Does nothing by itself: the process that [`fault_p2_a_process_that_dies_at_a_crash_point_loses_nothing`] starts.
#[test]
fn crash_child() {
    let Some(directory) = std::env::var_os(CHILD) else {
        return;
    };
    let directory = PathBuf::from(directory);
    let (mut store, rows, position) = open(&directory).unwrap();
    compare(&store, &rows, position).unwrap();
    work(&mut store, &mut |position| {
        fs::write(directory.join("acknowledged"), position.to_string()).unwrap();
    });
}

fn child(directory: &Path, crash_at: Option<&str>) -> std::process::Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command
        .args(["--exact", "crash_child", "--nocapture"])
        .env(CHILD, directory)
        .env_remove("FERRYMQ_CRASH_AT");
    if let Some(point) = crash_at {
        command.env("FERRYMQ_CRASH_AT", point);
    }
    command.output().unwrap()
}

#[test]
fn fault_p2_a_process_that_dies_at_a_crash_point_loses_nothing() {
    use std::os::unix::process::ExitStatusExt as _;
    const ABORT: i32 = 6;

    let filled = temporary();
    let first = child(filled.path(), None);
    assert!(first.status.success(), "{first:?}");
    for point in CRASH_POINTS {
        let directory = temporary();
        for part in ["journal", "rows"] {
            copy(&filled.path().join(part), &directory.path().join(part));
        }
        let nth = if point.contains("recovery") { 1 } else { 3 };
        // Twice running: the second time it dies in what the first left behind.
        for _ in 0..2 {
            let died = child(directory.path(), Some(&format!("{point}:{nth}")));
            assert_eq!(
                died.status.signal(),
                Some(ABORT),
                "{point} did not take hold"
            );
        }
        // Nothing new was acknowledged if it died in recovery both times.
        let acknowledged: u64 = fs::read_to_string(directory.path().join("acknowledged"))
            .map_or(60, |text| text.parse().unwrap());
        let (store, rows, position) = open(directory.path()).unwrap();
        assert!(position.get() >= acknowledged, "{point}");
        compare(&store, &rows, position).unwrap();
        drop(store);
        let again = child(directory.path(), None);
        assert!(again.status.success(), "{point}: {again:?}");
    }
}
