//! Rules that concern every write set and every answer.

use ferrymq_types::Position;

use super::harness::{C1, World, get, put, unit};
use crate::{Get, Put, Request};

#[test]
fn u7_a_message_that_is_got_waits_for_its_put_and_for_its_removal() {
    let mut w = World::new();
    let (put_at, _) = w.put(put("A", "x"));
    w.begin(C1, unit(1));
    let (after, _) = w.get_in("A", unit(1));
    assert_eq!(after, put_at, "locked, not removed: only the put is shown");
    w.back_out(C1, unit(1));
    let (after, _) = w.get(get("A"));
    assert_eq!(after, w.rows.position, "removed");
}

#[test]
fn u7_a_token_answer_waits_for_the_first_put() {
    let mut w = World::new();
    let with_token = || Put {
        token: Some(unit(1)),
        ..put("A", "x")
    };
    let (first, _) = w.put(with_token());
    w.put(put("B", "y"));
    assert_eq!(w.put(with_token()).0, first);
    let second_commit = Request::GetUnitOfWork { id: unit(1) };
    assert_eq!(w.answer(C1, second_commit).0, first);
}

#[test]
fn u8_a_moved_message_keeps_its_body() {
    let mut w = World::new();
    w.put(put("B", "poison"));
    let before = w.rows.bodies.clone();
    for n in 1..=2 {
        w.begin(C1, unit(n));
        w.get_in("B", unit(n));
        w.back_out(C1, unit(n));
    }
    assert_eq!(w.depth("BO"), 1);
    assert_eq!(w.rows.bodies, before);
    w.get_text("BO");
    assert!(w.rows.bodies.is_empty());
}

#[test]
fn u13_write_sets_applied_twice_leave_the_same_rows() {
    let mut w = World::new();
    w.put(put("A", "1"));
    w.put(put("B", "2"));
    w.begin(C1, unit(1));
    w.get_in("B", unit(1));
    w.commit(C1, unit(1));
    w.begin(C1, unit(2));
    w.get_in("A", unit(2));
    w.back_out(C1, unit(2));
    // Deletions and absolute values only.
    let rows = w.rows.clone();
    w.rows.replay(&w.journal);
    assert_eq!(w.rows, rows);
    w.crash();
    assert_eq!(w.rows, rows);
    assert_eq!(w.engine.position(), rows.position);
    let (after, _) = w.put(put("A", "3"));
    assert_eq!(after, rows.position.next());
}

#[test]
fn u16_a_message_that_was_non_persistent_does_not_come_back() {
    let mut w = World::new();
    w.put(super::harness::put_np("A", "np"));
    w.put(put("A", "p"));
    let epoch = w.engine.epoch();
    w.crash();
    assert!(w.engine.epoch() > epoch);
    assert_eq!(w.browse_texts("A"), ["p"]);
    assert_eq!(w.engine.non_persistent_bytes(), 0);
}

#[test]
fn the_cache_is_bounded_and_what_falls_out_is_fetched() {
    let limits = crate::Limits {
        cache_bytes_max: 2_000,
        ..crate::Limits::default()
    };
    let mut w = World::with(super::harness::definitions(), limits);
    for n in 0..10 {
        w.put(put("A", &n.to_string()));
        assert!(w.engine.cache_bytes() <= 2_000);
    }
    w.reads = false;
    let reading = w.ask(C1, Request::Get(get("A")));
    assert_eq!(w.fetches.len(), 1);
    w.read();
    assert_eq!(&w.got(reading).unwrap().1.message.body[..], b"0");
    w.reads = true;
    let rest: Vec<String> = (1..10).map(|_| w.get_text("A")).collect();
    assert_eq!(rest.concat(), "123456789");
    assert_eq!(w.engine.cache_bytes(), 0);
}

#[test]
fn a_get_that_finds_nothing_depends_on_nothing_at_first() {
    let mut w = World::new();
    let nothing = Get {
        length_max: Some(1),
        ..get("A")
    };
    assert_eq!(w.get_refused(nothing).0, Position::ZERO);
}
