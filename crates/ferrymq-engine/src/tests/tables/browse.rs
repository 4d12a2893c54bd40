//! MQGET with the options that browse.

use super::*;

/// MQGET with the options that browse.
#[test]
fn mqget_browse_options_by_states() {
    type Step = fn(&mut World) -> Browse;
    let first: Step = |_| Browse::of(BrowseStep::First(queue_name("A")));
    let first_of: Step = |w| Browse::of(BrowseStep::FirstOf(opened(w, C1, "A", ALL)));
    let next_of: Step = |w| Browse::of(BrowseStep::Next(opened(w, C1, "A", ALL)));
    let under: Step = |w| Browse::of(BrowseStep::UnderCursor(opened(w, C1, "A", ALL)));
    let locked: Step = |w| Browse {
        lock: true,
        ..Browse::of(BrowseStep::FirstOf(opened(w, C1, "A", ALL)))
    };
    let lock_without_handle: Step = |_| Browse {
        lock: true,
        ..Browse::of(BrowseStep::First(queue_name("A")))
    };
    let not_for_browse: Step = |w| {
        let options = OpenOptions {
            input: Some(InputUse::Shared),
            ..OpenOptions::default()
        };
        Browse::of(BrowseStep::FirstOf(opened(w, C1, "A", options)))
    };
    let if_not_quiescing: Step = |_| Browse {
        fail_if_quiescing: true,
        ..Browse::of(BrowseStep::First(queue_name("A")))
    };
    let table: &[(&str, Step, &str, State, Outcome)] = &[
        (
            "BROWSE_FIRST by name",
            first,
            "empty",
            nothing,
            Failed(2033),
        ),
        (
            "BROWSE_FIRST by name",
            first,
            "a message",
            one_message,
            Done,
        ),
        (
            "BROWSE_FIRST by name",
            first,
            "GET(DISABLED)",
            get_inhibited,
            Failed(2016),
        ),
        (
            "BROWSE_FIRST by name",
            first,
            "locked",
            one_locked,
            Failed(2033),
        ),
        (
            "BROWSE_FIRST by name",
            first,
            "uncommitted",
            one_uncommitted,
            Failed(2033),
        ),
        (
            "BROWSE_FIRST by name",
            first,
            "expired",
            one_expired,
            Failed(2033),
        ),
        ("BROWSE_FIRST", first_of, "a message", one_message, Done),
        (
            "BROWSE_NEXT of a new cursor",
            next_of,
            "a message",
            one_message,
            Done,
        ),
        (
            "BROWSE_MSG_UNDER_CURSOR",
            under,
            "cursor nowhere",
            one_message,
            Failed(2034),
        ),
        ("LOCK", locked, "a message", one_message, Done),
        ("LOCK", locked, "locked by a unit", one_locked, Failed(2033)),
        (
            "LOCK by name",
            lock_without_handle,
            "a message",
            one_message,
            Failed(2046),
        ),
        (
            "BROWSE_FIRST",
            not_for_browse,
            "handle open for input",
            one_message,
            Failed(2036),
        ),
        (
            "FAIL_IF_QUIESCING",
            if_not_quiescing,
            "quiescing",
            quiescing,
            Failed(2161),
        ),
    ];
    let mut different = Vec::new();
    for (option, make, state_name, state, expected) in table {
        let mut w = World::new();
        state(&mut w);
        let request = make(&mut w);
        let found = outcome(&mut w, Request::Browse(request));
        if found != *expected {
            different.push(format!(
                "{option}, {state_name}: {found:?} for {expected:?}"
            ));
        }
    }
    assert!(different.is_empty(), "{different:#?}");
}
