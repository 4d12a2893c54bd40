//! The attributes of queues.

use ferrymq_types::{
    ATTRIBUTE_MAX, DESCRIPTION_LENGTH_MAX, MESSAGE_LENGTH_MAX, ObjectId, PRIORITY_MAX, Persistence,
    Priority, QueueName, Timestamp,
};

use crate::attribute::{
    AttributeError, AttributeForm, AttributeProblem, AttributeSpec, Attributes,
};
use crate::table::{
    Row, Tabled, Words, find_spec, milliseconds, milliseconds_value, mqsc_date, mqsc_time,
    process_name, process_name_value, queue_manager_name, queue_manager_name_value, queue_name,
    queue_name_value, specs, stored, text,
};
use crate::{
    AliasQueue, DefaultInputUse, DefinitionType, DeliverySequence, Enabled, LocalQueue,
    NonPersistentClass, ObjectKind, PropertyControl, Queue, QueueBase, RemoteQueue,
    ServiceIntervalEvent, TriggerType, Usage,
};
use ferrymq_types::AttributeValue;

const LOCAL: &[ObjectKind] = &[ObjectKind::LocalQueue];
const MODEL: &[ObjectKind] = &[ObjectKind::ModelQueue];
const LOCAL_MODEL: &[ObjectKind] = &[ObjectKind::LocalQueue, ObjectKind::ModelQueue];
const REMOTE: &[ObjectKind] = &[ObjectKind::RemoteQueue];
const ALIAS: &[ObjectKind] = &[ObjectKind::AliasQueue];
const LOCAL_MODEL_ALIAS: &[ObjectKind] = &[
    ObjectKind::LocalQueue,
    ObjectKind::ModelQueue,
    ObjectKind::AliasQueue,
];
const EVERY: &[ObjectKind] = &[
    ObjectKind::LocalQueue,
    ObjectKind::RemoteQueue,
    ObjectKind::AliasQueue,
    ObjectKind::ModelQueue,
];

/// Longest `TRIGDATA`, in characters.
const TRIGGER_DATA_LENGTH_MAX: usize = 64;

/// Of a model: the queue that it makes.
const fn local(queue: &Queue) -> Option<&LocalQueue> {
    match queue {
        Queue::Local(q) => Some(q),
        Queue::Model(q) => Some(&q.template),
        Queue::Remote(_) | Queue::Alias(_) => None,
    }
}

const fn local_mut(queue: &mut Queue) -> Option<&mut LocalQueue> {
    match queue {
        Queue::Local(q) => Some(q),
        Queue::Model(q) => Some(&mut q.template),
        Queue::Remote(_) | Queue::Alias(_) => None,
    }
}

const fn property_control(queue: &Queue) -> Option<PropertyControl> {
    match queue {
        Queue::Local(q) => Some(q.property_control),
        Queue::Model(q) => Some(q.template.property_control),
        Queue::Alias(q) => Some(q.property_control),
        Queue::Remote(_) => None,
    }
}

const fn remote(queue: &Queue) -> Option<&RemoteQueue> {
    match queue {
        Queue::Remote(q) => Some(q),
        Queue::Local(_) | Queue::Alias(_) | Queue::Model(_) => None,
    }
}

const fn remote_mut(queue: &mut Queue) -> Option<&mut RemoteQueue> {
    match queue {
        Queue::Remote(q) => Some(q),
        Queue::Local(_) | Queue::Alias(_) | Queue::Model(_) => None,
    }
}

const fn alias(queue: &Queue) -> Option<&AliasQueue> {
    match queue {
        Queue::Alias(q) => Some(q),
        Queue::Local(_) | Queue::Remote(_) | Queue::Model(_) => None,
    }
}

const fn alias_mut(queue: &mut Queue) -> Option<&mut AliasQueue> {
    match queue {
        Queue::Alias(q) => Some(q),
        Queue::Local(_) | Queue::Remote(_) | Queue::Model(_) => None,
    }
}

const fn spec(
    keyword: &'static str,
    kinds: &'static [ObjectKind],
    form: AttributeForm,
) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form,
        kinds,
        settable: true,
    }
}

const fn shown(keyword: &'static str, kinds: &'static [ObjectKind]) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form: AttributeForm::Text { max: 48 },
        kinds,
        settable: false,
    }
}

const NINES: AttributeForm = AttributeForm::Number {
    min: 0,
    max: ATTRIBUTE_MAX as u64,
};

const PRIORITY: AttributeForm = AttributeForm::Number {
    min: 0,
    max: PRIORITY_MAX as u64,
};

fn priority(value: &AttributeValue) -> Option<Priority> {
    let number = value.as_u64().and_then(|n| u8::try_from(n).ok())?;
    Priority::new(number)
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

/// `set` of what is only shown.
fn never(_: &mut Queue, _: &AttributeValue) -> Option<()> {
    None
}

/// Source: IBM MQ, "DEFINE queues": defaults and ranges.
static ROWS: &[Row<Queue>] = &[
    row!(
        shown("ALTDATE", EVERY),
        |q| Some(AttributeValue::Text(mqsc_date(q.base().altered))),
        never
    ),
    row!(
        shown("ALTTIME", EVERY),
        |q| Some(AttributeValue::Text(mqsc_time(q.base().altered))),
        never
    ),
    row!(
        spec("BOQNAME", LOCAL_MODEL, AttributeForm::QueueName),
        |q| Some(queue_name_value(local(q)?.backout_requeue_name.as_ref())),
        |q, v| {
            local_mut(q)?.backout_requeue_name = queue_name(v)?;
            Some(())
        }
    ),
    row!(
        spec("BOTHRESH", LOCAL_MODEL, NINES),
        |q| Some(AttributeValue::number(local(q)?.backout_threshold)),
        |q, v| {
            local_mut(q)?.backout_threshold = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        shown("CRDATE", LOCAL_MODEL),
        |q| Some(AttributeValue::Text(mqsc_date(local(q)?.created))),
        never
    ),
    row!(
        shown("CRTIME", LOCAL_MODEL),
        |q| Some(AttributeValue::Text(mqsc_time(local(q)?.created))),
        never
    ),
    row!(
        spec("DEFPRTY", EVERY, PRIORITY),
        |q| Some(AttributeValue::Number(u64::from(
            q.base().default_priority.get()
        ))),
        |q, v| {
            q.base_mut().default_priority = priority(v)?;
            Some(())
        }
    ),
    row!(
        spec("DEFPSIST", EVERY, AttributeForm::Words(Persistence::WORDS)),
        |q| Some(q.base().default_persistence.value()),
        |q, v| {
            q.base_mut().default_persistence = Persistence::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "DEFSOPT",
            LOCAL_MODEL,
            AttributeForm::Words(DefaultInputUse::WORDS)
        ),
        |q| Some(local(q)?.default_input_use.value()),
        |q, v| {
            local_mut(q)?.default_input_use = DefaultInputUse::from_value(v)?;
            Some(())
        }
    ),
    row!(
        shown("DEFTYPE", LOCAL),
        |q| match q {
            Queue::Local(q) => Some(q.definition_type.value()),
            Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_) => None,
        },
        never
    ),
    row!(
        spec(
            "DEFTYPE",
            MODEL,
            AttributeForm::Words(&["TEMPDYN", "PERMDYN"])
        ),
        |q| match q {
            Queue::Model(q) => Some(q.template.definition_type.value()),
            Queue::Local(_) | Queue::Remote(_) | Queue::Alias(_) => None,
        },
        |q, v| match q {
            Queue::Model(q) => {
                q.template.definition_type = DefinitionType::from_value(v)?;
                Some(())
            }
            Queue::Local(_) | Queue::Remote(_) | Queue::Alias(_) => None,
        }
    ),
    row!(
        spec(
            "DESCR",
            EVERY,
            AttributeForm::Text {
                max: DESCRIPTION_LENGTH_MAX
            }
        ),
        |q| Some(AttributeValue::text(&q.base().description)),
        |q, v| {
            q.base_mut().description = text(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "GET",
            LOCAL_MODEL_ALIAS,
            AttributeForm::Words(Enabled::WORDS)
        ),
        |q| match q {
            Queue::Local(q) => Some(q.get.value()),
            Queue::Model(q) => Some(q.template.get.value()),
            Queue::Alias(q) => Some(q.get.value()),
            Queue::Remote(_) => None,
        },
        |q, v| {
            match q {
                Queue::Local(q) => q.get = Enabled::from_value(v)?,
                Queue::Model(q) => q.template.get = Enabled::from_value(v)?,
                Queue::Alias(q) => q.get = Enabled::from_value(v)?,
                Queue::Remote(_) => return None,
            }
            Some(())
        }
    ),
    // Accepted as IBM MQ does away from z/OS: the backout count is always kept with the message.
    row!(
        spec("HARDENBO", LOCAL_MODEL, AttributeForm::Flag),
        |q| {
            local(q)?;
            Some(AttributeValue::Flag(true))
        },
        |q, v| {
            local_mut(q)?;
            v.as_flag().map(|_| ())
        }
    ),
    row!(
        spec("INITQ", LOCAL_MODEL, AttributeForm::QueueName),
        |q| Some(queue_name_value(local(q)?.initiation_queue.as_ref())),
        |q, v| {
            local_mut(q)?.initiation_queue = queue_name(v)?;
            Some(())
        }
    ),
    row!(
        spec("MAXDEPTH", LOCAL_MODEL, NINES),
        |q| Some(AttributeValue::number(local(q)?.max_depth)),
        |q, v| {
            local_mut(q)?.max_depth = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec(
            "MAXMSGL",
            LOCAL_MODEL,
            AttributeForm::Number {
                min: 0,
                max: MESSAGE_LENGTH_MAX as u64
            }
        ),
        |q| Some(AttributeValue::number(local(q)?.max_message_length)),
        |q, v| {
            local_mut(q)?.max_message_length = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec(
            "MSGDLVSQ",
            LOCAL_MODEL,
            AttributeForm::Words(DeliverySequence::WORDS)
        ),
        |q| Some(local(q)?.delivery_sequence.value()),
        |q, v| {
            local_mut(q)?.delivery_sequence = DeliverySequence::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "NPMCLASS",
            LOCAL_MODEL,
            AttributeForm::Words(NonPersistentClass::WORDS)
        ),
        |q| Some(local(q)?.non_persistent_class.value()),
        |q, v| {
            local_mut(q)?.non_persistent_class = NonPersistentClass::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec("PROCESS", LOCAL_MODEL, AttributeForm::ProcessName),
        |q| Some(process_name_value(local(q)?.process_name.as_ref())),
        |q, v| {
            local_mut(q)?.process_name = process_name(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "PROPCTL",
            LOCAL_MODEL_ALIAS,
            AttributeForm::Words(PropertyControl::WORDS)
        ),
        |q| Some(property_control(q)?.value()),
        |q, v| {
            let control = PropertyControl::from_value(v)?;
            match q {
                Queue::Alias(q) => q.property_control = control,
                Queue::Local(_) | Queue::Model(_) | Queue::Remote(_) => {
                    local_mut(q)?.property_control = control;
                }
            }
            Some(())
        }
    ),
    row!(
        spec("PUT", EVERY, AttributeForm::Words(Enabled::WORDS)),
        |q| Some(q.base().put.value()),
        |q, v| {
            q.base_mut().put = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "QDEPTHHI",
            LOCAL_MODEL,
            AttributeForm::Number { min: 0, max: 100 }
        ),
        |q| Some(AttributeValue::number(local(q)?.events.depth_high_percent)),
        |q, v| {
            local_mut(q)?.events.depth_high_percent = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec(
            "QDEPTHLO",
            LOCAL_MODEL,
            AttributeForm::Number { min: 0, max: 100 }
        ),
        |q| Some(AttributeValue::number(local(q)?.events.depth_low_percent)),
        |q, v| {
            local_mut(q)?.events.depth_low_percent = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec("QDPHIEV", LOCAL_MODEL, AttributeForm::Words(Enabled::WORDS)),
        |q| Some(local(q)?.events.depth_high.value()),
        |q, v| {
            local_mut(q)?.events.depth_high = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec("QDPLOEV", LOCAL_MODEL, AttributeForm::Words(Enabled::WORDS)),
        |q| Some(local(q)?.events.depth_low.value()),
        |q, v| {
            local_mut(q)?.events.depth_low = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "QDPMAXEV",
            LOCAL_MODEL,
            AttributeForm::Words(Enabled::WORDS)
        ),
        |q| Some(local(q)?.events.queue_full.value()),
        |q, v| {
            local_mut(q)?.events.queue_full = Enabled::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "QSVCIEV",
            LOCAL_MODEL,
            AttributeForm::Words(ServiceIntervalEvent::WORDS)
        ),
        |q| Some(local(q)?.events.service_interval_event.value()),
        |q, v| {
            local_mut(q)?.events.service_interval_event = ServiceIntervalEvent::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec("QSVCINT", LOCAL_MODEL, NINES),
        |q| Some(milliseconds_value(local(q)?.events.service_interval)),
        |q, v| {
            local_mut(q)?.events.service_interval = milliseconds(v)?;
            Some(())
        }
    ),
    row!(
        spec("RNAME", REMOTE, AttributeForm::QueueName),
        |q| Some(queue_name_value(remote(q)?.remote_name.as_ref())),
        |q, v| {
            remote_mut(q)?.remote_name = queue_name(v)?;
            Some(())
        }
    ),
    row!(
        spec("RQMNAME", REMOTE, AttributeForm::QueueManagerName),
        |q| Some(queue_manager_name_value(
            remote(q)?.remote_queue_manager.as_ref()
        )),
        |q, v| {
            remote_mut(q)?.remote_queue_manager = queue_manager_name(v)?;
            Some(())
        }
    ),
    row!(
        spec("SHARE", LOCAL_MODEL, AttributeForm::Flag),
        |q| Some(AttributeValue::Flag(local(q)?.share)),
        |q, v| {
            local_mut(q)?.share = v.as_flag()?;
            Some(())
        }
    ),
    row!(
        AttributeSpec {
            keyword: "TARGET",
            synonyms: &["TARGQ"],
            form: AttributeForm::QueueName,
            kinds: ALIAS,
            settable: true,
        },
        |q| Some(queue_name_value(alias(q)?.target.as_ref())),
        |q, v| {
            alias_mut(q)?.target = queue_name(v)?;
            Some(())
        }
    ),
    // An alias of a topic is not supported: the only value is the default.
    row!(
        spec("TARGTYPE", ALIAS, AttributeForm::Words(&["QUEUE"])),
        |q| {
            alias(q)?;
            Some(AttributeValue::Word("QUEUE".to_owned()))
        },
        |q, _| alias_mut(q).map(|_| ())
    ),
    row!(
        spec(
            "TRIGDATA",
            LOCAL_MODEL,
            AttributeForm::Text {
                max: TRIGGER_DATA_LENGTH_MAX
            }
        ),
        |q| Some(AttributeValue::text(&local(q)?.trigger_data)),
        |q, v| {
            local_mut(q)?.trigger_data = text(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "TRIGDPTH",
            LOCAL_MODEL,
            AttributeForm::Number {
                min: 1,
                max: ATTRIBUTE_MAX as u64
            }
        ),
        |q| Some(AttributeValue::number(local(q)?.trigger_depth)),
        |q, v| {
            local_mut(q)?.trigger_depth = v.as_u32()?;
            Some(())
        }
    ),
    row!(
        spec("TRIGGER", LOCAL_MODEL, AttributeForm::Flag),
        |q| Some(AttributeValue::Flag(local(q)?.trigger)),
        |q, v| {
            local_mut(q)?.trigger = v.as_flag()?;
            Some(())
        }
    ),
    row!(
        spec("TRIGMPRI", LOCAL_MODEL, PRIORITY),
        |q| Some(AttributeValue::Number(u64::from(
            local(q)?.trigger_message_priority.get()
        ))),
        |q, v| {
            local_mut(q)?.trigger_message_priority = priority(v)?;
            Some(())
        }
    ),
    row!(
        spec(
            "TRIGTYPE",
            LOCAL_MODEL,
            AttributeForm::Words(TriggerType::WORDS)
        ),
        |q| Some(local(q)?.trigger_type.value()),
        |q, v| {
            local_mut(q)?.trigger_type = TriggerType::from_value(v)?;
            Some(())
        }
    ),
    row!(
        spec("USAGE", LOCAL, AttributeForm::Words(Usage::WORDS)),
        |q| match q {
            Queue::Local(q) => Some(q.usage.value()),
            Queue::Remote(_) | Queue::Alias(_) | Queue::Model(_) => None,
        },
        |q, v| {
            local_mut(q)?.usage = Usage::from_value(v)?;
            Some(())
        }
    ),
    // Our own rule: a channel's queue is defined, not made by an open.
    row!(
        spec("USAGE", MODEL, AttributeForm::Words(&["NORMAL"])),
        |q| match q {
            Queue::Model(q) => Some(q.template.usage.value()),
            Queue::Local(_) | Queue::Remote(_) | Queue::Alias(_) => None,
        },
        |q, _| local_mut(q).map(|_| ())
    ),
    row!(
        spec("XMITQ", REMOTE, AttributeForm::QueueName),
        |q| Some(queue_name_value(remote(q)?.transmission_queue.as_ref())),
        |q, v| {
            remote_mut(q)?.transmission_queue = queue_name(v)?;
            Some(())
        }
    ),
];

/// Source: IBM MQ, "DEFINE queues".
const NOT_SUPPORTED: &[&str] = &[
    "ACCTQ", "CAPEXPRY", "CLCHNAME", "CLUSNL", "CLUSTER", "CLWLPRTY", "CLWLRANK", "CLWLUSEQ",
    "CUSTOM", "DEFBIND", "DEFPRESP", "DEFREADA", "DISTL", "IMGRCOVQ", "MAXFSIZE", "MONQ",
    "RETINTVL", "SCOPE", "STATQ", "STREAMQ", "STRMQOS", "TPIPE",
];

impl Tabled for Queue {
    fn rows() -> &'static [Row<Self>] {
        ROWS
    }

    fn not_supported() -> &'static [&'static str] {
        NOT_SUPPORTED
    }

    fn object_kind(&self) -> Option<ObjectKind> {
        Some(self.kind())
    }
}

/// The attribute of a queue that `word`, in upper case, means; with no `kind`, of a queue of any kind.
pub(crate) fn queue_attribute(
    kind: Option<ObjectKind>,
    word: &str,
) -> Result<&'static AttributeSpec, AttributeProblem> {
    find_spec::<Queue>(kind, word)
}

pub(crate) fn queue_attributes(
    kind: Option<ObjectKind>,
) -> impl Iterator<Item = &'static AttributeSpec> {
    specs::<Queue>(kind)
}

impl Queue {
    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> ObjectKind {
        match self {
            Self::Local(_) => ObjectKind::LocalQueue,
            Self::Remote(_) => ObjectKind::RemoteQueue,
            Self::Alias(_) => ObjectKind::AliasQueue,
            Self::Model(_) => ObjectKind::ModelQueue,
        }
    }

    pub(crate) const fn base_mut(&mut self) -> &mut QueueBase {
        match self {
            Self::Local(q) => &mut q.base,
            Self::Remote(q) => &mut q.base,
            Self::Alias(q) => &mut q.base,
            Self::Model(q) => &mut q.template.base,
        }
    }

    /// Whether the attributes agree with each other: `QDEPTHLO` is not above `QDEPTHHI`.
    pub(crate) fn check_attributes(&self) -> Result<(), AttributeError> {
        let Some(q) = local(self) else {
            return Ok(());
        };
        let (low, high) = (q.events.depth_low_percent, q.events.depth_high_percent);
        if low > high {
            let problem = AttributeProblem::Value {
                given: low.to_string(),
                allowed: format!("a number not above QDEPTHHI, which is {high}"),
            };
            return Err(AttributeError::new("QDEPTHLO", problem));
        }
        Ok(())
    }

    /// The queue as `ALTER` makes it.
    ///
    /// # Errors
    /// [`AttributeError`]: an attribute that it has not, a value that is not allowed, or values that do not go together.
    pub fn altered(&self, attributes: &Attributes, now: Timestamp) -> Result<Self, AttributeError> {
        let mut altered = self.clone();
        altered.set_all(attributes)?;
        altered.base_mut().altered = now;
        altered.check_attributes()?;
        Ok(altered)
    }

    /// What commands can set, with its values.
    #[must_use]
    pub fn settings(&self) -> Attributes {
        self.settable().collect()
    }

    /// What `DISPLAY` shows besides name and type, alphabetically.
    #[must_use]
    pub fn displayed(&self) -> Vec<(&'static str, AttributeValue)> {
        self.all()
    }

    /// Everything, for a snapshot: [`Queue::from_attributes`] reads it back.
    #[must_use]
    pub fn to_attributes(&self) -> Attributes {
        let base = self.base();
        let mut fixed = vec![
            (stored::QUEUE, AttributeValue::text(base.name.as_str())),
            (
                stored::TYPE,
                AttributeValue::Word(self.kind().type_word().to_owned()),
            ),
            (stored::ID, AttributeValue::Number(base.id.get())),
            (
                stored::ALTERED,
                AttributeValue::Number(base.altered.as_millis()),
            ),
        ];
        if let Some(q) = local(self) {
            fixed.push((
                stored::CREATED,
                AttributeValue::Number(q.created.as_millis()),
            ));
        }
        fixed.into_iter().chain(self.settable()).collect()
    }

    /// Reads what [`Queue::to_attributes`] made. An attribute that is missing, because it came later, has its default.
    ///
    /// # Errors
    /// [`AttributeError`] for an attribute that is not known (a newer format), a value that is not allowed, or a missing
    /// name, type, id or time.
    pub fn from_attributes(attributes: &Attributes) -> Result<Self, AttributeError> {
        let name = stored::required(attributes, stored::QUEUE, |v| {
            QueueName::new(v.as_str()?).ok()
        })?;
        let kind = stored::required(attributes, stored::TYPE, |v| {
            ObjectKind::from_type_word(v.as_str()?)
        })?;
        let mut queue = Self::with_defaults(kind, name)
            .ok_or_else(|| AttributeError::new(stored::TYPE, AttributeProblem::NotApplicable))?;
        queue.base_mut().id = ObjectId::new(stored::required(
            attributes,
            stored::ID,
            AttributeValue::as_u64,
        )?);
        queue.base_mut().altered = Timestamp::from_millis(stored::required(
            attributes,
            stored::ALTERED,
            AttributeValue::as_u64,
        )?);
        if let Some(q) = local_mut(&mut queue) {
            q.created = Timestamp::from_millis(stored::required(
                attributes,
                stored::CREATED,
                AttributeValue::as_u64,
            )?);
        }
        attributes
            .iter()
            .filter(|(k, _)| !stored::KEYS.contains(k))
            .try_for_each(|(k, v)| queue.set(k, v))?;
        Ok(queue)
    }
}
