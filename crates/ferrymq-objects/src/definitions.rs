//! The replicated machine: commands in, definitions out.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use ferrymq_types::{
    ChannelName, ObjectId, ProcessName, QueueManagerId, QueueManagerName, QueueName, Timestamp,
};

use crate::attribute::{Attributes, shorten};
use crate::channel_rule::{RuleError, change_rules, is_channel_profile};
use crate::command::DeleteKind;
use crate::table::Tabled;
use crate::{
    Action, Applied, Channel, ChannelRule, Command, CommandError, ObjectClass, ObjectKind, Process,
    Queue, QueueManager, QueueManagerAttributes, Remembered, RuleChange,
};

/// How many answers are remembered for repeated requests.
pub const REQUESTS_REMEMBERED_MAX: usize = 1024;

/// Every definition of the cluster.
///
/// All fields are public so that a snapshot can hold them; only [`Definitions::apply`] changes them otherwise.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Definitions {
    /// The queue managers by name. Whoever needs one takes a clone of the `Arc`: it does not change any more.
    pub queue_managers: BTreeMap<QueueManagerName, Arc<QueueManager>>,
    /// The id of the next object. Ids are unique in the cluster and never used again.
    pub next_object_id: ObjectId,
    /// The answers to the last requests, oldest first, at most [`REQUESTS_REMEMBERED_MAX`].
    pub remembered: VecDeque<Remembered>,
    /// The index of the last command applied or refused; 0 before the first.
    pub applied_index: u64,
}

impl Default for Definitions {
    fn default() -> Self {
        Self::new()
    }
}

impl Definitions {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            queue_managers: BTreeMap::new(),
            next_object_id: ObjectId::new(1),
            remembered: VecDeque::new(),
            applied_index: 0,
        }
    }

    /// Applies the command at `index` of the log. The same commands in the same order give the same definitions and the same
    /// answers everywhere. A request that is remembered gets its answer again and changes nothing.
    ///
    /// # Errors
    /// [`CommandError`]: nothing changed but the index and the memory of the request. After [`CommandError::Version`] not
    /// even those did, and the caller must stop applying.
    pub fn apply(&mut self, index: u64, command: &Command) -> Result<Applied, CommandError> {
        if command.version != Command::VERSION {
            return Err(CommandError::Version {
                version: command.version,
            });
        }
        self.applied_index = index;
        let earlier = |r: &&Remembered| r.request == command.request;
        if let Some(found) = self.remembered.iter().rev().find(earlier) {
            return found.outcome.clone();
        }
        let outcome = self.perform(command);
        if self.remembered.len() >= REQUESTS_REMEMBERED_MAX {
            self.remembered.pop_front();
        }
        self.remembered.push_back(Remembered {
            request: command.request,
            outcome: outcome.clone(),
        });
        outcome
    }

    fn perform(&mut self, command: &Command) -> Result<Applied, CommandError> {
        let (name, now) = (&command.queue_manager, command.time);
        if let Action::CreateQueueManager { id, node } = &command.action {
            return self.create(name, *id, *node, now);
        }
        let queue_manager = self.queue_managers.get_mut(name).ok_or_else(|| {
            CommandError::QueueManagerNotFound {
                name: name.to_string(),
            }
        })?;
        match &command.action {
            Action::CreateQueueManager { .. } => Err(CommandError::QueueManagerExists {
                name: name.to_string(),
            }),
            Action::AlterQueueManager { attributes } => {
                let mut altered = queue_manager.attributes.clone();
                altered.set_all(attributes)?;
                altered.altered = now;
                Arc::make_mut(queue_manager).attributes = altered;
                Ok(Applied::QueueManagerAltered)
            }
            Action::Define {
                kind,
                name,
                attributes,
                like,
                replace,
            } => {
                let definition = Define {
                    kind: *kind,
                    attributes,
                    like: like.as_deref(),
                    replace: *replace,
                    now,
                };
                let mut id = self.next_object_id;
                let applied = match kind.class() {
                    ObjectClass::Queue => {
                        definition.perform(&queue_name(name)?, queue_manager, &mut id)?
                    }
                    ObjectClass::Channel => {
                        definition.perform(&channel_name(name)?, queue_manager, &mut id)?
                    }
                    ObjectClass::Process => {
                        definition.perform(&process_name(name)?, queue_manager, &mut id)?
                    }
                };
                self.next_object_id = id;
                Ok(applied)
            }
            Action::Alter {
                kind,
                name,
                attributes,
            } => match kind.class() {
                ObjectClass::Queue => {
                    alter(*kind, &queue_name(name)?, attributes, now, queue_manager)
                }
                ObjectClass::Channel => {
                    alter(*kind, &channel_name(name)?, attributes, now, queue_manager)
                }
                ObjectClass::Process => {
                    alter(*kind, &process_name(name)?, attributes, now, queue_manager)
                }
            },
            Action::SetChannelRule {
                profile,
                rule_type,
                attributes,
                change,
            } => {
                let mut rule = ChannelRule::from_command(profile, *rule_type, attributes)?;
                rule.altered = now;
                set_channel_rule(queue_manager, rule, *change, attributes)
            }
            Action::Delete { kind, name } => match kind.class() {
                ObjectClass::Queue => delete(*kind, &queue_name(name)?, queue_manager),
                ObjectClass::Channel => delete(*kind, &channel_name(name)?, queue_manager),
                ObjectClass::Process => delete(*kind, &process_name(name)?, queue_manager),
            },
        }
    }

    fn create(
        &mut self,
        name: &QueueManagerName,
        id: QueueManagerId,
        node: u64,
        now: Timestamp,
    ) -> Result<Applied, CommandError> {
        if self.queue_managers.contains_key(name) {
            return Err(CommandError::QueueManagerExists {
                name: name.to_string(),
            });
        }
        let attributes = QueueManagerAttributes::with_defaults(name.clone(), id, now);
        let created = QueueManager::create(attributes, node, &mut self.next_object_id);
        self.queue_managers.insert(name.clone(), Arc::new(created));
        Ok(Applied::QueueManagerCreated { id })
    }
}

fn set_channel_rule(
    queue_manager: &mut Arc<QueueManager>,
    rule: ChannelRule,
    change: RuleChange,
    attributes: &Attributes,
) -> Result<Applied, CommandError> {
    let profile = rule.profile.clone();
    if !is_channel_profile(&profile) {
        return Err(CommandError::Name {
            name: shorten(&profile),
            why: "a profile has at most 20 characters of a channel name and *".to_owned(),
        });
    }
    let found = queue_manager.channel_rules.get(&profile);
    let mut rules = found.cloned().unwrap_or_default();
    let describes = attributes.get("DESCR").is_some();
    change_rules(&mut rules, rule, change, describes).map_err(|error| match error {
        RuleError::Attribute(error) => error.into(),
        RuleError::Problem(problem) => CommandError::ChannelRule {
            profile: profile.clone(),
            problem,
        },
    })?;
    let all = &mut Arc::make_mut(queue_manager).channel_rules;
    if rules.is_empty() {
        all.remove(&profile);
    } else {
        all.insert(profile.clone(), rules);
    }
    Ok(Applied::ChannelRulesSet { profile })
}

fn not_a_name(text: &str, why: &ferrymq_types::NameError) -> CommandError {
    CommandError::Name {
        name: shorten(text),
        why: why.to_string(),
    }
}

fn queue_name(text: &str) -> Result<QueueName, CommandError> {
    QueueName::new(text).map_err(|e| not_a_name(text, &e))
}

fn channel_name(text: &str) -> Result<ChannelName, CommandError> {
    ChannelName::new(text).map_err(|e| not_a_name(text, &e))
}

fn process_name(text: &str) -> Result<ProcessName, CommandError> {
    ProcessName::new(text).map_err(|e| not_a_name(text, &e))
}

/// What queues, channels and processes have in common.
trait Object: Tabled + Clone {
    type Name: Ord + Clone + AsRef<str>;
    const CLASS: ObjectClass;

    fn objects(queue_manager: &QueueManager) -> &BTreeMap<Self::Name, Self>;
    fn objects_mut(queue_manager: &mut QueueManager) -> &mut BTreeMap<Self::Name, Self>;
    fn name(text: &str) -> Result<Self::Name, CommandError>;
    fn built_in(kind: ObjectKind, name: Self::Name) -> Option<Self>;
    fn kind_of(&self) -> ObjectKind;
    fn id(&self) -> ObjectId;
    fn set_identity(&mut self, id: ObjectId, name: Self::Name);
    fn created(&self) -> Timestamp;
    fn set_times(&mut self, created: Timestamp, altered: Timestamp);
    fn check(&self) -> Result<(), CommandError>;
}

impl Object for Queue {
    type Name = QueueName;
    const CLASS: ObjectClass = ObjectClass::Queue;

    fn objects(queue_manager: &QueueManager) -> &BTreeMap<QueueName, Self> {
        &queue_manager.queues
    }

    fn objects_mut(queue_manager: &mut QueueManager) -> &mut BTreeMap<QueueName, Self> {
        &mut queue_manager.queues
    }

    fn name(text: &str) -> Result<QueueName, CommandError> {
        queue_name(text)
    }

    fn built_in(kind: ObjectKind, name: QueueName) -> Option<Self> {
        Self::with_defaults(kind, name)
    }

    fn kind_of(&self) -> ObjectKind {
        self.kind()
    }

    fn id(&self) -> ObjectId {
        self.base().id
    }

    fn set_identity(&mut self, id: ObjectId, name: QueueName) {
        let base = self.base_mut();
        base.id = id;
        base.name = name;
    }

    fn created(&self) -> Timestamp {
        match self {
            Self::Local(q) => q.created,
            Self::Remote(q) => q.base.altered,
            Self::Alias(q) => q.base.altered,
            Self::Model(q) => q.template.created,
        }
    }

    fn set_times(&mut self, created: Timestamp, altered: Timestamp) {
        self.base_mut().altered = altered;
        match self {
            Self::Local(q) => q.created = created,
            Self::Model(q) => q.template.created = created,
            Self::Remote(_) | Self::Alias(_) => {}
        }
    }

    fn check(&self) -> Result<(), CommandError> {
        Ok(self.check_attributes()?)
    }
}

impl Object for Channel {
    type Name = ChannelName;
    const CLASS: ObjectClass = ObjectClass::Channel;

    fn objects(queue_manager: &QueueManager) -> &BTreeMap<ChannelName, Self> {
        &queue_manager.channels
    }

    fn objects_mut(queue_manager: &mut QueueManager) -> &mut BTreeMap<ChannelName, Self> {
        &mut queue_manager.channels
    }

    fn name(text: &str) -> Result<ChannelName, CommandError> {
        channel_name(text)
    }

    fn built_in(kind: ObjectKind, name: ChannelName) -> Option<Self> {
        Self::with_defaults(kind, name)
    }

    fn kind_of(&self) -> ObjectKind {
        self.kind()
    }

    fn id(&self) -> ObjectId {
        self.base().id
    }

    fn set_identity(&mut self, id: ObjectId, name: ChannelName) {
        let base = self.base_mut();
        base.id = id;
        base.name = name;
    }

    fn created(&self) -> Timestamp {
        self.base().altered
    }

    fn set_times(&mut self, _: Timestamp, altered: Timestamp) {
        self.base_mut().altered = altered;
    }

    fn check(&self) -> Result<(), CommandError> {
        Ok(self.check_required()?)
    }
}

impl Object for Process {
    type Name = ProcessName;
    const CLASS: ObjectClass = ObjectClass::Process;

    fn objects(queue_manager: &QueueManager) -> &BTreeMap<ProcessName, Self> {
        &queue_manager.processes
    }

    fn objects_mut(queue_manager: &mut QueueManager) -> &mut BTreeMap<ProcessName, Self> {
        &mut queue_manager.processes
    }

    fn name(text: &str) -> Result<ProcessName, CommandError> {
        process_name(text)
    }

    fn built_in(_: ObjectKind, name: ProcessName) -> Option<Self> {
        Some(Self::with_defaults(name))
    }

    fn kind_of(&self) -> ObjectKind {
        ObjectKind::Process
    }

    fn id(&self) -> ObjectId {
        self.id
    }

    fn set_identity(&mut self, id: ObjectId, name: ProcessName) {
        self.id = id;
        self.name = name;
    }

    fn created(&self) -> Timestamp {
        self.altered
    }

    fn set_times(&mut self, _: Timestamp, altered: Timestamp) {
        self.altered = altered;
    }

    fn check(&self) -> Result<(), CommandError> {
        Ok(())
    }
}

fn find<'a, T: Object>(
    queue_manager: &'a QueueManager,
    name: &T::Name,
) -> Result<&'a T, CommandError> {
    T::objects(queue_manager)
        .get(name)
        .ok_or_else(|| CommandError::NotFound {
            class: T::CLASS,
            name: name.as_ref().to_owned(),
        })
}

struct Define<'a> {
    kind: ObjectKind,
    attributes: &'a Attributes,
    like: Option<&'a str>,
    replace: bool,
    now: Timestamp,
}

impl Define<'_> {
    /// Defines `name`; takes `next_id` for a new object, and moves it on.
    fn perform<N>(
        &self,
        name: &N,
        queue_manager: &mut Arc<QueueManager>,
        next_id: &mut ObjectId,
    ) -> Result<Applied, CommandError>
    where
        N: Named,
    {
        let existing = N::Object::objects(queue_manager).get(name);
        if let Some(found) = existing {
            let (kind, text) = (found.kind_of(), name.as_ref().to_owned());
            if !self.replace {
                return Err(CommandError::Exists {
                    kind: self.kind,
                    name: text,
                });
            }
            if kind != self.kind {
                return Err(CommandError::WrongType {
                    name: text,
                    found: kind,
                });
            }
        }
        let (id, created) =
            existing.map_or((*next_id, self.now), |found| (found.id(), found.created()));
        let replaced = existing.is_some();

        let mut object = self.source::<N::Object>(queue_manager, name)?;
        object.set_identity(id, name.clone());
        object.set_times(created, self.now);
        object.set_all(self.attributes)?;
        object.check()?;

        N::Object::objects_mut(Arc::make_mut(queue_manager)).insert(name.clone(), object);
        let (kind, name) = (self.kind, name.as_ref().to_owned());
        Ok(if replaced {
            Applied::Replaced { kind, name, id }
        } else {
            *next_id = next_id.next();
            Applied::Created { kind, name, id }
        })
    }

    /// Where attributes that are not given come from: the object named by `LIKE`, the default object of the kind, or, if an
    /// operator deleted that, what it was at first.
    fn source<T: Object>(
        &self,
        queue_manager: &QueueManager,
        name: &T::Name,
    ) -> Result<T, CommandError> {
        if let Some(like) = self.like {
            let source = find::<T>(queue_manager, &T::name(like)?)?;
            let found = source.kind_of();
            return if found == self.kind {
                Ok(source.clone())
            } else {
                Err(CommandError::LikeWrongType {
                    name: like.to_owned(),
                    found,
                })
            };
        }
        let default = T::name(self.kind.default_object())?;
        T::objects(queue_manager)
            .get(&default)
            .filter(|d| d.kind_of() == self.kind)
            .cloned()
            .or_else(|| T::built_in(self.kind, name.clone()))
            .ok_or_else(|| CommandError::NotFound {
                class: T::CLASS,
                name: self.kind.default_object().to_owned(),
            })
    }
}

/// A name, and what it names.
trait Named: Ord + Clone + AsRef<str> {
    type Object: Object<Name = Self>;
}

impl Named for QueueName {
    type Object = Queue;
}

impl Named for ChannelName {
    type Object = Channel;
}

impl Named for ProcessName {
    type Object = Process;
}

fn alter<N: Named>(
    kind: ObjectKind,
    name: &N,
    attributes: &Attributes,
    now: Timestamp,
    queue_manager: &mut Arc<QueueManager>,
) -> Result<Applied, CommandError> {
    let found = find::<N::Object>(queue_manager, name)?;
    if found.kind_of() != kind {
        return Err(CommandError::WrongType {
            name: name.as_ref().to_owned(),
            found: found.kind_of(),
        });
    }
    let mut altered = found.clone();
    altered.set_all(attributes)?;
    altered.set_times(found.created(), now);
    altered.check()?;
    let id = altered.id();
    N::Object::objects_mut(Arc::make_mut(queue_manager)).insert(name.clone(), altered);
    Ok(Applied::Altered {
        kind,
        name: name.as_ref().to_owned(),
        id,
    })
}

fn delete<N: Named>(
    kind: DeleteKind,
    name: &N,
    queue_manager: &mut Arc<QueueManager>,
) -> Result<Applied, CommandError> {
    let found = find::<N::Object>(queue_manager, name)?;
    let (id, found) = (found.id(), found.kind_of());
    let text = name.as_ref().to_owned();
    if !kind.matches(found) {
        return Err(CommandError::WrongType { name: text, found });
    }
    N::Object::objects_mut(Arc::make_mut(queue_manager)).remove(name);
    Ok(Applied::Deleted {
        kind: found,
        name: text,
        id,
    })
}
