//! Gets and browses with selectors: what is passed over stays, in order, and a deep queue is walked in steps.

use core::time::Duration;
use std::sync::Arc;

use ferrymq_selector::Selector;
use ferrymq_types::{
    CorrelationId, Persistence, Priority, Properties, Property, PropertyValue, ReasonCode,
};

use super::harness::{C1, C2, World, get, put, queue_name, unit};
use crate::limits::{SELECTION_ROWS_MAX, SELECTION_STEP_MAX};
use crate::{
    Browse, BrowseStep, Event, Get, HandleId, InputUse, MatchIds, ObjectName, OpenOptions, Opened,
    Put, Reply, Request, RequestId, Source,
};

fn selector(text: &str) -> Option<Arc<Selector>> {
    Some(Arc::new(Selector::parse(text).unwrap()))
}

/// A message with its text as the property `colour`.
fn coloured(colour: &str) -> Put {
    let mut put = put("A", colour);
    put.persistence = Some(Persistence::Persistent);
    put.descriptor.properties = Properties::new(vec![Property {
        name: "colour".to_owned(),
        value: PropertyValue::String(colour.to_owned()),
    }])
    .unwrap();
    put
}

fn red() -> Get {
    Get {
        selector: selector("colour = 'red'"),
        ..get("A")
    }
}

fn waiting(w: &World) -> Get {
    Get {
        wait_until: w.until(Duration::from_secs(5)),
        ..red()
    }
}

fn colour(w: &World, id: RequestId) -> Option<(String, u64)> {
    let (_, got) = w.got(id)?;
    let text = String::from_utf8(got.message.body.to_vec()).unwrap();
    Some((text, got.examined))
}

/// Messages that were judged, if none satisfies the selector.
fn in_vain(w: &World, id: RequestId) -> Option<u64> {
    match w.replies.get(&id)?.1 {
        Ok(Reply::NothingSelected { examined }) => Some(examined),
        _ => None,
    }
}

/// Both with all in memory and with nothing in memory.
fn everywhere(check: impl Fn(World)) {
    check(World::new());
    check(World::without_cache());
}

/// Lets the engine tick as long as it wants to at once.
fn settle(w: &mut World) {
    while w.engine.next_tick().is_some_and(|due| due <= w.now) {
        w.pass(Duration::ZERO);
    }
}

#[test]
fn what_does_not_match_stays_and_what_matches_comes_in_order() {
    everywhere(|mut w| {
        for text in ["blue", "red", "green", "red"] {
            w.put(coloured(text));
        }
        w.put(put("A", "plain"));
        let first = w.ask(C1, Request::Get(red()));
        let second = w.ask(C1, Request::Get(red()));
        for get in [first, second] {
            let (text, examined) = colour(&w, get).unwrap();
            // Rows are judged by the batch.
            assert!(text == "red" && (2..=5).contains(&examined), "{examined}");
        }
        assert!(w.got(first).unwrap().1.sequence < w.got(second).unwrap().1.sequence);
        assert_eq!(w.get_refused(red()).1, ReasonCode::NO_MSG_AVAILABLE);
        assert_eq!(w.browse_texts("A"), ["blue", "green", "plain"]);
        // Not there is unknown, and its opposite too.
        let get = |text| Get {
            selector: selector(text),
            ..get("A")
        };
        assert_eq!(
            w.get_refused(get("size > 1 OR NOT size > 1")).1,
            ReasonCode::NO_MSG_AVAILABLE
        );
        let plain = w.ask(C1, Request::Get(get("colour IS NULL")));
        assert_eq!(colour(&w, plain).unwrap().0, "plain");
    });
}

#[test]
fn fields_of_the_descriptor_can_be_selected_by() {
    everywhere(|mut w| {
        for (priority, text) in [(1, "low"), (8, "high")] {
            let mut put = coloured(text);
            put.priority = Priority::new(priority);
            w.put(put);
        }
        for text in ["Root.MQMD.Priority < 5", "JMSPriority BETWEEN 0 AND 4"] {
            let browse = Request::Browse(Browse {
                selector: selector(text),
                ..Browse::of(BrowseStep::First(queue_name("A")))
            });
            match w.answer(C1, browse).1 {
                Ok(Reply::Browsed(b)) => assert_eq!(&b.message.body[..], b"low"),
                other => panic!("{other:?}"),
            }
        }
    });
}

#[test]
fn a_handle_has_one_selector_for_gets_and_browses() {
    everywhere(|mut w| {
        for text in ["blue", "red", "blue", "red"] {
            w.put(coloured(text));
        }
        let open = |options| Request::Open {
            dynamic_name: None,
            name: ObjectName::local(queue_name("A")),
            options,
            selector: selector("colour = 'red'"),
        };
        let output = OpenOptions {
            output: true,
            ..OpenOptions::default()
        };
        assert_eq!(
            w.refusal(C1, open(output)),
            ReasonCode::SELECTOR_INVALID_FOR_TYPE
        );
        let reads = OpenOptions {
            input: Some(InputUse::Shared),
            browse: true,
            ..OpenOptions::default()
        };
        let Ok(Reply::Opened(Opened { handle, .. })) = w.answer(C1, open(reads)).1 else {
            panic!("it can be opened");
        };
        let mut seen = Vec::new();
        let mut step = BrowseStep::FirstOf(handle);
        while let Ok(Reply::Browsed(b)) = w.answer(C1, Request::Browse(Browse::of(step))).1 {
            seen.push(b.message.body.clone());
            step = BrowseStep::Next(handle);
        }
        assert_eq!(seen, ["red", "red"]);
        let through = |handle: HandleId| Get::of(Source::Handle(handle));
        let both = Get {
            selector: selector("TRUE"),
            ..through(handle)
        };
        assert_eq!(w.refusal(C1, Request::Get(both)), ReasonCode::OPTIONS_ERROR);
        for _ in 0..2 {
            let got = w.ask(C1, Request::Get(through(handle)));
            assert_eq!(colour(&w, got).unwrap().0, "red");
        }
        assert_eq!(
            w.refusal(C1, Request::Get(through(handle))),
            ReasonCode::NO_MSG_AVAILABLE
        );
        assert_eq!(w.depth("A"), 2);
    });
}

#[test]
fn a_wait_judges_arrivals_alone() {
    let mut w = World::new();
    for _ in 0..10 {
        w.put(coloured("blue"));
    }
    let get = w.ask(C1, Request::Get(waiting(&w)));
    for _ in 0..3 {
        w.put(coloured("green"));
        assert!(colour(&w, get).is_none());
    }
    w.put(coloured("red"));
    assert_eq!(colour(&w, get), Some(("red".to_owned(), 14)));
    let late = w.ask(C1, Request::Get(waiting(&w)));
    w.pass(Duration::from_secs(6));
    assert_eq!(in_vain(&w, late), Some(13));
}

#[test]
fn a_message_that_is_backed_out_wakes_who_selects_it() {
    everywhere(|mut w| {
        w.put(coloured("blue"));
        w.put(coloured("red"));
        w.begin(C2, unit(1));
        let taken = w.ask(
            C2,
            Request::Get(Get {
                syncpoint: Some(unit(1)),
                ..red()
            }),
        );
        assert!(w.got(taken).is_some());
        let get = w.ask(C1, Request::Get(waiting(&w)));
        assert!(w.got(get).is_none());
        w.back_out(C2, unit(1));
        assert_eq!(colour(&w, get).unwrap().0, "red");
    });
}

#[test]
fn a_deep_queue_is_walked_in_steps() {
    let deep = SELECTION_STEP_MAX as u64 + 100;
    let mut w = World::new();
    for _ in 0..deep {
        w.put(coloured("blue"));
    }
    w.put(coloured("red"));
    let get = w.ask(C1, Request::Get(red()));
    assert!(w.got(get).is_none(), "one step is not enough");
    assert!(w.engine.next_tick().is_some_and(|due| due <= w.now));
    w.pass(Duration::ZERO);
    assert_eq!(colour(&w, get), Some(("red".to_owned(), deep + 1)));
}

#[test]
fn rows_are_read_in_batches_and_bodies_only_of_what_matches() {
    let mut w = World::without_cache();
    w.reads = false;
    let deep = SELECTION_ROWS_MAX + 10;
    for _ in 0..deep {
        w.put(coloured("blue"));
    }
    w.put(coloured("red"));
    let get = w.ask(C1, Request::Get(red()));
    for batch in [SELECTION_ROWS_MAX, 11] {
        assert!(w.fetches.is_empty());
        assert_eq!(w.row_reads[0].2.len(), batch);
        w.read_rows();
    }
    assert_eq!(w.fetches.len(), 1);
    w.read();
    assert_eq!(colour(&w, get), Some(("red".to_owned(), deep as u64 + 1)));
}

#[test]
fn what_arrives_behind_a_walk_is_not_lost_and_comes_first() {
    let mut w = World::without_cache();
    w.put(coloured("red"));
    w.begin(C2, unit(1));
    let in_unit = Get {
        syncpoint: Some(unit(1)),
        ..red()
    };
    let taken = w.ask(C2, Request::Get(in_unit));
    let first = w.got(taken).unwrap().1.sequence;
    w.reads = false;
    for _ in 0..SELECTION_ROWS_MAX {
        w.put(coloured("blue"));
    }
    w.put(coloured("red"));
    let get = w.ask(C1, Request::Get(red()));
    w.read_rows();
    // It has passed the blue ones. The first red one returns to its place now, and is gone for by the same walk.
    w.back_out(C2, unit(1));
    let mut high = coloured("blue");
    high.priority = Some(Priority::MAX);
    w.put(high);
    w.reads = true;
    w.read_rows();
    settle(&mut w);
    while !w.fetches.is_empty() || !w.row_reads.is_empty() {
        if w.fetches.is_empty() {
            w.read_rows();
        } else {
            w.read();
        }
    }
    assert_eq!(w.got(get).unwrap().1.sequence, first);
}

#[test]
fn ids_are_looked_up_before_a_selector_is_asked() {
    everywhere(|mut w| {
        let wanted = CorrelationId::new([7; 24]);
        for _ in 0..50 {
            w.put(coloured("red"));
        }
        for text in ["blue", "red"] {
            let mut put = coloured(text);
            put.descriptor.correlation_id = wanted;
            w.put(put);
        }
        let get = w.ask(
            C1,
            Request::Get(Get {
                matching: MatchIds {
                    correlation_id: Some(wanted),
                    ..MatchIds::default()
                },
                ..red()
            }),
        );
        assert_eq!(colour(&w, get), Some(("red".to_owned(), 2)));
    });
}

#[test]
fn a_walk_ends_with_its_connection_and_with_its_cancellation() {
    let mut w = World::without_cache();
    w.reads = false;
    for _ in 0..10 {
        w.put(coloured("blue"));
    }
    let cancelled = w.ask(C1, Request::Get(red()));
    w.ask(C2, Request::Get(red()));
    w.input(crate::Input::Cancelled { id: cancelled });
    w.disconnect(C2);
    assert_eq!(w.engine.waiting_requests(), 0);
    w.read_rows();
    w.read_rows();
    assert!(w.engine.walks.is_empty() && w.engine.row_reads.is_empty());
    assert!(
        w.replies
            .values()
            .all(|(_, reply)| !matches!(reply, Ok(Reply::Got(_))))
    );
    assert_eq!(w.depth("A"), 10);
}

#[test]
fn a_row_that_cannot_be_read_is_reported_and_passed_over() {
    let mut w = World::without_cache();
    w.put(coloured("red"));
    w.put(coloured("red"));
    let first = *w.rows.messages.keys().next().unwrap();
    w.damaged.insert(first);
    let get = w.ask(C1, Request::Get(red()));
    assert_eq!(colour(&w, get).unwrap().0, "red");
    assert!(w.has_event(|e| matches!(e, Event::Damaged { .. })));
}

#[test]
fn properties_survive_a_crash() {
    let mut w = World::without_cache();
    w.put(coloured("red"));
    w.crash();
    let get = w.ask(C1, Request::Get(red()));
    let (_, got) = w.got(get).unwrap();
    let value = got.message.descriptor.properties.get("colour");
    assert_eq!(value, Some(&PropertyValue::String("red".to_owned())));
}
