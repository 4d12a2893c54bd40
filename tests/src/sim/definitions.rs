//! The two queue managers and the channel between them, as definitions.

use std::sync::Arc;

use ferrymq_objects::{Action, AttributeValue, Command, Definitions, ObjectKind, QueueManager};
use ferrymq_types::{QueueManagerId, QueueManagerName, Timestamp};

use crate::sim::dynamics::{PERMANENT, TEMPORARY};
use crate::sim::groups::GROUP_QUEUE;
use crate::sim::profile::Profile;
use crate::sim::triggers::{INITIATION_QUEUE, TRIGGERED_QUEUE};

pub(crate) const QMGRS: [&str; 2] = ["QM1", "QM2"];
pub(crate) const CHANNEL: &str = "QM1.TO.QM2";
pub(crate) const XMITQ: &str = "QM2";
/// Messages may be backed out this often on `POISON.Q`.
pub(crate) const THRESHOLD: u32 = 2;
/// `MAXDEPTH` of `FULL.Q`.
const FULL_DEPTH: u64 = 3;
pub(crate) const DEAD_LETTER_QUEUE: &str = "DEAD.Q";
/// Where reports go.
pub(crate) const REPORT_QUEUE: &str = "REPORT.Q";
pub(crate) const BACKOUT_QUEUE: &str = "BACKOUT.Q";

/// The metadata of both nodes.
#[derive(Debug)]
pub(crate) struct Metadata {
    definitions: Definitions,
    index: u64,
}

fn number(n: u64) -> AttributeValue {
    AttributeValue::Number(n)
}

fn text(t: &str) -> AttributeValue {
    AttributeValue::Text(t.to_owned())
}

fn word(t: &str) -> AttributeValue {
    AttributeValue::Word(t.to_owned())
}

type Pairs<'a> = &'a [(&'a str, AttributeValue)];

impl Metadata {
    pub(crate) fn new(profile: &Profile) -> Self {
        let mut this = Self {
            definitions: Definitions::new(),
            index: 0,
        };
        for (node, id) in [(0, 0x11), (1, 0x22)] {
            let id = QueueManagerId::new([id; 16]);
            this.apply(node, Action::CreateQueueManager { id, node: 1 });
            this.queue_manager(node, profile);
        }
        this.sending_end(profile);
        this.receiving_end(profile);
        this
    }

    fn queue_manager(&mut self, node: usize, profile: &Profile) {
        let depth = ("MAXDEPTH", number(profile.dead_letter_depth));
        self.local(node, DEAD_LETTER_QUEUE, &[depth]);
        if profile.dead_letter_queue[node] {
            let attributes = pairs(&[("DEADQ", text(DEAD_LETTER_QUEUE))]);
            self.apply(node, Action::AlterQueueManager { attributes });
        }
        // The oracle knows what its clients put, not what the queue manager says of itself.
        let attributes = pairs(&[("STRSTPEV", word("DISABLED"))]);
        self.apply(node, Action::AlterQueueManager { attributes });
        self.local(node, "LOCAL.Q", &[]);
        self.local(node, REPORT_QUEUE, &[]);
        self.local(node, BACKOUT_QUEUE, &[]);
        let threshold = ("BOTHRESH", number(u64::from(THRESHOLD)));
        let backout = ("BOQNAME", text(BACKOUT_QUEUE));
        self.local(node, "POISON.Q", &[threshold, backout]);
    }

    fn sending_end(&mut self, profile: &Profile) {
        let usage = ("USAGE", word("XMITQ"));
        let trigger = ("TRIGGER", AttributeValue::Flag(true));
        let data = ("TRIGDATA", text(CHANNEL));
        let initiation = ("INITQ", text("SYSTEM.CHANNEL.INITQ"));
        self.local(0, XMITQ, &[usage, trigger, data, initiation]);
        for queue in ["IN.Q", "FULL.Q", "NOWHERE.Q"] {
            let to = [
                ("RNAME", text(queue)),
                ("RQMNAME", text(QMGRS[1])),
                ("XMITQ", text(XMITQ)),
            ];
            self.define(0, ObjectKind::RemoteQueue, &format!("TO.{queue}"), &to);
        }
        let mut sender = message_channel(profile, 0);
        sender.extend([
            ("CONNAME", text("qm2(1414)")),
            ("XMITQ", text(XMITQ)),
            ("BATCHSZ", number(profile.batch_size)),
            ("BATCHINT", number(profile.batch_interval)),
            ("DISCINT", number(profile.disconnect_interval)),
            ("SHORTRTY", number(999_999)),
            ("SHORTTMR", number(1)),
        ]);
        self.define(0, ObjectKind::SenderChannel, CHANNEL, &sender);
    }

    fn receiving_end(&mut self, profile: &Profile) {
        self.local(1, "IN.Q", &[]);
        self.local(1, "OUT.Q", &[]);
        self.local(1, GROUP_QUEUE, &[]);
        self.local(1, INITIATION_QUEUE, &[]);
        self.define(1, ObjectKind::Process, "READER", &[]);
        let triggered = [
            ("TRIGGER", AttributeValue::Flag(true)),
            ("TRIGTYPE", word(profile.trigger_type)),
            ("INITQ", text(INITIATION_QUEUE)),
            ("PROCESS", text("READER")),
        ];
        self.local(1, TRIGGERED_QUEUE, &triggered);
        for (dynamic, definition_type) in [(TEMPORARY, "TEMPDYN"), (PERMANENT, "PERMDYN")] {
            let attributes = [
                ("DEFTYPE", word(definition_type)),
                ("SHARE", AttributeValue::Flag(true)),
                ("DEFSOPT", word("SHARED")),
            ];
            self.define(1, ObjectKind::ModelQueue, dynamic.model, &attributes);
        }
        self.local(1, "FULL.Q", &[("MAXDEPTH", number(FULL_DEPTH))]);
        let mut receiver = message_channel(profile, 1);
        receiver.extend([("MRRTY", number(2)), ("MRTMR", number(200))]);
        self.define(1, ObjectKind::ReceiverChannel, CHANNEL, &receiver);
    }

    fn local(&mut self, node: usize, name: &str, attributes: Pairs<'_>) {
        self.define(node, ObjectKind::LocalQueue, name, attributes);
    }

    /// Defines, or replaces keeping the messages.
    pub(crate) fn define(
        &mut self,
        node: usize,
        kind: ObjectKind,
        name: &str,
        attributes: Pairs<'_>,
    ) {
        let action = Action::Define {
            kind,
            name: name.to_owned(),
            attributes: pairs(attributes),
            like: None,
            replace: true,
        };
        self.apply(node, action);
    }

    fn alter(&mut self, node: usize, name: &str, attributes: Pairs<'_>) {
        let action = Action::Alter {
            kind: ObjectKind::LocalQueue,
            name: name.to_owned(),
            attributes: pairs(attributes),
        };
        self.apply(node, action);
    }

    /// `PUT` of a queue.
    pub(crate) fn set_put(&mut self, node: usize, queue: &str, enabled: bool) {
        let value = word(if enabled { "ENABLED" } else { "DISABLED" });
        self.alter(node, queue, &[("PUT", value)]);
    }

    /// `MAXDEPTH` of a queue; `None` is as defined first.
    pub(crate) fn set_depth(&mut self, node: usize, queue: &str, depth: Option<u64>) {
        let depth = depth.unwrap_or(FULL_DEPTH);
        self.alter(node, queue, &[("MAXDEPTH", number(depth))]);
    }

    /// Everything that stands in the way of a message is taken away.
    pub(crate) fn heal(&mut self) {
        self.local(1, "NOWHERE.Q", &[]);
        for node in [0, 1] {
            self.set_depth(node, DEAD_LETTER_QUEUE, Some(100_000));
        }
        self.set_depth(1, "FULL.Q", Some(100_000));
        self.set_put(1, "IN.Q", true);
    }

    pub(crate) fn of(&self, node: usize) -> Arc<QueueManager> {
        let name = QueueManagerName::new(QMGRS[node]).expect("a constant that is a name");
        Arc::clone(&self.definitions.queue_managers[&name])
    }

    fn apply(&mut self, node: usize, action: Action) {
        self.index += 1;
        let mut request = [0; 16];
        request[..8].copy_from_slice(&self.index.to_be_bytes());
        let command = Command {
            version: Command::VERSION,
            queue_manager: QueueManagerName::new(QMGRS[node]).expect("a constant that is a name"),
            time: Timestamp::from_millis(self.index),
            request,
            action,
        };
        let applied = self.definitions.apply(self.index, &command);
        assert!(applied.is_ok(), "{command:?}: {applied:?}");
    }
}

fn pairs(attributes: Pairs<'_>) -> ferrymq_objects::Attributes {
    attributes
        .iter()
        .map(|(k, v)| ((*k).to_owned(), v.clone()))
        .collect()
}

fn message_channel(profile: &Profile, end: usize) -> Vec<(&'static str, AttributeValue)> {
    let yes = |b: bool| word(if b { "YES" } else { "NO" });
    let speed = if profile.fast[end] { "FAST" } else { "NORMAL" };
    vec![
        ("NPMSPEED", word(speed)),
        ("USEDLQ", yes(profile.use_dead_letter_queue[end])),
        ("HBINT", number(5)),
    ]
}
