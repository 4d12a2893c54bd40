use std::fs;
use std::sync::Arc;

use futures::stream;
use openraft::EntryPayload;
use openraft::storage::{RaftSnapshotBuilder as _, RaftStateMachine as _};

use ferrymq_objects::{Action, Definitions, DeleteKind, ObjectKind};
use ferrymq_store::StoreError;

use super::{MemoryState, blank, command, create, define, entry, log_id};
use crate::state::{SnapshotDirectory, StateMachine};
use crate::types::{Entry, Proposal};

struct Machine {
    directory: tempfile::TempDir,
    rows: MemoryState,
}

impl Machine {
    fn new() -> Self {
        Self {
            directory: tempfile::tempdir().unwrap(),
            rows: MemoryState::default(),
        }
    }

    fn open(&self) -> Result<StateMachine, StoreError> {
        let snapshots = SnapshotDirectory::open(self.directory.path(), "test").unwrap();
        StateMachine::open(Arc::new(self.rows.clone()), Arc::new(snapshots))
    }

    fn snapshot(&self) -> std::path::PathBuf {
        self.directory.path().join("definitions.snapshot")
    }
}

async fn apply(machine: &mut StateMachine, entries: Vec<Entry>) -> std::io::Result<()> {
    machine
        .apply(stream::iter(entries.into_iter().map(|e| Ok((e, None)))))
        .await
}

fn shown(machine: &StateMachine) -> Arc<Definitions> {
    Arc::clone(&machine.watch().borrow().definitions)
}

fn some_entries() -> Vec<Entry> {
    let delete = |number| {
        command(
            number,
            Action::Delete {
                kind: DeleteKind::Kind(ObjectKind::LocalQueue),
                name: "A".to_owned(),
            },
        )
    };
    vec![
        blank(1, 0),
        entry(1, 1, &create(1)),
        entry(1, 2, &define(2, "A")),
        entry(1, 3, &define(3, "B")),
        entry(1, 4, &delete(4)),
        entry(1, 5, &define(5, "A")),
        // Repeated: it must not delete the queue that was defined anew.
        entry(1, 6, &delete(4)),
        entry(1, 7, &define(7, "B")),
        entry(
            1,
            8,
            &command(
                8,
                Action::AlterQueueManager {
                    attributes: [(
                        "DESCR",
                        ferrymq_objects::AttributeValue::Text("x".to_owned()),
                    )]
                    .into_iter()
                    .collect(),
                },
            ),
        ),
        blank(1, 9),
    ]
}

#[tokio::test]
async fn what_was_applied_is_there_again_after_a_restart_however_it_was_batched() {
    let whole = Machine::new();
    let mut machine = whole.open().unwrap();
    apply(&mut machine, some_entries()).await.unwrap();

    let single = Machine::new();
    let mut one_by_one = single.open().unwrap();
    for entry in some_entries() {
        apply(&mut one_by_one, vec![entry]).await.unwrap();
        let reopened = single.open().unwrap();
        assert_eq!(shown(&reopened), shown(&one_by_one));
    }

    assert_eq!(
        *whole.rows.rows.lock().unwrap(),
        *single.rows.rows.lock().unwrap()
    );
    let mut reopened = whole.open().unwrap();
    assert_eq!(shown(&reopened), shown(&machine));
    assert_eq!(reopened.watch().borrow().index, 9);
    assert_eq!(
        reopened.applied_state().await.unwrap().0,
        Some(log_id(1, 9))
    );
    let queue_manager = shown(&reopened)
        .queue_managers
        .values()
        .next()
        .cloned()
        .unwrap();
    assert!(queue_manager.queues.keys().any(|q| q.as_str() == "A"));
    assert_eq!(shown(&reopened).remembered.len(), 7);
}

#[tokio::test]
async fn u15_nothing_is_shown_that_the_rows_do_not_have() {
    let machine = Machine::new();
    let mut open = machine.open().unwrap();
    apply(&mut open, vec![entry(1, 1, &create(1))])
        .await
        .unwrap();
    let before = shown(&open);
    *machine.rows.refuse.lock().unwrap() = true;
    apply(&mut open, vec![entry(1, 2, &define(2, "A"))])
        .await
        .unwrap_err();
    assert_eq!(shown(&open), before);
}

#[tokio::test]
async fn inv_r7_an_entry_of_a_newer_release_stops_the_state_machine() {
    let machine = Machine::new();
    let mut open = machine.open().unwrap();
    let mut newer = define(2, "A");
    newer.version = 2;
    let entries = vec![entry(1, 1, &create(1)), entry(1, 2, &newer), blank(1, 3)];
    let refused = apply(&mut open, entries).await.unwrap_err();
    assert!(
        refused.to_string().contains("use the newer one"),
        "{refused}"
    );
    assert_eq!(open.applied_state().await.unwrap().0, None);

    let garbage = Entry {
        log_id: log_id(1, 1),
        payload: EntryPayload::Normal(Proposal(bytes::Bytes::from_static(b"\xff"))),
    };
    apply(&mut open, vec![garbage]).await.unwrap_err();
}

#[tokio::test]
async fn inv_s3_a_lost_row_is_refused_at_open() {
    let machine = Machine::new();
    let mut open = machine.open().unwrap();
    apply(&mut open, some_entries()).await.unwrap();
    let keys: Vec<Vec<u8>> = machine.rows.rows.lock().unwrap().keys().cloned().collect();
    for key in keys {
        let lost = machine.rows.rows.lock().unwrap().remove(&key).unwrap();
        assert!(machine.open().is_err(), "{}", String::from_utf8_lossy(&key));
        machine.rows.rows.lock().unwrap().insert(key, lost);
    }
    machine.open().unwrap();
}

#[tokio::test]
async fn inv_r2_a_snapshot_makes_another_node_the_same() {
    let leader = Machine::new();
    let mut from = leader.open().unwrap();
    apply(&mut from, some_entries()).await.unwrap();
    let snapshot = from
        .get_snapshot_builder()
        .await
        .build_snapshot()
        .await
        .unwrap();

    let follower = Machine::new();
    let mut to = follower.open().unwrap();
    apply(
        &mut to,
        vec![entry(1, 1, &create(9)), entry(1, 2, &define(8, "OLD"))],
    )
    .await
    .unwrap();
    to.install_snapshot(&snapshot.meta, snapshot.snapshot)
        .await
        .unwrap();
    assert_eq!(shown(&to), shown(&from));
    assert_eq!(
        *follower.rows.rows.lock().unwrap(),
        *leader.rows.rows.lock().unwrap()
    );
    assert_eq!(shown(&follower.open().unwrap()), shown(&from));
    let kept = to.get_current_snapshot().await.unwrap().unwrap();
    assert_eq!(kept.meta, snapshot.meta);
}

#[tokio::test]
async fn inv_r6_a_snapshot_whose_rows_were_not_written_is_there_at_the_next_start() {
    let leader = Machine::new();
    let mut from = leader.open().unwrap();
    apply(&mut from, some_entries()).await.unwrap();
    let snapshot = from
        .get_snapshot_builder()
        .await
        .build_snapshot()
        .await
        .unwrap();
    // What a receiver has: a file of its own.
    let follower = Machine::new();
    let receiving = SnapshotDirectory::open(follower.directory.path(), "test").unwrap();
    let mut received = receiving.create().unwrap();
    received
        .write(&fs::read(leader.snapshot()).unwrap())
        .unwrap();

    let mut to = follower.open_with(receiving);
    *follower.rows.refuse.lock().unwrap() = true;
    to.install_snapshot(&snapshot.meta, received)
        .await
        .unwrap_err();
    *follower.rows.refuse.lock().unwrap() = false;

    let mut again = follower.open().unwrap();
    assert_eq!(again.applied_state().await.unwrap().0, None);
    let kept = again.get_current_snapshot().await.unwrap().unwrap();
    assert_eq!(kept.meta, snapshot.meta);
    again
        .install_snapshot(&kept.meta, kept.snapshot)
        .await
        .unwrap();
    assert_eq!(shown(&again), shown(&from));
}

impl Machine {
    fn open_with(&self, snapshots: SnapshotDirectory) -> StateMachine {
        StateMachine::open(Arc::new(self.rows.clone()), Arc::new(snapshots)).unwrap()
    }
}

#[tokio::test]
async fn inv_s3_a_flipped_bit_in_a_snapshot_is_found() {
    let machine = Machine::new();
    let mut open = machine.open().unwrap();
    apply(&mut open, vec![blank(1, 0), entry(1, 1, &create(1))])
        .await
        .unwrap();
    let made = open
        .get_snapshot_builder()
        .await
        .build_snapshot()
        .await
        .unwrap();
    drop(made);
    let file = machine.snapshot();
    let good = fs::read(&file).unwrap();
    for byte in (0..good.len())
        .step_by(7)
        .chain(good.len() - 20..good.len())
    {
        let mut bad = good.clone();
        bad[byte] ^= 1 << (byte % 8);
        fs::write(&file, &bad).unwrap();
        let refused = machine
            .open()
            .unwrap()
            .get_current_snapshot()
            .await
            .unwrap_err();
        assert!(
            refused.to_string().contains("definitions.snapshot"),
            "{byte}: {refused}"
        );
    }
    for length in [0, 7, 8, good.len() / 2, good.len() - 1] {
        fs::write(&file, &good[..length]).unwrap();
        machine
            .open()
            .unwrap()
            .get_current_snapshot()
            .await
            .unwrap_err();
    }
    fs::write(&file, [good.as_slice(), b"x"].concat()).unwrap();
    machine
        .open()
        .unwrap()
        .get_current_snapshot()
        .await
        .unwrap_err();
    fs::write(&file, good).unwrap();
    assert!(
        machine
            .open()
            .unwrap()
            .get_current_snapshot()
            .await
            .unwrap()
            .is_some()
    );
}

#[tokio::test]
async fn an_older_snapshot_does_not_take_the_place_of_a_newer_one() {
    let machine = Machine::new();
    let mut open = machine.open().unwrap();
    apply(&mut open, vec![blank(1, 0)]).await.unwrap();
    let mut slow = open.get_snapshot_builder().await;
    apply(&mut open, vec![entry(1, 1, &create(1))])
        .await
        .unwrap();
    open.get_snapshot_builder()
        .await
        .build_snapshot()
        .await
        .unwrap();
    let late = slow.build_snapshot().await.unwrap();
    assert_eq!(late.meta.last_log_id, Some(log_id(1, 0)));
    let current = open.get_current_snapshot().await.unwrap().unwrap();
    assert_eq!(current.meta.last_log_id, Some(log_id(1, 1)));
    drop(late);
    let left = fs::read_dir(machine.directory.path()).unwrap().count();
    assert_eq!(left, 1);
}
