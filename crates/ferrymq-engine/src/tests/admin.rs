//! Statistics, clearing, closing, dumps.

use std::time::Duration;

use ferrymq_types::{AccountReason, ObjectId, ReasonCode, Sequence};

use super::harness::{C1, C2, World, get, put, put_np, queue_name, unit};
use crate::{DumpItem, Get, Put, QueueStatistics, Reply, Request};

fn statistics(w: &mut World, queue: &str) -> QueueStatistics {
    match w.answer(C2, Request::QueueStatistics).1 {
        Ok(Reply::Queues(queues)) => queues[&queue_name(queue)].clone(),
        other => panic!("{other:?}"),
    }
}

fn clear(queue: &str) -> Request {
    Request::Clear {
        queue: queue_name(queue),
        who: "operator".into(),
    }
}

fn close(queue: &str, purge: bool) -> Request {
    Request::CloseQueue {
        queue: queue_name(queue),
        purge,
        who: "operator".into(),
    }
}

#[test]
fn statistics_count_what_is_there_and_who_uses_it() {
    let mut w = World::new();
    let first = w.now;
    w.put(put("A", "1"));
    w.now = w.now.saturating_add(Duration::from_secs(1));
    w.put(put("A", "2"));
    w.begin(C1, unit(1));
    w.put(Put {
        syncpoint: Some(unit(1)),
        ..put("A", "3")
    });
    let s = statistics(&mut w, "A");
    assert_eq!((s.depth, s.uncommitted), (3, 1));
    assert_eq!(
        (s.oldest, s.last_put, s.last_get),
        (Some(first), Some(w.now), None)
    );
    assert_eq!((s.input_handles, s.output_handles), (0, 1));
    w.get_in("A", unit(1));
    let wait = Get {
        wait_until: w.until(Duration::from_secs(1)),
        ..get("FIFO")
    };
    w.ask(C1, Request::Get(wait));
    let s = statistics(&mut w, "A");
    assert_eq!((s.depth, s.uncommitted, s.oldest), (3, 2, Some(w.now)));
    assert_eq!(statistics(&mut w, "FIFO").input_handles, 1);
    let (after, _) = w.answer(C2, Request::QueueStatistics);
    assert_eq!(after, w.rows.position);
}

#[test]
fn clear_removes_everything_with_an_account_unless_somebody_uses_the_queue() {
    let mut w = World::new();
    w.put(put("A", "p"));
    w.put(put_np("A", "np"));
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    assert_eq!(w.refusal(C2, clear("A")), ReasonCode::OBJECT_IN_USE);
    w.back_out(C1, unit(1));
    let (after, reply) = w.answer(C2, clear("A"));
    assert!(matches!(reply, Ok(Reply::Cleared(2))));
    assert_eq!(after, w.rows.position);
    let entry = w.rows.account.values().next().unwrap();
    assert_eq!(
        (entry.reason, entry.who.as_str()),
        (AccountReason::Cleared, "operator")
    );
    assert_eq!(w.rows.account.len(), 1);
    w.crash();
    assert_eq!(w.depth("A"), 0);
    assert_eq!(w.refusal(C2, clear("AL")), ReasonCode::OBJECT_TYPE_ERROR);
    assert_eq!(w.refusal(C2, clear("NO")), ReasonCode::UNKNOWN_OBJECT_NAME);
}

#[test]
fn u15_a_closed_queue_takes_and_gives_nothing_also_after_a_crash() {
    let mut w = World::new();
    w.put(put("A", "x"));
    assert_eq!(w.refusal(C2, close("A", false)), ReasonCode::Q_NOT_EMPTY);
    w.done(C2, close("A", true));
    for _ in 0..2 {
        assert_eq!(w.put_refused(put("A", "y")), ReasonCode::Q_DELETED);
        assert_eq!(w.get_refused(get("A")).1, ReasonCode::Q_DELETED);
        w.crash();
    }
    assert_eq!(w.rows.account.len(), 1);
    let reopen = Request::ReopenQueue {
        queue: queue_name("A"),
    };
    let after = w.done(C2, reopen);
    assert_eq!(after, w.rows.position);
    w.put(put("A", "y"));
}

#[test]
fn u15_a_queue_in_use_is_not_closed() {
    let mut w = World::new();
    let wait = Get {
        wait_until: w.until(Duration::from_secs(1)),
        ..get("A")
    };
    let waiting = w.ask(C1, Request::Get(wait));
    assert_eq!(w.refusal(C2, close("A", true)), ReasonCode::OBJECT_IN_USE);
    w.input(crate::Input::Cancelled { id: waiting });
    w.begin(C1, unit(1));
    w.put(Put {
        syncpoint: Some(unit(1)),
        ..put("A", "x")
    });
    assert_eq!(w.refusal(C2, close("A", true)), ReasonCode::OBJECT_IN_USE);
    w.back_out(C1, unit(1));
    w.done(C2, close("A", false));
}

#[test]
fn a_dump_comes_in_pages_and_changes_nothing() {
    let mut w = World::new();
    for n in 0..5 {
        w.put(put("A", &n.to_string()));
        w.put(put_np("FIFO", &n.to_string()));
    }
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    let before = w.rows.clone();
    let mut all: Vec<DumpItem> = Vec::new();
    loop {
        let after: Option<(ObjectId, Sequence)> = all.last().map(|i| (i.queue.0, i.sequence));
        let page = Request::Dump { after, limit: 3 };
        match w.answer(C2, page).1 {
            Ok(Reply::Dump(items)) if items.is_empty() => break,
            Ok(Reply::Dump(items)) => all.extend(items),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(all.len(), 10);
    assert_eq!(all.iter().filter(|i| i.held).count(), 1);
    assert!(
        all.windows(2)
            .all(|p| (p[0].queue.0, p[0].sequence) < (p[1].queue.0, p[1].sequence))
    );
    assert_eq!(w.rows, before);
}

#[test]
fn channels_stay_stopped_over_a_restart() {
    let mut w = World::new();
    let set = |stopped| Request::SetChannelStopped {
        channel: super::harness::channel_name("C"),
        stopped,
    };
    let position = w.done(C1, set(true));
    assert_eq!(w.done(C1, set(true)), position);
    w.crash();
    let stopped = |w: &mut World| match w.answer(C1, Request::ChannelRows).1 {
        Ok(Reply::Channels { stopped, .. }) => stopped.len(),
        other => panic!("{other:?}"),
    };
    assert_eq!(stopped(&mut w), 1);
    w.done(C1, set(false));
    assert_eq!(stopped(&mut w), 0);
    w.crash();
    assert_eq!(stopped(&mut w), 0);
}
