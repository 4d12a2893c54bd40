//! Answers that are remembered, as plain words that a snapshot can hold.

use ferrymq_types::{ObjectId, QueueManagerId};

use crate::attribute::{AttributeError, AttributeProblem};
use crate::{Applied, ChannelRuleProblem, CommandError, ObjectClass, ObjectKind, RequestId};

/// A command that was applied or refused, so that its repetition gets the same answer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remembered {
    /// The request.
    pub request: RequestId,
    /// Its answer.
    pub outcome: Result<Applied, CommandError>,
}

impl Remembered {
    /// The answer as words: [`Remembered::from_words`] reads it back.
    #[must_use]
    pub fn outcome_words(&self) -> Vec<String> {
        match &self.outcome {
            Ok(applied) => applied_words(applied),
            Err(error) => error_words(error),
        }
    }

    /// Reads what [`Remembered::outcome_words`] made; `None` for anything else.
    #[must_use]
    pub fn from_words(request: RequestId, words: &[String]) -> Option<Self> {
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let outcome = match read_applied(&words) {
            Some(applied) => Ok(applied),
            None => Err(read_error(&words)?),
        };
        Some(Self { request, outcome })
    }
}

fn words<const N: usize>(parts: [&str; N]) -> Vec<String> {
    parts.into_iter().map(str::to_owned).collect()
}

fn applied_words(applied: &Applied) -> Vec<String> {
    let object = |word: &str, kind: &ObjectKind, name: &str, id: &ObjectId| {
        words([word, kind.type_word(), name, &id.to_string()])
    };
    match applied {
        Applied::QueueManagerCreated { id } => words(["QMGR_CREATED", &id.to_string()]),
        Applied::QueueManagerAltered => words(["QMGR_ALTERED"]),
        Applied::ChannelRulesSet { profile } => words(["CHLAUTH_SET", profile]),
        Applied::Created { kind, name, id } => object("CREATED", kind, name, id),
        Applied::Replaced { kind, name, id } => object("REPLACED", kind, name, id),
        Applied::Altered { kind, name, id } => object("ALTERED", kind, name, id),
        Applied::Deleted { kind, name, id } => object("DELETED", kind, name, id),
    }
}

fn read_applied(words: &[&str]) -> Option<Applied> {
    if let &["QMGR_CREATED", id] = words {
        let id = QueueManagerId::from_hex(id)?;
        return Some(Applied::QueueManagerCreated { id });
    }
    if let &["CHLAUTH_SET", profile] = words {
        let profile = profile.to_owned();
        return Some(Applied::ChannelRulesSet { profile });
    }
    if words == ["QMGR_ALTERED"] {
        return Some(Applied::QueueManagerAltered);
    }
    let &[what, kind, name, id] = words else {
        return None;
    };
    let kind = ObjectKind::from_type_word(kind)?;
    let (name, id) = (name.to_owned(), ObjectId::new(id.parse().ok()?));
    match what {
        "CREATED" => Some(Applied::Created { kind, name, id }),
        "REPLACED" => Some(Applied::Replaced { kind, name, id }),
        "ALTERED" => Some(Applied::Altered { kind, name, id }),
        "DELETED" => Some(Applied::Deleted { kind, name, id }),
        _ => None,
    }
}

fn error_words(error: &CommandError) -> Vec<String> {
    match error {
        CommandError::Version { version } => words(["VERSION", &version.to_string()]),
        CommandError::QueueManagerExists { name } => words(["QMGR_EXISTS", name]),
        CommandError::QueueManagerNotFound { name } => words(["QMGR_NOT_FOUND", name]),
        CommandError::Exists { kind, name } => words(["EXISTS", kind.type_word(), name]),
        CommandError::NotFound { class, name } => words([
            match class {
                ObjectClass::Queue => "QUEUE_NOT_FOUND",
                ObjectClass::Channel => "CHANNEL_NOT_FOUND",
                ObjectClass::Process => "PROCESS_NOT_FOUND",
            },
            name,
        ]),
        CommandError::WrongType { name, found } => words(["WRONG_TYPE", found.type_word(), name]),
        CommandError::LikeWrongType { name, found } => {
            words(["LIKE_WRONG_TYPE", found.type_word(), name])
        }
        CommandError::Name { name, why } => words(["NAME", name, why]),
        CommandError::ChannelRule { profile, problem } => words([
            match problem {
                ChannelRuleProblem::Exists => "CHLAUTH_EXISTS",
                ChannelRuleProblem::NotFound => "CHLAUTH_NOT_FOUND",
                ChannelRuleProblem::TooMany => "CHLAUTH_TOO_MANY",
            },
            profile,
        ]),
        CommandError::Attribute(AttributeError { keyword, problem }) => match problem {
            AttributeProblem::Unknown => words(["UNKNOWN", keyword]),
            AttributeProblem::NotSupported => words(["NOT_SUPPORTED", keyword]),
            AttributeProblem::NotApplicable => words(["NOT_APPLICABLE", keyword]),
            AttributeProblem::ReadOnly => words(["READ_ONLY", keyword]),
            AttributeProblem::Required => words(["REQUIRED", keyword]),
            AttributeProblem::Repeated => words(["REPEATED", keyword]),
            AttributeProblem::Value { given, allowed } => words(["VALUE", keyword, given, allowed]),
        },
    }
}

fn read_error(words: &[&str]) -> Option<CommandError> {
    let attribute = |keyword: &str, problem| {
        CommandError::Attribute(AttributeError {
            keyword: keyword.to_owned(),
            problem,
        })
    };
    let rule = |profile: &str, problem| CommandError::ChannelRule {
        profile: profile.to_owned(),
        problem,
    };
    Some(match *words {
        ["VERSION", version] => CommandError::Version {
            version: version.parse().ok()?,
        },
        ["QMGR_EXISTS", name] => CommandError::QueueManagerExists { name: name.into() },
        ["QMGR_NOT_FOUND", name] => CommandError::QueueManagerNotFound { name: name.into() },
        ["EXISTS", kind, name] => CommandError::Exists {
            kind: ObjectKind::from_type_word(kind)?,
            name: name.into(),
        },
        ["QUEUE_NOT_FOUND", name] => CommandError::NotFound {
            class: ObjectClass::Queue,
            name: name.into(),
        },
        ["CHANNEL_NOT_FOUND", name] => CommandError::NotFound {
            class: ObjectClass::Channel,
            name: name.into(),
        },
        ["PROCESS_NOT_FOUND", name] => CommandError::NotFound {
            class: ObjectClass::Process,
            name: name.into(),
        },
        ["WRONG_TYPE", found, name] => CommandError::WrongType {
            name: name.into(),
            found: ObjectKind::from_type_word(found)?,
        },
        ["LIKE_WRONG_TYPE", found, name] => CommandError::LikeWrongType {
            name: name.into(),
            found: ObjectKind::from_type_word(found)?,
        },
        ["CHLAUTH_EXISTS", profile] => rule(profile, ChannelRuleProblem::Exists),
        ["CHLAUTH_NOT_FOUND", profile] => rule(profile, ChannelRuleProblem::NotFound),
        ["CHLAUTH_TOO_MANY", profile] => rule(profile, ChannelRuleProblem::TooMany),
        ["NAME", name, why] => CommandError::Name {
            name: name.into(),
            why: why.into(),
        },
        ["UNKNOWN", keyword] => attribute(keyword, AttributeProblem::Unknown),
        ["NOT_SUPPORTED", keyword] => attribute(keyword, AttributeProblem::NotSupported),
        ["NOT_APPLICABLE", keyword] => attribute(keyword, AttributeProblem::NotApplicable),
        ["READ_ONLY", keyword] => attribute(keyword, AttributeProblem::ReadOnly),
        ["REQUIRED", keyword] => attribute(keyword, AttributeProblem::Required),
        ["REPEATED", keyword] => attribute(keyword, AttributeProblem::Repeated),
        ["VALUE", keyword, given, allowed] => attribute(
            keyword,
            AttributeProblem::Value {
                given: given.into(),
                allowed: allowed.into(),
            },
        ),
        _ => return None,
    })
}
