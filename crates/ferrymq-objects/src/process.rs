//! Processes: the applications that triggers start.

use ferrymq_types::{ObjectId, ProcessName, Timestamp};

use crate::attribute::{
    AttributeError, AttributeForm, AttributeProblem, AttributeSpec, Attributes,
};
use crate::table::{Row, Tabled, find_spec, mqsc_date, mqsc_time, specs, stored, text};
use crate::{ObjectKind, application_type_number, application_type_value};
use ferrymq_types::AttributeValue;

/// An application that a trigger monitor starts. `PROCESS`.
///
/// The queue manager starts nothing by itself: it writes all this into the trigger message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Process {
    /// Never used again.
    pub id: ObjectId,
    /// The name.
    pub name: ProcessName,
    /// `DESCR`, at most 64 characters.
    pub description: String,
    /// `APPLTYPE`, an `MQAT_*`. Default `UNIX`.
    pub application_type: u32,
    /// `APPLICID`: what is to be started, at most 256 characters.
    pub application_id: String,
    /// `ENVRDATA`: for its environment, at most 128 characters.
    pub environment_data: String,
    /// `USERDATA`: for itself, at most 128 characters.
    pub user_data: String,
    /// `ALTDATE`, `ALTTIME`.
    pub altered: Timestamp,
}

const KIND: &[ObjectKind] = &[ObjectKind::Process];

const fn spec(keyword: &'static str, form: AttributeForm) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form,
        kinds: KIND,
        settable: true,
    }
}

const fn shown(keyword: &'static str) -> AttributeSpec {
    AttributeSpec {
        keyword,
        synonyms: &[],
        form: AttributeForm::Text { max: 48 },
        kinds: KIND,
        settable: false,
    }
}

/// `set` of what is only shown.
fn never(_: &mut Process, _: &AttributeValue) -> Option<()> {
    None
}

/// An attribute that is text.
macro_rules! text_row {
    ($keyword:literal, $max:expr, $field:ident) => {
        Row {
            spec: spec($keyword, AttributeForm::Text { max: $max }),
            get: |p: &Process| Some(AttributeValue::text(&p.$field)),
            set: |p: &mut Process, v| {
                p.$field = text(v)?;
                Some(())
            },
        }
    };
}

/// Source: IBM MQ, "DEFINE PROCESS": defaults and lengths.
static ROWS: &[Row<Process>] = &[
    Row {
        spec: shown("ALTDATE"),
        get: |p| Some(AttributeValue::Text(mqsc_date(p.altered))),
        set: never,
    },
    Row {
        spec: shown("ALTTIME"),
        get: |p| Some(AttributeValue::Text(mqsc_time(p.altered))),
        set: never,
    },
    text_row!("APPLICID", 256, application_id),
    Row {
        spec: spec("APPLTYPE", AttributeForm::ApplicationType),
        get: |p| Some(application_type_value(p.application_type)),
        set: |p, v| {
            p.application_type = application_type_number(v)?;
            Some(())
        },
    },
    text_row!("DESCR", ferrymq_types::DESCRIPTION_LENGTH_MAX, description),
    text_row!("ENVRDATA", 128, environment_data),
    text_row!("USERDATA", 128, user_data),
];

/// Source: IBM MQ, "DEFINE PROCESS".
const NOT_SUPPORTED: &[&str] = &["CMDSCOPE", "QSGDISP"];

impl Tabled for Process {
    fn rows() -> &'static [Row<Self>] {
        ROWS
    }

    fn not_supported() -> &'static [&'static str] {
        NOT_SUPPORTED
    }

    fn object_kind(&self) -> Option<ObjectKind> {
        Some(ObjectKind::Process)
    }
}

/// The attribute of a process that `word`, in upper case, means.
///
/// # Errors
/// [`AttributeProblem`]: not known or not supported.
pub fn process_attribute(word: &str) -> Result<&'static AttributeSpec, AttributeProblem> {
    find_spec::<Process>(None, word)
}

/// The attributes of a process, alphabetically.
pub fn process_attributes() -> impl Iterator<Item = &'static AttributeSpec> {
    specs::<Process>(None)
}

impl Process {
    /// A process with IBM MQ's defaults, id and time zero.
    #[must_use]
    pub const fn with_defaults(name: ProcessName) -> Self {
        Self {
            id: ObjectId::ZERO,
            name,
            description: String::new(),
            application_type: crate::attribute::APPLICATION_TYPE_UNIX,
            application_id: String::new(),
            environment_data: String::new(),
            user_data: String::new(),
            altered: Timestamp::ZERO,
        }
    }

    /// What commands can set, with its values.
    #[must_use]
    pub fn settings(&self) -> Attributes {
        self.settable().collect()
    }

    /// What `DISPLAY PROCESS` shows besides the name, alphabetically.
    #[must_use]
    pub fn displayed(&self) -> Vec<(&'static str, AttributeValue)> {
        self.all()
    }

    /// Everything, for a snapshot: [`Process::from_attributes`] reads it back.
    #[must_use]
    pub fn to_attributes(&self) -> Attributes {
        [
            (stored::PROCESS, AttributeValue::text(self.name.as_str())),
            (stored::ID, AttributeValue::Number(self.id.get())),
            (
                stored::ALTERED,
                AttributeValue::Number(self.altered.as_millis()),
            ),
        ]
        .into_iter()
        .chain(self.settable())
        .collect()
    }

    /// Reads what [`Process::to_attributes`] made. An attribute that is missing, because it came later, has its default.
    ///
    /// # Errors
    /// [`AttributeError`] for an attribute that is not known (a newer format), a value that is not allowed, or a missing
    /// name, id or time.
    pub fn from_attributes(attributes: &Attributes) -> Result<Self, AttributeError> {
        let name = stored::required(attributes, stored::PROCESS, |v| {
            ProcessName::new(v.as_str()?).ok()
        })?;
        let mut process = Self::with_defaults(name);
        let number = |key| stored::required(attributes, key, AttributeValue::as_u64);
        process.id = ObjectId::new(number(stored::ID)?);
        process.altered = Timestamp::from_millis(number(stored::ALTERED)?);
        attributes
            .iter()
            .filter(|(k, _)| ![stored::PROCESS, stored::ID, stored::ALTERED].contains(k))
            .try_for_each(|(k, v)| process.set(k, v))?;
        Ok(process)
    }
}
