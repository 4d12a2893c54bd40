//! How the rows of the attribute tables are made, and what is the same for queues, channels and queue managers.

use core::time::Duration;

use ferrymq_types::{Persistence, ProcessName, QueueManagerName, QueueName, Timestamp};

use crate::attribute::{AttributeError, AttributeProblem, AttributeSpec, Attributes, shorten};
use crate::{
    DefaultInputUse, DefinitionType, DeliverySequence, Enabled, MessageSpeed, NonPersistentClass,
    ObjectKind, PropertyControl, ServiceIntervalEvent, SslClientAuthentication, TriggerType, Usage,
    UseDlq,
};
use ferrymq_types::AttributeValue;

/// A row: an attribute of `T`, how it is read and how it is set.
pub(crate) struct Row<T: 'static> {
    pub(crate) spec: AttributeSpec,
    /// `None` if this definition has no such attribute.
    pub(crate) get: fn(&T) -> Option<AttributeValue>,
    /// `None` if the definition has no such attribute or does not take the value. Called with values that the form allows.
    pub(crate) set: fn(&mut T, &AttributeValue) -> Option<()>,
}

/// A definition with a table of its attributes.
pub(crate) trait Tabled: Sized + 'static {
    /// The table, in the order of display.
    fn rows() -> &'static [Row<Self>];
    /// Keywords that IBM MQ has for it and we do not.
    fn not_supported() -> &'static [&'static str];
    /// Its kind; `None` for the queue manager itself.
    fn object_kind(&self) -> Option<ObjectKind>;

    /// Sets one attribute.
    fn set(&mut self, keyword: &str, value: &AttributeValue) -> Result<(), AttributeError> {
        let problem = |p| AttributeError::new(keyword, p);
        let kind = self.object_kind();
        let row = find_row(Self::rows(), kind, keyword)
            .ok_or_else(|| problem(missing(Self::rows(), Self::not_supported(), keyword)))?;
        if !row.spec.settable {
            return Err(problem(AttributeProblem::ReadOnly));
        }
        row.spec.form.check(value).map_err(problem)?;
        (row.set)(self, value).ok_or_else(|| {
            problem(AttributeProblem::Value {
                given: shorten(value.as_str().unwrap_or_default()),
                allowed: row.spec.form.allowed(),
            })
        })
    }

    /// Sets every attribute given.
    fn set_all(&mut self, attributes: &Attributes) -> Result<(), AttributeError> {
        attributes.iter().try_for_each(|(k, v)| self.set(k, v))
    }

    /// Every attribute that can be set.
    fn settable(&self) -> impl Iterator<Item = (&'static str, AttributeValue)> {
        Self::rows()
            .iter()
            .filter(|r| r.spec.settable)
            .filter_map(|r| Some((r.spec.keyword, (r.get)(self)?)))
    }

    /// Every attribute.
    fn all(&self) -> Vec<(&'static str, AttributeValue)> {
        Self::rows()
            .iter()
            .filter_map(|r| Some((r.spec.keyword, (r.get)(self)?)))
            .collect()
    }
}

fn applies(spec: &AttributeSpec, kind: Option<ObjectKind>) -> bool {
    kind.is_none_or(|k| spec.kinds.contains(&k))
}

fn find_row<T>(
    rows: &'static [Row<T>],
    kind: Option<ObjectKind>,
    word: &str,
) -> Option<&'static Row<T>> {
    rows.iter()
        .find(|r| r.spec.is(word) && applies(&r.spec, kind))
}

fn missing<T>(rows: &'static [Row<T>], not_supported: &[&str], word: &str) -> AttributeProblem {
    if rows.iter().any(|r| r.spec.is(word)) {
        AttributeProblem::NotApplicable
    } else if not_supported.contains(&word) {
        AttributeProblem::NotSupported
    } else {
        AttributeProblem::Unknown
    }
}

/// The attribute that `word` means for a definition of `kind`.
pub(crate) fn find_spec<T: Tabled>(
    kind: Option<ObjectKind>,
    word: &str,
) -> Result<&'static AttributeSpec, AttributeProblem> {
    find_row(T::rows(), kind, word)
        .map(|r| &r.spec)
        .ok_or_else(|| missing(T::rows(), T::not_supported(), word))
}

/// The attributes of a definition of `kind`, in the order of the table.
pub(crate) fn specs<T: Tabled>(
    kind: Option<ObjectKind>,
) -> impl Iterator<Item = &'static AttributeSpec> {
    T::rows()
        .iter()
        .map(|r| &r.spec)
        .filter(move |s| applies(s, kind))
}

/// A fixed set of words for the values of an enumeration.
pub(crate) trait Words: Copy + PartialEq + 'static {
    const WORDS: &'static [&'static str];
    fn word(self) -> &'static str;
    fn from_word(word: &str) -> Option<Self>;
    fn value(self) -> AttributeValue {
        AttributeValue::Word(self.word().to_owned())
    }
    fn from_value(value: &AttributeValue) -> Option<Self> {
        value.as_str().and_then(Self::from_word)
    }
}

/// The words of an enumeration.
macro_rules! words {
    ($type:ident: $($word:literal = $variant:ident),+) => {
        impl $crate::table::Words for $type {
            const WORDS: &'static [&'static str] = &[$($word),+];
            fn word(self) -> &'static str {
                match self {
                    $(Self::$variant => $word),+
                }
            }
            fn from_word(word: &str) -> Option<Self> {
                [$(Self::$variant),+].into_iter().find(|v| v.word() == word)
            }
        }
    };
}

pub(crate) use words;

words!(Enabled: "ENABLED" = Yes, "DISABLED" = No);
words!(Usage: "NORMAL" = Normal, "XMITQ" = Transmission);
words!(DeliverySequence: "PRIORITY" = Priority, "FIFO" = Fifo);
words!(DefinitionType: "PREDEFINED" = Predefined, "PERMDYN" = PermanentDynamic, "TEMPDYN" = TemporaryDynamic);
words!(DefaultInputUse: "SHARED" = Shared, "EXCL" = Exclusive);
words!(NonPersistentClass: "NORMAL" = Normal, "HIGH" = High);
words!(PropertyControl: "COMPAT" = Compatibility, "NONE" = None, "ALL" = All, "FORCE" = Force, "V6COMPAT" = Version6);
words!(TriggerType: "FIRST" = First, "EVERY" = Every, "DEPTH" = Depth, "NONE" = None);
words!(ServiceIntervalEvent: "HIGH" = High, "OK" = Ok, "NONE" = None);
words!(Persistence: "NO" = NonPersistent, "YES" = Persistent);
words!(MessageSpeed: "FAST" = Fast, "NORMAL" = Normal);
words!(UseDlq: "YES" = Yes, "NO" = No);
words!(SslClientAuthentication: "REQUIRED" = Required, "OPTIONAL" = Optional);

pub(crate) fn queue_name_value(name: Option<&QueueName>) -> AttributeValue {
    AttributeValue::text(name.map_or("", QueueName::as_str))
}

/// A queue name, or none if the text is blank.
pub(crate) fn queue_name(value: &AttributeValue) -> Option<Option<QueueName>> {
    match value.as_str()? {
        "" => Some(None),
        text => QueueName::new(text).ok().map(Some),
    }
}

pub(crate) fn process_name_value(name: Option<&ProcessName>) -> AttributeValue {
    AttributeValue::text(name.map_or("", ProcessName::as_str))
}

/// A process name, or none if the text is blank.
pub(crate) fn process_name(value: &AttributeValue) -> Option<Option<ProcessName>> {
    match value.as_str()? {
        "" => Some(None),
        text => ProcessName::new(text).ok().map(Some),
    }
}

pub(crate) fn queue_manager_name_value(name: Option<&QueueManagerName>) -> AttributeValue {
    AttributeValue::text(name.map_or("", QueueManagerName::as_str))
}

/// A queue-manager name, or none if the text is blank.
pub(crate) fn queue_manager_name(value: &AttributeValue) -> Option<Option<QueueManagerName>> {
    match value.as_str()? {
        "" => Some(None),
        text => QueueManagerName::new(text).ok().map(Some),
    }
}

pub(crate) fn text(value: &AttributeValue) -> Option<String> {
    value.as_str().map(str::to_owned)
}

pub(crate) fn seconds_value(d: Duration) -> AttributeValue {
    AttributeValue::Number(d.as_secs())
}

pub(crate) fn seconds(value: &AttributeValue) -> Option<Duration> {
    value.as_u64().map(Duration::from_secs)
}

pub(crate) fn milliseconds_value(d: Duration) -> AttributeValue {
    AttributeValue::Number(u64::try_from(d.as_millis()).unwrap_or(u64::MAX))
}

pub(crate) fn milliseconds(value: &AttributeValue) -> Option<Duration> {
    value.as_u64().map(Duration::from_millis)
}

/// `YYYY-MM-DD` in UTC, the form of `ALTDATE`.
#[must_use]
pub fn mqsc_date(t: Timestamp) -> String {
    let (y, m, d, ..) = t.civil();
    format!("{y:04}-{m:02}-{d:02}")
}

/// `HH.MM.SS` in UTC, the form of `ALTTIME`.
#[must_use]
pub fn mqsc_time(t: Timestamp) -> String {
    let (_, _, _, h, m, s, _) = t.civil();
    format!("{h:02}.{m:02}.{s:02}")
}

/// The parts of a stored definition that no command sets.
pub(crate) mod stored {
    use super::{AttributeError, AttributeProblem, AttributeValue, Attributes};

    pub(crate) const QUEUE: &str = "QUEUE";
    pub(crate) const CHANNEL: &str = "CHANNEL";
    pub(crate) const PROCESS: &str = "PROCESSNAME";
    pub(crate) const TYPE: &str = "TYPE";
    /// The object id.
    pub(crate) const ID: &str = "OBJECTID";
    /// Milliseconds since 1970.
    pub(crate) const CREATED: &str = "CREATED";
    /// Milliseconds since 1970.
    pub(crate) const ALTERED: &str = "ALTERED";
    pub(crate) const QMNAME: &str = "QMNAME";
    /// The bytes of the queue manager's id, as hexadecimal digits.
    pub(crate) const QMIDBYTES: &str = "QMIDBYTES";

    pub(crate) const KEYS: [&str; 8] = [
        QUEUE, CHANNEL, TYPE, ID, CREATED, ALTERED, QMNAME, QMIDBYTES,
    ];

    pub(crate) fn required<'a, T>(
        attributes: &'a Attributes,
        key: &str,
        read: impl FnOnce(&'a AttributeValue) -> Option<T>,
    ) -> Result<T, AttributeError> {
        attributes
            .get(key)
            .and_then(read)
            .ok_or_else(|| AttributeError::new(key, AttributeProblem::Required))
    }
}
