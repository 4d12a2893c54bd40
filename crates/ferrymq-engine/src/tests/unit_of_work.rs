//! Units of work.

use std::time::Duration;

use ferrymq_types::{Change, Position, ReasonCode, UnitOfWorkOutcome};

use super::harness::{C1, C2, World, get, put, put_np, unit};
use crate::{Limits, OUTCOME_KEPT, Put, Reply, Request};

fn inside(n: u8, p: Put) -> Put {
    Put {
        syncpoint: Some(unit(n)),
        ..p
    }
}

fn outcome(w: &mut World, n: u8) -> Option<UnitOfWorkOutcome> {
    match w.answer(C2, Request::GetUnitOfWork { id: unit(n) }).1 {
        Ok(Reply::UnitOfWork(row)) => row.map(|r| r.outcome),
        other => panic!("{other:?}"),
    }
}

#[test]
fn inv_a1_puts_are_invisible_until_the_commit_but_count() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    let (after, _) = w.put(inside(1, put("A", "x")));
    assert_eq!(after, Position::ZERO);
    assert_eq!(w.depth("A"), 1);
    assert!(w.is_empty("A"));
    let dump = Request::Dump {
        after: None,
        limit: 10,
    };
    assert!(matches!(w.answer(C2, dump).1, Ok(Reply::Dump(items)) if items.is_empty()));
    assert!(w.journal.is_empty());
    w.commit(C1, unit(1));
    assert_eq!(w.get_text("A"), "x");
}

#[test]
fn inv_a2_a3_a_commit_is_one_write_set_over_all_queues() {
    let mut w = World::new();
    w.put(put("A", "old"));
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    w.put(inside(1, put("B", "new")));
    w.put(inside(1, put("FIFO", "newer")));
    let before = w.rows.position;
    let after = w.commit(C1, unit(1));
    assert_eq!(after, before.next());
    // On either side of it there is all or nothing.
    let journal = w.journal.clone();
    w.crash_at(before);
    assert_eq!((w.depth("A"), w.depth("B"), w.depth("FIFO")), (1, 0, 0));
    assert_eq!(outcome(&mut w, 1), None);
    w.journal = journal;
    w.crash_at(after);
    assert_eq!((w.depth("A"), w.depth("B"), w.depth("FIFO")), (0, 1, 1));
    assert_eq!(outcome(&mut w, 1), Some(UnitOfWorkOutcome::Committed));
}

#[test]
fn u7_a_non_persistent_message_of_a_mixed_unit_waits_for_the_unit() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    w.put(inside(1, put_np("A", "np")));
    w.put(inside(1, put("B", "p")));
    let position = w.commit(C1, unit(1));
    let (after, got) = w.get(get("A"));
    assert_eq!((after, &got.message.body[..]), (position, &b"np"[..]));
    assert_eq!(w.get_refused(get("A")).0, position);
}

#[test]
fn empty_and_non_persistent_units_write_nothing_and_have_an_outcome() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    assert_eq!(w.commit(C1, unit(1)), Position::ZERO);
    w.begin(C1, unit(2));
    w.put(inside(2, put_np("A", "np")));
    assert_eq!(w.commit(C1, unit(2)), Position::ZERO);
    assert!(w.journal.is_empty());
    assert_eq!(outcome(&mut w, 1), Some(UnitOfWorkOutcome::Committed));
    assert_eq!(outcome(&mut w, 2), Some(UnitOfWorkOutcome::Committed));
}

#[test]
fn inv_a4_a_locked_message_is_nobody_elses() {
    let mut w = World::new();
    let mut p = put("A", "x");
    p.descriptor.expires_at = w.until(Duration::from_secs(1));
    w.put(p);
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    assert!(w.is_empty("A"));
    w.pass(Duration::from_secs(100));
    assert_eq!(w.depth("A"), 1, "a locked message does not expire");
    let clear = Request::Clear {
        queue: super::harness::queue_name("A"),
        who: "op".into(),
    };
    assert_eq!(w.refusal(C2, clear), ReasonCode::OBJECT_IN_USE);
    w.commit(C1, unit(1));
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn inv_a5_what_a_lost_connection_did_not_commit_is_backed_out() {
    let mut w = World::new();
    w.put(put("A", "x"));
    w.begin(C1, unit(1));
    w.begin(C2, unit(2));
    w.get_in("A", unit(1));
    w.put(inside(1, put("B", "y")));
    w.disconnect(C1);
    assert_eq!(w.depth("B"), 0);
    assert_eq!(w.get(get("A")).1.backout_count, 1);
    assert_eq!(outcome(&mut w, 1), Some(UnitOfWorkOutcome::BackedOut));
    assert_eq!(w.engine.open_units_of_work(), 1);
    assert_eq!(w.engine.unit_of_work_bytes(), 0);
}

#[test]
fn inv_a6_only_the_owner_commits_and_a_second_commit_is_answered_as_the_first() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    w.put(inside(1, put("A", "x")));
    let commit = |n| Request::Commit { id: unit(n) };
    let back_out = |n| Request::BackOut { id: unit(n) };
    assert_eq!(w.refusal(C2, commit(1)), ReasonCode::UOW_NOT_AVAILABLE);
    assert_eq!(w.refusal(C2, back_out(1)), ReasonCode::UOW_NOT_AVAILABLE);
    assert_eq!(w.refusal(C1, commit(9)), ReasonCode::UOW_NOT_AVAILABLE);
    let begin = Request::Begin { id: unit(1) };
    assert_eq!(w.refusal(C1, begin.clone()), ReasonCode::UOW_NOT_AVAILABLE);
    let position = w.commit(C1, unit(1));
    assert_eq!(w.commit(C2, unit(1)), position);
    assert_eq!(w.depth("A"), 1);
    assert_eq!(w.refusal(C1, back_out(1)), ReasonCode::UOW_NOT_AVAILABLE);
    assert_eq!(w.refusal(C1, begin), ReasonCode::UOW_NOT_AVAILABLE);
    w.begin(C1, unit(2));
    w.back_out(C1, unit(2));
    assert_eq!(w.refusal(C1, commit(2)), ReasonCode::BACKED_OUT);
    let foreign = Request::Put(Box::new(inside(2, put("A", "y"))));
    assert_eq!(w.refusal(C1, foreign), ReasonCode::UOW_NOT_AVAILABLE);
}

#[test]
fn inv_o3_backed_out_messages_are_in_their_old_places() {
    let mut w = World::new();
    for text in ["1", "2", "3"] {
        w.put(put("A", text));
    }
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    w.get_in("A", unit(1));
    w.put(put("A", "4"));
    w.back_out(C1, unit(1));
    assert_eq!(w.browse_texts("A"), ["1", "2", "3", "4"]);
}

#[test]
fn outcomes_are_kept_for_their_time_and_then_deleted() {
    let mut w = World::new();
    w.begin(C1, unit(1));
    w.put(inside(1, put("A", "x")));
    w.commit(C1, unit(1));
    w.pass(OUTCOME_KEPT - Duration::from_secs(1));
    assert_eq!(outcome(&mut w, 1), Some(UnitOfWorkOutcome::Committed));
    w.crash();
    assert_eq!(outcome(&mut w, 1), Some(UnitOfWorkOutcome::Committed));
    let due = w.engine.next_tick().unwrap();
    w.pass(due.since(w.now));
    assert_eq!(outcome(&mut w, 1), None);
    assert!(w.rows.units.is_empty());
    assert_eq!(w.engine.next_tick(), None);
}

#[test]
fn outcomes_have_a_number_limit() {
    let limits = Limits {
        outcomes_max: 2,
        ..Limits::default()
    };
    let mut w = World::with(super::harness::definitions(), limits);
    for n in 1..=4 {
        w.begin(C1, unit(n));
        w.put(inside(n, put("A", "x")));
        w.commit(C1, unit(n));
    }
    assert_eq!(outcome(&mut w, 2), None);
    assert_eq!(outcome(&mut w, 3), Some(UnitOfWorkOutcome::Committed));
    w.put(put("A", "y"));
    assert_eq!(w.rows.units.len(), 2, "rows go with the next write sets");
    let deletes = w.journal.iter().flat_map(|s| &s.changes);
    assert_eq!(
        deletes
            .filter(|c| matches!(c, Change::DeleteUnitOfWork { .. }))
            .count(),
        2
    );
}

#[test]
fn units_of_work_have_a_number_limit() {
    let limits = Limits {
        units_of_work_max: 1,
        ..Limits::default()
    };
    let mut w = World::with(super::harness::definitions(), limits);
    w.begin(C1, unit(1));
    let begin = Request::Begin { id: unit(2) };
    assert_eq!(w.refusal(C1, begin), ReasonCode::LIMIT_EXCEEDED);
}
