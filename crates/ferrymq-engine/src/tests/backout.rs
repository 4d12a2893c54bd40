//! Backout counts, thresholds and poison messages.

use std::time::Duration;

use ferrymq_objects::Enabled;
use ferrymq_types::{AccountReason, DeadLetterHeader, ReasonCode};

use super::harness::{C1, World, get, put, put_np, queue_name, unit};
use crate::{Event, Get};

/// Gets from `queue` in a unit of work and backs out, `times` over.
fn fail(w: &mut World, queue: &str, times: u8, first: u8) {
    for n in 0..times {
        w.begin(C1, unit(first + n));
        let (_, got) = w.get_in(queue, unit(first + n));
        assert_eq!(got.backout_count, u32::from(n));
        w.back_out(C1, unit(first + n));
    }
}

#[test]
fn inv_b1_the_count_is_the_number_of_backouts_and_survives_a_crash() {
    let mut w = World::new();
    w.put(put("A", "x"));
    w.put(put_np("FIFO", "np"));
    fail(&mut w, "A", 3, 1);
    fail(&mut w, "FIFO", 2, 10);
    w.crash();
    assert_eq!(w.get(get("A")).1.backout_count, 3);
    assert!(w.is_empty("FIFO"));
}

#[test]
fn rule_10_inv_b2_at_the_threshold_the_message_moves_to_the_backout_queue_in_one_write_set() {
    let mut w = World::new();
    let (_, done) = w.put(put("B", "poison"));
    w.put(put("B", "next"));
    fail(&mut w, "B", 2, 1);
    assert_eq!(w.browse_texts("B"), ["next"]);
    let moved = w.browse("BO");
    assert_eq!(moved[0].backout_count, 0);
    assert_eq!(moved[0].message.descriptor.message_id, done.message_id);
    assert!(moved[0].message.header.is_empty());
    let entry = w.rows.account.values().next().unwrap();
    assert_eq!(entry.reason, AccountReason::BackedOut);
    assert_eq!(entry.to.as_deref(), Some("BO"));
    assert!(w.has_event(|e| matches!(e, Event::Accounted(_))));
    // inv_c5: on either side of the write set it is on one queue (the rows check that no body is on two).
    let last = w.rows.position;
    w.crash();
    assert_eq!((w.depth("B"), w.depth("BO")), (1, 1));
    w.crash_at(ferrymq_types::Position::new(last.get() - 1));
    assert_eq!((w.depth("B"), w.depth("BO")), (2, 0));
}

#[test]
fn inv_b2_non_persistent_poison_moves_too() {
    let mut w = World::new();
    w.put(put_np("B", "np"));
    fail(&mut w, "B", 2, 1);
    assert_eq!(w.browse_texts("BO"), ["np"]);
    assert!(
        w.rows.account.is_empty(),
        "its entry is in memory, as it is"
    );
}

#[test]
fn inv_b3_without_a_usable_backout_queue_it_goes_to_the_dead_letter_queue() {
    let check = |change: &dyn Fn(&mut World), reason: u32| {
        let mut w = World::new();
        change(&mut w);
        let mut p = put("B", "body");
        p.descriptor.format = "MQSTR".into();
        w.put(p);
        fail(&mut w, "B", 2, 1);
        let dead = w.browse("DLQ");
        let message = &dead[0].message;
        let header = DeadLetterHeader::read(&message.data()).unwrap();
        assert_eq!(header.reason.get(), reason);
        assert_eq!(header.destination_queue, "B");
        assert_eq!(header.destination_queue_manager, "QM1");
        assert_eq!(header.format, "MQSTR");
        assert_eq!(message.descriptor.format, "MQDEAD");
        assert_eq!(&message.body[..], b"body");
        assert_eq!(w.depth("B"), 0);
        w.crash();
        assert_eq!(w.depth("DLQ"), 1);
    };
    check(
        &|w| w.alter_local("B", |q| q.backout_requeue_name = None),
        2362,
    );
    check(
        &|w| w.alter_local("B", |q| q.backout_requeue_name = Some(queue_name("NONE"))),
        2085,
    );
    check(&|w| w.alter_local("BO", |q| q.base.put = Enabled::No), 2051);
    check(&|w| w.alter_local("BO", |q| q.max_depth = 0), 2053);
    check(&|w| w.alter_local("BO", |q| q.max_message_length = 3), 2030);
    check(
        &|w| w.alter_local("B", |q| q.backout_requeue_name = Some(queue_name("B"))),
        2042,
    );
    check(
        &|w| w.alter_local("B", |q| q.backout_requeue_name = Some(queue_name("R"))),
        2043,
    );
}

#[test]
fn rule_9_a_dead_letter_queue_needs_room_for_the_header_too() {
    for (length_max, taken) in [(175, false), (176, true)] {
        let mut w = World::new();
        w.alter_local("B", |q| q.backout_requeue_name = None);
        w.alter_local("DLQ", |q| q.max_message_length = length_max);
        w.put(put("B", "body"));
        fail(&mut w, "B", 2, 1);
        assert_eq!(w.depth("DLQ"), u64::from(taken), "MAXMSGL({length_max})");
        assert_eq!(w.depth("B"), u64::from(!taken), "MAXMSGL({length_max})");
    }
}

#[test]
fn inv_b3_b5_where_no_queue_takes_it_it_stays_blocks_nobody_and_is_tried_again() {
    let mut w = World::new();
    w.alter_local("BO", |q| q.base.put = Enabled::No);
    w.alter_local("DLQ", |q| q.max_message_length = 100);
    let (_, done) = w.put(put("B", "poison"));
    w.put(put("B", "next"));
    fail(&mut w, "B", 2, 1);
    assert_eq!(w.depth("B"), 2);
    assert_eq!(w.get_text("B"), "next");
    assert!(w.is_empty("B"));
    let held = |e: &Event| {
        matches!(e, Event::PoisonHeld { message_id, reason, .. }
            if *message_id == done.message_id && *reason == ReasonCode::MSG_TOO_BIG_FOR_Q)
    };
    assert!(w.has_event(held));
    // A crash forgets that it is held, not its count: the next get finds out again.
    w.crash();
    assert!(w.is_empty("B"));
    assert!(w.has_event(held));
    let due = w.engine.next_tick().unwrap();
    w.pass(due.since(w.now));
    assert_eq!(w.depth("B"), 1);
    // Its way is free: it goes without a get.
    w.alter_local("BO", |q| q.base.put = Enabled::Yes);
    assert_eq!(w.browse_texts("BO"), ["poison"]);
    assert_eq!(w.engine.next_tick(), None);
}

#[test]
fn rule_11_inv_b4_without_threshold_nothing_is_removed_and_alterations_count_at_the_next_get() {
    let mut w = World::new();
    w.put(put("A", "x"));
    fail(&mut w, "A", 5, 1);
    assert_eq!(w.depth("A"), 1);
    w.alter_local("A", |q| {
        q.backout_threshold = 5;
        q.backout_requeue_name = Some(queue_name("BO"));
    });
    assert_eq!(w.depth("A"), 1);
    assert!(w.is_empty("A"));
    assert_eq!(w.browse_texts("BO"), ["x"]);
}

#[test]
fn a_held_message_is_free_again_when_the_threshold_goes() {
    let mut w = World::new();
    w.alter(|qmgr| qmgr.attributes.dead_letter_queue_name = None);
    w.alter_local("BO", |q| q.base.put = Enabled::No);
    w.put(put("B", "x"));
    fail(&mut w, "B", 2, 1);
    assert!(w.is_empty("B"));
    w.alter_local("B", |q| q.backout_threshold = 0);
    assert_eq!(w.get(get("B")).1.backout_count, 2);
}

#[test]
fn the_dead_letter_queue_has_no_threshold_of_its_own() {
    let mut w = World::new();
    w.alter_local("DLQ", |q| q.backout_threshold = 1);
    w.put(put("DLQ", "x"));
    fail(&mut w, "DLQ", 3, 1);
    assert_eq!(w.depth("DLQ"), 1);
}

#[test]
fn u14_on_a_queue_with_threshold_the_count_is_journaled_before_the_message_is_shown() {
    let mut w = World::new();
    let (put_at, _) = w.put(put("B", "killer"));
    for n in 1..=2_u8 {
        w.begin(C1, unit(n));
        let (after, got) = w.get_in("B", unit(n));
        assert_eq!(got.backout_count, u32::from(n) - 1);
        assert!(after > put_at, "the answer waits for the count");
        // The message takes the node down.
        w.crash_at(after);
    }
    assert!(w.is_empty("B"));
    assert_eq!(w.browse_texts("BO"), ["killer"]);
}

#[test]
fn u14_elsewhere_a_delivery_is_journaled_only_if_it_lasts() {
    let mut w = World::new();
    w.put(put("A", "x"));
    w.begin(C1, unit(1));
    let (after, _) = w.get_in("A", unit(1));
    assert_eq!(after, w.rows.position, "nothing was written for it");
    let due = w.engine.next_tick().unwrap();
    w.pass(due.since(w.now));
    w.crash();
    assert_eq!(w.browse("A")[0].backout_count, 1);
    // A unit of work that ends in time leaves no note behind.
    w.begin(C1, unit(2));
    w.get_in("A", unit(2));
    w.commit(C1, unit(2));
    let written = w.journal.len();
    w.pass(Duration::from_secs(1));
    assert_eq!(w.journal.len(), written);
}

#[test]
fn u14_a_backout_after_a_journaled_delivery_writes_no_second_count() {
    let mut w = World::new();
    w.put(put("B", "x"));
    w.begin(C1, unit(1));
    let (after, _) = w.get_in("B", unit(1));
    assert_eq!(w.back_out(C1, unit(1)), after);
    assert_eq!(w.rows.position, after);
    let again = Get {
        syncpoint: None,
        ..get("B")
    };
    assert_eq!(w.get(again).1.backout_count, 1);
}

#[test]
fn poison_out_of_memory_moves_with_its_body() {
    let mut w = World::without_cache();
    w.put(put("B", "poison"));
    fail(&mut w, "B", 2, 1);
    w.crash();
    assert_eq!(w.browse_texts("BO"), ["poison"]);
}
