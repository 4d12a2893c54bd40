//! Where a getter has properties: mq-semantics of PROPCTL and of the get options, cell by cell.

use ferrymq_objects::{PropertyControl, Queue};
use ferrymq_types::{Properties, Property, PropertyValue, ReasonCode, rfh2};

use super::harness::{C1, World, alias, get, put, queue_name};
use crate::{Browse, BrowseStep, Get, Presentation, PropertyOption, Put, Reply, Request, Source};

fn with(names: &[&str]) -> Put {
    let mut put = put("A", "data");
    let properties = names.iter().map(|name| Property {
        name: (*name).to_owned(),
        value: PropertyValue::Int32(1),
    });
    put.descriptor.properties = Properties::new(properties.collect()).unwrap();
    put
}

fn world(control: PropertyControl) -> World {
    let mut w = World::new();
    w.alter_local("A", |q| q.property_control = control);
    w
}

const CONTROLS: [PropertyControl; 5] = [
    PropertyControl::Compatibility,
    PropertyControl::None,
    PropertyControl::All,
    PropertyControl::Force,
    PropertyControl::Version6,
];

#[test]
fn each_option_presents_properties_as_it_says_on_a_queue_of_each_property_control() {
    use Presentation::{Beside, Dropped, Header};
    // In the order of `CONTROLS`.
    for (option, usual, only_mqps) in [
        (
            PropertyOption::AsQueueDefined,
            [Beside, Beside, Beside, Header, Beside],
            [Beside, Beside, Beside, Header, Beside],
        ),
        (
            PropertyOption::AsQueueDefinedInData,
            [Header, Dropped, Header, Header, Header],
            [Dropped, Dropped, Header, Header, Header],
        ),
        (PropertyOption::InHandle, [Beside; 5], [Beside; 5]),
        (PropertyOption::ForceHeader, [Header; 5], [Header; 5]),
        (PropertyOption::Compatibility, [Header; 5], [Dropped; 5]),
        (PropertyOption::None, [Dropped; 5], [Dropped; 5]),
    ] {
        for (i, control) in CONTROLS.into_iter().enumerate() {
            for (names, expected) in [
                (&["colour", "mqps.Top"][..], usual[i]),
                (&["mqps.Top"], only_mqps[i]),
                (&[], Beside),
            ] {
                let what = format!("{option:?} {control:?} {names:?}");
                let mut w = world(control);
                w.put(with(names));
                let browse = Browse {
                    properties: option,
                    ..Browse::of(BrowseStep::First(queue_name("A")))
                };
                let (_, reply) = w.answer(C1, Request::Browse(browse));
                let Ok(Reply::Browsed(browsed)) = reply else {
                    panic!("{what}: {reply:?}");
                };
                assert_eq!(browsed.presentation, expected, "browse {what}");
                let (_, got) = w.get(Get {
                    properties: option,
                    ..get("A")
                });
                assert_eq!(got.presentation, expected, "{what}");
            }
        }
    }
}

#[test]
fn through_an_alias_its_own_property_control_counts() {
    let mut w = world(PropertyControl::Force);
    w.alter(|qmgr| {
        let mut alias = alias(77, "ALSO.A", "A");
        alias.property_control = PropertyControl::None;
        qmgr.queues
            .insert(queue_name("ALSO.A"), Queue::Alias(alias));
    });
    w.put(with(&["colour"]));
    w.put(with(&["colour"]));
    let through = |queue: &str| Get {
        source: Source::Queue(queue_name(queue)),
        properties: PropertyOption::AsQueueDefinedInData,
        ..get("A")
    };
    let (_, got) = w.get(through("ALSO.A"));
    assert_eq!(got.presentation, Presentation::Dropped);
    let (_, got) = w.get(through("A"));
    assert_eq!(got.presentation, Presentation::Header);
}

#[test]
fn a_header_counts_in_the_length_that_a_getter_takes() {
    let mut w = world(PropertyControl::Compatibility);
    let put = with(&["colour"]);
    let header = rfh2::header_length(&put.descriptor.properties);
    w.put(put);
    let whole = u32::try_from(header + "data".len()).unwrap();
    let taking = |length_max, properties| Get {
        length_max: Some(length_max),
        properties,
        ..get("A")
    };
    let (_, reason) = w.get_refused(taking(whole - 1, PropertyOption::ForceHeader));
    assert_eq!(reason, ReasonCode::TRUNCATED_MSG_FAILED);
    let (_, reason) = w.get_refused(taking(3, PropertyOption::None));
    assert_eq!(reason, ReasonCode::TRUNCATED_MSG_FAILED);
    let (_, got) = w.get(taking(whole, PropertyOption::ForceHeader));
    assert_eq!(got.presentation, Presentation::Header);
    w.put(with(&["colour"]));
    w.get(taking(4, PropertyOption::None));
}

#[test]
fn properties_longer_than_maxpropl_are_refused() {
    let mut w = world(PropertyControl::Compatibility);
    let length = with(&["colour"]).descriptor.properties.length();
    let limit = |w: &mut World, length: usize| {
        let length = u32::try_from(length).unwrap();
        w.alter(|qmgr| qmgr.attributes.max_properties_length = Some(length));
    };
    limit(&mut w, length);
    w.put(with(&["colour"]));
    limit(&mut w, length - 1);
    assert_eq!(
        w.put_refused(with(&["colour"])),
        ReasonCode::PROPERTIES_TOO_BIG
    );
    limit(&mut w, 0);
    w.put(with(&[]));
}
