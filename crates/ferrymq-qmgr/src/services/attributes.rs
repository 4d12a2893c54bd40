//! Attributes by the names and numbers that programs know: of `MQINQ` and `MQSET`.
//!
//! Source: IBM MQ, "Attributes for queues", "Attributes for the queue manager", `MQIA_*`, `MQCA_*`.

use ferrymq_engine::{Failure, Inquired};
use ferrymq_objects::{
    AttributeValue, Attributes, Queue, QueueManagerAttributes, any_queue_attribute,
};
use ferrymq_proto::v1::{self, attribute::Value};
use ferrymq_types::ReasonCode;

/// An attribute: what programs call it, what MQSC calls it, and the numbers of its words.
type Name = (&'static str, &'static str, &'static [(&'static str, u64)]);

const INHIBITED: &[(&str, u64)] = &[("ENABLED", 0), ("DISABLED", 1)];
const ENABLED: &[(&str, u64)] = &[("DISABLED", 0), ("ENABLED", 1)];

/// Of queues, in the order of their names.
const QUEUE: &[Name] = &[
    ("AlterationDate", "ALTDATE", &[]),
    ("AlterationTime", "ALTTIME", &[]),
    ("BackoutRequeueQName", "BOQNAME", &[]),
    ("BackoutThreshold", "BOTHRESH", &[]),
    ("BaseQName", "TARGET", &[]),
    ("BaseType", "TARGTYPE", &[("QUEUE", 1)]),
    ("CreationDate", "CRDATE", &[]),
    ("CreationTime", "CRTIME", &[]),
    (
        "DefInputOpenOption",
        "DEFSOPT",
        &[("SHARED", 2), ("EXCL", 4)],
    ),
    ("DefPersistence", "DEFPSIST", &[("NO", 0), ("YES", 1)]),
    ("DefPriority", "DEFPRTY", &[]),
    (
        "DefinitionType",
        "DEFTYPE",
        &[("PREDEFINED", 1), ("PERMDYN", 2), ("TEMPDYN", 3)],
    ),
    ("HardenGetBackout", "HARDENBO", &[]),
    ("InhibitGet", "GET", INHIBITED),
    ("InhibitPut", "PUT", INHIBITED),
    ("InitiationQName", "INITQ", &[]),
    ("MaxMsgLength", "MAXMSGL", &[]),
    ("MaxQDepth", "MAXDEPTH", &[]),
    (
        "MsgDeliverySequence",
        "MSGDLVSQ",
        &[("PRIORITY", 0), ("FIFO", 1)],
    ),
    (
        "NonPersistentMessageClass",
        "NPMCLASS",
        &[("NORMAL", 0), ("HIGH", 10)],
    ),
    ("ProcessName", "PROCESS", &[]),
    (
        "PropertyControl",
        "PROPCTL",
        &[
            ("COMPAT", 0),
            ("NONE", 1),
            ("ALL", 2),
            ("FORCE", 3),
            ("V6COMPAT", 4),
        ],
    ),
    ("QDepthHighEvent", "QDPHIEV", ENABLED),
    ("QDepthHighLimit", "QDEPTHHI", &[]),
    ("QDepthLowEvent", "QDPLOEV", ENABLED),
    ("QDepthLowLimit", "QDEPTHLO", &[]),
    ("QDepthMaxEvent", "QDPMAXEV", ENABLED),
    ("QDesc", "DESCR", &[]),
    ("QServiceInterval", "QSVCINT", &[]),
    (
        "QServiceIntervalEvent",
        "QSVCIEV",
        &[("NONE", 0), ("HIGH", 1), ("OK", 2)],
    ),
    ("RemoteQMgrName", "RQMNAME", &[]),
    ("RemoteQName", "RNAME", &[]),
    ("Shareability", "SHARE", &[]),
    ("TriggerControl", "TRIGGER", &[]),
    ("TriggerData", "TRIGDATA", &[]),
    ("TriggerDepth", "TRIGDPTH", &[]),
    ("TriggerMsgPriority", "TRIGMPRI", &[]),
    (
        "TriggerType",
        "TRIGTYPE",
        &[("NONE", 0), ("FIRST", 1), ("EVERY", 2), ("DEPTH", 3)],
    ),
    ("Usage", "USAGE", &[("NORMAL", 0), ("XMITQ", 1)]),
    ("XmitQName", "XMITQ", &[]),
];

/// Of queues, that are in no definition.
const QUEUE_STATE: [&str; 5] = [
    "CurrentQDepth",
    "OpenInputCount",
    "OpenOutputCount",
    "QName",
    "QType",
];

/// Of the queue manager.
const QUEUE_MANAGER: &[Name] = &[
    ("AlterationDate", "ALTDATE", &[]),
    ("AlterationTime", "ALTTIME", &[]),
    ("DeadLetterQName", "DEADQ", &[]),
    ("DefXmitQName", "DEFXMITQ", &[]),
    ("InhibitEvent", "INHIBTEV", ENABLED),
    ("LocalEvent", "LOCALEV", ENABLED),
    ("MaxHandles", "MAXHANDS", &[]),
    ("MaxMsgLength", "MAXMSGL", &[]),
    ("MaxPropertiesLength", "MAXPROPL", &[]),
    ("MaxUncommittedMsgs", "MAXUMSGS", &[]),
    ("PerformanceEvent", "PERFMEV", ENABLED),
    ("QMgrDesc", "DESCR", &[]),
    ("QMgrIdentifier", "QMID", &[]),
    ("QMgrName", "QMNAME", &[]),
    ("RemoteEvent", "REMOTEEV", ENABLED),
    ("StartStopEvent", "STRSTPEV", ENABLED),
    ("TriggerInterval", "TRIGINT", &[]),
];

fn integer(n: u64) -> Value {
    Value::Integer(i64::try_from(n).unwrap_or(i64::MAX))
}

/// A value as programs know it; a word that has no number stays a word.
fn to_wire(value: AttributeValue, words: &[(&str, u64)]) -> Value {
    match value {
        AttributeValue::Number(n) => integer(n),
        AttributeValue::Flag(flag) => Value::Integer(i64::from(flag)),
        AttributeValue::Text(text) => Value::Text(text),
        AttributeValue::Word(word) => match words.iter().find(|(w, _)| *w == word) {
            Some((_, number)) => integer(*number),
            None => Value::Text(word),
        },
        AttributeValue::List(items) => Value::Text(items.join(",")),
    }
}

fn named(names: &[Name], shown: Vec<(&'static str, AttributeValue)>) -> Vec<(&'static str, Value)> {
    shown
        .into_iter()
        .filter_map(|(keyword, value)| {
            let (name, _, words) = names.iter().find(|(_, k, _)| *k == keyword)?;
            Some((*name, to_wire(value, words)))
        })
        .collect()
}

/// What `MQINQ` of a queue answers.
pub(crate) fn of_queue(
    inquired: Inquired,
    wanted: &[String],
) -> Result<v1::InquireAnswer, Failure> {
    let queue = &inquired.queue;
    let mut all = named(QUEUE, queue.displayed());
    let kind = match **queue {
        Queue::Local(_) => 1,
        Queue::Model(_) => 2,
        Queue::Alias(_) => 3,
        Queue::Remote(_) => 6,
    };
    let name = queue.base().name.to_string();
    all.push(("QName", Value::Text(name)));
    all.push(("QType", integer(kind)));
    if let Some(depth) = inquired.depth {
        all.push(("CurrentQDepth", integer(depth)));
        all.push(("OpenInputCount", integer(u64::from(inquired.inputs))));
        all.push(("OpenOutputCount", integer(u64::from(inquired.outputs))));
    }
    let is_known =
        |name: &str| QUEUE.iter().any(|(n, ..)| *n == name) || QUEUE_STATE.contains(&name);
    answer(all, wanted, is_known)
}

/// What `MQINQ` of the queue manager answers.
pub(crate) fn of_queue_manager(
    attributes: &QueueManagerAttributes,
    wanted: &[String],
) -> Result<v1::InquireAnswer, Failure> {
    let mut all = named(QUEUE_MANAGER, attributes.displayed());
    if all.iter().all(|(name, _)| *name != "QMgrName") {
        all.push(("QMgrName", Value::Text(attributes.name.to_string())));
    }
    let is_known = |name: &str| QUEUE_MANAGER.iter().any(|(n, ..)| *n == name);
    answer(all, wanted, is_known)
}

/// Those that are wanted, or all, in the order of their names. 2067 for a name that there is not; warning 2068 where this kind
/// of object has not all of them.
fn answer(
    mut all: Vec<(&'static str, Value)>,
    wanted: &[String],
    is_known: impl Fn(&str) -> bool,
) -> Result<v1::InquireAnswer, Failure> {
    if let Some(unknown) = wanted.iter().find(|name| !is_known(name)) {
        return Err(Failure {
            reason: ReasonCode::SELECTOR_ERROR,
            object: unknown
                .is_ascii()
                .then(|| unknown.chars().take(48).collect()),
        });
    }
    let lacks = |name: &String| all.iter().all(|(n, _)| n != name);
    let reason = if wanted.iter().any(lacks) {
        ReasonCode::SELECTOR_NOT_FOR_TYPE
    } else {
        ReasonCode::NONE
    };
    all.sort_by_key(|(name, _)| *name);
    let attributes = all
        .into_iter()
        .filter(|(name, _)| wanted.is_empty() || wanted.iter().any(|w| w == name))
        .map(|(name, value)| v1::Attribute {
            name: name.to_owned(),
            value: Some(value),
        })
        .collect();
    Ok(v1::InquireAnswer {
        attributes,
        reason: reason.get(),
    })
}

/// What `MQSET` is given. Values that an attribute does not take are passed on: each has a reason of its own.
pub(crate) fn to_set(given: &[v1::Attribute]) -> Result<Attributes, Failure> {
    let error = |reason| Failure {
        reason,
        object: None,
    };
    let mut attributes = Attributes::new();
    for attribute in given {
        let selector_error = || error(ReasonCode::SELECTOR_ERROR);
        let (_, keyword, words) = QUEUE
            .iter()
            .find(|(name, ..)| *name == attribute.name)
            .ok_or_else(selector_error)?;
        let value = match &attribute.value {
            Some(Value::Text(text)) => AttributeValue::Text(text.clone()),
            Some(Value::Integer(n)) => from_integer(keyword, words, *n),
            None => return Err(selector_error()),
        };
        attributes
            .insert(keyword, value)
            .map_err(|_| selector_error())?;
    }
    if attributes.is_empty() {
        return Err(error(ReasonCode::SELECTOR_ERROR));
    }
    Ok(attributes)
}

/// A number as the attribute takes it: a flag, a word, or itself.
fn from_integer(keyword: &str, words: &[(&str, u64)], n: i64) -> AttributeValue {
    // No attribute takes a number that is so large.
    let number = u64::try_from(n).unwrap_or(u64::MAX);
    let is_flag = any_queue_attribute(keyword)
        .is_ok_and(|spec| matches!(spec.form, ferrymq_objects::AttributeForm::Flag));
    match (is_flag, words.iter().find(|(_, w)| *w == number)) {
        (true, _) if number <= 1 => AttributeValue::Flag(number == 1),
        (false, Some((word, _))) => AttributeValue::Word((*word).to_owned()),
        (_, _) => AttributeValue::Number(number),
    }
}

#[cfg(test)]
mod tests {
    use ferrymq_objects::ObjectKind;

    use super::*;

    #[test]
    fn every_attribute_of_a_queue_has_a_name_for_programs() {
        for kind in ObjectKind::ALL.into_iter().filter(|kind| kind.is_queue()) {
            for spec in kind.attributes() {
                let found = QUEUE
                    .iter()
                    .find(|(_, keyword, _)| *keyword == spec.keyword);
                let (name, _, words) = found.unwrap_or_else(|| panic!("{}", spec.keyword));
                if let ferrymq_objects::AttributeForm::Words(all) = spec.form {
                    for word in all {
                        assert!(words.iter().any(|(w, _)| w == word), "{name} {word}");
                    }
                }
            }
        }
        assert!(QUEUE.is_sorted_by_key(|(name, ..)| *name));
    }

    #[test]
    fn what_is_set_comes_with_its_own_kind_of_value() {
        let check = |name: &str, value, keyword: &str, expected: AttributeValue| {
            let given = v1::Attribute {
                name: name.to_owned(),
                value: Some(value),
            };
            let read = to_set(&[given]).unwrap();
            assert_eq!(read.get(keyword), Some(&expected), "{name}");
        };
        let word = |w: &str| AttributeValue::Word(w.to_owned());
        check("InhibitGet", Value::Integer(1), "GET", word("DISABLED"));
        check("InhibitPut", Value::Integer(0), "PUT", word("ENABLED"));
        check(
            "InhibitPut",
            Value::Integer(7),
            "PUT",
            AttributeValue::Number(7),
        );
        check(
            "TriggerControl",
            Value::Integer(1),
            "TRIGGER",
            AttributeValue::Flag(true),
        );
        check(
            "TriggerControl",
            Value::Integer(2),
            "TRIGGER",
            AttributeValue::Number(2),
        );
        check("TriggerType", Value::Integer(3), "TRIGTYPE", word("DEPTH"));
        check(
            "TriggerDepth",
            Value::Integer(4),
            "TRIGDPTH",
            AttributeValue::Number(4),
        );
        check(
            "TriggerDepth",
            Value::Integer(-4),
            "TRIGDPTH",
            AttributeValue::Number(u64::MAX),
        );
        let text = AttributeValue::Text("x".to_owned());
        check("TriggerData", Value::Text("x".to_owned()), "TRIGDATA", text);
        let unknown = v1::Attribute {
            name: "DistLists".to_owned(),
            value: Some(Value::Integer(1)),
        };
        assert_eq!(
            to_set(&[unknown]).unwrap_err().reason,
            ReasonCode::SELECTOR_ERROR
        );
        assert_eq!(to_set(&[]).unwrap_err().reason, ReasonCode::SELECTOR_ERROR);
    }
}
