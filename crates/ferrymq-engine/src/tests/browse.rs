//! Browsing.

use ferrymq_types::{Priority, ReasonCode};

use super::harness::{C1, C2, World, correlation, get, put, queue_name, unit};
use crate::{Browse, BrowseStep, Cursor, MatchIds, Put, Reply, Request};

fn from(after: Option<Cursor>) -> BrowseStep {
    let queue = queue_name("A");
    match after {
        None => BrowseStep::First(queue),
        Some(cursor) => BrowseStep::After(queue, cursor),
    }
}

fn step(w: &mut World, after: Option<Cursor>) -> Result<(String, Cursor), ReasonCode> {
    match w.answer(C2, Request::Browse(Browse::of(from(after)))).1 {
        Ok(Reply::Browsed(b)) => Ok((
            String::from_utf8(b.message.body.to_vec()).unwrap(),
            b.cursor,
        )),
        Ok(other) => panic!("{other:?}"),
        Err(failure) => Err(failure.reason),
    }
}

#[test]
fn a_browse_goes_on_behind_its_cursor_and_never_back() {
    for cached in [true, false] {
        let mut w = if cached {
            World::new()
        } else {
            World::without_cache()
        };
        w.put(put("A", "1"));
        w.put(put("A", "2"));
        let (text, cursor) = step(&mut w, None).unwrap();
        assert_eq!(text, "1");
        w.put(Put {
            priority: Priority::new(9),
            ..put("A", "high")
        });
        // The message under the cursor may go.
        assert_eq!(w.get_text("A"), "high");
        assert_eq!(w.get_text("A"), "1");
        let (text, cursor) = step(&mut w, Some(cursor)).unwrap();
        assert_eq!(text, "2");
        assert_eq!(
            step(&mut w, Some(cursor)),
            Err(ReasonCode::NO_MSG_AVAILABLE)
        );
        assert_eq!(w.depth("A"), 1);
    }
}

#[test]
fn inv_a1_a_browse_sees_neither_uncommitted_nor_locked_messages() {
    let mut w = World::new();
    w.put(put("A", "locked"));
    w.put(put("A", "free"));
    w.begin(C1, unit(1));
    w.get_in("A", unit(1));
    w.put(Put {
        syncpoint: Some(unit(1)),
        ..put("A", "uncommitted")
    });
    assert_eq!(w.browse_texts("A"), ["free"]);
    w.back_out(C1, unit(1));
    assert_eq!(w.browse_texts("A"), ["locked", "free"]);
}

#[test]
fn a_browse_whose_message_is_taken_while_it_is_read_shows_the_next() {
    let mut w = World::without_cache();
    w.put(put("A", "1"));
    w.put(put("A", "2"));
    w.reads = false;
    let browse = Request::Browse(Browse::of(from(None)));
    let browsing = w.ask(C2, browse);
    let getting = w.ask(C1, Request::Get(get("A")));
    // The get's read comes in first; then the browse's finds nothing.
    w.fetches.rotate_left(1);
    w.read();
    assert!(w.got(getting).is_some());
    w.reads = true;
    w.read();
    assert!(w.events.is_empty(), "what is gone is not damaged");
    while !w.fetches.is_empty() {
        w.read();
    }
    match &w.replies[&browsing].1 {
        Ok(Reply::Browsed(b)) => assert_eq!(&b.message.body[..], b"2"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_browse_by_id_goes_on_behind_its_cursor_too() {
    let mut w = World::new();
    for (text, n) in [("1", 7), ("other", 8), ("2", 7)] {
        let mut p = put("A", text);
        p.descriptor.correlation_id = correlation(n);
        w.put(p);
    }
    let mut found = Vec::new();
    let mut after = None;
    while let (_, Ok(Reply::Browsed(b))) = w.answer(
        C2,
        Request::Browse(Browse {
            matching: MatchIds {
                message_id: None,
                correlation_id: Some(correlation(7)),
                ..MatchIds::default()
            },
            ..Browse::of(from(after))
        }),
    ) {
        after = Some(b.cursor);
        found.push(b.message.body.clone());
        assert!(found.len() <= 2, "it never goes back");
    }
    assert_eq!(found, ["1", "2"]);
}
