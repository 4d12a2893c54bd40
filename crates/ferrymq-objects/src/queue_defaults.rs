//! Queues as IBM MQ makes them where a command says nothing.

use ferrymq_types::{
    MESSAGE_LENGTH_DEFAULT, ObjectId, Persistence, Priority, QUEUE_DEPTH_DEFAULT, QueueName,
    Timestamp,
};

use crate::{
    AliasQueue, DefaultInputUse, DefinitionType, DeliverySequence, Enabled, LocalQueue, ModelQueue,
    NonPersistentClass, ObjectKind, PropertyControl, Queue, QueueBase, QueueEvents, RemoteQueue,
    TriggerType, Usage,
};

fn base(name: QueueName) -> QueueBase {
    QueueBase {
        id: ObjectId::ZERO,
        name,
        description: String::new(),
        put: Enabled::Yes,
        default_priority: Priority::default(),
        default_persistence: Persistence::NonPersistent,
        altered: Timestamp::ZERO,
    }
}

impl LocalQueue {
    /// A queue with IBM MQ's defaults, id and times zero.
    #[must_use]
    pub fn with_defaults(name: QueueName) -> Self {
        Self {
            base: base(name),
            get: Enabled::Yes,
            max_depth: QUEUE_DEPTH_DEFAULT,
            max_message_length: MESSAGE_LENGTH_DEFAULT,
            delivery_sequence: DeliverySequence::Priority,
            usage: Usage::Normal,
            trigger: false,
            trigger_type: TriggerType::First,
            trigger_data: String::new(),
            trigger_depth: 1,
            trigger_message_priority: Priority::default(),
            process_name: None,
            initiation_queue: None,
            backout_threshold: 0,
            backout_requeue_name: None,
            non_persistent_class: NonPersistentClass::Normal,
            property_control: PropertyControl::Compatibility,
            share: true,
            default_input_use: DefaultInputUse::Shared,
            definition_type: DefinitionType::Predefined,
            events: QueueEvents::default(),
            created: Timestamp::ZERO,
        }
    }
}

impl RemoteQueue {
    /// A definition with IBM MQ's defaults, id and times zero.
    #[must_use]
    pub fn with_defaults(name: QueueName) -> Self {
        Self {
            base: base(name),
            remote_name: None,
            remote_queue_manager: None,
            transmission_queue: None,
        }
    }
}

impl AliasQueue {
    /// A definition with IBM MQ's defaults, id and times zero.
    #[must_use]
    pub fn with_defaults(name: QueueName) -> Self {
        Self {
            base: base(name),
            get: Enabled::Yes,
            property_control: PropertyControl::Compatibility,
            target: None,
        }
    }
}

impl ModelQueue {
    /// A model with IBM MQ's defaults, id and times zero.
    #[must_use]
    pub fn with_defaults(name: QueueName) -> Self {
        let mut template = LocalQueue::with_defaults(name);
        template.share = false;
        template.default_input_use = DefaultInputUse::Exclusive;
        template.definition_type = DefinitionType::TemporaryDynamic;
        Self { template }
    }

    /// The dynamic queue that the open of the model makes.
    #[must_use]
    pub fn queue(&self, id: ObjectId, name: QueueName, now: Timestamp) -> LocalQueue {
        let mut queue = self.template.clone();
        queue.base.id = id;
        queue.base.name = name;
        queue.base.altered = now;
        queue.created = now;
        queue
    }
}

impl Queue {
    /// A queue of `kind` with IBM MQ's defaults; `None` if it is no kind of queue.
    pub(crate) fn with_defaults(kind: ObjectKind, name: QueueName) -> Option<Self> {
        match kind {
            ObjectKind::LocalQueue => Some(Self::Local(LocalQueue::with_defaults(name))),
            ObjectKind::RemoteQueue => Some(Self::Remote(RemoteQueue::with_defaults(name))),
            ObjectKind::AliasQueue => Some(Self::Alias(AliasQueue::with_defaults(name))),
            ObjectKind::ModelQueue => Some(Self::Model(ModelQueue::with_defaults(name))),
            ObjectKind::SenderChannel
            | ObjectKind::ReceiverChannel
            | ObjectKind::ServerConnectionChannel
            | ObjectKind::Process => None,
        }
    }
}
