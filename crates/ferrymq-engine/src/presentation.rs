//! Where a getter has the properties of a message: as the get says, or as the queue does.
//!
//! Source: IBM MQ, "MQGMO_PROPERTIES_AS_Q_DEF" and the options after it, "PropertyControl".

use ferrymq_objects::{PropertyControl, Queue};
use ferrymq_types::{Properties, QueueName, rfh2};

use crate::Engine;

/// How a getter wants the properties of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum PropertyOption {
    /// Beside the data, unless the queue says `PROPCTL(FORCE)`. `MQGMO_PROPERTIES_AS_Q_DEF` with a message handle.
    #[default]
    AsQueueDefined,
    /// As the queue says, for a getter that takes nothing but data. `MQGMO_PROPERTIES_AS_Q_DEF` without a message handle.
    AsQueueDefinedInData,
    /// Beside the data, whatever the queue says. `MQGMO_PROPERTIES_IN_HANDLE`.
    InHandle,
    /// In a header in front of the data. `MQGMO_PROPERTIES_FORCE_MQRFH2`.
    ForceHeader,
    /// In a header in front of the data if one of them is of a kind that programs expect there, else not at all.
    /// `MQGMO_PROPERTIES_COMPATIBILITY`.
    Compatibility,
    /// Not at all. `MQGMO_NO_PROPERTIES`.
    None,
}

/// Where a getter has the properties of a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Presentation {
    /// Beside the data.
    #[default]
    Beside,
    /// In a header in front of the data: [`rfh2::header_of`].
    Header,
    /// Nowhere.
    Dropped,
}

/// What programs do not expect in a header without having asked for it.
const NOT_EXPECTED: &str = "mqps.";

impl Engine {
    /// Where a getter has these properties of a message on the queue that it knows by `name`.
    pub(crate) fn presentation(
        &self,
        name: &QueueName,
        option: PropertyOption,
        properties: &Properties,
    ) -> Presentation {
        // Messages without properties pay for this look only.
        if properties.is_empty() {
            return Presentation::Beside;
        }
        let compatible = || {
            if properties.iter().any(|p| !p.name.starts_with(NOT_EXPECTED)) {
                Presentation::Header
            } else {
                Presentation::Dropped
            }
        };
        match option {
            PropertyOption::InHandle => Presentation::Beside,
            PropertyOption::ForceHeader => Presentation::Header,
            PropertyOption::Compatibility => compatible(),
            PropertyOption::None => Presentation::Dropped,
            PropertyOption::AsQueueDefined => match self.property_control(name) {
                PropertyControl::Force => Presentation::Header,
                PropertyControl::Compatibility
                | PropertyControl::None
                | PropertyControl::All
                | PropertyControl::Version6 => Presentation::Beside,
            },
            PropertyOption::AsQueueDefinedInData => match self.property_control(name) {
                PropertyControl::All | PropertyControl::Force | PropertyControl::Version6 => {
                    Presentation::Header
                }
                PropertyControl::Compatibility => compatible(),
                PropertyControl::None => Presentation::Dropped,
            },
        }
    }

    /// Bytes that come in front of the data for it.
    pub(crate) fn header_length(
        &self,
        name: &QueueName,
        option: PropertyOption,
        properties: &Properties,
    ) -> u64 {
        match self.presentation(name, option, properties) {
            Presentation::Header => rfh2::header_length(properties) as u64,
            Presentation::Beside | Presentation::Dropped => 0,
        }
    }

    /// `PROPCTL` of the first definition on the path.
    fn property_control(&self, name: &QueueName) -> PropertyControl {
        match self.qmgr.queues.get(name) {
            Some(Queue::Local(q)) => q.property_control,
            Some(Queue::Alias(q)) => q.property_control,
            Some(Queue::Model(q)) => q.template.property_control,
            Some(Queue::Remote(_)) | None => PropertyControl::default(),
        }
    }
}
