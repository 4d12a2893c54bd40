//! Message properties: named values that travel beside the data, so that readers can select by them.

use std::sync::Arc;

use bytes::Bytes;

use crate::ReasonCode;

/// The longest property name, in bytes. `MQ_MAX_PROPERTY_NAME_LENGTH`. Beyond: 2442.
pub const PROPERTY_NAME_LENGTH_MAX: usize = 4095;

/// Most properties of one message. Beyond: 2478. A limit of our own.
pub const PROPERTIES_MAX: usize = 1024;

/// Most bytes of the names and values of one message's properties: 64 KiB. Beyond: 2478. A limit of our own;
/// `MAXPROPL` can be lower.
pub const PROPERTIES_LENGTH_MAX: usize = 64 * 1024;

/// What selectors have a meaning for: no property may be called so, in any case. IBM MQ, "Property names".
const RESERVED_WORDS: [&str; 11] = [
    "NULL", "TRUE", "FALSE", "NOT", "AND", "OR", "BETWEEN", "LIKE", "IN", "IS", "ESCAPE",
];

/// What the first part of a name may not be: other ways to name fields, data and folders.
const RESERVED_FIRST: [&str; 4] = ["Root", "Body", "Properties", "usr"];

/// Folders of a header whose names begin those of properties: `jms.Dst`. The one of all other properties, `usr`, does not.
pub(crate) const PROPERTY_FOLDERS: [&str; 4] = ["jms", "mcd", "mqext", "mqps"];

/// The value of a property. `MQTYPE_*`. Floats are equal if their bits are.
#[derive(Debug, Clone)]
pub enum PropertyValue {
    /// The property is there and has no value. `MQTYPE_NULL`.
    Null,
    /// `MQTYPE_BOOLEAN`.
    Boolean(bool),
    /// `MQTYPE_BYTE_STRING`.
    Bytes(Bytes),
    /// `MQTYPE_INT8`.
    Int8(i8),
    /// `MQTYPE_INT16`.
    Int16(i16),
    /// `MQTYPE_INT32`.
    Int32(i32),
    /// `MQTYPE_INT64`.
    Int64(i64),
    /// `MQTYPE_FLOAT32`.
    Float32(f32),
    /// `MQTYPE_FLOAT64`.
    Float64(f64),
    /// `MQTYPE_STRING`.
    String(String),
}

impl PartialEq for PropertyValue {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Null, Self::Null) => true,
            (Self::Boolean(a), Self::Boolean(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Int8(a), Self::Int8(b)) => a == b,
            (Self::Int16(a), Self::Int16(b)) => a == b,
            (Self::Int32(a), Self::Int32(b)) => a == b,
            (Self::Int64(a), Self::Int64(b)) => a == b,
            (Self::Float32(a), Self::Float32(b)) => a.to_bits() == b.to_bits(),
            (Self::Float64(a), Self::Float64(b)) => a.to_bits() == b.to_bits(),
            (Self::String(a), Self::String(b)) => a == b,
            (
                Self::Null
                | Self::Boolean(_)
                | Self::Bytes(_)
                | Self::Int8(_)
                | Self::Int16(_)
                | Self::Int32(_)
                | Self::Int64(_)
                | Self::Float32(_)
                | Self::Float64(_)
                | Self::String(_),
                _,
            ) => false,
        }
    }
}

impl Eq for PropertyValue {}

impl PropertyValue {
    /// Bytes of the value.
    #[must_use]
    pub fn length(&self) -> usize {
        match self {
            Self::Null => 0,
            Self::Boolean(_) | Self::Int8(_) => 1,
            Self::Int16(_) => 2,
            Self::Int32(_) | Self::Float32(_) => 4,
            Self::Int64(_) | Self::Float64(_) => 8,
            Self::Bytes(bytes) => bytes.len(),
            Self::String(text) => text.len(),
        }
    }

    /// What its type is called: `string`, `int32` and so on.
    #[must_use]
    pub const fn type_name(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Boolean(_) => "boolean",
            Self::Bytes(_) => "bytes",
            Self::Int8(_) => "int8",
            Self::Int16(_) => "int16",
            Self::Int32(_) => "int32",
            Self::Int64(_) => "int64",
            Self::Float32(_) => "float32",
            Self::Float64(_) => "float64",
            Self::String(_) => "string",
        }
    }

    /// Reads the text of a value of a type by its [`PropertyValue::type_name`]; bytes are hex digits.
    ///
    /// # Errors
    /// 2473 if there is no such type, or the text is no value of it.
    pub fn parse(text: &str, type_name: &str) -> Result<Self, ReasonCode> {
        let wrong = ReasonCode::PROPERTY_TYPE_ERROR;
        Ok(match type_name {
            "null" if text.is_empty() => Self::Null,
            "boolean" if text.eq_ignore_ascii_case("true") => Self::Boolean(true),
            "boolean" if text.eq_ignore_ascii_case("false") => Self::Boolean(false),
            "bytes" => Self::Bytes(bytes_of_hex(text).ok_or(wrong)?),
            "int8" => Self::Int8(text.parse().map_err(|_| wrong)?),
            "int16" => Self::Int16(text.parse().map_err(|_| wrong)?),
            "int32" => Self::Int32(text.parse().map_err(|_| wrong)?),
            "int64" => Self::Int64(text.parse().map_err(|_| wrong)?),
            "float32" => Self::Float32(text.parse().map_err(|_| wrong)?),
            "float64" => Self::Float64(text.parse().map_err(|_| wrong)?),
            "string" => Self::String(text.to_owned()),
            _ => return Err(wrong),
        })
    }
}

fn bytes_of_hex(text: &str) -> Option<Bytes> {
    let digit = |d: u8| u8::try_from(char::from(d).to_digit(16)?).ok();
    let pairs = text.as_bytes().chunks(2);
    let bytes: Option<Vec<u8>> = pairs
        .map(|pair| match pair {
            [high, low] => Some(digit(*high)? << 4 | digit(*low)?),
            _ => None,
        })
        .collect();
    bytes.map(Bytes::from)
}

/// A property.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Property {
    /// Its name; case matters.
    pub name: String,
    /// Its value.
    pub value: PropertyValue,
}

/// The properties of one message, in the order of their names. Without any it takes a pointer; a copy shares them.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Properties(Option<Arc<List>>);

#[derive(Debug, PartialEq, Eq)]
struct List {
    /// Sorted by name.
    properties: Vec<Property>,
    length: usize,
}

impl Properties {
    /// No properties.
    pub const NONE: Self = Self(None);

    /// Checks names and limits.
    ///
    /// # Errors
    /// 2442 for a name that may not be, or that is there twice; 2478 if they are too many, or too long together.
    pub fn new(mut properties: Vec<Property>) -> Result<Self, ReasonCode> {
        if properties.is_empty() {
            return Ok(Self::NONE);
        }
        if properties.len() > PROPERTIES_MAX {
            return Err(ReasonCode::PROPERTIES_TOO_BIG);
        }
        let mut length = 0_usize;
        for property in &properties {
            if !is_property_name(&property.name) {
                return Err(ReasonCode::PROPERTY_NAME_ERROR);
            }
            length = length
                .saturating_add(property.name.len())
                .saturating_add(property.value.length());
        }
        if length > PROPERTIES_LENGTH_MAX {
            return Err(ReasonCode::PROPERTIES_TOO_BIG);
        }
        properties.sort_by(|a, b| a.name.cmp(&b.name));
        let twice = |pair: &[Property]| matches!(pair, [a, b] if a.name == b.name);
        if properties.windows(2).any(twice) {
            return Err(ReasonCode::PROPERTY_NAME_ERROR);
        }
        Ok(Self(Some(Arc::new(List { properties, length }))))
    }

    /// Whether there are none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// Bytes of names and values.
    #[must_use]
    pub fn length(&self) -> usize {
        self.0.as_ref().map_or(0, |list| list.length)
    }

    /// The value of a property; `None` if there is none of that name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&PropertyValue> {
        let list = self.0.as_ref()?;
        let at = list
            .properties
            .binary_search_by(|property| property.name.as_str().cmp(name))
            .ok()?;
        list.properties.get(at).map(|property| &property.value)
    }

    /// All of them, in the order of their names.
    pub fn iter(&self) -> impl Iterator<Item = &Property> {
        self.0.iter().flat_map(|list| &list.properties)
    }
}

/// Whether an application may call a property so: parts of letters, digits, `_` and `$` with dots between, none beginning with a
/// digit; no word of selectors, and nothing that names a field, the data or a folder, but for those of [`PROPERTY_FOLDERS`] with
/// something in them.
///
/// Source: IBM MQ, "Property names", "Property name restrictions".
pub(crate) fn is_property_name(name: &str) -> bool {
    let is_part = |part: &str| {
        let mut characters = part.chars();
        let first = characters.next();
        first.is_some_and(|c| c.is_alphabetic() || matches!(c, '_' | '$'))
            && characters.all(|c| c.is_alphanumeric() || matches!(c, '_' | '$'))
    };
    let first = name.split('.').next().unwrap_or_default();
    let begins = |with: &str| {
        first
            .get(..with.len())
            .is_some_and(|start| start.eq_ignore_ascii_case(with))
    };
    let is_in_folder = PROPERTY_FOLDERS.contains(&first) && name.contains('.');
    name.len() <= PROPERTY_NAME_LENGTH_MAX
        && name.split('.').all(is_part)
        && (is_in_folder || !begins("mq") && !begins("jms"))
        && !RESERVED_FIRST
            .iter()
            .any(|word| first.eq_ignore_ascii_case(word))
        && !RESERVED_WORDS
            .iter()
            .any(|word| name.eq_ignore_ascii_case(word))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(name: &str, value: PropertyValue) -> Property {
        Property {
            name: name.to_owned(),
            value,
        }
    }

    #[test]
    fn names_are_java_identifiers_with_dots_and_reserved_ones_are_refused() {
        let long = "a".repeat(PROPERTY_NAME_LENGTH_MAX);
        for good in [
            "colour",
            "_x1",
            "$",
            "é",
            "com.example.orderType",
            "nullable",
            "inside",
            "jms.Dst",
            "mcd.Msd",
            "mqext.a.b",
            &long,
        ] {
            let one = Properties::new(vec![of(good, PropertyValue::Null)]);
            assert!(one.is_ok(), "{good}");
        }
        let longer = "a".repeat(PROPERTY_NAME_LENGTH_MAX + 1);
        for bad in [
            "",
            "1a",
            "a-b",
            "a b",
            ".a",
            "a.",
            "a..b",
            "a.1",
            "Null",
            "AND",
            "Like",
            "JMSPriority",
            "JMSXGroupID",
            "jms",
            "JMS.Dst",
            "mqext",
            "mqrfh",
            "MQMD.x",
            "Root.MQMD.Priority",
            "root",
            "Body",
            "usr.a",
            "Properties.a",
            "a'b",
            "a\0",
            &longer,
        ] {
            let one = Properties::new(vec![of(bad, PropertyValue::Null)]);
            assert_eq!(one, Err(ReasonCode::PROPERTY_NAME_ERROR), "{bad}");
        }
        let twice = vec![
            of("a", PropertyValue::Int8(1)),
            of("a", PropertyValue::Null),
        ];
        assert_eq!(Properties::new(twice), Err(ReasonCode::PROPERTY_NAME_ERROR));
    }

    #[test]
    fn properties_are_bounded_in_number_and_length() {
        let many = |n: usize| {
            (0..n)
                .map(|i| of(&format!("p{i}"), PropertyValue::Null))
                .collect()
        };
        assert!(Properties::new(many(PROPERTIES_MAX)).is_ok());
        assert_eq!(
            Properties::new(many(PROPERTIES_MAX + 1)),
            Err(ReasonCode::PROPERTIES_TOO_BIG)
        );
        let long = |n: usize| Properties::new(vec![of("a", PropertyValue::String("b".repeat(n)))]);
        let longest = long(PROPERTIES_LENGTH_MAX - 1).unwrap();
        assert_eq!(longest.length(), PROPERTIES_LENGTH_MAX);
        assert_eq!(
            long(PROPERTIES_LENGTH_MAX),
            Err(ReasonCode::PROPERTIES_TOO_BIG)
        );
    }

    #[test]
    fn a_property_is_found_by_its_name() {
        let properties = Properties::new(vec![
            of("b", PropertyValue::Int32(2)),
            of("a", PropertyValue::Float64(f64::NAN)),
        ])
        .unwrap();
        assert_eq!(properties.get("b"), Some(&PropertyValue::Int32(2)));
        assert_eq!(properties.get("B"), None);
        assert_eq!(properties, properties.clone());
        assert!(Properties::NONE.get("a").is_none());
        assert_eq!(size_of::<Properties>(), size_of::<usize>());
    }

    #[test]
    fn values_are_read_by_type() {
        let read = PropertyValue::parse;
        assert_eq!(read("-128", "int8"), Ok(PropertyValue::Int8(-128)));
        assert_eq!(
            read("0aFF", "bytes"),
            Ok(PropertyValue::Bytes(vec![10, 255].into()))
        );
        assert_eq!(read("True", "boolean"), Ok(PropertyValue::Boolean(true)));
        assert_eq!(read("", "null"), Ok(PropertyValue::Null));
        for (text, of) in [
            ("300", "int8"),
            ("1.5", "int32"),
            ("x", "float64"),
            ("yes", "boolean"),
            ("0", "bytes"),
            ("0g", "bytes"),
            ("x", "null"),
            ("x", "text"),
        ] {
            assert_eq!(
                read(text, of),
                Err(ReasonCode::PROPERTY_TYPE_ERROR),
                "{text}:{of}"
            );
        }
    }
}
