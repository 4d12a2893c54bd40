//! Expiry.

use std::time::Duration;

use ferrymq_types::{AccountReason, Timestamp};

use super::harness::{C1, World, put, put_np, unit};
use crate::{Event, Put};

fn expiring(w: &World, p: Put, seconds: u64) -> Put {
    let mut p = p;
    p.descriptor.expires_at = w.until(Duration::from_secs(seconds));
    p
}

#[test]
fn rule_8_inv_d7_an_expired_message_is_never_returned_and_leaves_an_account_entry() {
    let mut w = World::without_cache();
    w.put(expiring(&w, put("A", "old"), 1));
    w.put(put("A", "new"));
    w.now = w.now.saturating_add(Duration::from_secs(1));
    assert_eq!(w.browse_texts("A"), ["new"]);
    w.put(expiring(&w, put("FIFO", "old"), 1));
    w.now = w.now.saturating_add(Duration::from_secs(1));
    assert!(w.is_empty("FIFO"));
    let reasons: Vec<_> = w.rows.account.values().map(|e| e.reason).collect();
    assert_eq!(reasons, [AccountReason::Expired, AccountReason::Expired]);
    assert!(w.has_event(|e| matches!(e, Event::Accounted(_))));
    w.crash();
    assert_eq!((w.depth("A"), w.depth("FIFO")), (1, 0));
    assert_eq!(w.rows.account.len(), 2);
}

#[test]
fn a_scan_takes_what_nobody_looks_at() {
    let mut w = World::new();
    for n in 0..5 {
        w.put(expiring(&w, put("A", "x"), n + 1));
        w.put(expiring(&w, put_np("B", "x"), n + 1));
    }
    let due = w.engine.next_tick().unwrap();
    assert_eq!(Some(due), w.until(Duration::from_secs(1)));
    w.pass(Duration::from_secs(3));
    assert_eq!((w.depth("A"), w.depth("B")), (2, 2));
    w.pass(Duration::from_secs(3));
    assert_eq!((w.depth("A"), w.depth("B")), (0, 0));
    assert_eq!(w.engine.non_persistent_bytes(), 0);
}

#[test]
fn a_message_that_expired_before_its_put_was_answered_goes_at_once() {
    let mut w = World::new();
    let mut p = put("A", "late");
    p.descriptor.expires_at = Some(Timestamp::from_millis(1));
    w.put(p);
    assert!(w.is_empty("A"));
    assert_eq!(w.rows.account.len(), 1);
}

#[test]
fn inv_d7_a_clock_that_steps_back_expires_nothing_and_stops_nothing() {
    let mut w = World::new();
    w.put(expiring(&w, put("A", "1"), 10));
    w.pass(Duration::from_secs(20));
    assert_eq!(w.depth("A"), 0);
    w.now = Timestamp::from_millis(w.now.as_millis() - 7_200_000);
    w.put(expiring(&w, put("A", "2"), 10));
    w.pass(Duration::from_secs(9));
    assert_eq!(w.browse_texts("A"), ["2"]);
    w.pass(Duration::from_secs(2));
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn inv_d7_a_backed_out_message_expires_then() {
    let mut w = World::new();
    w.put(expiring(&w, put("A", "x"), 1));
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    w.pass(Duration::from_secs(5));
    assert_eq!(w.depth("A"), 1);
    w.back_out(C1, unit(1));
    assert!(w.is_empty("A"));
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn rule_8_inv_d7_messages_do_not_expire_on_dead_letter_and_backout_queues() {
    let mut w = World::new();
    for queue in ["DLQ", "BO"] {
        w.put(expiring(&w, put(queue, "kept"), 1));
    }
    w.pass(Duration::from_secs(100));
    w.crash();
    for queue in ["DLQ", "BO"] {
        let kept = w.browse(queue);
        assert!(kept[0].message.descriptor.expires_at.is_some(), "inv_d1");
    }
    assert_eq!(w.engine.next_tick(), None);
    // A queue that is no such queue any more is as others are.
    w.alter(|qmgr| qmgr.attributes.dead_letter_queue_name = None);
    let due = w.engine.next_tick().unwrap();
    w.pass(due.since(w.now));
    assert_eq!(w.depth("DLQ"), 0);
}
