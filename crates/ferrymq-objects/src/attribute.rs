//! Attributes as a command gives them: keyword and value, and what values a keyword takes.

use std::collections::{BTreeMap, btree_map};

use ferrymq_types::{ATTRIBUTE_MAX, AttributeValue, ProcessName, QueueManagerName, QueueName};

use crate::ObjectKind;

/// What values an attribute takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeForm {
    /// A number from `min` to `max`.
    Number {
        /// The lowest.
        min: u64,
        /// The highest.
        max: u64,
    },
    /// A number up to `max`, or a word.
    NumberOr {
        /// The word.
        word: &'static str,
        /// The highest.
        max: u64,
    },
    /// Text of at most `max` characters, none of them a control character.
    Text {
        /// Characters allowed.
        max: usize,
    },
    /// Up to `items` texts of at most `item` characters each.
    List {
        /// Texts allowed.
        items: usize,
        /// Characters of each.
        item: usize,
    },
    /// One of these words.
    Words(&'static [&'static str]),
    /// A word that stands alone, and its opposite with `NO` in front.
    Flag,
    /// The name of a queue, or blank.
    QueueName,
    /// The name of a queue manager, or blank.
    QueueManagerName,
    /// The name of a process, or blank.
    ProcessName,
    /// A word for a type of application, or the number of one of the user's own.
    ApplicationType,
    /// `host(port)`, several separated by commas, or blank; at most 264 characters.
    ConnectionName,
}

/// Longest `CONNAME`, in characters.
///
/// Source: IBM MQ, `MQ_CONN_NAME_LENGTH`.
pub const CONNECTION_NAME_LENGTH_MAX: usize = 264;

impl AttributeForm {
    /// What is allowed, in words.
    #[must_use]
    pub fn allowed(self) -> String {
        match self {
            Self::Number { min, max } => format!("a number from {min} to {max}"),
            Self::NumberOr { word, max } => format!("{word}, or a number from 0 to {max}"),
            Self::Text { max: 0 } => "blank".to_owned(),
            Self::Text { max } => {
                format!("text of at most {max} characters without control characters")
            }
            Self::List { items, item } => format!(
                "at most {items} texts of at most {item} characters without control characters"
            ),
            Self::Words(words) => words.join(", "),
            Self::Flag => "no value: the word stands alone".to_owned(),
            Self::QueueName => {
                "the name of a queue (at most 48 characters of A-Z a-z 0-9 . / _ %) or blank"
                    .to_owned()
            }
            Self::QueueManagerName => {
                "the name of a queue manager (at most 48 characters of A-Z a-z 0-9 . / _ %) or blank"
                    .to_owned()
            }
            Self::ProcessName => {
                "the name of a process (at most 48 characters of A-Z a-z 0-9 . / _ %) or blank"
                    .to_owned()
            }
            Self::ApplicationType => format!(
                "{}, or a number from {} to {ATTRIBUTE_MAX}",
                APPLICATION_TYPES.map(|(word, _)| word).join(", "),
                USER_APPLICATION_TYPE_MIN
            ),
            Self::ConnectionName => format!(
                "host(port), several separated by commas, at most {CONNECTION_NAME_LENGTH_MAX} characters, or blank"
            ),
        }
    }

    /// Reads a value from the text between the brackets. `text` has its quotes removed; blanks at the end do not count.
    ///
    /// # Errors
    /// [`AttributeProblem::Value`] if the attribute does not take it.
    pub fn read(self, text: &str) -> Result<AttributeValue, AttributeProblem> {
        let trimmed = text.trim_end_matches(' ');
        let value = match self {
            Self::Number { .. } => trimmed
                .trim_start_matches(' ')
                .parse::<u64>()
                .ok()
                .filter(|_| !trimmed.contains('+'))
                .map(AttributeValue::Number),
            Self::Words(_) => Some(AttributeValue::Word(trimmed.to_ascii_uppercase())),
            Self::ApplicationType | Self::NumberOr { .. } => Some(match trimmed.parse::<u64>() {
                Ok(number) if !trimmed.contains('+') => AttributeValue::Number(number),
                Ok(_) | Err(_) => AttributeValue::Word(trimmed.to_ascii_uppercase()),
            }),
            Self::Text { .. }
            | Self::QueueName
            | Self::QueueManagerName
            | Self::ProcessName
            | Self::ConnectionName => Some(AttributeValue::text(trimmed)),
            Self::List { .. } => return self.read_list([text]),
            Self::Flag => None,
        };
        let refused = || AttributeProblem::Value {
            given: shorten(text),
            allowed: self.allowed(),
        };
        let value = value.ok_or_else(refused)?;
        self.check(&value)?;
        Ok(value)
    }

    /// Reads the value of a list from its items, with their quotes removed. Blank items are none.
    ///
    /// # Errors
    /// [`AttributeProblem::Value`] if the attribute does not take it.
    pub fn read_list<'a>(
        self,
        items: impl IntoIterator<Item = &'a str>,
    ) -> Result<AttributeValue, AttributeProblem> {
        let items = items.into_iter().map(|i| i.trim_end_matches(' '));
        let items = items.filter(|i| !i.is_empty()).map(str::to_owned);
        let value = AttributeValue::List(items.collect());
        self.check(&value)?;
        Ok(value)
    }

    /// Whether the attribute takes `value`.
    ///
    /// # Errors
    /// [`AttributeProblem::Value`] if it does not.
    pub fn check(self, value: &AttributeValue) -> Result<(), AttributeProblem> {
        let printable =
            |t: &str, max: usize| t.chars().count() <= max && !t.chars().any(char::is_control);
        let good = match (self, value) {
            (Self::Number { min, max }, AttributeValue::Number(n)) => (min..=max).contains(n),
            (Self::NumberOr { max, .. }, AttributeValue::Number(n)) => *n <= max,
            (Self::NumberOr { word, .. }, AttributeValue::Word(w)) => w == word,
            (Self::Text { max }, AttributeValue::Text(t)) => printable(t, max),
            (Self::List { items, item }, AttributeValue::List(list)) => {
                list.len() <= items && list.iter().all(|i| printable(i, item))
            }
            (Self::Words(words), AttributeValue::Word(w)) => words.contains(&w.as_str()),
            (Self::Flag, AttributeValue::Flag(_)) => true,
            (Self::QueueName, AttributeValue::Text(t)) => t.is_empty() || QueueName::new(t).is_ok(),
            (Self::QueueManagerName, AttributeValue::Text(t)) => {
                t.is_empty() || QueueManagerName::new(t).is_ok()
            }
            (Self::ProcessName, AttributeValue::Text(t)) => {
                t.is_empty() || ProcessName::new(t).is_ok()
            }
            (Self::ApplicationType, value) => application_type_number(value).is_some(),
            (Self::ConnectionName, AttributeValue::Text(t)) => {
                printable(t, CONNECTION_NAME_LENGTH_MAX)
                    && (t.is_empty() || t.split(',').all(is_connection))
            }
            (
                Self::Number { .. }
                | Self::NumberOr { .. }
                | Self::Text { .. }
                | Self::List { .. }
                | Self::Words(_)
                | Self::Flag
                | Self::QueueName
                | Self::QueueManagerName
                | Self::ProcessName
                | Self::ConnectionName,
                _,
            ) => false,
        };
        if good {
            Ok(())
        } else {
            Err(AttributeProblem::Value {
                given: match value {
                    AttributeValue::Number(n) => n.to_string(),
                    AttributeValue::Text(t) | AttributeValue::Word(t) => shorten(t),
                    AttributeValue::Flag(_) => String::new(),
                    AttributeValue::List(items) => shorten(&items.join(",")),
                },
                allowed: self.allowed(),
            })
        }
    }
}

/// `MQAT_UNIX`, which is `MQAT_DEFAULT` here.
pub(crate) const APPLICATION_TYPE_UNIX: u32 = 6;

/// `MQAT_USER_FIRST`: the first number of a user's own.
const USER_APPLICATION_TYPE_MIN: u64 = 65_536;

/// The words of `APPLTYPE` and their `MQAT_*`; of two for one number the first is shown.
///
/// Source: IBM MQ, "DEFINE PROCESS", "ApplType (MQLONG)".
const APPLICATION_TYPES: [(&str, u32); 13] = [
    ("CICS", 1),
    ("MVS", 2),
    ("IMS", 3),
    ("OS2", 4),
    ("DOS", 5),
    ("UNIX", APPLICATION_TYPE_UNIX),
    ("OS400", 8),
    ("WINDOWS", 9),
    ("WINDOWSNT", 11),
    ("VMS", 12),
    ("NSK", 13),
    ("NOTESAGENT", 22),
    ("DEF", APPLICATION_TYPE_UNIX),
];

/// The `MQAT_*` that a value of `APPLTYPE` means; `None` if it means none.
#[must_use]
pub fn application_type_number(value: &AttributeValue) -> Option<u32> {
    match value {
        AttributeValue::Word(word) => {
            let mut all = APPLICATION_TYPES.iter();
            all.find(|(w, _)| w == word).map(|(_, number)| *number)
        }
        AttributeValue::Number(number) => u32::try_from(*number)
            .ok()
            .filter(|_| (USER_APPLICATION_TYPE_MIN..=u64::from(ATTRIBUTE_MAX)).contains(number)),
        AttributeValue::Text(_) | AttributeValue::Flag(_) | AttributeValue::List(_) => None,
    }
}

/// An `MQAT_*` as `APPLTYPE` shows it.
#[must_use]
pub fn application_type_value(number: u32) -> AttributeValue {
    let mut all = APPLICATION_TYPES.iter();
    match all.find(|(_, n)| *n == number) {
        Some((word, _)) => AttributeValue::Word((*word).to_owned()),
        None => AttributeValue::number(number),
    }
}

/// `host` or `host(port)`, where the host has no blanks, commas or brackets.
fn is_connection(text: &str) -> bool {
    let text = text.trim_matches(' ');
    let (host, port) = match text.split_once('(') {
        None => (text, None),
        Some((host, rest)) => (host.trim_end_matches(' '), Some(rest)),
    };
    let host_good = !host.is_empty() && !host.contains([' ', '(', ')', '\'', '"']);
    let port_good = port.is_none_or(|p| {
        p.strip_suffix(')').is_some_and(|digits| {
            digits.parse::<u16>().is_ok_and(|n| n > 0) && !digits.contains('+')
        })
    });
    host_good && port_good
}

/// What a message repeats of a value that somebody typed: bounded, and without control characters.
pub(crate) fn shorten(text: &str) -> String {
    const MAX: usize = 64;
    let clean = |c: char| if c.is_control() { '?' } else { c };
    let mut short: String = text.chars().take(MAX).map(clean).collect();
    if text.chars().nth(MAX).is_some() {
        short.push_str("...");
    }
    short
}

/// What is wrong with an attribute.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AttributeProblem {
    /// No such keyword.
    #[error("is not known")]
    Unknown,
    /// IBM MQ has it, we do not.
    #[error("is not supported yet")]
    NotSupported,
    /// It belongs to another kind of object.
    #[error("does not apply to this type of object")]
    NotApplicable,
    /// It is shown, not set.
    #[error("cannot be set")]
    ReadOnly,
    /// It has no value and must have one.
    #[error("is required")]
    Required,
    /// It is given twice.
    #[error("is given more than once")]
    Repeated,
    /// Its value is not allowed.
    #[error("does not take the value '{given}': allowed is {allowed}")]
    Value {
        /// The value, shortened.
        given: String,
        /// What is allowed, in words.
        allowed: String,
    },
}

/// What is wrong with an attribute, and which.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("attribute {keyword} {problem}")]
pub struct AttributeError {
    /// The keyword, shortened if it is not one.
    pub keyword: String,
    /// What is wrong with it.
    pub problem: AttributeProblem,
}

impl AttributeError {
    pub(crate) fn new(keyword: &str, problem: AttributeProblem) -> Self {
        Self {
            keyword: shorten(keyword),
            problem,
        }
    }
}

/// An attribute: its words and what values it takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttributeSpec {
    /// The keyword, in upper case.
    pub keyword: &'static str,
    /// Other words for it.
    pub synonyms: &'static [&'static str],
    /// What values it takes.
    pub form: AttributeForm,
    /// The kinds of object that have it; empty for the queue manager itself.
    pub kinds: &'static [ObjectKind],
    /// Whether commands may set it.
    pub settable: bool,
}

impl AttributeSpec {
    /// Whether `word`, in upper case, is the keyword or a synonym.
    #[must_use]
    pub fn is(&self, word: &str) -> bool {
        self.keyword == word || self.synonyms.contains(&word)
    }
}

/// The attributes of a command or of a stored definition: canonical keyword (upper case) to value, in the order of the
/// keywords.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Attributes(BTreeMap<String, AttributeValue>);

impl Attributes {
    /// None.
    #[must_use]
    pub const fn new() -> Self {
        Self(BTreeMap::new())
    }

    /// Adds one.
    ///
    /// # Errors
    /// [`AttributeProblem::Repeated`] if the keyword is there already.
    pub fn insert(&mut self, keyword: &str, value: AttributeValue) -> Result<(), AttributeError> {
        match self.0.entry(keyword.to_owned()) {
            btree_map::Entry::Vacant(entry) => {
                entry.insert(value);
                Ok(())
            }
            btree_map::Entry::Occupied(_) => {
                Err(AttributeError::new(keyword, AttributeProblem::Repeated))
            }
        }
    }

    /// The value of `keyword`.
    #[must_use]
    pub fn get(&self, keyword: &str) -> Option<&AttributeValue> {
        self.0.get(keyword)
    }

    /// Every keyword and its value.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &AttributeValue)> {
        self.0.iter().map(|(k, v)| (k.as_str(), v))
    }

    /// How many.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

impl<K: Into<String>> FromIterator<(K, AttributeValue)> for Attributes {
    /// The last value of a keyword counts.
    fn from_iter<I: IntoIterator<Item = (K, AttributeValue)>>(pairs: I) -> Self {
        Self(pairs.into_iter().map(|(k, v)| (k.into(), v)).collect())
    }
}
