//! Groups through a handle's life: going on, backing out, closing, browsing, and what becomes of them on the way.

use std::time::Duration;

use ferrymq_types::{MessageId, ReasonCode, Timestamp, TransmissionHeader, UnitOfWorkId};

use super::handles::{ALL, opened};
use super::harness::{C1, World, get, named, put, unit};
use crate::{Browse, BrowseStep, Get, Limits, MatchIds, Object, Request, Source};

use super::groups::{
    IN_GROUP, LAST, browsing, closing, drained, getting, group, in_order, interleaved, member,
    next, whole,
};

#[test]
fn an_application_goes_on_in_the_middle_of_a_group() {
    let mut w = World::new();
    interleaved(&mut w);
    let h = opened(&mut w, C1, "A", ALL);
    let by_number = Get {
        matching: MatchIds {
            group_id: Some(group(2)),
            message_sequence_number: Some(2),
            ..MatchIds::default()
        },
        ..Get::of(Source::Handle(h))
    };
    assert_eq!(
        getting(&mut w, C1, by_number),
        Ok(("y2".into(), ReasonCode::NONE))
    );
    assert_eq!(getting(&mut w, C1, in_order(h)).unwrap().0, "y3");
    let (_, again) = w.put(member(Object::Handle(h), group(8), 4, IN_GROUP, "4"));
    assert_eq!(again.message_sequence_number, 4);
    let (_, then) = w.put(next(h, LAST, "5"));
    assert_eq!((then.group_id, then.message_sequence_number), (group(8), 5));
}

#[test]
fn a_backout_takes_the_handle_back_and_a_commit_does_not() {
    for commits in [true, false] {
        let mut w = World::new();
        interleaved(&mut w);
        let (gets, puts) = (
            opened(&mut w, C1, "A", ALL),
            opened(&mut w, C1, "FIFO", ALL),
        );
        let inside = |get: Get, unit: UnitOfWorkId| Get {
            syncpoint: Some(unit),
            ..get
        };
        let put_in = |w: &mut World, flags, unit: UnitOfWorkId| {
            let mut p = next(puts, flags, "m");
            p.object = Object::Handle(puts);
            p.syncpoint = Some(unit);
            w.put(p).1.message_sequence_number
        };
        w.begin(C1, unit(1));
        assert_eq!(
            getting(&mut w, C1, inside(in_order(gets), unit(1)))
                .unwrap()
                .0,
            "a"
        );
        assert_eq!(
            getting(&mut w, C1, inside(in_order(gets), unit(1)))
                .unwrap()
                .0,
            "x1"
        );
        assert_eq!(put_in(&mut w, IN_GROUP, unit(1)), 1);
        w.commit(C1, unit(1));
        w.begin(C1, unit(2));
        assert_eq!(
            getting(&mut w, C1, inside(in_order(gets), unit(2)))
                .unwrap()
                .0,
            "x2"
        );
        assert_eq!(
            getting(&mut w, C1, inside(in_order(gets), unit(2)))
                .unwrap()
                .0,
            "x3"
        );
        assert_eq!(put_in(&mut w, IN_GROUP, unit(2)), 2);
        assert_eq!(put_in(&mut w, LAST, unit(2)), 3);
        // A second unit of work through the same handle would mix with the first.
        w.begin(C1, unit(3));
        let other = getting(&mut w, C1, inside(in_order(gets), unit(3)));
        assert_eq!(other, Err(ReasonCode::INCONSISTENT_UOW));
        let (expected, number) = if commits {
            w.commit(C1, unit(2));
            ("y1", 1)
        } else {
            w.back_out(C1, unit(2));
            ("x2", 2)
        };
        let is = getting(&mut w, C1, inside(in_order(gets), unit(3)))
            .unwrap()
            .0;
        assert_eq!(is, expected);
        assert_eq!(put_in(&mut w, IN_GROUP, unit(3)), number);
    }
}

#[test]
fn a_handle_that_is_closed_says_what_it_leaves_incomplete() {
    let mut w = World::new();
    let h = opened(&mut w, C1, "A", ALL);
    w.put(next(h, IN_GROUP, "1"));
    assert_eq!(closing(&mut w, h), ReasonCode::INCOMPLETE_GROUP);
    let h = opened(&mut w, C1, "A", ALL);
    assert_eq!(getting(&mut w, C1, in_order(h)).unwrap().0, "1");
    assert_eq!(closing(&mut w, h), ReasonCode::INCOMPLETE_GROUP);
    let h = opened(&mut w, C1, "A", ALL);
    w.put(next(h, LAST, "1"));
    assert_eq!(getting(&mut w, C1, in_order(h)).unwrap().0, "1");
    assert_eq!(closing(&mut w, h), ReasonCode::NONE);
}

#[test]
fn gets_in_logical_order_come_one_at_a_time() {
    let mut w = World::new();
    let h = opened(&mut w, C1, "A", ALL);
    let until = Some(w.now.saturating_add(Duration::from_secs(60)));
    let waiting = Request::Get(Get {
        wait_until: until,
        ..in_order(h)
    });
    let id = w.ask(C1, waiting);
    let second = getting(&mut w, C1, in_order(h));
    assert_eq!(second, Err(ReasonCode::CALL_IN_PROGRESS));
    w.put(put("A", "x"));
    assert!(w.got(id).is_some());
    let third = getting(&mut w, C1, in_order(h));
    assert_eq!(third, Err(ReasonCode::NO_MSG_AVAILABLE));
}

#[test]
fn a_browse_goes_through_groups_in_order() {
    for cached in [true, false] {
        let mut w = if cached {
            World::new()
        } else {
            World::without_cache()
        };
        interleaved(&mut w);
        w.put(member(named("A"), group(3), 2, LAST, "z2"));
        w.put(put("A", "c"));
        let h = opened(&mut w, C1, "A", ALL);
        let step = |step, all| Browse {
            logical_order: true,
            all_messages_available: all,
            ..Browse::of(step)
        };
        for all in [true, false] {
            let mut seen = vec![browsing(&mut w, step(BrowseStep::FirstOf(h), all)).unwrap()];
            while let Ok(text) = browsing(&mut w, step(BrowseStep::Next(h), all)) {
                seen.push(text);
            }
            assert_eq!(seen.join(" "), "a x1 x2 x3 y1 y2 y3 b c");
        }
        // The order changes only from the start on.
        let physical = browsing(&mut w, Browse::of(BrowseStep::Next(h)));
        assert_eq!(physical, Err(ReasonCode::INCONSISTENT_BROWSE));
        assert_eq!(
            browsing(&mut w, Browse::of(BrowseStep::FirstOf(h))).unwrap(),
            "a"
        );
        let logical = browsing(&mut w, step(BrowseStep::Next(h), false));
        assert_eq!(logical, Err(ReasonCode::INCONSISTENT_BROWSE));
        // Complete ones in physical order, and those of one group.
        let mut all = Browse::of(BrowseStep::FirstOf(h));
        all.all_messages_available = true;
        let mut seen = vec![browsing(&mut w, all.clone()).unwrap()];
        all.step = BrowseStep::Next(h);
        while let Ok(text) = browsing(&mut w, all.clone()) {
            seen.push(text);
        }
        assert_eq!(seen.join(" "), "a x1 y1 y2 x2 y3 x3 b c");
        let mut of_two = Browse::of(BrowseStep::FirstOf(h));
        of_two.matching.group_id = Some(group(2));
        let mut seen = vec![browsing(&mut w, of_two.clone()).unwrap()];
        of_two.step = BrowseStep::Next(h);
        while let Ok(text) = browsing(&mut w, of_two.clone()) {
            seen.push(text);
        }
        assert_eq!(seen.join(" "), "y1 y2 y3");
        // Only through a handle; what is next cannot be chosen.
        let by_name = step(BrowseStep::First(super::harness::queue_name("A")), false);
        assert_eq!(browsing(&mut w, by_name), Err(ReasonCode::OPTIONS_ERROR));
        let mut begins = step(BrowseStep::FirstOf(h), false);
        begins.matching.group_id = Some(group(1));
        assert_eq!(browsing(&mut w, begins).unwrap(), "x1");
        for ids in [
            MatchIds {
                message_sequence_number: Some(3),
                ..MatchIds::default()
            },
            MatchIds {
                message_id: Some(MessageId::new([7; 24])),
                ..MatchIds::default()
            },
        ] {
            let mut other = step(BrowseStep::Next(h), false);
            other.matching = ids;
            assert_eq!(
                browsing(&mut w, other),
                Err(ReasonCode::MATCH_OPTIONS_ERROR)
            );
        }
        assert_eq!(
            browsing(&mut w, step(BrowseStep::Next(h), false)).unwrap(),
            "x2"
        );
    }
}

#[test]
fn the_message_under_the_cursor_must_be_next_in_logical_order() {
    let mut w = World::new();
    interleaved(&mut w);
    let h = opened(&mut w, C1, "A", ALL);
    let under = Get {
        logical_order: true,
        ..Get::of(Source::UnderCursor(h))
    };
    let mut by_number = Browse::of(BrowseStep::FirstOf(h));
    for (number, expected) in [
        (2, Err(ReasonCode::INVALID_MSG_UNDER_CURSOR)),
        (1, Ok(("a".to_owned(), ReasonCode::NONE))),
    ] {
        by_number.matching.message_sequence_number = Some(number);
        browsing(&mut w, by_number.clone()).unwrap();
        assert_eq!(getting(&mut w, C1, under.clone()), expected);
    }
    assert_eq!(getting(&mut w, C1, in_order(h)).unwrap().0, "x1");
    by_number.matching.message_sequence_number = Some(2);
    by_number.matching.group_id = Some(group(1));
    browsing(&mut w, by_number).unwrap();
    assert_eq!(getting(&mut w, C1, under).unwrap().0, "x2");
    assert_eq!(getting(&mut w, C1, in_order(h)).unwrap().0, "x3");
}

#[test]
fn a_restart_finds_the_groups_again() {
    let mut w = World::new();
    interleaved(&mut w);
    w.put(member(named("A"), group(3), 1, IN_GROUP, "z1"));
    let position = w.rows.position;
    w.crash_at(position);
    let h = opened(&mut w, C1, "A", ALL);
    assert_eq!(drained(&mut w, &whole(h)), "a x1 x2 x3 y1 y2 y3 b");
    assert_eq!(drained(&mut w, &in_order(h)), "z1");
}

#[test]
fn a_message_that_expires_leaves_its_group_incomplete() {
    let mut w = World::new();
    let mut expires = member(named("A"), group(1), 1, IN_GROUP, "x1");
    expires.descriptor.expires_at = Some(w.now.saturating_add(Duration::from_secs(5)));
    w.put(expires);
    w.put(member(named("A"), group(1), 2, LAST, "x2"));
    let h = opened(&mut w, C1, "A", ALL);
    w.now = w.now.saturating_add(Duration::from_secs(6));
    assert_eq!(drained(&mut w, &whole(h)), "");
    assert_eq!(w.depth("A"), 1);
    assert_eq!(drained(&mut w, &in_order(h)), "");
    assert_eq!(drained(&mut w, &get("A")), "x2");
}

#[test]
fn a_group_that_is_backed_out_often_is_a_group_on_the_backout_queue() {
    let mut w = World::new();
    for (number, flags) in [(1, IN_GROUP), (2, LAST)] {
        w.put(member(
            named("B"),
            group(1),
            number,
            flags,
            &format!("x{number}"),
        ));
    }
    for n in 1..=2 {
        w.begin(C1, unit(n));
        let h = opened(&mut w, C1, "B", ALL);
        for _ in 0..2 {
            let get = Get {
                syncpoint: Some(unit(n)),
                ..whole(h)
            };
            getting(&mut w, C1, get).unwrap();
        }
        w.back_out(C1, unit(n));
    }
    assert_eq!(w.depth("B"), 0);
    let h = opened(&mut w, C1, "BO", ALL);
    assert_eq!(drained(&mut w, &whole(h)), "x1 x2");
}

#[test]
fn a_group_on_its_way_to_another_queue_manager_is_in_the_header() {
    let mut w = World::new();
    let h = opened(
        &mut w,
        C1,
        "R",
        crate::OpenOptions {
            output: true,
            ..crate::OpenOptions::default()
        },
    );
    let (_, done) = w.put(next(h, IN_GROUP, "1"));
    w.put(next(h, LAST, "2"));
    let sent = w.browse("XQ");
    let outer = &sent[1].message.descriptor;
    assert!(outer.group_id.is_none() && outer.message_flags == 0);
    let (header, _) = TransmissionHeader::read(&sent[1].message.header, Timestamp::ZERO).unwrap();
    let d = header.descriptor;
    assert_eq!((d.group_id, d.message_sequence_number), (done.group_id, 2));
    assert!(d.is_last_in_group());
}

#[test]
fn no_index_of_groups_is_left_when_they_are_gone() {
    let mut w = World::with(super::harness::definitions(), Limits::default());
    interleaved(&mut w);
    let h = opened(&mut w, C1, "A", ALL);
    drained(&mut w, &in_order(h));
    assert!(!w.engine.queues.values().any(|q| q.has_groups()));
}
