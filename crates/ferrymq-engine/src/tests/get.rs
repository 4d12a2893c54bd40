//! Getting and waiting.

use std::time::Duration;

use ferrymq_objects::{Enabled, Queue};
use ferrymq_types::{Position, Priority, ReasonCode};

use super::harness::{C1, C2, World, correlation, get, message_id, put, put_np, queue_name, unit};
use crate::{Event, Get, Input, MatchIds, Put, Request};

fn with_priority(queue: &str, body: &str, priority: u8) -> Put {
    Put {
        priority: Priority::new(priority),
        ..put(queue, body)
    }
}

fn with_ids(queue: &str, body: &str, message: u8, corr: u8) -> Put {
    let mut p = put(queue, body);
    p.descriptor.message_id = message_id(message);
    p.descriptor.correlation_id = correlation(corr);
    p
}

fn matching(queue: &str, message: Option<u8>, corr: Option<u8>) -> Get {
    Get {
        matching: MatchIds {
            message_id: message.map(message_id),
            correlation_id: corr.map(correlation),
            ..MatchIds::default()
        },
        ..get(queue)
    }
}

#[test]
fn inv_o1_o2_messages_come_by_priority_and_in_put_order_or_first_in_first_out() {
    for (queue, expected) in [
        ("A", "high1 high2 low1 low2"),
        ("FIFO", "low1 high1 low2 high2"),
    ] {
        for cached in [true, false] {
            let mut w = if cached {
                World::new()
            } else {
                World::without_cache()
            };
            w.put(with_priority(queue, "low1", 1));
            w.put(with_priority(queue, "high1", 5));
            w.put(Put {
                priority: Priority::new(1),
                ..put_np(queue, "low2")
            });
            w.put(with_priority(queue, "high2", 5));
            assert_eq!(w.browse_texts(queue).join(" "), expected);
            let got: Vec<String> = (0..4).map(|_| w.get_text(queue)).collect();
            assert_eq!(got.join(" "), expected);
            assert!(w.is_empty(queue));
        }
    }
}

#[test]
fn inv_o5_order_holds_over_a_restart() {
    let mut w = World::new();
    for n in 0..10 {
        w.put(with_priority("A", &n.to_string(), 9 - n % 2));
    }
    let before = w.browse_texts("A");
    w.crash();
    assert_eq!(w.browse_texts("A"), before);
}

#[test]
fn gets_by_id_find_their_message_in_memory_and_in_the_store() {
    for cached in [true, false] {
        let mut w = if cached {
            World::new()
        } else {
            World::without_cache()
        };
        w.put(with_ids("A", "1", 1, 7));
        w.put(with_ids("A", "2", 2, 8));
        w.put(with_ids("A", "3", 2, 7));
        w.put(with_ids("A", "4", 3, 0));
        let mut text = |g: Get| {
            let (_, got) = w.get(g);
            String::from_utf8(got.message.body.to_vec()).unwrap()
        };
        assert_eq!(text(matching("A", Some(2), Some(7))), "3");
        assert_eq!(text(matching("A", None, Some(8))), "2");
        // All zeros match any.
        assert_eq!(text(matching("A", Some(0), Some(0))), "1");
        assert_eq!(text(matching("A", Some(3), None)), "4");
        assert!(w.is_empty("A"));
    }
}

#[test]
fn inhibited_gets_are_2016_also_through_an_alias_and_end_waits() {
    let mut w = World::new();
    w.put(put("A", "x"));
    w.alter_local("A", |q| q.get = Enabled::No);
    assert_eq!(w.get_refused(get("A")).1, ReasonCode::GET_INHIBITED);
    assert_eq!(w.get_refused(get("AL")).1, ReasonCode::GET_INHIBITED);
    w.alter_local("A", |q| q.get = Enabled::Yes);
    w.get_text("A");
    let wait = Get {
        wait_until: w.until(Duration::from_secs(10)),
        ..get("AL")
    };
    let waiting = w.ask(C1, Request::Get(wait));
    w.alter(|qmgr| match qmgr.queues.get_mut(&queue_name("AL")) {
        Some(Queue::Alias(q)) => q.get = Enabled::No,
        other => panic!("{other:?}"),
    });
    let (_, reply) = &w.replies[&waiting];
    assert_eq!(
        reply.as_ref().unwrap_err().reason,
        ReasonCode::GET_INHIBITED
    );
    assert_eq!(w.engine.waiting_requests(), 0);
}

#[test]
fn a_message_longer_than_the_buffer_stays() {
    for cached in [true, false] {
        let mut w = if cached {
            World::new()
        } else {
            World::without_cache()
        };
        w.put(put("A", "12345"));
        let short = Get {
            length_max: Some(4),
            ..get("A")
        };
        assert_eq!(w.get_refused(short).1, ReasonCode::TRUNCATED_MSG_FAILED);
        let exact = Get {
            length_max: Some(5),
            ..get("A")
        };
        w.get(exact);
    }
}

#[test]
fn u7_no_message_waits_for_the_last_change_of_the_queue() {
    let mut w = World::new();
    w.put(put("A", "x"));
    let (after, _) = w.get(get("A"));
    assert_eq!(after, Position::new(2));
    assert_eq!(
        w.get_refused(get("A")),
        (Position::new(2), ReasonCode::NO_MSG_AVAILABLE)
    );
    assert_eq!(w.get_refused(get("FIFO")).0, Position::ZERO);
}

fn wait(w: &World, queue: &str, seconds: u64) -> Request {
    Request::Get(Get {
        wait_until: w.until(Duration::from_secs(seconds)),
        ..get(queue)
    })
}

#[test]
fn waits_are_served_first_come_first_served_and_end_in_time() {
    let mut w = World::new();
    let first = w.ask(C1, wait(&w, "A", 10));
    let second = w.ask(C2, wait(&w, "A", 5));
    assert_eq!(w.engine.next_tick(), w.until(Duration::from_secs(5)));
    w.put(put("A", "x"));
    let (after, got) = w.got(first).unwrap();
    assert_eq!(&got.message.body[..], b"x");
    assert_eq!(after, Position::new(2));
    w.pass(Duration::from_secs(4));
    assert!(!w.replies.contains_key(&second));
    w.pass(Duration::from_secs(1));
    let (after, reply) = &w.replies[&second];
    assert_eq!(
        reply.as_ref().unwrap_err().reason,
        ReasonCode::NO_MSG_AVAILABLE
    );
    assert_eq!(*after, Position::new(2));
    assert_eq!(w.engine.next_tick(), None);
}

#[test]
fn waits_take_only_what_they_want() {
    let mut w = World::new();
    let wait_for = |w: &World, message: Option<u8>, corr: Option<u8>| {
        Request::Get(Get {
            wait_until: w.until(Duration::from_secs(10)),
            ..matching("A", message, corr)
        })
    };
    let by_correlation = w.ask(C1, wait_for(&w, None, Some(7)));
    let by_both = w.ask(C1, wait_for(&w, Some(2), Some(8)));
    let by_message = w.ask(C1, wait_for(&w, Some(2), None));
    w.put(with_ids("A", "1", 1, 9));
    assert!(!w.replies.contains_key(&by_correlation));
    w.put(with_ids("A", "2", 2, 9));
    assert_eq!(&w.got(by_message).unwrap().1.message.body[..], b"2");
    w.put(with_ids("A", "3", 3, 7));
    assert_eq!(&w.got(by_correlation).unwrap().1.message.body[..], b"3");
    w.put(with_ids("A", "4", 2, 8));
    assert_eq!(&w.got(by_both).unwrap().1.message.body[..], b"4");
    assert_eq!(w.get_text("A"), "1");
}

#[test]
fn waits_are_woken_by_commits_and_backouts() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    w.put(Put {
        syncpoint: Some(unit(1)),
        ..put("A", "x")
    });
    let waiting = w.ask(C2, wait(&w, "A", 10));
    assert!(!w.replies.contains_key(&waiting));
    w.commit(C1, unit(1));
    assert!(w.got(waiting).is_some());
    w.put(put("A", "y"));
    w.begin(C1, unit(2));
    w.get_in("A", unit(2));
    let waiting = w.ask(C2, wait(&w, "A", 10));
    assert!(!w.replies.contains_key(&waiting));
    w.back_out(C1, unit(2));
    assert_eq!(w.got(waiting).unwrap().1.backout_count, 1);
}

#[test]
fn cancelled_and_disconnected_waits_take_nothing() {
    let mut w = World::new();
    let cancelled = w.ask(C1, wait(&w, "A", 10));
    let disconnected = w.ask(C2, wait(&w, "A", 10));
    w.input(Input::Cancelled { id: cancelled });
    w.disconnect(C2);
    w.put(put("A", "x"));
    assert_eq!(w.depth("A"), 1);
    assert!(w.got(cancelled).is_none() && w.got(disconnected).is_none());
    assert_eq!(w.engine.next_tick(), None);
}

#[test]
fn u9_a_get_locks_reads_then_removes_and_gives_back_when_nobody_waits_any_more() {
    let mut w = World::without_cache();
    w.put(put("A", "1"));
    w.put(put("A", "2"));
    w.reads = false;
    let written = w.journal.len();
    let first = w.ask(C1, Request::Get(get("A")));
    let second = w.ask(C2, Request::Get(get("A")));
    // Nothing is removed before it is read and verified; the second get does not wait for the first.
    assert_eq!((w.journal.len(), w.fetches.len()), (written, 2));
    w.disconnect(C1);
    w.read();
    w.read();
    assert_eq!(&w.got(second).unwrap().1.message.body[..], b"2");
    assert!(w.got(first).is_none());
    w.reads = true;
    assert_eq!(w.get_text("A"), "1");
}

#[test]
fn u9_a_damaged_message_stays_is_reported_and_passed_over() {
    let mut w = World::without_cache();
    w.put(put("A", "bad"));
    w.put(put("A", "good"));
    let bad = *w.rows.messages.keys().next().unwrap();
    w.damaged.insert(bad);
    assert_eq!(w.get_text("A"), "good");
    assert!(w.is_empty("A"));
    assert_eq!(w.depth("A"), 1);
    assert!(w.rows.messages.contains_key(&bad));
    let reported = |e: &Event| {
        matches!(e, Event::Damaged { queue, sequence, what }
            if queue.as_str() == "A" && *sequence == bad.1 && what.contains("4096"))
    };
    assert!(w.has_event(reported));
    // A waiting get waits on, and has the next one.
    w.crash();
    let waiting = w.ask(C1, wait(&w, "A", 10));
    assert!(w.has_event(reported));
    w.put(put("A", "next"));
    assert_eq!(&w.got(waiting).unwrap().1.message.body[..], b"next");
}

#[test]
fn u9_a_get_under_syncpoint_whose_unit_ended_while_it_read_takes_nothing() {
    let mut w = World::without_cache();
    w.put(put("A", "x"));
    w.begin(C1, unit(1));
    w.reads = false;
    let reading = w.ask(
        C1,
        Request::Get(Get {
            syncpoint: Some(unit(1)),
            ..get("A")
        }),
    );
    w.commit(C1, unit(1));
    w.read();
    let (_, reply) = &w.replies[&reading];
    assert_eq!(
        reply.as_ref().unwrap_err().reason,
        ReasonCode::UOW_NOT_AVAILABLE
    );
    w.reads = true;
    assert_eq!(w.get_text("A"), "x");
}

#[test]
fn a_deep_queue_with_a_locked_head_is_got_from_behind_it() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    for n in 0..100 {
        w.put(put("A", &n.to_string()));
    }
    for _ in 0..99 {
        w.get_in("A", unit(1));
    }
    assert_eq!(w.get_text("A"), "99");
    w.back_out(C1, unit(1));
    assert_eq!(w.get_text("A"), "0");
}
