//! MQGET.

use super::*;

type MakeGet = fn(&mut World) -> Get;

fn plain(_: &mut World) -> Get {
    get("A")
}

fn through_alias(_: &mut World) -> Get {
    get("AL")
}

fn waiting(w: &mut World) -> Get {
    Get {
        wait_until: w.until(Duration::from_secs(10)),
        ..get("A")
    }
}

fn waiting_if_not_quiescing(w: &mut World) -> Get {
    Get {
        fail_if_quiescing: true,
        ..waiting(w)
    }
}

fn get_if_not_quiescing(_: &mut World) -> Get {
    Get {
        fail_if_quiescing: true,
        ..get("A")
    }
}

fn get_in_unit(_: &mut World) -> Get {
    Get {
        syncpoint: Some(unit(1)),
        ..get("A")
    }
}

fn if_persistent_without_unit(_: &mut World) -> Get {
    Get {
        syncpoint_if_persistent: true,
        ..get("A")
    }
}

fn if_persistent(_: &mut World) -> Get {
    Get {
        syncpoint_if_persistent: true,
        syncpoint: Some(unit(1)),
        ..get("A")
    }
}

fn small_buffer(_: &mut World) -> Get {
    Get {
        length_max: Some(3),
        ..get("A")
    }
}

fn accept_truncated(_: &mut World) -> Get {
    Get {
        accept_truncated: true,
        length_max: Some(3),
        ..get("A")
    }
}

fn another_id(_: &mut World) -> Get {
    let matching = MatchIds {
        message_id: Some(message_id(7)),
        ..MatchIds::default()
    };
    Get {
        matching,
        ..get("A")
    }
}

fn logical_without_handle(_: &mut World) -> Get {
    Get {
        logical_order: true,
        ..get("A")
    }
}

fn through_no_handle(_: &mut World) -> Get {
    Get {
        source: Source::Handle(HandleId(999)),
        ..get("A")
    }
}

fn through_anothers_handle(w: &mut World) -> Get {
    let handle = opened(w, C2, "A", ALL);
    Get {
        source: Source::Handle(handle),
        ..get("A")
    }
}

fn through_an_output_handle(w: &mut World) -> Get {
    let options = OpenOptions {
        output: true,
        ..OpenOptions::default()
    };
    let handle = opened(w, C1, "A", options);
    Get {
        source: Source::Handle(handle),
        ..get("A")
    }
}

fn under_no_cursor(w: &mut World) -> Get {
    let handle = opened(w, C1, "A", ALL);
    Get {
        source: Source::UnderCursor(handle),
        ..get("A")
    }
}

fn of_a_remote_queue(_: &mut World) -> Get {
    get("R")
}

fn of_no_queue(_: &mut World) -> Get {
    get("NONE")
}

/// MQGET. That data was cut (2079) is for the listener to do and to say.
#[test]
fn mqget_options_by_states() {
    let table: &[(&str, MakeGet, &str, State, Outcome)] = &[
        ("plain", plain, "empty", nothing, Failed(2033)),
        ("plain", plain, "a message", one_message, Done),
        ("plain", plain, "GET(DISABLED)", get_inhibited, Failed(2016)),
        (
            "plain",
            plain,
            "locked by another unit",
            one_locked,
            Failed(2033),
        ),
        ("plain", plain, "uncommitted", one_uncommitted, Failed(2033)),
        ("plain", plain, "expired", one_expired, Failed(2033)),
        (
            "plain",
            plain,
            "open exclusively elsewhere",
            exclusive_elsewhere,
            Failed(2042),
        ),
        ("plain", plain, "quiescing", quiescing, Failed(2033)),
        (
            "plain",
            plain,
            "no room in the journal",
            |w| {
                one_message(w);
                no_space(w);
            },
            Done,
        ),
        ("alias", through_alias, "a message", one_message, Done),
        (
            "alias",
            through_alias,
            "GET(DISABLED) of its target",
            get_inhibited,
            Failed(2016),
        ),
        ("WAIT", waiting, "empty", nothing, Waits),
        ("WAIT", waiting, "a message", one_message, Done),
        (
            "WAIT",
            waiting,
            "GET(DISABLED)",
            get_inhibited,
            Failed(2016),
        ),
        ("WAIT", waiting, "locked by another unit", one_locked, Waits),
        ("WAIT", waiting, "expired", one_expired, Waits),
        ("WAIT", waiting, "quiescing", quiescing, Waits),
        (
            "WAIT and FAIL_IF_QUIESCING",
            waiting_if_not_quiescing,
            "quiescing",
            quiescing,
            Failed(2161),
        ),
        (
            "FAIL_IF_QUIESCING",
            get_if_not_quiescing,
            "a message",
            one_message,
            Done,
        ),
        (
            "FAIL_IF_QUIESCING",
            get_if_not_quiescing,
            "quiescing",
            quiescing,
            Failed(2161),
        ),
        (
            "SYNCPOINT",
            get_in_unit,
            "no unit",
            one_message,
            Failed(2255),
        ),
        (
            "SYNCPOINT",
            get_in_unit,
            "unit open",
            |w| {
                one_message(w);
                own_unit(w);
            },
            Done,
        ),
        (
            "SYNCPOINT",
            get_in_unit,
            "unit open, empty",
            own_unit,
            Failed(2033),
        ),
        (
            "SYNCPOINT",
            get_in_unit,
            "another's unit",
            |w| {
                one_message(w);
                others_unit(w);
            },
            Failed(2255),
        ),
        (
            "SYNCPOINT",
            get_in_unit,
            "unit committed",
            |w| {
                one_message(w);
                committed_unit(w);
            },
            Failed(2255),
        ),
        (
            "SYNCPOINT",
            get_in_unit,
            "MAXUMSGS reached",
            |w| {
                one_message(w);
                full_unit(w);
            },
            Failed(2024),
        ),
        (
            "SYNCPOINT_IF_PERSISTENT",
            if_persistent_without_unit,
            "no unit",
            one_message,
            Failed(2046),
        ),
        (
            "SYNCPOINT_IF_PERSISTENT",
            if_persistent,
            "unit open",
            |w| {
                one_message(w);
                own_unit(w);
            },
            Done,
        ),
        (
            "buffer too short",
            small_buffer,
            "a message",
            one_message,
            Failed(2080),
        ),
        (
            "buffer too short",
            small_buffer,
            "empty",
            nothing,
            Failed(2033),
        ),
        (
            "ACCEPT_TRUNCATED_MSG",
            accept_truncated,
            "a message",
            one_message,
            Done,
        ),
        (
            "MATCH_MSG_ID",
            another_id,
            "another message",
            one_message,
            Failed(2033),
        ),
        (
            "LOGICAL_ORDER without a handle",
            logical_without_handle,
            "a message",
            one_message,
            Failed(2046),
        ),
        (
            "no handle",
            through_no_handle,
            "a message",
            one_message,
            Failed(2019),
        ),
        (
            "another's handle",
            through_anothers_handle,
            "a message",
            one_message,
            Failed(2019),
        ),
        (
            "handle open for output",
            through_an_output_handle,
            "a message",
            one_message,
            Failed(2037),
        ),
        (
            "MSG_UNDER_CURSOR",
            under_no_cursor,
            "cursor nowhere",
            one_message,
            Failed(2034),
        ),
        (
            "remote queue",
            of_a_remote_queue,
            "idle",
            nothing,
            Failed(2045),
        ),
        ("unknown queue", of_no_queue, "idle", nothing, Failed(2085)),
    ];
    let mut different = Vec::new();
    for (option, make, state_name, state, expected) in table {
        let mut w = World::new();
        state(&mut w);
        let request = make(&mut w);
        let found = outcome(&mut w, Request::Get(request));
        if found != *expected {
            different.push(format!(
                "{option}, {state_name}: {found:?} for {expected:?}"
            ));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// How a wait ends (mq-semantics 4.3: 2033, 2016, 2161, closed).
#[test]
fn mqget_with_wait_by_what_ends_it() {
    type End = fn(&mut World, HandleId);
    let table: &[(&str, End, Outcome)] = &[
        (
            "a message",
            |w, _| {
                w.put(put("A", "x"));
            },
            Done,
        ),
        (
            "the interval",
            |w, _| w.pass(Duration::from_secs(11)),
            Failed(2033),
        ),
        (
            "GET(DISABLED)",
            |w, _| w.alter_local("A", |q| q.get = Enabled::No),
            Failed(2016),
        ),
        ("quiescing", |w, _| quiescing(w), Failed(2161)),
        (
            "its handle is closed",
            |w, handle| {
                let option = CloseOption::None;
                w.done(C1, Request::Close { handle, option });
            },
            Failed(2019),
        ),
        (
            "put and taken back",
            |w, _| {
                one_uncommitted(w);
                w.back_out(C2, unit(9));
            },
            Waits,
        ),
    ];
    for (what, end, expected) in table {
        let mut w = World::new();
        let handle = opened(&mut w, C1, "A", ALL);
        let request = Get {
            source: Source::Handle(handle),
            ..waiting_if_not_quiescing(&mut w)
        };
        let id = w.ask(C1, Request::Get(request));
        assert!(!w.replies.contains_key(&id), "{what}: it waits");
        end(&mut w, handle);
        let found = match w.replies.get(&id) {
            None => Waits,
            Some((_, Ok(_))) => Done,
            Some((_, Err(failure))) => Failed(failure.reason.get()),
        };
        assert_eq!(found, *expected, "{what}");
    }
}

/// A message that is longer than a buffer stays, one that was cut is gone.
#[test]
fn a_failed_get_leaves_the_message_and_a_warning_takes_it() {
    let mut w = World::new();
    one_message(&mut w);
    let request = small_buffer(&mut w);
    assert_eq!(outcome(&mut w, Request::Get(request)), Failed(2080));
    assert_eq!(w.depth("A"), 1);
    let request = accept_truncated(&mut w);
    let id = w.ask(C1, Request::Get(request));
    let (_, got) = w.got(id).expect("a warning has a message");
    assert_eq!(
        got.message.body,
        Bytes::from_static(b"12345"),
        "the listener cuts"
    );
    assert_eq!(w.depth("A"), 0);
}
