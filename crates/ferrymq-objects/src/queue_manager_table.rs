//! The attributes of queue managers, and the objects that a new one has.

use std::collections::BTreeMap;

use ferrymq_types::{
    ATTRIBUTE_MAX, ChannelName, DESCRIPTION_LENGTH_MAX, MESSAGE_LENGTH_DEFAULT, MESSAGE_LENGTH_MAX,
    ObjectId, PRIORITY_MAX, ProcessName, QueueManagerId, QueueManagerName, QueueName, Timestamp,
    UNIT_OF_WORK_MESSAGES_DEFAULT,
};

use crate::attribute::{
    AttributeError, AttributeForm, AttributeProblem, AttributeSpec, Attributes,
};
use crate::events::INTERVAL_DEFAULT;
use crate::table::{
    Row, Tabled, Words, find_spec, milliseconds, milliseconds_value, mqsc_date, mqsc_time,
    queue_name, queue_name_value, specs, stored, text,
};
use crate::{
    Channel, ChannelRule, Enabled, LocalQueue, ObjectClass, ObjectKind, Process, Queue,
    QueueManager, QueueManagerAttributes, QueueManagerEvents,
};
use ferrymq_types::AttributeValue;

/// The lowest `MAXMSGL` of a queue manager, in bytes.
const MESSAGE_LENGTH_MIN: u64 = 32_768;

/// Default of `MAXHANDS`.
const HANDLES_DEFAULT: u32 = 256;

/// `MAXPROPL` that is none.
const NO_LIMIT: &str = "NOLIMIT";

const fn spec(keyword: &'static str, form: AttributeForm) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form,
        kinds: &[],
        settable: true,
    }
}

const fn shown(keyword: &'static str) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form: AttributeForm::Text { max: 48 },
        kinds: &[],
        settable: false,
    }
}

macro_rules! row {
    ($spec:expr, $get:expr, $set:expr) => {
        Row {
            spec: $spec,
            get: $get,
            set: $set,
        }
    };
}

fn never(_: &mut QueueManagerAttributes, _: &AttributeValue) -> Option<()> {
    None
}

/// Source: IBM MQ, "ALTER QMGR": defaults and ranges.
static ROWS: &[Row<QueueManagerAttributes>] = &[
    row!(
        shown("ALTDATE"),
        |q| Some(AttributeValue::Text(mqsc_date(q.altered))),
        never
    ),
    row!(
        shown("ALTTIME"),
        |q| Some(AttributeValue::Text(mqsc_time(q.altered))),
        never
    ),
    row!(
        spec("CHLAUTH", AttributeForm::Words(Enabled::WORDS)),
        |q| Some(q.channel_authentication.value()),
        |q, v| {
            q.channel_authentication = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        // No user is asked for a password: partners prove who they are by certificates. So it can be blank alone.
        spec("CONNAUTH", AttributeForm::Text { max: 0 }),
        |_| Some(AttributeValue::text("")),
        |_, _| Some(())
    ),
    row!(
        shown("CRDATE"),
        |q| Some(AttributeValue::Text(mqsc_date(q.created))),
        never
    ),
    row!(
        shown("CRTIME"),
        |q| Some(AttributeValue::Text(mqsc_time(q.created))),
        never
    ),
    row!(
        spec("DEADQ", AttributeForm::QueueName),
        |q| Some(queue_name_value(q.dead_letter_queue_name.as_ref())),
        |q, v| {
            q.dead_letter_queue_name = queue_name(v)?;
            Some(())
        }
    ),
    row!(
        spec("DEFXMITQ", AttributeForm::QueueName),
        |q| Some(queue_name_value(q.default_transmission_queue.as_ref())),
        |q, v| {
            q.default_transmission_queue = queue_name(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "DESCR",
            AttributeForm::Text {
                max: DESCRIPTION_LENGTH_MAX
            }
        ),
        |q| Some(AttributeValue::text(&q.description)),
        |q, v| {
            q.description = text(v)?;
            Some(())
        }
    ),
    row!(
        spec("INHIBTEV", AttributeForm::Words(Enabled::WORDS)),
        |q| Some(q.events.inhibit.value()),
        |q, v| {
            q.events.inhibit = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec("LOCALEV", AttributeForm::Words(Enabled::WORDS)),
        |q| Some(q.events.local.value()),
        |q, v| {
            q.events.local = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "MAXHANDS",
            AttributeForm::Number {
                min: 0,
                max: ATTRIBUTE_MAX as u64
            }
        ),
        |q| Some(AttributeValue::number(q.max_handles)),
        |q, v| {
            q.max_handles = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec(
            "MAXMSGL",
            AttributeForm::Number {
                min: MESSAGE_LENGTH_MIN,
                max: MESSAGE_LENGTH_MAX as u64
            }
        ),
        |q| Some(AttributeValue::number(q.max_message_length)),
        |q, v| {
            q.max_message_length = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec(
            "MAXPROPL",
            AttributeForm::NumberOr {
                word: NO_LIMIT,
                max: MESSAGE_LENGTH_MAX as u64
            }
        ),
        |q| Some(match q.max_properties_length {
            Some(length) => AttributeValue::number(length),
            None => AttributeValue::Word(NO_LIMIT.to_owned()),
        }),
        |q, v| {
            q.max_properties_length = match v {
                AttributeValue::Word(_) => None,
                AttributeValue::Number(_)
                | AttributeValue::Text(_)
                | AttributeValue::Flag(_)
                | AttributeValue::List(_) => Some(v.as_u32()?),
            };
            Some(())
        }
    ),
    row!(
        shown("MAXPRTY"),
        |_| Some(AttributeValue::Number(u64::from(PRIORITY_MAX))),
        never
    ),
    row!(
        spec(
            "MAXUMSGS",
            AttributeForm::Number {
                min: 1,
                max: ATTRIBUTE_MAX as u64
            }
        ),
        |q| Some(AttributeValue::number(q.max_uncommitted_messages)),
        |q, v| {
            q.max_uncommitted_messages = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec("PERFMEV", AttributeForm::Words(Enabled::WORDS)),
        |q| Some(q.events.performance.value()),
        |q, v| {
            q.events.performance = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        shown("QMID"),
        |q| Some(AttributeValue::Text(q.id_text())),
        never
    ),
    row!(
        spec("REMOTEEV", AttributeForm::Words(Enabled::WORDS)),
        |q| Some(q.events.remote.value()),
        |q, v| {
            q.events.remote = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec("STRSTPEV", AttributeForm::Words(Enabled::WORDS)),
        |q| Some(q.events.start_stop.value()),
        |q, v| {
            q.events.start_stop = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "TRIGINT",
            AttributeForm::Number {
                min: 0,
                max: ATTRIBUTE_MAX as u64
            }
        ),
        |q| Some(milliseconds_value(q.trigger_interval)),
        |q, v| {
            q.trigger_interval = milliseconds(v)?;
            Some(())
        }
    ),
];

/// Source: IBM MQ, "ALTER QMGR".
const NOT_SUPPORTED: &[&str] = &[
    "ACCTCONO", "ACCTINT", "ACCTMQI", "ACCTQ", "ACTIVREC", "AUTHOREV", "BRIDGEEV", "CCSID",
    "CERTLABL", "CERTVPOL", "CHAD", "CHADEV", "CHADEXIT", "CHLEV", "CLWLDATA", "CLWLEXIT",
    "CLWLLEN", "CLWLMRUC", "CLWLUSEQ", "CMDEV", "CMDLEVEL", "COMMANDQ", "CONFIGEV", "CONNAUTH",
    "CUSTOM", "DEFCLXQ", "IMGINTVL", "IMGLOGLN", "IMGRCOVO", "IMGRCOVQ", "IMGSCHED", "INITKEY",
    "IPADDRV", "KEYRPWD", "LOGGEREV", "MARKINT", "MONACLS", "MONCHL", "MONQ", "PARENT", "PLATFORM",
    "PSCLUS", "PSMODE", "PSNPMSG", "PSNPRES", "PSRTYCNT", "PSSYNCPT", "QMGRPROD", "REPOS",
    "REPOSNL", "REVDNS", "ROUTEREC", "SCHINIT", "SCMDSERV", "SPLCAP", "SSLCRLNL", "SSLCRYP",
    "SSLEV", "SSLFIPS", "SSLKEYR", "SSLRKEYC", "STATACLS", "STATCHL", "STATINT", "STATMQI",
    "STATQ", "SUITEB", "SYNCPT", "TREELIFE", "VERSION", "XRCAP",
];

impl Tabled for QueueManagerAttributes {
    fn rows() -> &'static [Row<Self>] {
        ROWS
    }

    fn not_supported() -> &'static [&'static str] {
        NOT_SUPPORTED
    }

    fn object_kind(&self) -> Option<ObjectKind> {
        None
    }
}

/// The attribute of a queue manager that `word`, in upper case, means.
///
/// # Errors
/// [`AttributeProblem`]: not known or not supported.
pub fn queue_manager_attribute(word: &str) -> Result<&'static AttributeSpec, AttributeProblem> {
    find_spec::<QueueManagerAttributes>(None, word)
}

/// The attributes of a queue manager, alphabetically.
pub fn queue_manager_attributes() -> impl Iterator<Item = &'static AttributeSpec> {
    specs::<QueueManagerAttributes>(None)
}

impl QueueManagerAttributes {
    /// A queue manager with IBM MQ's defaults.
    #[must_use]
    pub const fn with_defaults(
        name: QueueManagerName,
        id: QueueManagerId,
        created: Timestamp,
    ) -> Self {
        Self {
            name,
            id,
            description: String::new(),
            dead_letter_queue_name: None,
            default_transmission_queue: None,
            max_message_length: MESSAGE_LENGTH_DEFAULT,
            max_properties_length: None,
            max_uncommitted_messages: UNIT_OF_WORK_MESSAGES_DEFAULT,
            max_handles: HANDLES_DEFAULT,
            trigger_interval: INTERVAL_DEFAULT,
            channel_authentication: Enabled::Yes,
            events: QueueManagerEvents::DEFAULT,
            created,
            altered: created,
        }
    }

    /// `QMID` as shown: the name, and date and time of the creation.
    #[must_use]
    pub fn id_text(&self) -> String {
        let (date, time) = (mqsc_date(self.created), mqsc_time(self.created));
        format!("{}_{date}_{time}", self.name)
    }

    /// What commands can set, with its values.
    #[must_use]
    pub fn settings(&self) -> Attributes {
        self.settable().collect()
    }

    /// What `DISPLAY QMGR` shows besides the name, alphabetically.
    #[must_use]
    pub fn displayed(&self) -> Vec<(&'static str, AttributeValue)> {
        self.all()
    }

    /// Everything, for a snapshot: [`QueueManagerAttributes::from_attributes`] reads it back.
    #[must_use]
    pub fn to_attributes(&self) -> Attributes {
        [
            (stored::QMNAME, AttributeValue::text(self.name.as_str())),
            (stored::QMIDBYTES, AttributeValue::Text(self.id.to_string())),
            (
                stored::CREATED,
                AttributeValue::Number(self.created.as_millis()),
            ),
            (
                stored::ALTERED,
                AttributeValue::Number(self.altered.as_millis()),
            ),
        ]
        .into_iter()
        .chain(self.settable())
        .collect()
    }

    /// Reads what [`QueueManagerAttributes::to_attributes`] made. An attribute that is missing, because it came later, has
    /// its default.
    ///
    /// # Errors
    /// [`AttributeError`] for an attribute that is not known (a newer format), a value that is not allowed, or a missing
    /// name, id or time.
    pub fn from_attributes(attributes: &Attributes) -> Result<Self, AttributeError> {
        let name = stored::required(attributes, stored::QMNAME, |v| {
            QueueManagerName::new(v.as_str()?).ok()
        })?;
        let id = stored::required(attributes, stored::QMIDBYTES, |v| {
            let text = v.as_str()?;
            QueueManagerId::from_hex(text).filter(|id| id.to_string() == text)
        })?;
        let time = |key| {
            stored::required(attributes, key, AttributeValue::as_u64).map(Timestamp::from_millis)
        };
        let mut found = Self::with_defaults(name, id, time(stored::CREATED)?);
        found.altered = time(stored::ALTERED)?;
        attributes
            .iter()
            .filter(|(k, _)| !stored::KEYS.contains(k))
            .try_for_each(|(k, v)| found.set(k, v))?;
        Ok(found)
    }
}

/// Where triggers for channels go; every new queue manager has it.
pub const CHANNEL_INITIATION_QUEUE: &str = "SYSTEM.CHANNEL.INITQ";

/// A queue for messages that cannot be delivered; every new queue manager has it, none uses it before `DEADQ` names it.
pub const SYSTEM_DEAD_LETTER_QUEUE: &str = "SYSTEM.DEAD.LETTER.QUEUE";

/// An initiation queue for whoever wants to use it; every new queue manager has it.
pub const DEFAULT_INITIATION_QUEUE: &str = "SYSTEM.DEFAULT.INITIATION.QUEUE";

/// Where the events of the queue manager go; every new queue manager has it.
pub const QUEUE_MANAGER_EVENT_QUEUE: &str = "SYSTEM.ADMIN.QMGR.EVENT";

/// Where the performance events of its queues go; every new queue manager has it.
pub const PERFORMANCE_EVENT_QUEUE: &str = "SYSTEM.ADMIN.PERFM.EVENT";

/// Where the events of its channels go; every new queue manager has it.
pub const CHANNEL_EVENT_QUEUE: &str = "SYSTEM.ADMIN.CHANNEL.EVENT";

impl QueueManager {
    /// A new queue manager with its system objects, their ids counted from `next_id`, which moves on.
    pub(crate) fn create(
        attributes: QueueManagerAttributes,
        node: u64,
        next_id: &mut ObjectId,
    ) -> Self {
        let created = attributes.created;
        let mut take_id = || {
            let id = *next_id;
            *next_id = id.next();
            id
        };
        let queue_name = |t| QueueName::new(t).expect("a constant that is a name");
        let mut queues = BTreeMap::new();
        let mut channels = BTreeMap::new();
        let mut processes = BTreeMap::new();
        for kind in ObjectKind::ALL {
            let default = kind.default_object();
            match kind.class() {
                ObjectClass::Queue => {
                    if let Some(mut queue) = Queue::with_defaults(kind, queue_name(default)) {
                        queue.base_mut().id = take_id();
                        add_queue(&mut queues, queue, created);
                    }
                }
                ObjectClass::Channel => {
                    let name = ChannelName::new(default).expect("a constant name");
                    if let Some(mut channel) = Channel::with_defaults(kind, name) {
                        channel.base_mut().id = take_id();
                        channel.base_mut().altered = created;
                        channels.insert(channel.base().name.clone(), channel);
                    }
                }
                ObjectClass::Process => {
                    let name = ProcessName::new(default).expect("a constant name");
                    let mut process = Process::with_defaults(name);
                    process.id = take_id();
                    process.altered = created;
                    processes.insert(process.name.clone(), process);
                }
            }
        }
        for name in [
            CHANNEL_INITIATION_QUEUE,
            DEFAULT_INITIATION_QUEUE,
            QUEUE_MANAGER_EVENT_QUEUE,
            PERFORMANCE_EVENT_QUEUE,
            CHANNEL_EVENT_QUEUE,
        ] {
            let mut queue = LocalQueue::with_defaults(queue_name(name));
            queue.base.id = take_id();
            add_queue(&mut queues, Queue::Local(queue), created);
        }
        // Our own rule: what cannot be delivered must fit, whatever its size.
        let mut dead_letters = LocalQueue::with_defaults(queue_name(SYSTEM_DEAD_LETTER_QUEUE));
        dead_letters.base.id = take_id();
        dead_letters.max_depth = ATTRIBUTE_MAX;
        dead_letters.max_message_length = MESSAGE_LENGTH_MAX;
        add_queue(&mut queues, Queue::Local(dead_letters), created);
        let mut channel_rules: BTreeMap<String, Vec<ChannelRule>> = BTreeMap::new();
        for rule in ChannelRule::built_in(created) {
            let rules = channel_rules.entry(rule.profile.clone()).or_default();
            rules.push(rule);
        }
        Self {
            attributes,
            queues,
            channels,
            processes,
            channel_rules,
            node,
        }
    }
}

fn add_queue(queues: &mut BTreeMap<QueueName, Queue>, mut queue: Queue, created: Timestamp) {
    queue.base_mut().altered = created;
    if let Queue::Local(q) = &mut queue {
        q.created = created;
    }
    queues.insert(queue.base().name.clone(), queue);
}
