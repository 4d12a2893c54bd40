//! MQBEGIN, MQCMIT, MQBACK and MQCLOSE.

use super::*;

/// MQBEGIN, MQCMIT, MQBACK. A unit of work has an id here, so that a call that is repeated after a lost answer takes effect once;
/// an id that is taken is not available (2255), and never IBM MQ's 2128, since a connection may have several units.
#[test]
fn mqbegin_mqcmit_and_mqback_by_states() {
    let id = unit(1);
    let begin = Request::Begin { id };
    let commit = Request::Commit { id };
    let back = Request::BackOut { id };
    let table: Vec<(&str, Request, &str, State, Outcome)> = vec![
        ("MQBEGIN", begin.clone(), "no unit", nothing, Done),
        (
            "MQBEGIN",
            begin.clone(),
            "unit open",
            own_unit,
            Failed(2255),
        ),
        (
            "MQBEGIN",
            begin.clone(),
            "another's unit",
            others_unit,
            Failed(2255),
        ),
        (
            "MQBEGIN",
            begin,
            "unit committed",
            committed_unit,
            Failed(2255),
        ),
        ("MQCMIT", commit.clone(), "no unit", nothing, Failed(2255)),
        ("MQCMIT", commit.clone(), "unit open", own_unit, Done),
        (
            "MQCMIT",
            commit.clone(),
            "another's unit",
            others_unit,
            Failed(2255),
        ),
        (
            "MQCMIT",
            commit.clone(),
            "committed before",
            committed_unit,
            Done,
        ),
        (
            "MQCMIT",
            commit,
            "backed out before",
            backed_out_unit,
            Failed(2003),
        ),
        ("MQBACK", back.clone(), "no unit", nothing, Failed(2255)),
        ("MQBACK", back.clone(), "unit open", own_unit, Done),
        (
            "MQBACK",
            back.clone(),
            "another's unit",
            others_unit,
            Failed(2255),
        ),
        (
            "MQBACK",
            back.clone(),
            "backed out before",
            backed_out_unit,
            Done,
        ),
        (
            "MQBACK",
            back,
            "committed before",
            committed_unit,
            Failed(2255),
        ),
    ];
    let mut different = Vec::new();
    for (call, request, state_name, state, expected) in table {
        let mut w = World::new();
        state(&mut w);
        let found = outcome(&mut w, request);
        if found != expected {
            different.push(format!("{call}, {state_name}: {found:?} for {expected:?}"));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}

/// MQCLOSE.
#[test]
fn mqclose_by_states() {
    let mut w = World::new();
    let handle = opened(&mut w, C1, "A", ALL);
    let close = |handle, option| Request::Close { handle, option };
    for (what, request, expected) in [
        (
            "another's handle",
            close(HandleId(999), CloseOption::None),
            Failed(2019),
        ),
        (
            "DELETE of a queue that a command made",
            close(handle, CloseOption::Delete),
            Failed(2045),
        ),
        ("open handle", close(handle, CloseOption::None), Done),
        (
            "closed handle",
            close(handle, CloseOption::None),
            Failed(2019),
        ),
    ] {
        assert_eq!(outcome(&mut w, request), expected, "{what}");
    }
}
