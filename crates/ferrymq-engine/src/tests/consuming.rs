//! A consumer with a selector: its walk goes on from batch to batch, and misses nothing meanwhile.

use std::sync::Arc;

use ferrymq_selector::Selector;
use ferrymq_types::{Priority, Properties, Property, PropertyValue, ReasonCode, UnitOfWorkId};

use super::harness::{C1, C2, World, put, queue_name, unit};
use crate::limits::SELECTION_ROWS_MAX;
use crate::{
    CloseOption, Get, HandleId, InputUse, Many, ObjectName, OpenOptions, Put, Reply, Request,
    RequestId, Source,
};

/// Messages of a batch.
const BATCH: u32 = 4;

fn numbered(number: i32) -> Put {
    let mut put = put("A", &number.to_string());
    put.descriptor.properties = Properties::new(vec![Property {
        name: "number".to_owned(),
        value: PropertyValue::Int32(number),
    }])
    .unwrap();
    put
}

fn open(w: &mut World, selector: &str) -> HandleId {
    let open = Request::Open {
        name: ObjectName::local(queue_name("A")),
        options: OpenOptions {
            input: Some(InputUse::Shared),
            ..OpenOptions::default()
        },
        dynamic_name: None,
        selector: Some(Arc::new(Selector::parse(selector).unwrap())),
    };
    match w.answer(C1, open).1 {
        Ok(Reply::Opened(opened)) => opened.handle,
        other => panic!("{other:?}"),
    }
}

/// A consumer asks for more, and what it is given at last, if there is any.
fn ask(w: &mut World, handle: HandleId, unit: Option<UnitOfWorkId>) -> RequestId {
    let get = Get {
        many: Some(Many {
            messages_max: BATCH,
            bytes_max: 1 << 20,
        }),
        syncpoint: unit,
        wait_until: w.until(core::time::Duration::from_secs(3600)),
        ..Get::of(Source::Handle(handle))
    };
    let id = w.ask(C1, Request::Get(get));
    while w.engine.next_tick().is_some_and(|due| due <= w.now) {
        w.pass(core::time::Duration::ZERO);
    }
    id
}

/// The texts of a batch, and the messages that were judged for it.
fn given(w: &World, id: RequestId) -> (Vec<String>, u64) {
    match w.replies.get(&id) {
        Some((_, Ok(Reply::GotMany(got)))) => {
            let text = |m: &ferrymq_types::Message| String::from_utf8(m.body.to_vec()).unwrap();
            let texts = got.iter().map(|got| text(&got.message)).collect();
            (texts, got.last().map_or(0, |got| got.examined))
        }
        None => (Vec::new(), 0),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_deep_queue_is_judged_once_and_not_once_for_each_batch() {
    // Both with all in memory and with nothing in memory, where batches are smaller.
    for mut w in [World::new(), World::without_cache()] {
        for number in 0..600 {
            w.put(numbered(number));
        }
        let handle = open(&mut w, "number / 10 * 10 = number");
        let (mut all, mut judged, mut most, mut batches) = (Vec::new(), 0, 0, 0);
        while all.len() < 60 {
            let id = ask(&mut w, handle, None);
            let (texts, examined) = given(&w, id);
            assert!(!texts.is_empty(), "{all:?}");
            all.extend(texts);
            judged += examined;
            most = most.max(examined);
            batches += 1;
        }
        let expected: Vec<_> = (0..60).map(|i| (i * 10).to_string()).collect();
        assert_eq!(all, expected);
        // Once each, and once more those that match, when they are there to be given.
        assert!(judged <= 600 + 60, "{judged} in {batches} batches");
        // No batch begins at the first message again.
        assert!(most <= SELECTION_ROWS_MAX as u64 + 10, "{most}");
    }
}

#[test]
fn what_comes_in_front_between_two_batches_is_given_first() {
    let mut w = World::new();
    for number in 0..20 {
        w.put(numbered(number));
    }
    let handle = open(&mut w, "number >= 5");
    let first = ask(&mut w, handle, None);
    assert_eq!(given(&w, first).0, ["5", "6", "7", "8"]);
    for number in [1, 100] {
        let mut urgent = numbered(number);
        urgent.priority = Priority::new(9);
        w.put(urgent);
    }
    let second = ask(&mut w, handle, None);
    assert_eq!(given(&w, second).0, ["100", "9", "10", "11"]);
}

#[test]
fn what_is_backed_out_between_two_batches_is_given_again() {
    let mut w = World::new();
    for number in 0..20 {
        w.put(numbered(number));
    }
    let handle = open(&mut w, "number >= 5");
    w.begin(C1, unit(1));
    let first = ask(&mut w, handle, Some(unit(1)));
    assert_eq!(given(&w, first).0, ["5", "6", "7", "8"]);
    w.begin(C1, unit(2));
    let second = ask(&mut w, handle, Some(unit(2)));
    assert_eq!(given(&w, second).0, ["9", "10", "11", "12"]);
    w.back_out(C1, unit(1));
    w.begin(C1, unit(3));
    let third = ask(&mut w, handle, Some(unit(3)));
    assert_eq!(given(&w, third).0, ["5", "6", "7", "8"]);
    let fourth = ask(&mut w, handle, Some(unit(3)));
    assert_eq!(given(&w, fourth).0, ["13", "14", "15", "16"]);
}

#[test]
fn a_walk_that_came_to_the_end_waits_there_and_goes_with_its_handle() {
    let mut w = World::new();
    for number in 0..6 {
        w.put(numbered(number));
    }
    let handle = open(&mut w, "number >= 5");
    let first = ask(&mut w, handle, None);
    assert_eq!(given(&w, first), (vec!["5".to_owned()], 6));
    w.put(numbered(6));
    let second = ask(&mut w, handle, None);
    assert_eq!(given(&w, second), (vec!["6".to_owned()], 1));
    let third = ask(&mut w, handle, None);
    w.put(numbered(3));
    w.put(numbered(7));
    assert_eq!(given(&w, third), (vec!["7".to_owned()], 2));
    assert_eq!(w.engine.parked.len(), 1);
    let option = CloseOption::None;
    w.done(C1, Request::Close { handle, option });
    assert!(w.engine.parked.is_empty());
    open(&mut w, "number >= 5");
    let other = open(&mut w, "TRUE");
    let ids = ask(&mut w, other, None);
    assert_eq!(given(&w, ids).0, ["0", "1", "2", "3"]);
    w.disconnect(C1);
    assert!(w.engine.parked.is_empty());
}

#[test]
fn a_changed_order_begins_anew() {
    let mut w = World::new();
    for (number, priority) in [(1, 0), (2, 9), (3, 0), (4, 9), (5, 0), (6, 0), (7, 9)] {
        let mut put = numbered(number);
        put.priority = Priority::new(priority);
        w.put(put);
    }
    let handle = open(&mut w, "number <> 2");
    let first = ask(&mut w, handle, None);
    assert_eq!(given(&w, first).0, ["4", "7", "1", "3"]);
    w.put(numbered(8));
    w.alter_local("A", |q| {
        q.delivery_sequence = ferrymq_objects::DeliverySequence::Fifo;
    });
    let second = ask(&mut w, handle, None);
    assert_eq!(given(&w, second).0, ["5", "6", "8"]);
}

#[test]
fn a_get_and_a_browse_that_find_nothing_say_how_many_were_judged() {
    let mut w = World::new();
    for number in 0..7 {
        w.put(numbered(number));
    }
    let selector = Some(Arc::new(Selector::parse("number > 9").unwrap()));
    let get = Get {
        selector: selector.clone(),
        ..super::harness::get("A")
    };
    let (_, reply) = w.answer(C2, Request::Get(get));
    let none = |reply: Result<Reply, crate::Failure>| match reply {
        Ok(Reply::NothingSelected { examined }) => examined,
        other => panic!("{other:?}"),
    };
    assert_eq!(none(reply), 7);
    let browse = crate::Browse {
        selector,
        ..crate::Browse::of(crate::BrowseStep::First(queue_name("A")))
    };
    assert_eq!(none(w.answer(C2, Request::Browse(browse)).1), 7);
    assert_eq!(
        w.get_refused(Get {
            matching: crate::MatchIds {
                message_sequence_number: Some(3),
                ..crate::MatchIds::default()
            },
            ..super::harness::get("A")
        })
        .1,
        ReasonCode::NO_MSG_AVAILABLE
    );
}
