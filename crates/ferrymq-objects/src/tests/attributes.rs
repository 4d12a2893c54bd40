//! The attribute tables: complete, lossless, and with IBM MQ's defaults and ranges.

use ferrymq_types::{
    ChannelName, ObjectId, ProcessName, QueueManagerId, QueueManagerName, QueueName, Timestamp,
};

use super::{Bench, number, text, word};
use crate::queue_table::queue_attributes;
use crate::{
    AttributeForm, AttributeProblem, AttributeValue, Attributes, Channel, ObjectKind, Process,
    Queue, QueueManagerAttributes, queue_manager_attributes,
};

/// A value of `form` that is not `default`, if there is one.
fn other(form: AttributeForm, default: &AttributeValue) -> AttributeValue {
    match form {
        AttributeForm::Number { min, max } => {
            number(if *default == number(max) { min } else { max })
        }
        AttributeForm::NumberOr { max, .. } => number(max),
        AttributeForm::Text { .. } => text("It-s_2"),
        AttributeForm::Words(words) => word(
            words
                .iter()
                .find(|w| default.as_str() != Some(w))
                .unwrap_or(&words[0]),
        ),
        AttributeForm::Flag => AttributeValue::Flag(default.as_flag() != Some(true)),
        AttributeForm::QueueName => text("other/Queue"),
        AttributeForm::QueueManagerName => text("OTHER%QM"),
        AttributeForm::ProcessName => text("other/Process"),
        AttributeForm::ApplicationType => number(65_536),
        AttributeForm::ConnectionName => text("h1(1414),h2"),
        AttributeForm::List { .. } => AttributeValue::List(vec!["a".into(), "b c".into()]),
    }
}

/// Words that scripts may write and that change nothing.
const WITHOUT_EFFECT: [&str; 3] = ["HARDENBO", "TARGTYPE", "TRPTYPE"];

fn changed(defaults: &Attributes) -> impl Fn(&crate::AttributeSpec) -> (String, AttributeValue) {
    move |spec| {
        let value = other(spec.form, defaults.get(spec.keyword).unwrap());
        (spec.keyword.to_owned(), value)
    }
}

#[test]
fn every_definition_comes_back_from_a_snapshot_whole() {
    for kind in ObjectKind::ALL {
        let plain = if kind == ObjectKind::Process {
            let mut process = Process::with_defaults(ProcessName::new("a/B").unwrap());
            process.id = ObjectId::new(9);
            process.altered = Timestamp::from_millis(77);
            process.to_attributes()
        } else if kind.is_queue() {
            let mut queue = Queue::with_defaults(kind, QueueName::new("a/B").unwrap()).unwrap();
            queue.base_mut().id = ObjectId::new(9);
            queue.base_mut().altered = Timestamp::from_millis(77);
            if let Queue::Local(q) = &mut queue {
                q.created = Timestamp::from_millis(66);
            }
            queue.to_attributes()
        } else {
            let name = ChannelName::new("QM1.TO.QM2").unwrap();
            let mut channel = Channel::with_defaults(kind, name).unwrap();
            channel.base_mut().id = ObjectId::new(9);
            channel.base_mut().altered = Timestamp::from_millis(77);
            channel.to_attributes()
        };
        let settable = kind.attributes().into_iter().filter(|s| s.settable);
        let other: Vec<_> = settable.map(changed(&plain)).collect();
        let merged: Attributes = plain
            .iter()
            .map(|(k, v)| (k.to_owned(), v.clone()))
            .chain(other.iter().cloned())
            .collect();
        for stored in [&plain, &merged] {
            let again = if kind == ObjectKind::Process {
                Process::from_attributes(stored).unwrap().to_attributes()
            } else if kind.is_queue() {
                Queue::from_attributes(stored).unwrap().to_attributes()
            } else {
                Channel::from_attributes(stored).unwrap().to_attributes()
            };
            for (keyword, value) in stored.iter().filter(|(k, _)| !WITHOUT_EFFECT.contains(k)) {
                assert_eq!(again.get(keyword), Some(value), "{kind} {keyword}");
            }
            assert_eq!(again.len(), stored.len());
        }
        for (keyword, value) in &other {
            let same = plain.get(keyword) == Some(value);
            assert_eq!(
                same,
                ["TARGTYPE", "TRPTYPE"].contains(&keyword.as_str())
                    || (kind, keyword.as_str()) == (ObjectKind::ModelQueue, "USAGE"),
                "{kind} {keyword} was not changed by the test"
            );
        }
    }
}

#[test]
fn the_structs_have_no_field_that_a_snapshot_forgets() {
    // Two definitions that differ in every field differ from each other's snapshot in every attribute, and equality of the
    // structs is equality of the snapshots.
    let mut b = Bench::new();
    b.define(
        ObjectKind::LocalQueue,
        "Q",
        &[
            ("MAXDEPTH", number(7)),
            ("BOQNAME", text("B")),
            ("TRIGGER", AttributeValue::Flag(true)),
        ],
    );
    b.define(
        ObjectKind::SenderChannel,
        "C",
        &[
            ("CONNAME", text("h(1)")),
            ("XMITQ", text("X")),
            ("BATCHINT", number(1)),
            ("LONGTMR", number(999_999)),
        ],
    );
    let qm = b.qm1();
    for queue in qm.queues.values() {
        assert_eq!(
            Queue::from_attributes(&queue.to_attributes()).as_ref(),
            Ok(queue)
        );
    }
    for channel in qm.channels.values() {
        assert_eq!(
            Channel::from_attributes(&channel.to_attributes()).as_ref(),
            Ok(channel)
        );
    }
    let mut attributes = qm.attributes.clone();
    attributes.altered = Timestamp::from_millis(5);
    attributes.created = Timestamp::from_millis(4);
    attributes.description = "d".into();
    attributes.dead_letter_queue_name = QueueName::new("D").ok();
    attributes.default_transmission_queue = QueueName::new("X").ok();
    attributes.max_handles = 1;
    attributes.max_message_length = 40_000;
    attributes.max_uncommitted_messages = 2;
    attributes.trigger_interval = core::time::Duration::from_millis(7);
    attributes.events = crate::QueueManagerEvents {
        inhibit: crate::Enabled::Yes,
        local: crate::Enabled::Yes,
        remote: crate::Enabled::Yes,
        performance: crate::Enabled::Yes,
        start_stop: crate::Enabled::No,
    };
    assert_eq!(
        QueueManagerAttributes::from_attributes(&attributes.to_attributes()),
        Ok(attributes)
    );
}

#[test]
fn a_snapshot_of_a_newer_or_damaged_form_is_refused() {
    let queue = Queue::with_defaults(ObjectKind::LocalQueue, QueueName::new("Q").unwrap());
    let good = queue.unwrap().to_attributes();
    let with = |keyword: &str, value: AttributeValue| -> Attributes {
        let pairs = good.iter().map(|(k, v)| (k.to_owned(), v.clone()));
        pairs.chain([(keyword.to_owned(), value)]).collect()
    };
    for bad in [
        with("FROM.THE.FUTURE", number(1)),
        with("QUEUE", text("no name")),
        with("TYPE", word("SDR")),
        with("TYPE", word("QCLUSTER")),
        with("OBJECTID", text("1")),
        with("MAXDEPTH", number(1_000_000_000)),
        with("MAXDEPTH", text("1")),
        Attributes::new(),
    ] {
        assert!(Queue::from_attributes(&bad).is_err(), "{bad:?}");
        assert!(Channel::from_attributes(&bad).is_err(), "{bad:?}");
        assert!(QueueManagerAttributes::from_attributes(&bad).is_err());
    }
    // What came later has its default.
    let fewer: Attributes = good
        .iter()
        .filter(|(k, _)| *k != "MAXDEPTH")
        .map(|(k, v)| (k.to_owned(), v.clone()))
        .collect();
    let Queue::Local(read) = Queue::from_attributes(&fewer).unwrap() else {
        panic!("a local queue became another kind");
    };
    assert_eq!(read.max_depth, 5000);
}

#[test]
fn tables_are_in_alphabetical_order_and_name_nothing_twice() {
    let check = |keywords: Vec<&str>| {
        let mut sorted = keywords.clone();
        sorted.sort_unstable();
        sorted.dedup();
        assert_eq!(keywords, sorted);
    };
    // A local queue shows its type, a model is given one: the keyword is there for both.
    let mut any: Vec<&str> = queue_attributes(None).map(|s| s.keyword).collect();
    any.dedup();
    check(any);
    check(queue_manager_attributes().map(|s| s.keyword).collect());
    for kind in ObjectKind::ALL {
        check(kind.attributes().iter().map(|s| s.keyword).collect());
    }
}

#[test]
fn defaults_are_those_of_ibm_mq() {
    let shown = |kind: ObjectKind| -> String {
        let pairs = if kind == ObjectKind::Process {
            Process::with_defaults(ProcessName::new("P").unwrap()).displayed()
        } else if kind.is_queue() {
            let name = QueueName::new("Q").unwrap();
            Queue::with_defaults(kind, name).unwrap().displayed()
        } else {
            let name = ChannelName::new("C").unwrap();
            Channel::with_defaults(kind, name).unwrap().displayed()
        };
        pairs
            .into_iter()
            .filter(|(k, _)| !["ALTDATE", "ALTTIME", "CRDATE", "CRTIME"].contains(k))
            .map(|(k, v)| match v {
                AttributeValue::Number(n) => format!("{k}({n})"),
                AttributeValue::Text(t) | AttributeValue::Word(t) => format!("{k}({t})"),
                AttributeValue::Flag(true) => k.to_owned(),
                AttributeValue::Flag(false) => format!("NO{k}"),
                AttributeValue::List(_) => panic!("{k} is a list"),
            })
            .collect::<Vec<_>>()
            .join(" ")
    };
    for (kind, expected) in [
        (
            ObjectKind::LocalQueue,
            "BOQNAME() BOTHRESH(0) DEFPRTY(0) DEFPSIST(NO) DEFSOPT(SHARED) DEFTYPE(PREDEFINED) DESCR() GET(ENABLED) HARDENBO \
             INITQ() MAXDEPTH(5000) MAXMSGL(4194304) MSGDLVSQ(PRIORITY) NPMCLASS(NORMAL) PROCESS() PROPCTL(COMPAT) PUT(ENABLED) QDEPTHHI(80) \
             QDEPTHLO(20) QDPHIEV(DISABLED) QDPLOEV(DISABLED) QDPMAXEV(ENABLED) QSVCIEV(NONE) QSVCINT(999999999) SHARE \
             TRIGDATA() TRIGDPTH(1) NOTRIGGER TRIGMPRI(0) TRIGTYPE(FIRST) USAGE(NORMAL)",
        ),
        (
            ObjectKind::RemoteQueue,
            "DEFPRTY(0) DEFPSIST(NO) DESCR() PUT(ENABLED) RNAME() RQMNAME() XMITQ()",
        ),
        (
            ObjectKind::AliasQueue,
            "DEFPRTY(0) DEFPSIST(NO) DESCR() GET(ENABLED) PROPCTL(COMPAT) PUT(ENABLED) TARGET() TARGTYPE(QUEUE)",
        ),
        (
            ObjectKind::ModelQueue,
            "BOQNAME() BOTHRESH(0) DEFPRTY(0) DEFPSIST(NO) DEFSOPT(EXCL) DEFTYPE(TEMPDYN) DESCR() GET(ENABLED) HARDENBO \
             INITQ() MAXDEPTH(5000) MAXMSGL(4194304) MSGDLVSQ(PRIORITY) NPMCLASS(NORMAL) PROCESS() PROPCTL(COMPAT) PUT(ENABLED) QDEPTHHI(80) \
             QDEPTHLO(20) QDPHIEV(DISABLED) QDPLOEV(DISABLED) QDPMAXEV(ENABLED) QSVCIEV(NONE) QSVCINT(999999999) NOSHARE \
             TRIGDATA() TRIGDPTH(1) NOTRIGGER TRIGMPRI(0) TRIGTYPE(FIRST) USAGE(NORMAL)",
        ),
        (
            ObjectKind::SenderChannel,
            "BATCHINT(0) BATCHLIM(5000) BATCHSZ(50) CONNAME() DESCR() DISCINT(6000) HBINT(300) LONGRTY(999999999) \
             LONGTMR(1200) MAXMSGL(4194304) NPMSPEED(FAST) SEQWRAP(999999999) SHORTRTY(10) SHORTTMR(60) SSLCIPH() SSLPEER() \
             TRPTYPE(TCP) USEDLQ(YES) XMITQ()",
        ),
        (
            ObjectKind::ReceiverChannel,
            "BATCHSZ(50) DESCR() HBINT(300) MAXMSGL(4194304) MRRTY(10) MRTMR(1000) NPMSPEED(FAST) SEQWRAP(999999999) \
             SSLCAUTH(REQUIRED) SSLCIPH() SSLPEER() TRPTYPE(TCP) USEDLQ(YES)",
        ),
        (
            ObjectKind::ServerConnectionChannel,
            "DESCR() HBINT(300) MAXINST(999999999) MAXMSGL(4194304) MCAUSER() SSLCAUTH(REQUIRED) SSLCIPH() SSLPEER() \
             TRPTYPE(TCP)",
        ),
        (
            ObjectKind::Process,
            "APPLICID() APPLTYPE(UNIX) DESCR() ENVRDATA() USERDATA()",
        ),
    ] {
        assert_eq!(shown(kind), expected);
    }
    let name = QueueManagerName::new("QM1").unwrap();
    let created = Timestamp::from_millis(951_782_399_999);
    let qmgr = QueueManagerAttributes::with_defaults(name, QueueManagerId::NONE, created);
    assert_eq!(qmgr.id_text(), "QM1_2000-02-28_23.59.59");
    for default in [
        ("MAXPROPL", word("NOLIMIT")),
        ("MAXUMSGS", number(10_000)),
        ("TRIGINT", number(999_999_999)),
        ("INHIBTEV", word("DISABLED")),
        ("LOCALEV", word("DISABLED")),
        ("PERFMEV", word("DISABLED")),
        ("REMOTEEV", word("DISABLED")),
        ("STRSTPEV", word("ENABLED")),
    ] {
        assert!(qmgr.displayed().contains(&default), "{default:?}");
    }
}

#[test]
fn values_are_read_as_the_attribute_takes_them() {
    let read = |kind: ObjectKind, word: &str, value: &str| {
        kind.attribute(word).and_then(|s| s.form.read(value))
    };
    let local = ObjectKind::LocalQueue;
    let sender = ObjectKind::SenderChannel;
    assert_eq!(read(local, "MAXDEPTH", " 10"), Ok(number(10)));
    assert_eq!(read(local, "PUT", "disabled"), Ok(word("DISABLED")));
    assert_eq!(read(local, "BOQNAME", " "), Ok(text("")));
    assert_eq!(read(local, "BOQNAME", "a.b  "), Ok(text("a.b")));
    assert_eq!(read(ObjectKind::AliasQueue, "TARGQ", "Q"), Ok(text("Q")));
    let process = ObjectKind::Process;
    assert_eq!(read(process, "APPLTYPE", "def"), Ok(word("DEF")));
    assert_eq!(read(process, "APPLTYPE", "70000"), Ok(number(70_000)));
    assert_eq!(
        read(sender, "CONNAME", "a(1414), 10.0.0.1 (1415)"),
        Ok(text("a(1414), 10.0.0.1 (1415)"))
    );
    for (kind, keyword, bad) in [
        (local, "MAXDEPTH", "1000000000"),
        (local, "MAXDEPTH", "+1"),
        (local, "MAXDEPTH", "-1"),
        (local, "MAXDEPTH", ""),
        (local, "MAXDEPTH", "99999999999999999999999"),
        (local, "PUT", "MAYBE"),
        (local, "BOQNAME", "A B"),
        (local, "DESCR", "a\u{7}"),
        (local, "DESCR", &"x".repeat(65)),
        (local, "TRIGGER", "YES"),
        (local, "TRIGDPTH", "0"),
        (local, "TRIGMPRI", "10"),
        (local, "QDEPTHHI", "101"),
        (local, "QSVCIEV", "LOW"),
        (ObjectKind::Process, "APPLTYPE", "COBOL"),
        (ObjectKind::Process, "APPLTYPE", "6"),
        (ObjectKind::Process, "APPLTYPE", "+65536"),
        (ObjectKind::Process, "APPLICID", &"x".repeat(257)),
        (sender, "BATCHSZ", "0"),
        (sender, "BATCHSZ", "10000"),
        (sender, "SEQWRAP", "99"),
        (sender, "CONNAME", "a(0)"),
        (sender, "CONNAME", "a(+1)"),
        (sender, "CONNAME", "a(70000)"),
        (sender, "CONNAME", "a(1"),
        (sender, "CONNAME", "a,,b"),
        (sender, "CONNAME", "(1414)"),
    ] {
        let refused = read(kind, keyword, bad);
        assert!(
            matches!(refused, Err(AttributeProblem::Value { .. })),
            "{keyword}({bad}): {refused:?}"
        );
    }
    assert_eq!(
        read(local, "CLUSTER", "C"),
        Err(AttributeProblem::NotSupported)
    );
    assert_eq!(
        read(local, "RNAME", "C"),
        Err(AttributeProblem::NotApplicable)
    );
    assert_eq!(read(local, "MAXDEPHT", "1"), Err(AttributeProblem::Unknown));
}
