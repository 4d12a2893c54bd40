mod conformance;
mod damage;
mod life;
mod limits;

use std::time::Duration;

use ferrymq_store::{Appended, LogSync as _, RecordLog as _, RowCounts, StoreError};
use ferrymq_types::Position;

use crate::{Journal, JournalOptions, segment, sim::SimDisk};

fn options() -> JournalOptions {
    JournalOptions {
        segment_bytes: 64 * 1024,
        segments_max: 4,
        reserve_bytes: 0,
        guard_interval: Duration::MAX,
        prepare_in_background: false,
    }
}

fn open(disk: &SimDisk) -> Result<Journal<SimDisk>, StoreError> {
    Journal::open(disk.clone(), options())
}

fn started(disk: &SimDisk) -> Journal<SimDisk> {
    let mut journal = open(disk).unwrap();
    journal.start().unwrap();
    journal
}

fn append(journal: &mut Journal<SimDisk>, text: &str) -> Appended {
    journal.append(1, &[text.as_bytes()]).unwrap()
}

/// A record that takes `blocks` blocks.
fn append_blocks(journal: &mut Journal<SimDisk>, blocks: usize) -> Result<Appended, StoreError> {
    journal.append(1, &[&vec![7; blocks * 4096 - crate::HEADER_BYTES]])
}

fn records(journal: &Journal<SimDisk>) -> Vec<(u64, Vec<u8>)> {
    let mut all = Vec::new();
    journal
        .replay(Position::ZERO, &mut |record| {
            assert_eq!(record.first, record.last);
            all.push((record.last.get(), record.payload.to_vec()));
            Ok(())
        })
        .unwrap();
    all
}

fn texts(journal: &Journal<SimDisk>) -> Vec<String> {
    records(journal)
        .into_iter()
        .map(|(_, bytes)| String::from_utf8(bytes).unwrap())
        .collect()
}

fn checkpoint(journal: &mut Journal<SimDisk>, position: Position) {
    let sync = journal.syncer();
    sync.sync().unwrap();
    sync.checkpoint(position, &RowCounts::default()).unwrap();
    journal.recycle(position).unwrap();
}

fn segment_files(disk: &SimDisk) -> Vec<String> {
    use crate::Disk as _;
    disk.list()
        .unwrap()
        .into_iter()
        .filter(|n| segment::number(n).is_some())
        .collect()
}

/// The first bit of the record that holds this payload.
fn bit_of(appended: &Appended) -> (String, usize) {
    let offset = usize::try_from(appended.place.offset).unwrap();
    (
        segment::name(appended.place.segment),
        (offset - crate::HEADER_BYTES) * 8,
    )
}
