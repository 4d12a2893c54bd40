//! The account.

use std::time::Duration;

use ferrymq_types::{Position, Timestamp};

use super::harness::{C1, C2, World, definitions, put, put_np, queue_name, unit};
use crate::{Limits, Reply, Request};

fn page(w: &mut World, after: u64, since: Timestamp, limit: u32) -> (Position, Vec<u64>) {
    let request = Request::Account {
        after,
        since,
        limit,
    };
    match w.answer(C2, request) {
        (position, Ok(Reply::Account(entries))) => {
            (position, entries.iter().map(|e| e.number).collect())
        }
        (_, other) => panic!("{other:?}"),
    }
}

fn clear(w: &mut World) {
    let request = Request::Clear {
        queue: queue_name("A"),
        who: "operator".into(),
    };
    assert!(w.answer(C1, request).1.is_ok());
}

#[test]
fn inv_v2_entries_come_in_pages_and_survive_if_the_message_would() {
    let mut w = World::new();
    for _ in 0..3 {
        w.put(put("A", "p"));
    }
    w.put(put_np("A", "np"));
    clear(&mut w);
    let (position, numbers) = page(&mut w, 0, Timestamp::ZERO, 3);
    assert_eq!((position, numbers), (w.rows.position, vec![1, 2, 3]));
    assert_eq!(page(&mut w, 3, Timestamp::ZERO, 3).1, [4]);
    assert!(page(&mut w, 4, Timestamp::ZERO, 3).1.is_empty());
    assert!(page(&mut w, u64::MAX, Timestamp::ZERO, 3).1.is_empty());
    w.crash();
    assert_eq!(page(&mut w, 0, Timestamp::ZERO, 9).1, [1, 2, 3]);
    w.now = w.now.saturating_add(Duration::from_secs(1));
    w.put(put("A", "later"));
    clear(&mut w);
    let since = w.now;
    assert_eq!(page(&mut w, 0, since, 9).1, [4]);
}

#[test]
fn the_oldest_entries_go_beyond_the_limit() {
    let limits = Limits {
        account_entries_max: 2,
        ..Limits::default()
    };
    let mut w = World::with(definitions(), limits);
    for _ in 0..4 {
        w.put(put("A", "x"));
        clear(&mut w);
    }
    assert_eq!(page(&mut w, 0, Timestamp::ZERO, 9).1, [3, 4]);
    w.put(put("A", "x"));
    assert_eq!(w.rows.account.keys().copied().collect::<Vec<_>>(), [3, 4]);
}

#[test]
fn entries_of_a_unit_of_work_come_with_its_commit() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    let discard = |syncpoint| Request::ReceiverDiscard {
        channel: super::harness::channel_name("C"),
        message_id: super::harness::message_id(1),
        queue: queue_name("A"),
        reason: ferrymq_types::AccountReason::Discarded(ferrymq_types::ReasonCode::Q_FULL),
        syncpoint,
    };
    w.done(C1, discard(Some(unit(1))));
    assert!(page(&mut w, 0, Timestamp::ZERO, 9).1.is_empty());
    w.commit(C1, unit(1));
    assert_eq!(w.rows.account.len(), 1);
    w.done(C1, discard(None));
    assert_eq!(page(&mut w, 0, Timestamp::ZERO, 9).1, [1, 2]);
    assert_eq!(w.rows.account.len(), 1);
}
