//! Non-persistent messages beyond what memory holds.

use std::time::Duration;

use ferrymq_types::ReasonCode;

use super::harness::{C1, World, definitions, get, put_np, unit};
use crate::{Get, Input, Limits, Request};

/// Room for three messages of `text`, and one more on its way.
fn small() -> World {
    let limits = Limits {
        non_persistent_bytes_max: 5_000,
        spill_window_bytes: 2_000,
        ..Limits::default()
    };
    World::with(definitions(), limits)
}

fn text(n: u32) -> String {
    format!("{n:04}").repeat(250)
}

fn in_unit(n: u8) -> Get {
    Get {
        syncpoint: Some(unit(n)),
        ..get("A")
    }
}

#[test]
fn u16_messages_beyond_the_limit_are_written_aside_and_come_back_in_order() {
    let mut w = small();
    for n in 0..100 {
        w.put(put_np("A", &text(n)));
    }
    assert!(w.engine.non_persistent_bytes() <= 5_000);
    assert_eq!(w.disk.len(), 97, "the oldest stay in memory");
    assert!(w.journal.is_empty(), "nothing of it is journaled");
    for n in 0..100 {
        assert_eq!(w.get_text("A"), text(n));
    }
    assert!(w.disk.is_empty(), "what is got is forgotten");
    assert_eq!(w.engine.non_persistent_bytes(), 0);
}

#[test]
fn n1_what_was_written_aside_is_gone_after_a_crash() {
    let mut w = small();
    for n in 0..10 {
        w.put(put_np("A", &text(n)));
    }
    w.crash();
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn puts_faster_than_the_disk_are_refused_with_2071() {
    let mut w = small();
    w.reads = false;
    let mut puts = 0;
    let reason = loop {
        let put = Request::Put(Box::new(put_np("A", &text(puts))));
        match w.answer(C1, put).1 {
            Ok(_) => puts += 1,
            Err(failure) => break failure.reason,
        }
    };
    assert_eq!(reason, ReasonCode::STORAGE_NOT_AVAILABLE);
    assert_eq!(puts, 4);
    while !w.spills.is_empty() {
        w.confirm_spill();
    }
    assert_eq!(w.engine.spill_backlog_bytes(), 0);
    w.put(put_np("A", &text(puts)));
}

#[test]
fn inv_s5_a_full_disk_refuses_what_does_not_fit_in_memory_and_harms_nothing_else() {
    let mut w = small();
    w.disk_full = Some(ReasonCode::STORAGE_MEDIUM_FULL);
    for n in 0..4 {
        w.put(put_np("A", &text(n)));
    }
    assert_eq!(
        w.put_refused(put_np("A", &text(4))),
        ReasonCode::STORAGE_MEDIUM_FULL
    );
    // What could not be written is still there, and persistent messages do not care.
    w.put(super::harness::put("B", "persistent"));
    assert_eq!(w.get_text("A"), text(0));
    assert_eq!(w.get_text("A"), text(1));
    w.put(put_np("A", &text(4)));
    assert!(w.disk.is_empty());
    // It is tried again after a while.
    w.disk_full = None;
    w.now = w.now.saturating_add(Duration::from_secs(2));
    assert!(w.engine.next_tick().is_some_and(|at| at <= w.now));
    w.input(Input::Ticked);
    for n in 5..20 {
        w.put(put_np("A", &text(n)));
    }
    for n in 2..20 {
        assert_eq!(w.get_text("A"), text(n));
    }
}

#[test]
fn a_message_that_is_got_while_it_is_written_aside_is_forgotten_afterwards() {
    let mut w = small();
    for n in 0..3 {
        w.put(put_np("A", &text(n)));
    }
    w.reads = false;
    w.put(put_np("A", &text(3)));
    assert_eq!(w.spills.len(), 1);
    for n in 0..4 {
        assert_eq!(w.get_text("A"), text(n));
    }
    assert_eq!(w.disk.len(), 1);
    w.confirm_spill();
    assert!(w.disk.is_empty());
}

#[test]
fn b3_a_poison_message_that_was_written_aside_moves_with_its_bytes() {
    let mut w = small();
    for n in 0..10 {
        w.put(put_np("B", &text(n)));
    }
    // Backed out twice, all of them: to BO.
    for n in 1..=2 {
        w.begin(C1, unit(n));
        for _ in 0..10 {
            let get = Get {
                source: get("B").source,
                ..in_unit(n)
            };
            w.answer(C1, Request::Get(get)).1.expect("got");
        }
        w.back_out(C1, unit(n));
    }
    assert_eq!(
        w.get_refused(get("B")).1,
        ReasonCode::NO_MSG_AVAILABLE,
        "all are poison"
    );
    for n in 0..10 {
        assert_eq!(w.get_text("BO"), text(n));
    }
    assert!(w.disk.is_empty());
}

#[test]
fn a_unit_of_work_that_backs_out_gives_back_what_was_written_aside() {
    let mut w = small();
    for n in 0..20 {
        w.put(put_np("A", &text(n)));
    }
    w.begin(C1, unit(1));
    for _ in 0..20 {
        w.answer(C1, Request::Get(in_unit(1))).1.expect("got");
    }
    assert!(w.engine.non_persistent_bytes() <= 5_000);
    w.back_out(C1, unit(1));
    for n in 0..20 {
        assert_eq!(w.get_text("A"), text(n));
    }
    assert!(w.disk.is_empty());
}
