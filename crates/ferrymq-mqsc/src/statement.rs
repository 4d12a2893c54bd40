//! What a command says, after it is understood; and its text again.

use core::fmt;

use ferrymq_objects::{
    Action, AttributeSpec, AttributeValue, Attributes, ChannelRuleType, DeleteKind, ObjectClass,
    ObjectKind, RuleChange,
};
use ferrymq_types::{ChannelName, QueueManagerName, QueueName};

/// An MQSC command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    /// `DEFINE`.
    Define {
        /// The kind of object.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// What is given.
        attributes: Attributes,
        /// `LIKE`.
        like: Option<String>,
        /// `REPLACE`.
        replace: bool,
    },
    /// `ALTER` of an object.
    Alter {
        /// The kind of object.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// What changes.
        attributes: Attributes,
        /// `FORCE`: even if handles are open that it affects.
        force: bool,
    },
    /// `ALTER QMGR`.
    AlterQueueManager {
        /// What changes.
        attributes: Attributes,
        /// `FORCE`.
        force: bool,
    },
    /// `DELETE`.
    Delete {
        /// What kind of object.
        kind: DeleteKind,
        /// Its name.
        name: String,
        /// `PURGE`: with the messages on it.
        purge: bool,
        /// `IGNSTATE(YES)`: that there is none is no failure.
        ignore_state: bool,
    },
    /// `DISPLAY`.
    Display(Display),
    /// `START CHANNEL`.
    StartChannel {
        /// The channel.
        name: ChannelName,
        /// `IGNSTATE(YES)`: that it runs already is no failure.
        ignore_state: bool,
    },
    /// `STOP CHANNEL`.
    StopChannel {
        /// The channel.
        name: ChannelName,
        /// `MODE`.
        mode: StopMode,
        /// `STATUS`.
        status: StopStatus,
        /// `CONNAME`: only instances with this partner address.
        connection_name: Option<String>,
        /// `QMNAME`: only instances with this partner.
        queue_manager: Option<QueueManagerName>,
        /// `IGNSTATE(YES)`: that it is stopped already is no failure.
        ignore_state: bool,
    },
    /// `RESET CHANNEL`.
    ResetChannel {
        /// The channel.
        name: ChannelName,
        /// `SEQNUM`: the number of the next message, 1 to 999 999 999.
        number: u32,
    },
    /// `RESOLVE CHANNEL`.
    ResolveChannel {
        /// The channel.
        name: ChannelName,
        /// `ACTION`.
        action: ResolveAction,
    },
    /// `PING CHANNEL`.
    PingChannel {
        /// The channel.
        name: ChannelName,
        /// `DATALEN`: bytes of test data, 16 to 32 768.
        data_length: u32,
    },
    /// `SET CHLAUTH`.
    SetChannelRule {
        /// The channels: a name, or a pattern with `*`.
        profile: String,
        /// `TYPE`.
        rule_type: ChannelRuleType,
        /// What is given.
        attributes: Attributes,
        /// `ACTION`.
        change: RuleChange,
    },
    /// `DISPLAY CHLAUTH` with `MATCH(RUNCHECK)`: the record that would decide of a partner.
    CheckChannel {
        /// The channel.
        channel: ChannelName,
        /// The partner.
        check: ChannelCheck,
    },
    /// `REFRESH SECURITY`.
    RefreshSecurity,
    /// `CLEAR QLOCAL`.
    ClearQueue {
        /// The queue.
        name: QueueName,
    },
    /// `PING QMGR`.
    PingQueueManager,
    /// `END`, `QUIT`, `EXIT`: the script ends here.
    End,
    /// A command of IBM MQ that we do not have. Its form was checked, its attributes were not.
    NotSupported {
        /// Such as `SET CHLAUTH`, or `attribute CLUSTER of QLOCAL`.
        what: String,
    },
}

/// A partner that may ask for a channel one day.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ChannelCheck {
    /// `ADDRESS`: where it comes from.
    pub address: String,
    /// `CLNTUSER`: an application of this user; blank for a queue manager.
    pub client_user: String,
    /// `QMNAME`: this queue manager; blank for an application.
    pub queue_manager: String,
    /// `SSLPEER`: the subject of its certificate; blank for none.
    pub peer_name: String,
    /// `SSLCERTI`: the issuer of its certificate.
    pub issuer_name: String,
}

/// How a channel is stopped. `MODE`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StopMode {
    /// `QUIESCE`: after the current batch.
    #[default]
    Quiesce,
    /// `FORCE`: at once; may leave a batch in doubt.
    Force,
    /// `TERMINATE`: as `FORCE`, and the task ends.
    Terminate,
}

/// What a stopped channel is then. `STATUS`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum StopStatus {
    /// `STOPPED`: until it is started by hand, over restarts too.
    #[default]
    Stopped,
    /// `INACTIVE`: until anything starts it.
    Inactive,
}

/// What becomes of batches in doubt. `ACTION`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ResolveAction {
    /// `COMMIT`: the partner has them, they leave the transmission queue.
    Commit,
    /// `BACKOUT`: the partner has them not, they are sent again.
    Backout,
}

/// `DISPLAY`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Display {
    /// What is displayed.
    pub noun: DisplayNoun,
    /// Which of them; `*` where the noun takes no name.
    pub name: Pattern,
    /// `WHERE`.
    pub filter: Option<Filter>,
    /// Which attributes.
    pub requested: Requested,
    /// `CONNAME(...)` of `DISPLAY CHSTATUS`: instances of this partner address only.
    pub connection_name: Option<String>,
    /// `XMITQ(...)` of `DISPLAY CHSTATUS`: instances of this transmission queue only.
    pub transmission_queue: Option<String>,
}

/// What `DISPLAY` is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DisplayNoun {
    /// `QUEUE`, `QLOCAL`, `QREMOTE`, `QALIAS`: of one kind, or of any.
    Queue {
        /// The noun or `TYPE`.
        kind: Option<ObjectKind>,
    },
    /// `CHANNEL`.
    Channel {
        /// `CHLTYPE`.
        kind: Option<ObjectKind>,
    },
    /// `PROCESS`.
    Process,
    /// `QMGR`.
    QueueManager,
    /// `CHLAUTH`.
    ChannelRule {
        /// `TYPE`.
        rule_type: Option<ChannelRuleType>,
    },
    /// `QSTATUS`.
    QueueStatus,
    /// `CHSTATUS`.
    ChannelStatus {
        /// `SAVED`: what is stored; otherwise what runs.
        saved: bool,
    },
}

/// Which attributes `DISPLAY` shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requested {
    /// None was named: all for one object by its full name, the key ones for several.
    Unsaid,
    /// `ALL`.
    All,
    /// These keywords, in their order.
    These(Vec<String>),
}

/// A name, or the beginning of names: `ABC*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pattern {
    /// This name.
    Exact(String),
    /// Names that begin so; an empty beginning is every name.
    Prefix(String),
}

impl Pattern {
    /// Reads a name or a generic name.
    #[must_use]
    pub fn new(text: &str) -> Self {
        let text = text.trim_end_matches(' ');
        match text.strip_suffix('*') {
            Some(prefix) => Self::Prefix(prefix.to_owned()),
            None => Self::Exact(text.to_owned()),
        }
    }

    /// Whether `text` is meant.
    #[must_use]
    pub fn matches(&self, text: &str) -> bool {
        match self {
            Self::Exact(name) => text == name,
            Self::Prefix(prefix) => text.starts_with(prefix.as_str()),
        }
    }

    /// Whether it may mean more than one.
    #[must_use]
    pub const fn is_generic(&self) -> bool {
        match self {
            Self::Exact(_) => false,
            Self::Prefix(_) => true,
        }
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(name) => f.write_str(name),
            Self::Prefix(prefix) => write!(f, "{prefix}*"),
        }
    }
}

/// `WHERE(keyword operator value)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// The attribute.
    pub keyword: String,
    /// How it is compared.
    pub operator: Operator,
    /// With what.
    pub value: FilterValue,
}

/// How an attribute is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operator {
    /// `LT`.
    Less,
    /// `GT`.
    Greater,
    /// `LE`.
    LessOrEqual,
    /// `GE`.
    GreaterOrEqual,
    /// `EQ`.
    Equal,
    /// `NE`.
    NotEqual,
    /// `LK`: like a generic value.
    Like,
    /// `NL`: not like a generic value.
    NotLike,
    /// `CT`: a list contains the value.
    Contains,
    /// `EX`: a list does not contain the value.
    Excludes,
    /// `CTG`: a list contains an item like the generic value.
    ContainsLike,
    /// `EXG`: a list contains no item like the generic value.
    ExcludesLike,
}

impl Operator {
    /// Every operator.
    pub const ALL: [Self; 12] = [
        Self::Less,
        Self::Greater,
        Self::LessOrEqual,
        Self::GreaterOrEqual,
        Self::Equal,
        Self::NotEqual,
        Self::Like,
        Self::NotLike,
        Self::Contains,
        Self::Excludes,
        Self::ContainsLike,
        Self::ExcludesLike,
    ];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Less => "LT",
            Self::Greater => "GT",
            Self::LessOrEqual => "LE",
            Self::GreaterOrEqual => "GE",
            Self::Equal => "EQ",
            Self::NotEqual => "NE",
            Self::Like => "LK",
            Self::NotLike => "NL",
            Self::Contains => "CT",
            Self::Excludes => "EX",
            Self::ContainsLike => "CTG",
            Self::ExcludesLike => "EXG",
        }
    }
}

/// What an attribute is compared with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilterValue {
    /// A number.
    Number(u64),
    /// Text, or the beginning of texts for `LK` and `NL`.
    Text(String),
}

impl Statement {
    /// The change of the definitions that it asks for; `None` if it asks for none.
    #[must_use]
    pub fn action(&self) -> Option<Action> {
        match self.clone() {
            Self::Define {
                kind,
                name,
                attributes,
                like,
                replace,
            } => Some(Action::Define {
                kind,
                name,
                attributes,
                like,
                replace,
            }),
            Self::Alter {
                kind,
                name,
                attributes,
                force: _,
            } => Some(Action::Alter {
                kind,
                name,
                attributes,
            }),
            Self::AlterQueueManager {
                attributes,
                force: _,
            } => Some(Action::AlterQueueManager { attributes }),
            Self::Delete {
                kind,
                name,
                purge: _,
                ignore_state: _,
            } => Some(Action::Delete { kind, name }),
            Self::SetChannelRule {
                profile,
                rule_type,
                attributes,
                change,
            } => Some(Action::SetChannelRule {
                profile,
                rule_type,
                attributes,
                change,
            }),
            Self::Display(_)
            | Self::CheckChannel { .. }
            | Self::RefreshSecurity
            | Self::StartChannel { .. }
            | Self::StopChannel { .. }
            | Self::ResetChannel { .. }
            | Self::ResolveChannel { .. }
            | Self::PingChannel { .. }
            | Self::ClearQueue { .. }
            | Self::PingQueueManager
            | Self::End
            | Self::NotSupported { .. } => None,
        }
    }
}

/// Text in apostrophes, as MQSC wants it.
pub(crate) fn quote(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

pub(crate) fn write_attribute(
    f: &mut fmt::Formatter<'_>,
    keyword: &str,
    value: &AttributeValue,
) -> fmt::Result {
    match value {
        AttributeValue::Number(n) => write!(f, " {keyword}({n})"),
        AttributeValue::Text(t) if t.is_empty() => write!(f, " {keyword}(' ')"),
        AttributeValue::Text(t) => write!(f, " {keyword}({})", quote(t)),
        AttributeValue::Word(w) => write!(f, " {keyword}({w})"),
        AttributeValue::Flag(true) => write!(f, " {keyword}"),
        AttributeValue::Flag(false) => write!(f, " NO{keyword}"),
        AttributeValue::List(items) => {
            let items: Vec<String> = items.iter().map(|i| quote(i)).collect();
            write!(f, " {keyword}({})", items.join(","))
        }
    }
}

fn write_attributes(f: &mut fmt::Formatter<'_>, attributes: &Attributes) -> fmt::Result {
    attributes
        .iter()
        .try_for_each(|(k, v)| write_attribute(f, k, v))
}

fn write_object(
    f: &mut fmt::Formatter<'_>,
    verb: &str,
    kind: ObjectKind,
    name: &str,
) -> fmt::Result {
    write!(f, "{verb} {}({})", kind.noun(), quote(name))?;
    match kind.class() {
        ObjectClass::Queue | ObjectClass::Process => Ok(()),
        ObjectClass::Channel => write!(f, " CHLTYPE({})", kind.type_word()),
    }
}

impl fmt::Display for Statement {
    /// A command that parses to the same statement.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ignore = |f: &mut fmt::Formatter<'_>, on: bool| {
            if on {
                f.write_str(" IGNSTATE(YES)")
            } else {
                Ok(())
            }
        };
        match self {
            Self::Define {
                kind,
                name,
                attributes,
                like,
                replace,
            } => {
                write_object(f, "DEFINE", *kind, name)?;
                if let Some(like) = like {
                    write!(f, " LIKE({})", quote(like))?;
                }
                write_attributes(f, attributes)?;
                if *replace {
                    f.write_str(" REPLACE")
                } else {
                    Ok(())
                }
            }
            Self::Alter {
                kind,
                name,
                attributes,
                force,
            } => {
                write_object(f, "ALTER", *kind, name)?;
                write_attributes(f, attributes)?;
                if *force {
                    f.write_str(" FORCE")
                } else {
                    Ok(())
                }
            }
            Self::AlterQueueManager { attributes, force } => {
                f.write_str("ALTER QMGR")?;
                write_attributes(f, attributes)?;
                if *force {
                    f.write_str(" FORCE")
                } else {
                    Ok(())
                }
            }
            Self::Delete {
                kind,
                name,
                purge,
                ignore_state,
            } => {
                let noun = match kind {
                    DeleteKind::Kind(kind) => kind.noun(),
                    DeleteKind::Channel => "CHANNEL",
                };
                write!(f, "DELETE {noun}({})", quote(name))?;
                if *purge {
                    f.write_str(" PURGE")?;
                }
                ignore(f, *ignore_state)
            }
            Self::Display(display) => display.fmt(f),
            Self::StartChannel { name, ignore_state } => {
                write!(f, "START CHANNEL({})", quote(name.as_str()))?;
                ignore(f, *ignore_state)
            }
            Self::StopChannel {
                name,
                mode,
                status,
                connection_name,
                queue_manager,
                ignore_state,
            } => {
                write!(f, "STOP CHANNEL({})", quote(name.as_str()))?;
                write!(f, " MODE({}) STATUS({})", mode.word(), status.word())?;
                if let Some(connection) = connection_name {
                    write!(f, " CONNAME({})", quote(connection))?;
                }
                if let Some(name) = queue_manager {
                    write!(f, " QMNAME({})", quote(name.as_str()))?;
                }
                ignore(f, *ignore_state)
            }
            Self::ResetChannel { name, number } => {
                write!(
                    f,
                    "RESET CHANNEL({}) SEQNUM({number})",
                    quote(name.as_str())
                )
            }
            Self::ResolveChannel { name, action } => write!(
                f,
                "RESOLVE CHANNEL({}) ACTION({})",
                quote(name.as_str()),
                action.word()
            ),
            Self::PingChannel { name, data_length } => write!(
                f,
                "PING CHANNEL({}) DATALEN({data_length})",
                quote(name.as_str())
            ),
            Self::SetChannelRule {
                profile,
                rule_type,
                attributes,
                change,
            } => {
                let of_type = rule_type.type_word();
                write!(f, "SET CHLAUTH({}) TYPE({of_type})", quote(profile))?;
                write_attributes(f, attributes)?;
                write!(f, " ACTION({})", change.type_word())
            }
            Self::CheckChannel { channel, check } => {
                let channel = quote(channel.as_str());
                write!(f, "DISPLAY CHLAUTH({channel}) MATCH(RUNCHECK)")?;
                check.fmt(f)
            }
            Self::RefreshSecurity => f.write_str("REFRESH SECURITY"),
            Self::ClearQueue { name } => write!(f, "CLEAR QLOCAL({})", quote(name.as_str())),
            Self::PingQueueManager => f.write_str("PING QMGR"),
            Self::End => f.write_str("END"),
            Self::NotSupported { what } => f.write_str(what),
        }
    }
}

impl fmt::Display for ChannelCheck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = [
            ("ADDRESS", &self.address),
            ("CLNTUSER", &self.client_user),
            ("QMNAME", &self.queue_manager),
            ("SSLPEER", &self.peer_name),
            ("SSLCERTI", &self.issuer_name),
        ];
        let mut given = parts.into_iter().filter(|(_, text)| !text.is_empty());
        given.try_for_each(|(keyword, text)| write!(f, " {keyword}({})", quote(text)))
    }
}

impl StopMode {
    /// Every mode.
    pub const ALL: [Self; 3] = [Self::Quiesce, Self::Force, Self::Terminate];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Quiesce => "QUIESCE",
            Self::Force => "FORCE",
            Self::Terminate => "TERMINATE",
        }
    }
}

impl StopStatus {
    /// Every status.
    pub const ALL: [Self; 2] = [Self::Stopped, Self::Inactive];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Stopped => "STOPPED",
            Self::Inactive => "INACTIVE",
        }
    }
}

impl ResolveAction {
    /// Both.
    pub const ALL: [Self; 2] = [Self::Commit, Self::Backout];

    /// Its word.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Commit => "COMMIT",
            Self::Backout => "BACKOUT",
        }
    }
}

impl fmt::Display for Display {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = quote(&self.name.to_string());
        match self.noun {
            DisplayNoun::Queue { kind: None } => write!(f, "DISPLAY QUEUE({name})")?,
            DisplayNoun::Queue { kind: Some(kind) } => {
                write!(f, "DISPLAY {}({name})", kind.noun())?
            }
            DisplayNoun::Channel { kind: None } => write!(f, "DISPLAY CHANNEL({name})")?,
            DisplayNoun::Channel { kind: Some(kind) } => {
                write!(f, "DISPLAY CHANNEL({name}) CHLTYPE({})", kind.type_word())?;
            }
            DisplayNoun::Process => write!(f, "DISPLAY PROCESS({name})")?,
            DisplayNoun::QueueManager => f.write_str("DISPLAY QMGR")?,
            DisplayNoun::ChannelRule { rule_type } => {
                write!(f, "DISPLAY CHLAUTH({name})")?;
                if let Some(rule_type) = rule_type {
                    write!(f, " TYPE({})", rule_type.type_word())?;
                }
                // A pattern would be read as the beginning of profiles.
                if let Pattern::Exact(_) = self.name {
                    f.write_str(" MATCH(EXACT)")?;
                }
            }
            DisplayNoun::QueueStatus => write!(f, "DISPLAY QSTATUS({name})")?,
            DisplayNoun::ChannelStatus { saved } => {
                let view = if saved { "SAVED" } else { "CURRENT" };
                write!(f, "DISPLAY CHSTATUS({name}) {view}")?;
            }
        }
        if let Some(connection) = &self.connection_name {
            write!(f, " CONNAME({})", quote(connection))?;
        }
        if let Some(queue) = &self.transmission_queue {
            write!(f, " XMITQ({})", quote(queue))?;
        }
        if let Some(filter) = &self.filter {
            write!(f, " WHERE({} {} ", filter.keyword, filter.operator.word())?;
            match &filter.value {
                FilterValue::Number(n) => write!(f, "{n})")?,
                FilterValue::Text(t) => write!(f, "{})", quote(t))?,
            }
        }
        match &self.requested {
            Requested::Unsaid => Ok(()),
            Requested::All => f.write_str(" ALL"),
            Requested::These(keywords) => keywords.iter().try_for_each(|k| write!(f, " {k}")),
        }
    }
}

/// The words by which commands may set attributes: keywords, synonyms, and the opposites of flags.
pub(crate) fn settable_words<'a>(
    specs: impl IntoIterator<Item = &'a AttributeSpec>,
) -> Vec<&'static str> {
    specs
        .into_iter()
        .filter(|s| s.settable)
        .flat_map(|s| core::iter::once(s.keyword).chain(s.synonyms.iter().copied()))
        .collect()
}
