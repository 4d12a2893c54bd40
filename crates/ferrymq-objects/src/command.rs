//! What can be asked of the definitions, and what became of it.

use ferrymq_types::{ObjectId, QueueManagerId, QueueManagerName, ReasonCode, Timestamp};

use crate::attribute::{AttributeError, AttributeProblem, Attributes};
use crate::channel_rule::{RULE_LIST_MAX, RULES_OF_PROFILE_MAX};
use crate::{ChannelRuleProblem, ChannelRuleType, ObjectClass, ObjectKind, RuleChange};

/// Chosen at random by whoever proposes a command: a command that is proposed again, because its answer was lost, takes
/// effect once and has the same answer.
pub type RequestId = [u8; 16];

/// A replicated command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Command {
    /// What the command means: [`Command::VERSION`].
    pub version: u32,
    /// The queue manager that it is about.
    pub queue_manager: QueueManagerName,
    /// When it was proposed, by the proposer's clock.
    pub time: Timestamp,
    /// Tells a repetition from a new command.
    pub request: RequestId,
    /// What to do.
    pub action: Action,
}

impl Command {
    /// The version that this code writes and understands.
    pub const VERSION: u32 = 1;
}

/// What a command does.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Makes a queue manager with its system objects.
    CreateQueueManager {
        /// Its id, chosen at random.
        id: QueueManagerId,
        /// The node that hosts it.
        node: u64,
    },
    /// `DEFINE`.
    Define {
        /// The kind of object.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// What is given; the rest is as in `like`.
        attributes: Attributes,
        /// `LIKE`: an object of the same kind. Without it, the default object of the kind.
        like: Option<String>,
        /// `REPLACE`: an object of this name and kind may be there; it keeps its id and its messages.
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
    },
    /// `ALTER QMGR`.
    AlterQueueManager {
        /// What changes.
        attributes: Attributes,
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
    /// `DELETE`. Whether messages or handles stand against it is known to the queue manager, which asks before it proposes.
    Delete {
        /// The kind of object; of a channel any, as `DELETE CHANNEL` has no `CHLTYPE`.
        kind: DeleteKind,
        /// Its name.
        name: String,
    },
}

/// What a `DELETE` is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DeleteKind {
    /// A queue of this kind, a channel of this type, or a process.
    Kind(ObjectKind),
    /// A channel of any type.
    Channel,
}

impl DeleteKind {
    /// What it shares its name space with.
    #[must_use]
    pub const fn class(self) -> ObjectClass {
        match self {
            Self::Kind(kind) => kind.class(),
            Self::Channel => ObjectClass::Channel,
        }
    }

    /// Whether an object of `kind` is what it is about.
    #[must_use]
    pub fn matches(self, kind: ObjectKind) -> bool {
        match self {
            Self::Kind(k) => k == kind,
            Self::Channel => kind.is_channel(),
        }
    }
}

/// What a command did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Applied {
    /// A queue manager was created.
    QueueManagerCreated {
        /// Its id.
        id: QueueManagerId,
    },
    /// The queue manager's attributes changed.
    QueueManagerAltered,
    /// An object was defined.
    Created {
        /// Its kind.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// Its id.
        id: ObjectId,
    },
    /// An object was defined anew with `REPLACE`.
    Replaced {
        /// Its kind.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// Its id, as before.
        id: ObjectId,
    },
    /// An object changed.
    Altered {
        /// Its kind.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// Its id.
        id: ObjectId,
    },
    /// The channel authentication records of a profile changed.
    ChannelRulesSet {
        /// The profile.
        profile: String,
    },
    /// An object is gone.
    Deleted {
        /// Its kind.
        kind: ObjectKind,
        /// Its name.
        name: String,
        /// Its id, never used again.
        id: ObjectId,
    },
}

/// Why a command was refused. A refused command changed nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CommandError {
    /// The command was written by a newer version. A state machine that sees it must stop: skipping it would make nodes differ.
    #[error("command version {version} is not understood by this version of FerryMQ")]
    Version {
        /// Its version.
        version: u32,
    },
    /// The queue manager exists.
    #[error("queue manager {name} already exists")]
    QueueManagerExists {
        /// Its name.
        name: String,
    },
    /// The queue manager does not exist.
    #[error("queue manager {name} does not exist")]
    QueueManagerNotFound {
        /// Its name.
        name: String,
    },
    /// An object of that name exists.
    #[error("object {name} already exists")]
    Exists {
        /// The kind asked for.
        kind: ObjectKind,
        /// The name.
        name: String,
    },
    /// No object of that name exists.
    #[error("object {name} not found")]
    NotFound {
        /// What was looked for.
        class: ObjectClass,
        /// The name.
        name: String,
    },
    /// The object is of another kind.
    #[error("object {name} is of type {found}")]
    WrongType {
        /// The name.
        name: String,
        /// The kind that it is of.
        found: ObjectKind,
    },
    /// The object named by `LIKE` is of another kind.
    #[error("source object {name} is of type {found}")]
    LikeWrongType {
        /// The name.
        name: String,
        /// The kind that it is of.
        found: ObjectKind,
    },
    /// The name is not one.
    #[error("'{name}' is not a name: {why}")]
    Name {
        /// What was given, shortened.
        name: String,
        /// What is wrong with it.
        why: String,
    },
    /// A channel authentication record is there, or is not.
    #[error("channel authentication record of {profile}: {problem:?}")]
    ChannelRule {
        /// The profile.
        profile: String,
        /// What is wrong.
        problem: ChannelRuleProblem,
    },
    /// An attribute is not known, not allowed, or missing.
    #[error(transparent)]
    Attribute(#[from] AttributeError),
}

/// A message line for an operator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OperatorMessage {
    /// Such as `AMQ8147E`.
    pub id: &'static str,
    /// The text, with a full stop.
    pub text: String,
}

impl core::fmt::Display for OperatorMessage {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "{}: {}", self.id, self.text)
    }
}

impl CommandError {
    /// The `MQRCCF` or `MQRC` number.
    #[must_use]
    pub const fn reason(&self) -> ReasonCode {
        ReasonCode::new(match self {
            Self::Version { .. } => return ReasonCode::UNEXPECTED_ERROR,
            Self::QueueManagerExists { .. } => 4001,
            Self::QueueManagerNotFound { .. } => 4006,
            Self::Exists { kind, .. } => match kind.class() {
                ObjectClass::Queue | ObjectClass::Process => 4001,
                ObjectClass::Channel => 4042,
            },
            Self::NotFound { class, .. } => match class {
                ObjectClass::Queue | ObjectClass::Process => 2085,
                ObjectClass::Channel => 4032,
            },
            Self::WrongType { found, .. } | Self::LikeWrongType { found, .. } => {
                match found.class() {
                    ObjectClass::Queue | ObjectClass::Process => 4002,
                    ObjectClass::Channel => 4041,
                }
            }
            Self::Name { .. } => 2152,
            Self::ChannelRule { problem, .. } => match problem {
                ChannelRuleProblem::Exists => 3337,
                ChannelRuleProblem::NotFound => 3338,
                ChannelRuleProblem::TooMany => 3334,
            },
            Self::Attribute(_) => 4005,
        })
    }

    /// The line that `runmqsc` would print for it.
    ///
    /// Source: IBM MQ, AMQ8nnn messages; AMQ8405 stands for every attribute that is not right, with our own text that says
    /// what is allowed.
    #[must_use]
    pub fn message(&self) -> OperatorMessage {
        let message = |id, text| OperatorMessage { id, text };
        match self {
            Self::Version { .. } => message("AMQ8101S", format!("Unexpected error: {self}.")),
            Self::QueueManagerExists { name } => message(
                "AMQ8110E",
                format!("FerryMQ queue manager {name} already exists."),
            ),
            Self::QueueManagerNotFound { name } => message(
                "AMQ8118E",
                format!("FerryMQ queue manager {name} does not exist."),
            ),
            Self::Exists { kind, name } => {
                if !kind.is_channel() {
                    message("AMQ8150E", format!("FerryMQ object {name} already exists."))
                } else {
                    message(
                        "AMQ8226E",
                        format!("FerryMQ channel {name} already exists."),
                    )
                }
            }
            Self::NotFound { class, name } => match class {
                ObjectClass::Queue | ObjectClass::Process => {
                    message("AMQ8147E", format!("FerryMQ object {name} not found."))
                }
                ObjectClass::Channel => message("AMQ8227E", format!("Channel {name} not found.")),
            },
            Self::WrongType { name, found } => message(
                "AMQ8151E",
                format!("FerryMQ object {name} has a different type: {found}."),
            ),
            Self::LikeWrongType { name, found } => message(
                "AMQ8152E",
                format!("Source FerryMQ object {name} has a different type: {found}."),
            ),
            Self::Name { name, why } => message(
                "AMQ8424E",
                format!("Error detected in a name keyword: '{name}': {why}."),
            ),
            Self::ChannelRule { profile, problem } => match problem {
                ChannelRuleProblem::Exists => message(
                    "AMQ8871E",
                    format!("FerryMQ channel authentication record of {profile} already exists."),
                ),
                ChannelRuleProblem::NotFound => message(
                    "AMQ8884E",
                    format!("FerryMQ channel authentication record of {profile} not found."),
                ),
                ChannelRuleProblem::TooMany => message(
                    "FMQ8002E",
                    format!(
                        "Profile {profile} would have more than {RULES_OF_PROFILE_MAX} channel authentication records, or one of them more than {RULE_LIST_MAX} entries."
                    ),
                ),
            },
            Self::Attribute(error) => {
                let id = match (&error.problem, error.keyword.as_str()) {
                    (AttributeProblem::Required, "CONNAME") => "AMQ8214E",
                    (
                        AttributeProblem::Required
                        | AttributeProblem::Unknown
                        | AttributeProblem::NotSupported
                        | AttributeProblem::NotApplicable
                        | AttributeProblem::ReadOnly
                        | AttributeProblem::Repeated
                        | AttributeProblem::Value { .. },
                        _,
                    ) => "AMQ8405E",
                };
                let text = error.to_string();
                let rest = text.strip_prefix("attribute ").unwrap_or(&text);
                message(id, format!("Attribute {rest}."))
            }
        }
    }
}
