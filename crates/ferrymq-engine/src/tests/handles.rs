//! Open and close, and what can be done through a handle: option by state.

use ferrymq_types::ReasonCode;

use super::harness::{C1, C2, World, get, put, put_np, qmgr_name, queue_name, unit};
use crate::{
    Browse, BrowseStep, Browsed, CloseOption, ConnectionId, Get, HandleId, InputUse, Object,
    ObjectName, OpenOptions, Opened, Put, Reply, Request, Source,
};

const NOTHING: OpenOptions = OpenOptions {
    input: None,
    browse: false,
    output: false,
    inquire: false,
    context: crate::ContextUse {
        save_all: false,
        pass_identity: false,
        pass_all: false,
        set_identity: false,
        set_all: false,
    },
    fail_if_quiescing: false,
    set: false,
};
const SHARED: OpenOptions = OpenOptions {
    input: Some(InputUse::Shared),
    ..NOTHING
};
const EXCLUSIVE: OpenOptions = OpenOptions {
    input: Some(InputUse::Exclusive),
    ..NOTHING
};
const AS_DEFINED: OpenOptions = OpenOptions {
    input: Some(InputUse::AsQueueDefined),
    ..NOTHING
};
const OUTPUT: OpenOptions = OpenOptions {
    output: true,
    ..NOTHING
};
const BROWSE: OpenOptions = OpenOptions {
    browse: true,
    ..NOTHING
};
/// Everything.
pub(super) const ALL: OpenOptions = OpenOptions {
    output: true,
    inquire: true,
    ..GET_AND_BROWSE
};
const GET_AND_BROWSE: OpenOptions = OpenOptions {
    browse: true,
    ..SHARED
};

fn open(queue: &str, options: OpenOptions) -> Request {
    Request::Open {
        selector: None,
        name: ObjectName::local(queue_name(queue)),
        options,
        dynamic_name: None,
    }
}

pub(super) fn opened(
    w: &mut World,
    connection: ConnectionId,
    queue: &str,
    options: OpenOptions,
) -> HandleId {
    match w.answer(connection, open(queue, options)).1 {
        Ok(Reply::Opened(Opened { handle, .. })) => handle,
        other => panic!("{other:?}"),
    }
}

fn browse(step: BrowseStep, lock: bool) -> Request {
    Request::Browse(Browse {
        lock,
        ..Browse::of(step)
    })
}

fn shown(w: &mut World, step: BrowseStep, lock: bool) -> Result<String, ReasonCode> {
    match w.answer(C1, browse(step, lock)).1 {
        Ok(Reply::Browsed(Browsed { message, .. })) => {
            Ok(String::from_utf8_lossy(&message.body).into_owned())
        }
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.reason),
    }
}

fn through(handle: HandleId) -> Get {
    Get {
        source: Source::Handle(handle),
        ..get("A")
    }
}

fn under_cursor(handle: HandleId) -> Get {
    Get {
        source: Source::UnderCursor(handle),
        ..get("A")
    }
}

#[test]
fn opening_is_refused_with_the_reason_of_each_case() {
    let mut w = World::new();
    w.alter_local("B", |q| q.share = false);
    let holding = |options| {
        let mut w = World::new();
        w.alter_local("B", |q| q.share = false);
        opened(&mut w, C2, "A", options);
        w
    };
    let cases: Vec<(&str, World, Request, Option<ReasonCode>)> = vec![
        (
            "nothing asked",
            World::new(),
            open("A", NOTHING),
            Some(ReasonCode::OPTIONS_ERROR),
        ),
        (
            "unknown",
            World::new(),
            open("NONE", SHARED),
            Some(ReasonCode::UNKNOWN_OBJECT_NAME),
        ),
        (
            "unknown for output",
            World::new(),
            open("NONE", OUTPUT),
            Some(ReasonCode::UNKNOWN_OBJECT_NAME),
        ),
        (
            "input elsewhere",
            World::new(),
            Request::Open {
                selector: None,
                name: ObjectName {
                    queue: queue_name("A"),
                    queue_manager: Some(qmgr_name("QM9")),
                },
                options: SHARED,
                dynamic_name: None,
            },
            Some(ReasonCode::OPTION_NOT_VALID_FOR_TYPE),
        ),
        (
            "shared beside shared",
            holding(SHARED),
            open("A", SHARED),
            None,
        ),
        (
            "exclusive beside shared",
            holding(SHARED),
            open("A", EXCLUSIVE),
            Some(ReasonCode::OBJECT_IN_USE),
        ),
        (
            "shared beside exclusive",
            holding(EXCLUSIVE),
            open("A", SHARED),
            Some(ReasonCode::OBJECT_IN_USE),
        ),
        (
            "as defined beside exclusive",
            holding(EXCLUSIVE),
            open("A", AS_DEFINED),
            Some(ReasonCode::OBJECT_IN_USE),
        ),
        (
            "output beside exclusive",
            holding(EXCLUSIVE),
            open("A", OUTPUT),
            None,
        ),
        (
            "browse beside exclusive",
            holding(EXCLUSIVE),
            open("A", BROWSE),
            None,
        ),
        (
            "exclusive beside browse",
            holding(BROWSE),
            open("A", EXCLUSIVE),
            None,
        ),
        ("as defined alone", w, open("B", AS_DEFINED), None),
    ];
    for (case, mut w, request, expected) in cases {
        let answer = w.answer(C1, request).1;
        assert_eq!(answer.err().map(|f| f.reason), expected, "{case}");
    }
}

#[test]
fn a_queue_with_noshare_is_used_by_one_at_a_time() {
    let mut w = World::new();
    w.alter_local("A", |q| q.share = false);
    let first = opened(&mut w, C1, "A", AS_DEFINED);
    for options in [AS_DEFINED, SHARED, EXCLUSIVE] {
        assert_eq!(w.refusal(C2, open("A", options)), ReasonCode::OBJECT_IN_USE);
    }
    // Nor by one who needs no handle.
    assert_eq!(w.get_refused(get("A")).1, ReasonCode::OBJECT_IN_USE);
    w.done(
        C1,
        Request::Close {
            handle: first,
            option: CloseOption::None,
        },
    );
    opened(&mut w, C2, "A", AS_DEFINED);
}

#[test]
fn a_handle_allows_what_it_was_opened_for() {
    let mut w = World::new();
    w.put(put("A", "a"));
    let mut refused = |options, request: fn(HandleId) -> Request| {
        let handle = opened(&mut w, C1, "A", options);
        w.refusal(C1, request(handle))
    };
    let put_through = |handle| {
        Request::Put(Box::new(Put {
            object: Object::Handle(handle),
            ..put("B", "x")
        }))
    };
    let get_through = |handle| Request::Get(through(handle));
    let get_under_cursor = |handle| Request::Get(under_cursor(handle));
    let browse_through = |handle| browse(BrowseStep::FirstOf(handle), false);
    assert_eq!(
        refused(SHARED, put_through),
        ReasonCode::NOT_OPEN_FOR_OUTPUT
    );
    assert_eq!(refused(OUTPUT, get_through), ReasonCode::NOT_OPEN_FOR_INPUT);
    assert_eq!(refused(BROWSE, get_through), ReasonCode::NOT_OPEN_FOR_INPUT);
    assert_eq!(
        refused(SHARED, browse_through),
        ReasonCode::NOT_OPEN_FOR_BROWSE
    );
    assert_eq!(
        refused(SHARED, get_under_cursor),
        ReasonCode::NOT_OPEN_FOR_BROWSE
    );
    assert_eq!(
        refused(GET_AND_BROWSE, get_under_cursor),
        ReasonCode::NO_MSG_UNDER_CURSOR
    );
    assert_eq!(
        refused(BROWSE, |handle| Request::Unlock { handle }),
        ReasonCode::NO_MSG_LOCKED
    );
    let both = opened(
        &mut w,
        C1,
        "A",
        OpenOptions {
            output: true,
            ..SHARED
        },
    );
    w.done_put(C1, put_through(both));
    assert_eq!(w.depth("A"), 2);
    let (_, got) = w.get(through(both));
    assert_eq!(&got.message.body[..], b"a");
}

#[test]
fn a_handle_is_its_connections_and_ends_with_it() {
    let mut w = World::new();
    let handle = opened(&mut w, C2, "A", EXCLUSIVE);
    assert_eq!(
        w.refusal(C1, Request::Get(through(handle))),
        ReasonCode::HOBJ_ERROR
    );
    assert_eq!(
        w.refusal(
            C1,
            Request::Close {
                handle,
                option: CloseOption::None
            }
        ),
        ReasonCode::HOBJ_ERROR
    );
    w.disconnect(C2);
    opened(&mut w, C1, "A", EXCLUSIVE);
    assert_eq!(
        w.refusal(
            C2,
            Request::Close {
                handle,
                option: CloseOption::None
            }
        ),
        ReasonCode::HOBJ_ERROR
    );
}

#[test]
fn maxhands_bounds_the_handles_of_a_connection() {
    let mut w = World::new();
    w.alter(|qmgr| qmgr.attributes.max_handles = 2);
    let first = opened(&mut w, C1, "A", OUTPUT);
    opened(&mut w, C1, "A", OUTPUT);
    assert_eq!(
        w.refusal(C1, open("A", OUTPUT)),
        ReasonCode::HANDLE_NOT_AVAILABLE
    );
    opened(&mut w, C2, "A", OUTPUT);
    w.done(
        C1,
        Request::Close {
            handle: first,
            option: CloseOption::None,
        },
    );
    opened(&mut w, C1, "A", OUTPUT);
}

#[test]
fn a_queue_that_is_open_is_neither_cleared_nor_deleted() {
    let mut w = World::new();
    let handle = opened(&mut w, C2, "A", OUTPUT);
    let clear = || Request::Clear {
        queue: queue_name("A"),
        who: "op".into(),
    };
    assert_eq!(w.refusal(C1, clear()), ReasonCode::OBJECT_IN_USE);
    w.done(
        C2,
        Request::Close {
            handle,
            option: CloseOption::None,
        },
    );
    assert!(matches!(w.answer(C1, clear()).1, Ok(Reply::Cleared(0))));
}

#[test]
fn a_browse_never_goes_back_and_starts_again_with_first() {
    let mut w = World::new();
    for text in ["a", "b"] {
        w.put(put("A", text));
    }
    let handle = opened(&mut w, C1, "A", BROWSE);
    let next = || BrowseStep::Next(handle);
    assert_eq!(
        shown(&mut w, BrowseStep::UnderCursor(handle), false),
        Err(ReasonCode::NO_MSG_UNDER_CURSOR)
    );
    // With nothing browsed yet the next is the first.
    assert_eq!(shown(&mut w, next(), false).as_deref(), Ok("a"));
    assert_eq!(shown(&mut w, next(), false).as_deref(), Ok("b"));
    let mut urgent = put("A", "urgent");
    urgent.priority = ferrymq_types::Priority::new(9);
    w.put(urgent);
    assert_eq!(
        shown(&mut w, next(), false),
        Err(ReasonCode::NO_MSG_AVAILABLE)
    );
    assert_eq!(
        shown(&mut w, BrowseStep::UnderCursor(handle), false).as_deref(),
        Ok("b")
    );
    assert_eq!(
        shown(&mut w, BrowseStep::FirstOf(handle), false).as_deref(),
        Ok("urgent")
    );
    assert_eq!(w.depth("A"), 3);
}

#[test]
fn a_locked_message_is_nobody_elses_until_the_cursor_lets_it_go() {
    type End = fn(&mut World, HandleId);
    let ends: [(&str, End); 5] = [
        ("unlock", |w, handle| {
            w.done(C1, Request::Unlock { handle });
        }),
        ("close", |w, handle| {
            w.done(
                C1,
                Request::Close {
                    handle,
                    option: CloseOption::None,
                },
            );
        }),
        ("disconnect", |w, _| w.disconnect(C1)),
        ("move", |w, handle| {
            assert_eq!(
                shown(w, BrowseStep::Next(handle), false).as_deref(),
                Ok("b")
            );
        }),
        ("a browse that finds nothing", |w, handle| {
            assert_eq!(
                shown(w, BrowseStep::Next(handle), false).as_deref(),
                Ok("b")
            );
            assert_eq!(
                shown(w, BrowseStep::Next(handle), true),
                Err(ReasonCode::NO_MSG_AVAILABLE)
            );
        }),
    ];
    for (case, end) in ends {
        let mut w = World::new();
        for text in ["a", "b"] {
            w.put(put("A", text));
        }
        let handle = opened(&mut w, C1, "A", GET_AND_BROWSE);
        assert_eq!(
            shown(&mut w, BrowseStep::FirstOf(handle), true).as_deref(),
            Ok("a")
        );
        assert_eq!(w.browse_texts("A"), ["b"], "{case}");
        assert_eq!(w.depth("A"), 2);
        end(&mut w, handle);
        assert_eq!(w.get_text("A"), "a", "{case}: at its place");
    }
}

#[test]
fn the_message_under_the_cursor_is_got_and_nobody_elses() {
    let mut w = World::new();
    for text in ["a", "b", "c"] {
        w.put(put("A", text));
    }
    let handle = opened(&mut w, C1, "A", GET_AND_BROWSE);
    for lock in [false, true] {
        let step = if lock {
            BrowseStep::FirstOf(handle)
        } else {
            BrowseStep::Next(handle)
        };
        let expected = shown(&mut w, step, lock).unwrap();
        let (_, got) = w.get(under_cursor(handle));
        assert_eq!(&got.message.body[..], expected.as_bytes());
        // It is got once.
        assert_eq!(
            w.refusal(C1, Request::Get(under_cursor(handle))),
            ReasonCode::NO_MSG_UNDER_CURSOR
        );
    }
    // In a unit of work it comes back to its place.
    assert_eq!(
        shown(&mut w, BrowseStep::FirstOf(handle), true).as_deref(),
        Ok("c")
    );
    w.begin(C1, unit(1));
    w.get(Get {
        syncpoint: Some(unit(1)),
        ..under_cursor(handle)
    });
    assert!(w.is_empty("A"));
    w.back_out(C1, unit(1));
    assert_eq!(w.get(get("A")).1.backout_count, 1);
    // One that somebody else got is gone.
    w.put(put("A", "d"));
    assert_eq!(
        shown(&mut w, BrowseStep::FirstOf(handle), false).as_deref(),
        Ok("d")
    );
    w.get_text("A");
    assert_eq!(
        w.refusal(C1, Request::Get(under_cursor(handle))),
        ReasonCode::NO_MSG_UNDER_CURSOR
    );
}

#[test]
fn the_cursor_works_on_stored_messages_too() {
    let mut w = World::without_cache();
    for text in ["a", "b"] {
        w.put(put("A", text));
    }
    let handle = opened(&mut w, C1, "A", GET_AND_BROWSE);
    assert_eq!(
        shown(&mut w, BrowseStep::FirstOf(handle), true).as_deref(),
        Ok("a")
    );
    assert_eq!(w.browse_texts("A"), ["b"]);
    let (_, got) = w.get(under_cursor(handle));
    assert_eq!(&got.message.body[..], b"a");
    assert_eq!(w.browse_texts("A"), ["b"]);
}

#[test]
fn a_longer_message_stays_unless_it_may_be_cut() {
    let mut w = World::new();
    w.put(put("A", "longer"));
    let short = Get {
        length_max: Some(3),
        ..get("A")
    };
    assert_eq!(
        w.get_refused(short.clone()).1,
        ReasonCode::TRUNCATED_MSG_FAILED
    );
    let (_, got) = w.get(Get {
        accept_truncated: true,
        ..short
    });
    assert_eq!(got.message.body.len(), 6, "whoever hands it on cuts it");
    assert_eq!(w.depth("A"), 0);
}

#[test]
fn syncpoint_if_persistent_locks_persistent_messages_only() {
    let mut w = World::new();
    w.put(put_np("A", "np"));
    w.put(put("A", "p"));
    w.begin(C1, unit(1));
    for _ in 0..2 {
        w.get(Get {
            syncpoint: Some(unit(1)),
            syncpoint_if_persistent: true,
            ..get("A")
        });
    }
    w.back_out(C1, unit(1));
    assert_eq!(w.get_text("A"), "p");
    assert!(w.is_empty("A"));
}

#[test]
fn two_browses_under_way_together_lock_one_message() {
    let mut w = World::without_cache();
    for text in ["a", "b"] {
        w.put(put("A", text));
    }
    let handle = opened(&mut w, C1, "A", GET_AND_BROWSE);
    w.reads = false;
    w.ask(C1, browse(BrowseStep::FirstOf(handle), true));
    w.ask(C1, browse(BrowseStep::Next(handle), true));
    w.reads = true;
    while !w.fetches.is_empty() {
        w.read();
    }
    w.done(
        C1,
        Request::Close {
            handle,
            option: CloseOption::None,
        },
    );
    assert_eq!((w.get_text("A"), w.get_text("A")), ("a".into(), "b".into()));
}

#[test]
fn a_handle_whose_name_leads_elsewhere_is_2041() {
    let mut w = World::new();
    w.put(put("A", "a"));
    w.put(put("B", "b"));
    let handle = opened(&mut w, C1, "AL", GET_AND_BROWSE);
    w.alter(|qmgr| {
        let name = queue_name("AL");
        if let Some(ferrymq_objects::Queue::Alias(alias)) = qmgr.queues.get_mut(&name) {
            alias.target = Some(queue_name("B"));
        }
    });
    let get = Request::Get(through(handle));
    assert_eq!(w.refusal(C1, get), ReasonCode::OBJECT_CHANGED);
    let looking = browse(BrowseStep::FirstOf(handle), true);
    assert_eq!(w.refusal(C1, looking), ReasonCode::OBJECT_CHANGED);
    w.done(
        C1,
        Request::Close {
            handle,
            option: CloseOption::None,
        },
    );
}

#[test]
fn a_get_that_waits_through_a_handle_ends_with_it() {
    let mut w = World::new();
    let handle = opened(&mut w, C1, "A", SHARED);
    let waiting = w.ask(
        C1,
        Request::Get(Get {
            wait_until: w.until(std::time::Duration::from_secs(9)),
            ..through(handle)
        }),
    );
    w.done(
        C1,
        Request::Close {
            handle,
            option: CloseOption::None,
        },
    );
    let reason = w.replies[&waiting].1.as_ref().map_err(|f| f.reason);
    assert_eq!(reason.err(), Some(ReasonCode::HOBJ_ERROR));
    w.put(put("A", "a"));
    assert_eq!(w.get_text("A"), "a");
}

#[test]
fn a_repeated_put_through_a_handle_names_its_queue_or_is_refused() {
    let mut w = World::new();
    let handle = opened(&mut w, C1, "AL", OUTPUT);
    let put_again = || {
        Request::Put(Box::new(Put {
            object: Object::Handle(handle),
            token: Some(unit(7)),
            ..put("B", "x")
        }))
    };
    for _ in 0..2 {
        match w.answer(C1, put_again()).1 {
            Ok(Reply::Put(done)) => assert_eq!(done.resolved_queue, "A"),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(w.depth("A"), 1);
    assert_eq!(w.refusal(C2, put_again()), ReasonCode::HOBJ_ERROR);
}
