use openraft::Vote;
use openraft::impls::leader_id_std::LeaderId;
use openraft::storage::{
    IOFlushed, RaftLogReader as _, RaftLogStorage as _, RaftLogStorageExt as _,
};
use openraft::vote::RaftLeaderId as _;

use ferrymq_store::memory::{MemoryDisk, MemoryOptions};
use ferrymq_store::{RecordLog as _, StoreError};

use super::{blank, log_id};
use crate::conformance::{Empty, raft_storage};
use crate::log::{LogStorage, LogThread, ReadLog};

use super::MemoryState;

fn open(disk: &MemoryDisk, options: MemoryOptions) -> Result<(LogStorage, LogThread), StoreError> {
    ReadLog::read(disk.open_log(options))?.start()
}

fn vote(term: u64) -> crate::types::Vote {
    Vote {
        leader_id: LeaderId::new(term, 1),
        committed: true,
    }
}

async fn indices(log: &mut LogStorage) -> Vec<u64> {
    let entries = log
        .get_log_reader()
        .await
        .try_get_log_entries(..)
        .await
        .unwrap();
    entries.iter().map(|e| e.log_id.index).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn openraft_finds_its_storage_right_in_memory() {
    let run = raft_storage(|| {
        let guard = tempfile::tempdir().unwrap();
        Empty {
            log: MemoryDisk::new().open_log(MemoryOptions::default()),
            state: std::sync::Arc::new(MemoryState::default()),
            directory: guard.path().to_owned(),
            guard,
        }
    });
    run.await.unwrap();
}

#[tokio::test]
async fn inv_s1_what_was_confirmed_is_there_after_a_power_cut() {
    for seed in 0..20 {
        let disk = MemoryDisk::new();
        let (mut log, _thread) = open(&disk, MemoryOptions::default()).unwrap();
        log.save_vote(&vote(3)).await.unwrap();
        log.blocking_append((0..10).map(|i| blank(1, i)))
            .await
            .unwrap();
        log.truncate_after(Some(log_id(1, 6))).await.unwrap();
        log.blocking_append([blank(3, 7), blank(3, 8)])
            .await
            .unwrap();
        log.purge(log_id(1, 2)).await.unwrap();
        log.save_committed(Some(log_id(3, 7))).await.unwrap();
        log.blocking_append([blank(3, 9)]).await.unwrap();
        disk.crash(seed);

        let (mut log, _thread) = open(&disk, MemoryOptions::default()).unwrap();
        assert_eq!(indices(&mut log).await, [3, 4, 5, 6, 7, 8, 9]);
        let state = log.get_log_state().await.unwrap();
        assert_eq!(state.last_purged_log_id, Some(log_id(1, 2)));
        assert_eq!(state.last_log_id, Some(log_id(3, 9)));
        assert_eq!(
            log.get_log_reader().await.read_vote().await.unwrap(),
            Some(vote(3))
        );
        assert_eq!(log.read_committed().await.unwrap(), Some(log_id(3, 7)));
    }
}

#[tokio::test]
async fn inv_s2_after_a_failed_sync_nothing_is_confirmed_any_more() {
    let disk = MemoryDisk::new();
    let (mut log, _thread) = open(&disk, MemoryOptions::default()).unwrap();
    log.blocking_append([blank(1, 0)]).await.unwrap();
    disk.fail_next_sync();
    log.blocking_append([blank(1, 1)]).await.unwrap_err();
    log.blocking_append([blank(1, 2)]).await.unwrap_err();
    log.save_vote(&vote(2)).await.unwrap_err();
    assert_eq!(log.get_log_reader().await.read_vote().await.unwrap(), None);
}

#[tokio::test]
async fn u20_a_quiet_group_pins_nothing() {
    let options = MemoryOptions {
        log_bytes_max: 32 * 1024,
        payload_bytes_max: 8 * 1024,
    };
    let disk = MemoryDisk::new();
    let (mut log, mut thread) = open(&disk, options).unwrap();
    log.blocking_append((0..5).map(|i| blank(1, i)))
        .await
        .unwrap();
    log.purge(log_id(1, 1)).await.unwrap();
    log.save_committed(Some(log_id(1, 3))).await.unwrap();
    // Each record is a few bytes: together they are some times what the log may hold.
    for term in 0..6_000 {
        log.save_vote(&vote(term)).await.unwrap();
    }
    thread.stop().await;

    let reopened = disk.open_log(options);
    assert!(reopened.usage().used < options.log_bytes_max / 2);
    let (mut log, _thread) = ReadLog::read(reopened).unwrap().start().unwrap();
    assert_eq!(indices(&mut log).await, [2, 3, 4]);
    assert_eq!(
        log.get_log_state().await.unwrap().last_purged_log_id,
        Some(log_id(1, 1))
    );
    assert_eq!(log.read_committed().await.unwrap(), Some(log_id(1, 3)));
    let vote_read = log.get_log_reader().await.read_vote().await.unwrap();
    assert_eq!(vote_read, Some(vote(5_999)));
}

#[tokio::test]
async fn a_purge_gives_space_back() {
    let disk = MemoryDisk::new();
    let used = || disk.open_log(MemoryOptions::default()).usage().used;
    let (mut log, mut thread) = open(&disk, MemoryOptions::default()).unwrap();
    log.blocking_append((0..1000).map(|i| blank(1, i)))
        .await
        .unwrap();
    log.blocking_append([blank(1, 1000)]).await.unwrap();
    thread.stop().await;
    let before = used();

    let (mut log, mut thread) = open(&disk, MemoryOptions::default()).unwrap();
    log.purge(log_id(1, 999)).await.unwrap();
    thread.stop().await;
    assert!(used() < before / 10);
    let (mut log, _thread) = open(&disk, MemoryOptions::default()).unwrap();
    assert_eq!(indices(&mut log).await, [1000]);
}

#[tokio::test]
async fn inv_s3_a_hole_in_the_log_is_refused() {
    let disk = MemoryDisk::new();
    let (mut log, mut thread) = open(&disk, MemoryOptions::default()).unwrap();
    log.append([blank(1, 0), blank(1, 2)], IOFlushed::noop())
        .await
        .unwrap();
    thread.stop().await;
    let Err(refused) = open(&disk, MemoryOptions::default()) else {
        panic!("a log with a hole was opened");
    };
    assert!(matches!(refused, StoreError::Corrupt { .. }), "{refused}");
    assert!(
        refused.to_string().contains("entry 1 is missing"),
        "{refused}"
    );
}

#[tokio::test]
async fn readers_get_what_fits_in_a_message_and_at_least_one() {
    let disk = MemoryDisk::new();
    let (mut log, _thread) = open(&disk, MemoryOptions::default()).unwrap();
    log.blocking_append((0..200).map(|i| blank(1, i)))
        .await
        .unwrap();
    let mut reader = log.get_log_reader().await;
    let found = reader.limited_get_log_entries(10, 150).await.unwrap();
    assert_eq!(found.len(), 64);
    assert_eq!(found.first().map(|e| e.log_id.index), Some(10));
    assert_eq!(
        reader
            .limited_get_log_entries(199, 200)
            .await
            .unwrap()
            .len(),
        1
    );
    let backwards = reader.try_get_log_entries(std::ops::Range { start: 9, end: 3 });
    assert!(backwards.await.unwrap().is_empty());
}
