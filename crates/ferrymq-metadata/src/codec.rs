//! Commands, answers and rows of definitions in protobuf.
//!
//! What cannot be read is refused, never guessed: a node that skipped a command would differ from the others.

use std::sync::Arc;

use bytes::Bytes;
use prost::Message as _;

use ferrymq_objects::{
    Action, Applied, Attributes, Channel, ChannelRule, ChannelRuleType, Command, CommandError,
    Definitions, DeleteKind, ObjectKind, Process, Queue, QueueManager, QueueManagerAttributes,
    Remembered, RequestId, RuleChange,
};
use ferrymq_proto::storage::{FormatError, attribute_from_stored, attribute_to_stored};
use ferrymq_proto::storage_v1 as pb;
use ferrymq_types::{QueueManagerId, QueueManagerName, Timestamp};

/// What `DELETE CHANNEL` without a type says as its kind.
const ANY_CHANNEL: &str = "CHANNEL";

fn value(field: &'static str, value: impl ToString) -> FormatError {
    FormatError::Value {
        field,
        value: value.to_string(),
    }
}

/// Encodes a command.
pub(crate) fn encode_command(command: &Command) -> Bytes {
    use pb::definition_proposal::Action as Pb;

    let action = match &command.action {
        Action::CreateQueueManager { id, node } => Pb::CreateQueueManager(pb::CreateQueueManager {
            id: Bytes::copy_from_slice(id.as_bytes()),
            node: *node,
        }),
        Action::AlterQueueManager { attributes } => Pb::AlterQueueManager(pb::AlterQueueManager {
            attributes: attributes_to_proto(attributes),
        }),
        Action::Define {
            kind,
            name,
            attributes,
            like,
            replace,
        } => Pb::Define(pb::DefineObject {
            kind: kind.type_word().to_owned(),
            name: name.clone(),
            like: like.clone(),
            replace: *replace,
            attributes: attributes_to_proto(attributes),
        }),
        Action::Alter {
            kind,
            name,
            attributes,
        } => Pb::Alter(pb::AlterObject {
            kind: kind.type_word().to_owned(),
            name: name.clone(),
            attributes: attributes_to_proto(attributes),
        }),
        Action::SetChannelRule {
            profile,
            rule_type,
            attributes,
            change,
        } => Pb::SetChannelRule(pb::SetChannelRule {
            profile: profile.clone(),
            r#type: rule_type.type_word().to_owned(),
            action: change.type_word().to_owned(),
            attributes: attributes_to_proto(attributes),
        }),
        Action::Delete { kind, name } => Pb::Delete(pb::DeleteObject {
            kind: match kind {
                DeleteKind::Kind(kind) => kind.type_word(),
                DeleteKind::Channel => ANY_CHANNEL,
            }
            .to_owned(),
            name: name.clone(),
        }),
    };
    let proposal = pb::DefinitionProposal {
        version: command.version,
        request_id: Bytes::copy_from_slice(&command.request),
        queue_manager: command.queue_manager.to_string(),
        time_ms: command.time.as_millis(),
        action: Some(action),
    };
    Bytes::from(proposal.encode_to_vec())
}

/// Decodes a command.
///
/// # Errors
/// [`FormatError`]: not a command, or one of a version that this release does not know.
pub(crate) fn decode_command(bytes: &Bytes) -> Result<Command, FormatError> {
    use pb::definition_proposal::Action as Pb;

    let proposal = pb::DefinitionProposal::decode(bytes.clone())?;
    if proposal.version != Command::VERSION {
        return Err(value("version", proposal.version));
    }
    let action = match proposal.action.ok_or(FormatError::Missing("action"))? {
        Pb::CreateQueueManager(create) => Action::CreateQueueManager {
            id: QueueManagerId::from_slice(&create.id)
                .filter(|_| create.id.len() == QueueManagerId::LENGTH)
                .ok_or_else(|| value("id", format!("of {} bytes", create.id.len())))?,
            node: create.node,
        },
        Pb::AlterQueueManager(alter) => Action::AlterQueueManager {
            attributes: attributes_from_proto(alter.attributes)?,
        },
        Pb::Define(define) => Action::Define {
            kind: kind(&define.kind)?,
            name: define.name,
            attributes: attributes_from_proto(define.attributes)?,
            like: define.like,
            replace: define.replace,
        },
        Pb::Alter(alter) => Action::Alter {
            kind: kind(&alter.kind)?,
            name: alter.name,
            attributes: attributes_from_proto(alter.attributes)?,
        },
        Pb::SetChannelRule(set) => Action::SetChannelRule {
            rule_type: ChannelRuleType::from_type_word(&set.r#type)
                .ok_or_else(|| value("type", &set.r#type))?,
            change: RuleChange::from_type_word(&set.action)
                .ok_or_else(|| value("action", &set.action))?,
            attributes: attributes_from_proto(set.attributes)?,
            profile: set.profile,
        },
        Pb::Delete(delete) => Action::Delete {
            kind: if delete.kind == ANY_CHANNEL {
                DeleteKind::Channel
            } else {
                DeleteKind::Kind(kind(&delete.kind)?)
            },
            name: delete.name,
        },
    };
    Ok(Command {
        version: proposal.version,
        queue_manager: queue_manager_name(&proposal.queue_manager)?,
        time: Timestamp::from_millis(proposal.time_ms),
        request: request_id(&proposal.request_id)?,
        action,
    })
}

fn kind(word: &str) -> Result<ObjectKind, FormatError> {
    ObjectKind::from_type_word(word).ok_or_else(|| value("kind", word))
}

fn queue_manager_name(text: &str) -> Result<QueueManagerName, FormatError> {
    QueueManagerName::new(text).map_err(|source| FormatError::Name {
        field: "queue_manager",
        source,
    })
}

fn request_id(bytes: &[u8]) -> Result<RequestId, FormatError> {
    bytes
        .try_into()
        .map_err(|_| value("request_id", format!("of {} bytes", bytes.len())))
}

fn attributes_to_proto(attributes: &Attributes) -> Vec<pb::DefinitionAttribute> {
    attributes
        .iter()
        .map(|(keyword, value)| attribute_to_stored(keyword, value))
        .collect()
}

fn attributes_from_proto(list: Vec<pb::DefinitionAttribute>) -> Result<Attributes, FormatError> {
    let mut attributes = Attributes::new();
    for attribute in list {
        let (keyword, found) = attribute_from_stored(attribute)?;
        attributes
            .insert(&keyword, found)
            .map_err(|e| value("attributes", e))?;
    }
    Ok(attributes)
}

/// An answer as it is stored and sent.
pub(crate) fn outcome_to_proto(index: u64, remembered: &Remembered) -> pb::DefinitionOutcome {
    pb::DefinitionOutcome {
        index,
        words: remembered.outcome_words(),
    }
}

/// Reads an answer.
///
/// # Errors
/// [`FormatError::Value`] if it is none that this release knows.
pub(crate) fn outcome_from_proto(
    request: RequestId,
    outcome: &pb::DefinitionOutcome,
) -> Result<Result<Applied, CommandError>, FormatError> {
    Remembered::from_words(request, &outcome.words)
        .map(|r| r.outcome)
        .ok_or_else(|| value("words", outcome.words.join(" ")))
}

/// The row of a request.
pub(crate) fn encode_request(index: u64, remembered: &Remembered) -> Vec<u8> {
    pb::DefinitionRequestRow {
        request_id: Bytes::copy_from_slice(&remembered.request),
        outcome: Some(outcome_to_proto(index, remembered)),
    }
    .encode_to_vec()
}

/// Reads the row of a request: the index at which it was applied, and what is remembered.
///
/// # Errors
/// [`FormatError`] if it makes no sense.
pub(crate) fn decode_request(bytes: &[u8]) -> Result<(u64, Remembered), FormatError> {
    let row = pb::DefinitionRequestRow::decode(bytes)?;
    let outcome = row.outcome.ok_or(FormatError::Missing("outcome"))?;
    let request = request_id(&row.request_id)?;
    let remembered = Remembered {
        request,
        outcome: outcome_from_proto(request, &outcome)?,
    };
    Ok((outcome.index, remembered))
}

/// A definition as a row holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum DefinitionRow {
    QueueManager(Box<QueueManager>),
    Queue(QueueManagerName, Box<Queue>),
    Channel(QueueManagerName, Box<Channel>),
    Process(QueueManagerName, Box<Process>),
    ChannelRules(QueueManagerName, String, Vec<ChannelRule>),
}

/// The row of a queue manager without its objects.
pub(crate) fn encode_queue_manager(queue_manager: &QueueManager) -> Vec<u8> {
    definition(pb::definition_row::Definition::QueueManager(
        pb::QueueManagerDefinition {
            node: queue_manager.node,
            attributes: attributes_to_proto(&queue_manager.attributes.to_attributes()),
        },
    ))
}

/// The row of a queue.
pub(crate) fn encode_queue(queue_manager: &QueueManagerName, queue: &Queue) -> Vec<u8> {
    definition(pb::definition_row::Definition::Queue(
        pb::ObjectDefinition {
            queue_manager: queue_manager.to_string(),
            attributes: attributes_to_proto(&queue.to_attributes()),
        },
    ))
}

/// The row of a channel.
pub(crate) fn encode_channel(queue_manager: &QueueManagerName, channel: &Channel) -> Vec<u8> {
    definition(pb::definition_row::Definition::Channel(
        pb::ObjectDefinition {
            queue_manager: queue_manager.to_string(),
            attributes: attributes_to_proto(&channel.to_attributes()),
        },
    ))
}

/// The row of a process.
pub(crate) fn encode_process(queue_manager: &QueueManagerName, process: &Process) -> Vec<u8> {
    definition(pb::definition_row::Definition::Process(
        pb::ObjectDefinition {
            queue_manager: queue_manager.to_string(),
            attributes: attributes_to_proto(&process.to_attributes()),
        },
    ))
}

/// The row of the channel authentication records of a profile.
pub(crate) fn encode_channel_rules(
    queue_manager: &QueueManagerName,
    profile: &str,
    rules: &[ChannelRule],
) -> Vec<u8> {
    definition(pb::definition_row::Definition::ChannelRules(
        pb::ChannelRules {
            queue_manager: queue_manager.to_string(),
            profile: profile.to_owned(),
            rules: rules
                .iter()
                .map(|rule| pb::ChannelRule {
                    attributes: attributes_to_proto(&rule.to_attributes()),
                })
                .collect(),
        },
    ))
}

fn definition(definition: pb::definition_row::Definition) -> Vec<u8> {
    pb::DefinitionRow {
        definition: Some(definition),
    }
    .encode_to_vec()
}

/// Reads the row of a definition.
///
/// # Errors
/// [`FormatError`] if it makes no sense to this release.
pub(crate) fn decode_definition(bytes: &[u8]) -> Result<DefinitionRow, FormatError> {
    use pb::definition_row::Definition;

    let row = pb::DefinitionRow::decode(bytes)?;
    Ok(
        match row.definition.ok_or(FormatError::Missing("definition"))? {
            Definition::QueueManager(stored) => {
                let attributes = attributes_from_proto(stored.attributes)?;
                let attributes = QueueManagerAttributes::from_attributes(&attributes)
                    .map_err(|e| value("attributes", e))?;
                DefinitionRow::QueueManager(Box::new(QueueManager {
                    attributes,
                    queues: Default::default(),
                    channels: Default::default(),
                    processes: Default::default(),
                    channel_rules: Default::default(),
                    node: stored.node,
                }))
            }
            Definition::Queue(stored) => {
                let attributes = attributes_from_proto(stored.attributes)?;
                let queue =
                    Queue::from_attributes(&attributes).map_err(|e| value("attributes", e))?;
                DefinitionRow::Queue(queue_manager_name(&stored.queue_manager)?, Box::new(queue))
            }
            Definition::Channel(stored) => {
                let attributes = attributes_from_proto(stored.attributes)?;
                let channel =
                    Channel::from_attributes(&attributes).map_err(|e| value("attributes", e))?;
                DefinitionRow::Channel(
                    queue_manager_name(&stored.queue_manager)?,
                    Box::new(channel),
                )
            }
            Definition::ChannelRules(stored) => {
                let rules = stored.rules.into_iter().map(|rule| {
                    let attributes = attributes_from_proto(rule.attributes)?;
                    ChannelRule::from_attributes(&stored.profile, &attributes)
                        .map_err(|e| value("attributes", e))
                });
                let rules = rules.collect::<Result<_, _>>()?;
                let name = queue_manager_name(&stored.queue_manager)?;
                DefinitionRow::ChannelRules(name, stored.profile, rules)
            }
            Definition::Process(stored) => {
                let attributes = attributes_from_proto(stored.attributes)?;
                let process =
                    Process::from_attributes(&attributes).map_err(|e| value("attributes", e))?;
                DefinitionRow::Process(
                    queue_manager_name(&stored.queue_manager)?,
                    Box::new(process),
                )
            }
        },
    )
}

/// Puts a decoded row where it belongs.
///
/// # Errors
/// [`FormatError::Value`] for an object whose queue manager is not there: its row is lost.
pub(crate) fn insert_definition(
    definitions: &mut Definitions,
    row: DefinitionRow,
) -> Result<(), FormatError> {
    match row {
        DefinitionRow::QueueManager(queue_manager) => {
            let name = queue_manager.attributes.name.clone();
            definitions
                .queue_managers
                .insert(name, Arc::new(*queue_manager));
        }
        DefinitionRow::Queue(name, queue) => {
            owner(definitions, &name)?
                .queues
                .insert(queue.base().name.clone(), *queue);
        }
        DefinitionRow::Channel(name, channel) => {
            owner(definitions, &name)?
                .channels
                .insert(channel.base().name.clone(), *channel);
        }
        DefinitionRow::ChannelRules(name, profile, rules) => {
            owner(definitions, &name)?
                .channel_rules
                .insert(profile, rules);
        }
        DefinitionRow::Process(name, process) => {
            owner(definitions, &name)?
                .processes
                .insert(process.name.clone(), *process);
        }
    }
    Ok(())
}

fn owner<'a>(
    definitions: &'a mut Definitions,
    name: &QueueManagerName,
) -> Result<&'a mut QueueManager, FormatError> {
    definitions
        .queue_managers
        .get_mut(name)
        .map(Arc::make_mut)
        .ok_or_else(|| value("queue_manager", name))
}
