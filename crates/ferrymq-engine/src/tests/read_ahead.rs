//! Reading ahead of gets.

use ferrymq_types::{ObjectId, Priority, Sequence};

use super::harness::{World, definitions, get, put};
use crate::limits::{COUNTER_BLOCK, READ_AHEAD_MESSAGES};
use crate::{Limits, Put};

/// A world with so many messages in the store and none in memory.
fn deep(messages: u64) -> World {
    let limits = Limits {
        cache_bytes_max: 1_000_000,
        ..Limits::default()
    };
    let mut w = World::with(definitions(), limits);
    for n in 0..messages {
        w.put(put("A", &n.to_string()));
    }
    w.crash();
    assert_eq!(w.engine.cache_bytes(), 0);
    w
}

/// Gets without reading what is asked to be read ahead.
fn get_only(w: &mut World) -> String {
    w.reads = false;
    let id = w.ask(super::harness::C1, crate::Request::Get(get("A")));
    while !w.fetches.is_empty() {
        w.read();
    }
    let (_, got) = w.got(id).expect("a message");
    String::from_utf8(got.message.body.to_vec()).unwrap()
}

#[test]
fn a_deep_queue_is_read_before_gets_ask_for_it() {
    let mut w = deep(1_000);
    let mut fetched = 0;
    for n in 0..1_000 {
        w.reads = false;
        let id = w.ask(super::harness::C1, crate::Request::Get(get("A")));
        fetched += w.fetches.len();
        while !w.fetches.is_empty() {
            w.read();
        }
        assert_eq!(w.got(id).unwrap().1.message.body, n.to_string());
        // The store is slow: it comes a few gets later.
        if n % 10 == 0
            && let Some((_, sequences)) = w.read_aheads.front()
        {
            assert!(sequences.len() <= READ_AHEAD_MESSAGES);
            w.read_ahead();
        }
    }
    assert_eq!(fetched, 1, "the first only");
    assert_eq!(w.engine.cache_bytes(), 0);
    assert!(w.read_aheads.is_empty(), "there is nothing more to read");
}

#[test]
fn one_read_ahead_is_under_way_at_a_time() {
    let mut w = deep(1_000);
    for n in 0..200 {
        assert_eq!(get_only(&mut w), n.to_string());
    }
    assert_eq!(w.read_aheads.len(), 1);
    let (_, sequences) = w.read_aheads.front().unwrap();
    assert_eq!(sequences.len(), READ_AHEAD_MESSAGES);
    assert_eq!(
        sequences[0],
        Sequence::new(2),
        "behind the one that is fetched"
    );
    // Most of them have left: the rest is kept, and the next are asked for when it is taken.
    w.read_ahead();
    assert_eq!(get_only(&mut w), "200");
    assert_eq!(w.read_aheads.front().unwrap().1[0], Sequence::new(258));
}

#[test]
fn what_is_read_ahead_takes_no_more_than_half_of_the_cache() {
    let limits = Limits {
        cache_bytes_max: 20_000,
        ..Limits::default()
    };
    let mut w = World::with(definitions(), limits);
    for n in 0..100 {
        w.put(put("A", &n.to_string()));
    }
    w.crash();
    assert_eq!(w.get_text("A"), "0");
    assert!(w.engine.cache_bytes() > 5_000);
    assert!(w.engine.cache_bytes() <= 10_000);
    // Puts that come meanwhile share the rest.
    for n in 100..200 {
        w.put(put("B", &n.to_string()));
        assert!(w.engine.cache_bytes() <= 20_000);
    }
    for n in 1..100 {
        assert_eq!(w.get_text("A"), n.to_string());
    }
}

#[test]
fn without_a_cache_nothing_is_read_ahead() {
    let mut w = World::without_cache();
    for n in 0..10 {
        w.put(put("A", &n.to_string()));
    }
    w.reads = false;
    get_only(&mut w);
    assert!(w.read_aheads.is_empty());
}

#[test]
fn what_could_not_be_read_ahead_is_fetched_and_reported() {
    let mut w = deep(20);
    w.damaged.insert((ObjectId::new(1), Sequence::new(5)));
    let texts: Vec<String> = (0..19).map(|_| w.get_text("A")).collect();
    assert_eq!(texts[3..5], ["3", "5"], "the damaged one is passed over");
    assert!(w.has_event(|e| matches!(e, crate::Event::Damaged { .. })));
    assert!(w.is_empty("A"));
    assert_eq!(w.depth("A"), 1);
}

#[test]
fn a_failed_read_ahead_is_not_repeated_until_a_get_finds_nothing_in_memory() {
    let mut w = deep(20);
    for n in 1..=20 {
        w.damaged.insert((ObjectId::new(1), Sequence::new(n)));
    }
    w.damaged.remove(&(ObjectId::new(1), Sequence::new(1)));
    get_only(&mut w);
    w.read_ahead();
    assert!(w.read_aheads.is_empty());
    w.damaged.clear();
    assert_eq!(get_only(&mut w), "1");
    assert_eq!(w.read_aheads.len(), 1);
}

#[test]
fn inv_o2_a_message_of_higher_priority_comes_before_those_that_were_read_ahead() {
    let mut w = deep(20);
    assert_eq!(w.get_text("A"), "0");
    w.put(Put {
        priority: Priority::new(9),
        ..put("A", "urgent")
    });
    assert_eq!(w.get_text("A"), "urgent");
    assert_eq!(w.get_text("A"), "1");
}

#[test]
fn reading_ahead_begins_anew_where_others_came_in_front() {
    let limits = Limits {
        cache_bytes_max: 20_000,
        ..Limits::default()
    };
    let mut w = World::with(definitions(), limits);
    for n in 0..200 {
        w.put(put("A", &n.to_string()));
    }
    w.crash();
    get_only(&mut w);
    w.read_ahead();
    // More than the cache holds.
    for n in 0..200 {
        w.put(Put {
            priority: Priority::new(9),
            ..put("A", &format!("urgent {n}"))
        });
    }
    assert_eq!(get_only(&mut w), "urgent 0");
    let (_, sequences) = w.read_aheads.front().expect("it began anew");
    // Numbers go on behind the block that was reserved with the first.
    assert_eq!(sequences[0], Sequence::new(COUNTER_BLOCK + 3));
    w.read_ahead();
    let id = w.ask(super::harness::C1, crate::Request::Get(get("A")));
    assert!(
        w.fetches.is_empty() && w.got(id).is_some(),
        "it was read ahead"
    );
}
