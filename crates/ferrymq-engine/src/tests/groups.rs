//! Messages in groups: puts, gets and browses in physical and in logical order.

use std::time::Duration;

use ferrymq_types::{CorrelationId, MessageDescriptor, MessageId, Persistence, ReasonCode};

use super::handles::{ALL, opened};
use super::harness::{C1, C2, World, get, named, put, unit};
use crate::{
    Browse, Browsed, ConnectionId, Get, HandleId, MatchIds, Object, Put, PutDone, Reply, Request,
    Source,
};

pub(super) const IN_GROUP: u32 = MessageDescriptor::FLAG_MSG_IN_GROUP;
pub(super) const LAST: u32 = MessageDescriptor::FLAG_LAST_MSG_IN_GROUP;
pub(super) const NONE: u32 = 0;

pub(super) fn group(n: u8) -> CorrelationId {
    CorrelationId::new([n; 24])
}

/// A put in physical order.
pub(super) fn member(
    object: Object,
    id: CorrelationId,
    number: u32,
    flags: u32,
    body: &str,
) -> Put {
    let mut p = put("A", body);
    p.object = object;
    p.descriptor.group_id = id;
    p.descriptor.message_sequence_number = number;
    p.descriptor.message_flags = flags;
    p
}

/// A put in logical order.
pub(super) fn next(handle: HandleId, flags: u32, body: &str) -> Put {
    let mut p = member(Object::Handle(handle), CorrelationId::NONE, 1, flags, body);
    p.logical_order = true;
    p
}

pub(super) fn in_order(handle: HandleId) -> Get {
    Get {
        logical_order: true,
        ..Get::of(Source::Handle(handle))
    }
}

pub(super) fn whole(handle: HandleId) -> Get {
    Get {
        all_messages_available: true,
        ..in_order(handle)
    }
}

/// The warning of a put that is done, or why it is refused.
pub(super) fn putting(w: &mut World, put: Put) -> Result<ReasonCode, ReasonCode> {
    match w.answer(C1, Request::Put(Box::new(put))).1 {
        Ok(Reply::Put(PutDone { warning, .. })) => Ok(warning),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.reason),
    }
}

/// The text of a message that is got and the warning, or why there is none.
pub(super) fn getting(
    w: &mut World,
    connection: ConnectionId,
    get: Get,
) -> Result<(String, ReasonCode), ReasonCode> {
    match w.answer(connection, Request::Get(get)).1 {
        Ok(Reply::Got(got)) => Ok((text(&got.message.body), got.warning)),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.reason),
    }
}

pub(super) fn text(body: &[u8]) -> String {
    String::from_utf8_lossy(body).into_owned()
}

/// What gets find until there is no more.
pub(super) fn drained(w: &mut World, get: &Get) -> String {
    let mut all = String::new();
    loop {
        match getting(w, C1, get.clone()) {
            Ok((text, warning)) => {
                assert_eq!(warning, ReasonCode::NONE);
                all.push_str(&text);
                all.push(' ');
            }
            Err(reason) => {
                assert_eq!(reason, ReasonCode::NO_MSG_AVAILABLE);
                return all.trim_end().to_owned();
            }
        }
    }
}

pub(super) fn browsing(w: &mut World, browse: Browse) -> Result<String, ReasonCode> {
    match w.answer(C1, Request::Browse(browse)).1 {
        Ok(Reply::Browsed(Browsed { message, .. })) => Ok(text(&message.body)),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.reason),
    }
}

pub(super) fn closing(w: &mut World, handle: HandleId) -> ReasonCode {
    match w
        .answer(
            C1,
            Request::Close {
                handle,
                option: crate::CloseOption::None,
            },
        )
        .1
    {
        Ok(Reply::Closed { warning }) => warning,
        other => panic!("{other:?}"),
    }
}

/// Two groups that came at the same time, between two messages in none: in physical order `a x1 y1 y2 x2 y3 x3 b`.
pub(super) fn interleaved(w: &mut World) {
    w.put(put("A", "a"));
    for (id, number, flags, body) in [
        (1, 1, IN_GROUP, "x1"),
        (2, 1, IN_GROUP, "y1"),
        (2, 2, IN_GROUP, "y2"),
        (1, 2, IN_GROUP, "x2"),
        (2, 3, LAST, "y3"),
        (1, 3, LAST, "x3"),
    ] {
        w.put(member(named("A"), group(id), number, flags, body));
    }
    w.put(put("A", "b"));
}

#[test]
fn a_put_in_logical_order_has_a_new_group_and_numbers_from_one() {
    let mut w = World::new();
    let h = opened(&mut w, C1, "A", ALL);
    let mut groups = Vec::new();
    for _ in 0..2 {
        let (_, first) = w.put(next(h, IN_GROUP, "1"));
        let (_, second) = w.put(next(h, IN_GROUP, "2"));
        let (_, last) = w.put(next(h, LAST, "3"));
        assert!(!first.group_id.is_none());
        let places = [&first, &second, &last].map(|d| (d.group_id, d.message_sequence_number));
        assert_eq!(places, [1, 2, 3].map(|n| (first.group_id, n)));
        groups.push(first.group_id);
    }
    assert_ne!(groups[0], groups[1]);
    // What the application left in the fields does not count.
    let mut alone = next(h, NONE, "x");
    alone.descriptor.group_id = group(9);
    alone.descriptor.message_sequence_number = 7;
    let (_, done) = w.put(alone);
    assert_eq!(
        (done.group_id, done.message_sequence_number),
        (CorrelationId::NONE, 1)
    );
    let mut first = next(h, LAST, "x");
    first.descriptor.group_id = group(9);
    first.descriptor.message_sequence_number = 7;
    let (_, done) = w.put(first);
    assert_ne!(done.group_id, group(9));
    assert_eq!(done.message_sequence_number, 1);
    let browsed = w.browse("A");
    let d = &browsed.last().unwrap().message.descriptor;
    assert_eq!((d.group_id, d.message_sequence_number), (done.group_id, 1));
}

#[test]
fn a_put_in_physical_order_begins_a_group_or_names_its_place() {
    let mut w = World::new();
    let (_, begun) = w.put(member(named("A"), CorrelationId::NONE, 1, IN_GROUP, "1"));
    assert!(!begun.group_id.is_none());
    let (_, named_place) = w.put(member(named("A"), begun.group_id, 2, LAST, "2"));
    assert_eq!(named_place.group_id, begun.group_id);
    assert_eq!(named_place.message_sequence_number, 2);
    for number in [0, 1_000_000_000] {
        let bad = member(named("A"), group(1), number, IN_GROUP, "x");
        assert_eq!(w.put_refused(bad), ReasonCode::MSG_SEQ_NUMBER_ERROR);
    }
    // The order of a group is kept by a handle, and a put that may be repeated must say all by itself.
    let mut without_handle = next(HandleId(0), IN_GROUP, "x");
    without_handle.object = named("A");
    assert_eq!(w.put_refused(without_handle), ReasonCode::OPTIONS_ERROR);
    let h = opened(&mut w, C1, "A", ALL);
    let mut with_token = next(h, IN_GROUP, "x");
    with_token.token = Some(unit(1));
    assert_eq!(w.put_refused(with_token), ReasonCode::OPTIONS_ERROR);
    let mut unnamed = member(named("A"), CorrelationId::NONE, 1, IN_GROUP, "x");
    unnamed.token = Some(unit(1));
    assert_eq!(w.put_refused(unnamed), ReasonCode::GROUP_ID_ERROR);
    let mut again = member(named("A"), group(4), 1, LAST, "x");
    again.token = Some(unit(1));
    assert_eq!(w.put(again.clone()).1, w.put(again).1);
}

/// How a handle stands before the put of a table.
#[derive(Debug, Clone, Copy)]
enum Before {
    Nothing,
    Outside,
    Inside,
    PhysicalOutside,
}

#[test]
fn put_table_of_options_and_states() {
    use Before::{Inside, Nothing, Outside, PhysicalOutside};
    use Persistence::{NonPersistent, Persistent};
    let (ok, warning) = (Ok(ReasonCode::NONE), Ok::<ReasonCode, ReasonCode>);
    let table = [
        // state, logical, flags, same group named, in unit, persistence, outcome
        (Nothing, true, IN_GROUP, false, false, Persistent, ok),
        (Nothing, true, LAST, false, false, Persistent, ok),
        (Nothing, true, NONE, false, false, Persistent, ok),
        (Nothing, true, IN_GROUP, false, true, NonPersistent, ok),
        (Nothing, false, IN_GROUP, false, true, NonPersistent, ok),
        (Outside, true, IN_GROUP, false, false, Persistent, ok),
        (Outside, true, LAST, false, false, Persistent, ok),
        (
            Outside,
            true,
            NONE,
            false,
            false,
            Persistent,
            Err(ReasonCode::INCOMPLETE_GROUP),
        ),
        (
            Outside,
            true,
            LAST,
            false,
            false,
            NonPersistent,
            Err(ReasonCode::INCONSISTENT_PERSISTENCE),
        ),
        (
            Outside,
            true,
            IN_GROUP,
            false,
            true,
            Persistent,
            Err(ReasonCode::INCONSISTENT_UOW),
        ),
        (Inside, true, IN_GROUP, false, true, Persistent, ok),
        (
            Inside,
            true,
            IN_GROUP,
            false,
            false,
            Persistent,
            Err(ReasonCode::INCONSISTENT_UOW),
        ),
        (
            Inside,
            true,
            NONE,
            false,
            true,
            Persistent,
            Err(ReasonCode::INCOMPLETE_GROUP),
        ),
        (
            Outside,
            false,
            NONE,
            false,
            false,
            Persistent,
            warning(ReasonCode::INCOMPLETE_GROUP),
        ),
        (
            Outside,
            false,
            IN_GROUP,
            false,
            false,
            Persistent,
            warning(ReasonCode::INCOMPLETE_GROUP),
        ),
        (
            Outside,
            false,
            LAST,
            true,
            false,
            Persistent,
            warning(ReasonCode::INCOMPLETE_GROUP),
        ),
        (
            Outside,
            false,
            LAST,
            true,
            false,
            NonPersistent,
            warning(ReasonCode::INCONSISTENT_PERSISTENCE),
        ),
        (
            Outside,
            false,
            IN_GROUP,
            true,
            true,
            Persistent,
            warning(ReasonCode::INCONSISTENT_UOW),
        ),
        (PhysicalOutside, false, NONE, false, false, Persistent, ok),
        (
            PhysicalOutside,
            true,
            IN_GROUP,
            false,
            false,
            Persistent,
            ok,
        ),
        (
            PhysicalOutside,
            true,
            NONE,
            false,
            false,
            Persistent,
            Err(ReasonCode::INCOMPLETE_GROUP),
        ),
    ];
    for row in table {
        let (before, logical, flags, same, inside, persistence, expected) = row;
        let mut w = World::new();
        let h = opened(&mut w, C1, "A", ALL);
        w.begin(C1, unit(1));
        let mut began = next(h, IN_GROUP, "began");
        let id = match before {
            Nothing => CorrelationId::NONE,
            Outside => w.put(began).1.group_id,
            Inside => {
                began.syncpoint = Some(unit(1));
                w.put(began).1.group_id
            }
            PhysicalOutside => {
                began.logical_order = false;
                began.descriptor.group_id = group(5);
                w.put(began).1.group_id
            }
        };
        let mut p = next(h, flags, "then");
        p.logical_order = logical;
        p.descriptor.group_id = if same { id } else { CorrelationId::NONE };
        p.descriptor.message_sequence_number = 2;
        p.syncpoint = inside.then(|| unit(1));
        p.persistence = Some(persistence);
        let depth = w.depth("A");
        assert_eq!(putting(&mut w, p), expected, "{row:?}");
        assert_eq!(w.depth("A"), depth + u64::from(expected.is_ok()), "{row:?}");
    }
}

#[test]
fn a_group_ends_at_the_highest_number() {
    let mut w = World::new();
    let h = opened(&mut w, C1, "A", ALL);
    w.put(member(
        Object::Handle(h),
        group(1),
        999_999_999,
        IN_GROUP,
        "x",
    ));
    let refused = putting(&mut w, next(h, LAST, "y"));
    assert_eq!(refused, Err(ReasonCode::MSG_SEQ_NUMBER_ERROR));
}

#[test]
fn groups_are_got_one_after_the_other_each_whole() {
    for get in [in_order, whole] {
        for cached in [true, false] {
            let mut w = if cached {
                World::new()
            } else {
                World::without_cache()
            };
            interleaved(&mut w);
            let h = opened(&mut w, C1, "A", ALL);
            assert_eq!(drained(&mut w, &get(h)), "a x1 x2 x3 y1 y2 y3 b");
        }
    }
    let mut w = World::new();
    interleaved(&mut w);
    assert_eq!(drained(&mut w, &get("A")), "a x1 y1 y2 x2 y3 x3 b");
}

#[test]
fn a_group_of_a_higher_priority_comes_first_and_is_not_broken_into() {
    let mut w = World::new();
    interleaved(&mut w);
    let h = opened(&mut w, C1, "A", ALL);
    assert_eq!(getting(&mut w, C1, in_order(h)).unwrap().0, "a");
    assert_eq!(getting(&mut w, C1, in_order(h)).unwrap().0, "x1");
    for (number, flags) in [(2, LAST), (1, IN_GROUP)] {
        let mut p = member(named("A"), group(7), number, flags, &format!("z{number}"));
        p.priority = ferrymq_types::Priority::new(9);
        w.put(p);
    }
    assert_eq!(drained(&mut w, &in_order(h)), "x2 x3 z1 z2 y1 y2 y3 b");
}

#[test]
fn an_incomplete_group_is_passed_over_when_all_of_it_is_wanted() {
    let mut w = World::new();
    w.put(member(named("A"), group(1), 1, IN_GROUP, "x1"));
    w.put(member(named("A"), group(1), 3, LAST, "x3"));
    w.put(member(named("A"), group(2), 2, LAST, "y2"));
    w.put(member(named("A"), group(2), 1, IN_GROUP, "y1"));
    w.put(put("A", "a"));
    let h = opened(&mut w, C1, "A", ALL);
    assert_eq!(drained(&mut w, &whole(h)), "y1 y2 a");
    assert_eq!(w.depth("A"), 2);
    // Without that it is begun, and its missing message is waited for.
    assert_eq!(drained(&mut w, &in_order(h)), "x1");
    w.put(member(named("A"), group(1), 2, IN_GROUP, "x2"));
    assert_eq!(drained(&mut w, &in_order(h)), "x2 x3");
}

#[test]
fn without_logical_order_a_complete_group_gives_its_first_message_and_is_complete_no_more() {
    let mut w = World::new();
    let all = Get {
        all_messages_available: true,
        ..get("A")
    };
    w.put(member(named("A"), group(1), 2, LAST, "x2"));
    assert_eq!(drained(&mut w, &all), "");
    w.put(member(named("A"), group(1), 1, IN_GROUP, "x1"));
    w.put(put("A", "a"));
    assert_eq!(drained(&mut w, &all), "x2 a");
    assert_eq!(drained(&mut w, &get("A")), "x1");
}

#[test]
fn a_get_waits_until_the_group_is_complete() {
    let mut w = World::new();
    let h = opened(&mut w, C2, "A", ALL);
    let until = Some(w.now.saturating_add(Duration::from_secs(60)));
    let waiting = w.ask(
        C2,
        Request::Get(Get {
            wait_until: until,
            ..whole(h)
        }),
    );
    w.put(member(named("A"), group(1), 3, LAST, "3"));
    w.put(member(named("A"), group(1), 1, IN_GROUP, "1"));
    assert!(w.got(waiting).is_none());
    w.put(member(named("A"), group(1), 2, IN_GROUP, "2"));
    assert_eq!(text(&w.got(waiting).unwrap().1.message.body), "1");
    assert_eq!(getting(&mut w, C2, in_order(h)).unwrap().0, "2");
    assert_eq!(getting(&mut w, C2, in_order(h)).unwrap().0, "3");
    // Within a group the next message is waited for, whatever comes before it.
    w.put(member(named("A"), group(2), 1, IN_GROUP, "4"));
    assert_eq!(getting(&mut w, C2, in_order(h)).unwrap().0, "4");
    let waiting = w.ask(
        C2,
        Request::Get(Get {
            wait_until: until,
            ..in_order(h)
        }),
    );
    w.put(put("A", "other"));
    w.put(member(named("A"), group(2), 3, LAST, "6"));
    assert!(w.got(waiting).is_none());
    w.put(member(named("A"), group(2), 2, IN_GROUP, "5"));
    assert_eq!(text(&w.got(waiting).unwrap().1.message.body), "5");
}

#[test]
fn a_group_put_in_a_unit_of_work_is_there_at_once_and_each_is_served_to_one_getter() {
    let mut w = World::new();
    let until = Some(w.now.saturating_add(Duration::from_secs(60)));
    let waiting: Vec<_> = [C1, C2]
        .map(|connection| {
            let h = opened(&mut w, connection, "A", ALL);
            let get = Get {
                wait_until: until,
                ..whole(h)
            };
            (connection, h, w.ask(connection, Request::Get(get)))
        })
        .into();
    let h = opened(&mut w, C1, "A", ALL);
    w.begin(C1, unit(1));
    for n in ["x", "y"] {
        for (number, flags) in [(1, IN_GROUP), (2, IN_GROUP), (3, LAST)] {
            let mut p = next(h, flags, &format!("{n}{number}"));
            p.syncpoint = Some(unit(1));
            w.put(p);
        }
    }
    assert!(waiting.iter().all(|(.., id)| w.got(*id).is_none()));
    w.commit(C1, unit(1));
    for ((connection, h, id), n) in waiting.into_iter().zip(["x", "y"]) {
        let mut all = vec![text(&w.got(id).unwrap().1.message.body)];
        for _ in 0..2 {
            all.push(getting(&mut w, connection, in_order(h)).unwrap().0);
        }
        assert_eq!(all, [1, 2, 3].map(|number| format!("{n}{number}")));
    }
    assert!(w.is_empty("A"));
}

#[test]
fn get_table_of_options_and_states() {
    let first = |h| Get::of(Source::Handle(h));
    let matching = |get: Get, ids: MatchIds| Get {
        matching: ids,
        ..get
    };
    let inside = |get: Get| Get {
        syncpoint: Some(unit(1)),
        ..get
    };
    let number = |n| MatchIds {
        message_sequence_number: Some(n),
        ..MatchIds::default()
    };
    let of = |n| MatchIds {
        group_id: Some(group(n)),
        ..MatchIds::default()
    };
    let message = |n: u8| MatchIds {
        message_id: Some(MessageId::new([n; 24])),
        ..MatchIds::default()
    };
    type Table<'a> = &'a [(
        &'a str,
        &'a dyn Fn(HandleId) -> Get,
        Result<(&'a str, ReasonCode), ReasonCode>,
    )];
    let none = ReasonCode::NONE;
    let fresh: Table<'_> = &[
        ("in order", &in_order, Ok(("a", none))),
        (
            "by group",
            &|h| matching(in_order(h), of(2)),
            Ok(("y1", none)),
        ),
        (
            "by group, whole",
            &|h| matching(whole(h), of(2)),
            Ok(("y1", none)),
        ),
        (
            "number 1",
            &|h| matching(in_order(h), number(1)),
            Ok(("a", none)),
        ),
        (
            "number 2",
            &|h| matching(in_order(h), number(2)),
            Err(ReasonCode::MATCH_OPTIONS_ERROR),
        ),
        (
            "number 2, physical",
            &|h| matching(first(h), number(2)),
            Ok(("y2", none)),
        ),
        (
            "number 0",
            &|h| matching(first(h), number(0)),
            Err(ReasonCode::MSG_SEQ_NUMBER_ERROR),
        ),
        (
            "number too high",
            &|h| matching(first(h), number(1_000_000_000)),
            Err(ReasonCode::MSG_SEQ_NUMBER_ERROR),
        ),
        (
            "by group, physical",
            &|h| matching(first(h), of(1)),
            Ok(("x1", none)),
        ),
        (
            "no such group",
            &|h| matching(first(h), of(9)),
            Err(ReasonCode::NO_MSG_AVAILABLE),
        ),
        (
            "without handle",
            &|_| Get {
                logical_order: true,
                ..get("A")
            },
            Err(ReasonCode::OPTIONS_ERROR),
        ),
        (
            "many",
            &|h| Get {
                many: Some(crate::Many {
                    messages_max: 2,
                    bytes_max: 9,
                }),
                ..in_order(h)
            },
            Err(ReasonCode::OPTIONS_ERROR),
        ),
    ];
    let within: Table<'_> = &[
        ("in order", &in_order, Ok(("x2", none))),
        ("whole does not count", &whole, Ok(("x2", none))),
        (
            "its own number",
            &|h| matching(in_order(h), number(2)),
            Ok(("x2", none)),
        ),
        (
            "another number",
            &|h| matching(in_order(h), number(3)),
            Err(ReasonCode::MATCH_OPTIONS_ERROR),
        ),
        (
            "its own group",
            &|h| matching(in_order(h), of(1)),
            Ok(("x2", none)),
        ),
        (
            "another group",
            &|h| matching(in_order(h), of(2)),
            Err(ReasonCode::MATCH_OPTIONS_ERROR),
        ),
        (
            "another message",
            &|h| matching(in_order(h), message(7)),
            Err(ReasonCode::MATCH_OPTIONS_ERROR),
        ),
        (
            "in a unit of work",
            &|h| inside(in_order(h)),
            Err(ReasonCode::INCONSISTENT_UOW),
        ),
        ("physical", &first, Ok(("a", ReasonCode::INCOMPLETE_GROUP))),
        (
            "physical, its own",
            &|h| matching(first(h), of(1)),
            Ok(("x2", ReasonCode::INCOMPLETE_GROUP)),
        ),
        (
            "physical, its own in a unit of work",
            &|h| inside(matching(first(h), of(1))),
            Ok(("x2", ReasonCode::INCONSISTENT_UOW)),
        ),
        (
            "physical, nothing",
            &|h| matching(first(h), of(9)),
            Err(ReasonCode::NO_MSG_AVAILABLE),
        ),
    ];
    for (table, begins) in [(fresh, false), (within, true)] {
        for (what, get, expected) in table {
            let mut w = World::new();
            interleaved(&mut w);
            w.begin(C1, unit(1));
            let h = opened(&mut w, C1, "A", ALL);
            if begins {
                let begun = getting(&mut w, C1, matching(in_order(h), of(1)));
                assert_eq!(begun.unwrap().0, "x1");
            }
            let depth = w.depth("A");
            let is = getting(&mut w, C1, get(h));
            assert_eq!(is, expected.map(|(text, w)| (text.to_owned(), w)), "{what}");
            let taken = u64::from(expected.is_ok() && get(h).syncpoint.is_none());
            assert_eq!(w.depth("A"), depth - taken, "{what}");
        }
    }
}
